"""Addresses that are none, and answers that no server of ours gives: each is an error that the client names."""

import asyncio
import gzip
from datetime import timedelta

import httpx
import pytest

import horarium
from horarium.client import OutcomeUnknown, UnexpectedAnswer, problems
from horarium.client.calls import MAX_ANSWER
from horarium.errors import Misconfigured

from .wire import PUBLICATION, SCOPE, Server

NO_ADDRESSES = {
    "port beyond all": "http://127.0.0.1:99999",
    "port that is no number": "http://127.0.0.1:abc",
    "bracket left open": "http://[::1",
    "space in the host": "http://a b",
    "no name of a host": "http://xn--a",
    "line break": "http://127.0.0.1:1/\n",
}


@pytest.mark.parametrize("address", NO_ADDRESSES.values(), ids=NO_ADDRESSES)
def test_what_is_no_address_is_refused_when_the_client_is_made(address):
    with pytest.raises(Misconfigured, match="The server's address is http:// or https://"):
        horarium.Client(address, token="secret")


ODD = {
    "too deep": b"[" * 100_000 + b"]" * 100_000,
    "half a character": b'{"receipt_id": "\\ud800", "operation": "publish", "created_at": "2026-11-30T12:00:00Z"}',
    "half a character in bytes": b'{"receipt_id": "\xed\xa0\x80", "operation": "p", "created_at": "2026-11-30T12:00:00Z"}',
    "other encoding": '{"receipt_id": "r"}'.encode("utf-16"),
    "number of many digits": b'{"receipt_id": ' + b"9" * 5_000 + b"}",
    "no end": b" " * (MAX_ANSWER + 1),
}


def publish(server: Server):
    """Publish at a server."""

    async def call():
        async with server.client() as client:
            return await client.schedules.publish(SCOPE, PUBLICATION, "key")

    return asyncio.run(call())


def read(server: Server):
    """Read the environment at a server."""

    async def call():
        async with server.client() as client:
            return await client.environments.get(SCOPE)

    return asyncio.run(call())


@pytest.mark.parametrize("body", ODD.values(), ids=ODD)
def test_an_answer_that_cannot_be_read_leaves_a_mutation_uncertain_and_refuses_a_read(body):
    server = Server(lambda _request: httpx.Response(201, content=body))
    with pytest.raises(OutcomeUnknown):
        publish(server)
    with pytest.raises(UnexpectedAnswer):
        read(server)


@pytest.mark.parametrize("status", [500, 502, 599, 999])
def test_every_status_from_500_on_leaves_a_mutation_uncertain(status):
    with pytest.raises(OutcomeUnknown):
        publish(Server(lambda _request: httpx.Response(status, text="<html>no</html>")))


def test_a_compressed_answer_is_read_no_further_than_any_other():
    body = gzip.compress(b" " * (MAX_ANSWER + 1))
    server = Server(lambda _request: httpx.Response(201, headers={"Content-Encoding": "gzip"}, content=body))
    with pytest.raises(OutcomeUnknown, match="more than"):
        publish(server)


def test_an_answer_of_the_known_form_is_read_whatever_escapes_it_has():
    body = b'{"receipt_id": "\\u00e9\\ud83d\\ude00", "operation": "publish", "created_at": "2026-11-30T12:00:00Z"}'
    assert publish(Server(lambda _request: httpx.Response(201, content=body))).receipt_id == "é😀"


@pytest.mark.parametrize("wait", ["9" * 30, "Fri, 01 Jan 2100 00:00:00 GMT"])
def test_a_server_asks_to_wait_for_a_day_at_the_most(wait):
    with pytest.raises(problems.TooManyRequests) as found:
        read(Server({"code": "rate_limited", "detail": "Slowly."}, status=429, headers={"Retry-After": wait}))
    assert found.value.retry_after == timedelta(days=1)
