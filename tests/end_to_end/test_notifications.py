"""People are told what happened by a real controller, whatever their receivers do, and no run waits for any of it."""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import pytest

from horarium.authority.signing import Keys, verify
from horarium.control import notifications
from horarium.control.principals import local_principal
from horarium.schedule.ledger import Disposition
from starter.notifying import LEASE
from tests.end_to_end.installation import Installation, installation, now, until
from tests.gateway.wire import OK, Answering, Received, Receiver, receiver, says

pytestmark = pytest.mark.server

VARIABLE = "HORARIUM_SECRET_PAGER"
SHARED = "a-secret-of-at-least-twenty-four-bytes"
BROKEN = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"
GONE = b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"
PATIENCE = 120.0
"""Seconds that anything may take on a busy machine."""


async def act(it: Installation, what: Callable[..., Any], **request: Any) -> dict[str, Any]:
    """An operator does something; its receipt."""
    scope = it.settings.scope
    receipt = await it.catalog.write(
        what, local_principal("grace", scope), scope, request, str(uuid.uuid4()), now=now()
    )
    return dict(receipt.document)


async def listens(it: Installation, name: str, there: Receiver, *kinds: str, schedule_id: str | None = None) -> None:
    one = {} if schedule_id is None else {"schedule_id": schedule_id}
    await act(it, notifications.add, name=name, url=there.url(), secret=VARIABLE, private=True, on=list(kinds), **one)


async def endpoint(it: Installation, name: str) -> dict[str, Any]:
    found = await it.catalog.read(notifications.endpoints_document, it.settings.scope)
    return next(each for each in found["endpoints"] if each["name"] == name)


def messages(there: Receiver) -> list[tuple[str, str]]:
    """The id and the type of each message, every one of which was signed by whoever holds the secret."""
    keys = Keys((SHARED.encode(),))
    return [
        (verify(each.headers, each.body, keys, now=now()), json.loads(each.body)["type"]) for each in there.requests
    ]


def types(there: Receiver) -> list[str]:
    return [kind for _, kind in messages(there)]


def in_turn(*answers: bytes) -> Answering:
    left = list(answers)

    async def answering(_request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(left.pop(0) if len(left) > 1 else left[0])

    return answering


@pytest.fixture(autouse=True)
def _shared_secret(monkeypatch):
    monkeypatch.setenv(VARIABLE, SHARED)


def told(folder, story: Callable[[Installation, AsyncExitStack], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with AsyncExitStack() as stack, installation(folder) as it:
            await story(it, stack)

    asyncio.run(whole())


def test_a_failed_run_is_told_until_it_is_heard_and_a_dead_letter_is_sent_again(tmp_path):
    async def story(it: Installation, stack: AsyncExitStack) -> None:
        pager = await stack.enter_async_context(receiver(in_turn(BROKEN, BROKEN, OK)))
        leaves = await stack.enter_async_context(receiver(in_turn(GONE, OK)))
        await listens(it, "pager", pager, "failed")
        await listens(it, "leaves", leaves, "failed", "review")
        key = await it.published(every=4, fails=True, pause_on_failure=True)
        await it.enabled(key)
        await until(lambda: len(pager.requests) == 3, lambda: f"three attempts, of {messages(pager)}", within=PATIENCE)
        assert types(pager) == ["failed"] * 3
        assert len({message_id for message_id, _ in messages(pager)}) == 1
        said = json.loads(pager.requests[0].body)["data"]
        ((failed, run),) = [(entry, run) for entry, run in it.rows(key) if entry.disposition is Disposition.FAILED]
        assert run is not None
        assert (said["run_id"], said["schedule_id"]) == (run.run_id, key.schedule_id)
        assert (said["disposition"], said["reason"], said["generation"]) == ("failed", failed.reason, 1)

        await until(lambda: len(leaves.requests) >= 1, "a message to the one that leaves", within=PATIENCE)

        async def stopped() -> bool:
            return (await endpoint(it, "leaves"))["stopped_at"] is not None

        await until(stopped, "the end of the one that leaves", within=PATIENCE)
        dead = await it.catalog.read(notifications.dead_letters, it.settings.scope, after=0, limit=10)
        assert {each["message"]["type"] for each in dead} == {"failed", "review"}
        before = len(leaves.requests)
        await listens(it, "leaves", leaves, "failed", "review")
        for each in dead:
            await act(it, notifications.again, id=each["id"])
        await until(
            lambda: len(leaves.requests) == before + len(dead),
            lambda: f"both again: {messages(leaves)}",
            within=PATIENCE,
        )
        again = {message_id for message_id, _ in messages(leaves)[before:]}
        assert again == {each["message_id"] for each in dead}
        await until(lambda: _heard(it, "leaves"), "what was sent again to be written down as heard", within=PATIENCE)
        await it.proven(key)

    told(tmp_path, story)


async def _heard(it: Installation, name: str) -> bool:
    found = await endpoint(it, name)
    return (found["waiting"], found["dead"]) == (0, 0)


def test_no_run_waits_for_a_receiver_that_hangs_and_a_heartbeat_beats_with_each_success(tmp_path):
    async def story(it: Installation, stack: AsyncExitStack) -> None:
        async def never(_request: Received, _writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(3_600)

        hangs = await stack.enter_async_context(receiver(never))
        watcher = await stack.enter_async_context(receiver(says(OK)))
        await listens(it, "hangs", hangs, "failed")
        failing = await it.published(every=2, fails=True)
        working = await it.published(every=2)
        await act(
            it,
            notifications.heartbeat,
            schedule_id=working.schedule_id,
            url=watcher.url(),
            secret=VARIABLE,
            private=True,
        )
        await it.enabled(failing)
        await it.enabled(working)
        await until(lambda: len(hangs.requests) >= 1, "a message to the one that hangs", within=PATIENCE)
        before = len(it.begun(working))
        await until(
            lambda: len(it.begun(working)) >= before + 8, "eight more runs of the other schedule", within=PATIENCE
        )
        await until(lambda: len(watcher.requests) >= 4, "heartbeats", within=PATIENCE)
        assert set(types(watcher)) == {"heartbeat"}
        assert len({message_id for message_id, _ in messages(watcher)}) == len(watcher.requests)
        assert {json.loads(each.body)["data"]["schedule_id"] for each in watcher.requests} == {working.schedule_id}
        assert (await endpoint(it, "hangs"))["delivered_at"] is None
        await it.proven(failing, working)

    told(tmp_path, story)


def test_a_controller_that_is_killed_after_the_post_is_followed_by_one_that_sends_the_same_id(tmp_path):
    async def story(it: Installation, stack: AsyncExitStack) -> None:
        posted, killed = asyncio.Event(), asyncio.Event()

        async def answers_the_dead(_request: Received, writer: asyncio.StreamWriter) -> None:
            posted.set()
            await killed.wait()
            writer.write(OK)

        pager = await stack.enter_async_context(receiver(answers_the_dead))
        await listens(it, "pager", pager, "review")
        key = await it.published(every=2, fails=True, pause_on_failure=True)
        await it.enabled(key)
        async with asyncio.timeout(PATIENCE):
            await posted.wait()
        await it.kill("controller")
        killed.set()
        await it.start("controller")
        within = PATIENCE + LEASE / timedelta(seconds=1)
        await until(lambda: len(pager.requests) == 2, "the same message by another controller", within=within)
        (first, _), (second, kind) = messages(pager)
        assert (first, kind) == (second, "review")
        await until(lambda: _heard(it, "pager"), "it to be written down as heard", within=PATIENCE)
        await it.proven(key)

    told(tmp_path, story)
