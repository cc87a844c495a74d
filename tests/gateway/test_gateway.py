"""What goes over the wire to a destination, and what each answer and each silence means."""

import asyncio
import json
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from activities import gateway as module
from horarium.authority.signing import Keys, verify
from horarium.control.dispatching import Answer
from horarium.errors import Misconfigured
from tests.gateway.wire import NOON, OK, SECRET, Answering, Receiver, claim, destination, gateway, receiver, says

AT_ONCE = timedelta(seconds=2)
"""Enough to connect on a busy machine, and little enough to wait for."""


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(60):
            return await work()

    return asyncio.run(bounded())


def posted(answering: Answering, **more: Any) -> tuple[module.Told, Receiver]:
    async def work() -> tuple[module.Told, Receiver]:
        async with receiver(answering) as there:
            return await gateway().post(claim(destination(there.url(**more)))), there

    return run(work)


def free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def test_a_run_is_told_everything_that_it_needs_and_signed():
    told, there = posted(says(OK))
    assert told.answer is Answer.TAKEN
    (request,) = there.requests
    run_id = claim(destination("http://agent.test")).run_id
    assert request.line == "POST / HTTP/1.1"
    assert request.headers["idempotency-key"] == request.headers["webhook-id"] == run_id
    assert request.headers["content-type"] == "application/json"
    assert verify(request.headers, request.body, Keys((SECRET,)), now=NOON) == run_id
    here = f"https://horarium.test/v1/organizations/acme/environments/test/runs/{run_id}"
    assert json.loads(request.body) == {
        "run_id": run_id,
        "schedule": {
            "org_id": "acme",
            "environment_id": "test",
            "schedule_id": "7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11",
            "revision": 2,
            "digest": "sha256:" + "4f" * 32,
        },
        "trigger": "schedule",
        "nominal_time": "2026-11-30T12:00:00Z",
        "actual_time": "2026-11-30T12:00:00.003000Z",
        "previous_success": None,
        "agent_version": "lines@1",
        "usage_class": "test_simulation",
        "output_target": "out",
        "grants": ["mail:read"],
        "input": {"url": f"{here}/input", "token": "the token of the run"},
        "outcome": {"url": f"{here}/outcome", "by": "callback"},
        "deadline": "2026-11-30T12:01:00Z",
    }


@pytest.mark.parametrize(
    "told",
    [
        {"config": {"cron": None, "most": 3}},
        {"config": {"cron": None}, "tenant_id": "acme"},
        {"start_event": "Review", "config": {"cron": None}},
        {"start_event": "Review", "event": {"letter": "Grüezi"}, "config": {"cron": {"minute": "0"}}},
    ],
)
def test_what_started_a_run_and_the_settings_of_its_profile_are_told_and_signed_where_there_are_any(told):
    async def work() -> tuple[Receiver, Receiver]:
        async with receiver(says(OK)) as plain, receiver(says(OK)) as there:
            await gateway().post(claim(destination(plain.url())))
            await gateway().post(claim(destination(there.url()), **told))
            return plain, there

    (plain,), (request,) = (each.requests for each in run(work))
    assert json.loads(request.body) == json.loads(plain.body) | told
    verify(request.headers, request.body, Keys((SECRET,)), now=NOON)
    assert not {"start_event", "event", "config", "tenant_id"} & json.loads(plain.body).keys()


def test_the_same_claim_is_sent_in_the_same_bytes():
    async def work() -> Receiver:
        async with receiver(says(OK)) as there:
            made = claim(destination(there.url()))
            await gateway().post(made)
            await gateway().post(made)
            return there

    first, second = run(work).requests
    assert first.body == second.body


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (200, Answer.TAKEN),
        (202, Answer.TAKEN),
        (204, Answer.TAKEN),
        (301, Answer.REFUSED),
        (307, Answer.REFUSED),
        (308, Answer.REFUSED),
        (400, Answer.REFUSED),
        (401, Answer.REFUSED),
        (404, Answer.REFUSED),
        (409, Answer.REFUSED),
        (410, Answer.REFUSED),
        (422, Answer.REFUSED),
        (408, Answer.UNKNOWN),
        (425, Answer.UNKNOWN),
        (429, Answer.UNKNOWN),
        (500, Answer.UNKNOWN),
        (503, Answer.UNKNOWN),
    ],
)
def test_what_a_status_means(status, answer):
    told, there = posted(says(f"HTTP/1.1 {status} X\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n".encode()))
    assert told.answer is answer
    assert str(status) in told.sentence
    assert there.connections == 1, "a redirection is not followed, and nothing is tried again here"


async def nothing(_request: Any, _writer: Any) -> None:
    """Close the connection without a word."""


async def hangs(_request: Any, _writer: Any) -> None:
    await asyncio.sleep(30)


async def trickles(_request: Any, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 202 Accepted\r\n")
    for number in range(1_000):
        writer.write(f"X-{number}: 1\r\n".encode())
        await writer.drain()
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    "answering",
    [
        nothing,
        hangs,
        trickles,
        says(b"rubbish\r\n\r\n"),
        says(b"HTTP/1.1 2xx\r\n\r\n"),
        says(b"HTTP/1.1 202 Accepted\r\nX: " + b"x" * 300_000 + b"\r\n\r\n"),
        says(b"\x16\x03\x01 this is TLS"),
    ],
    ids=["closes", "hangs", "trickles", "rubbish", "no status", "huge header", "other protocol"],
)
def test_an_answer_that_is_none_may_have_started_the_agent(answering, monkeypatch):
    monkeypatch.setattr(module, "ANSWER_WITHIN", AT_ONCE)
    told, there = posted(answering)
    assert told.answer is Answer.UNKNOWN
    assert there.connections == 1


def test_of_an_answer_nothing_is_read_but_its_status():
    """A body without an end, compressed to nothing, is not waited for."""

    async def endless(_request: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 202 Accepted\r\nContent-Encoding: gzip\r\nContent-Length: 999999999999\r\n\r\n")
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()

    assert posted(endless)[0].answer is Answer.TAKEN


class TestNothingWasSent:
    def test_where_nobody_listens(self):
        async def work():
            return await gateway().post(claim(destination(f"http://127.0.0.1:{free_port()}/")))

        told = run(work)
        assert told.answer is Answer.UNSENT
        assert "ConnectError" in told.sentence

    def test_what_went_wrong_is_told_with_its_traceback_and_without_the_path(self):
        async def work():
            return await gateway().post(claim(destination(f"http://127.0.0.1:{free_port()}/hooks/hunter2")))

        told = run(work)
        assert "Traceback" in told.trace
        assert "ConnectError" in told.trace
        assert "hunter2" not in told.trace
        assert "Traceback" not in repr(told)

    def test_an_answer_has_no_traceback(self):
        async def work():
            async with receiver(says(b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n")) as there:
                return await gateway().post(claim(destination(there.url())))

        told = run(work)
        assert (told.answer, told.trace) == (Answer.UNKNOWN, "")

    def test_where_the_name_is_not_found(self):
        async def work():
            async def resolving(_host, _port):
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

            return await gateway(resolving=resolving).post(claim(destination("http://agent.test/")))

        assert run(work).answer is Answer.UNSENT

    def test_where_the_lookup_hangs(self, monkeypatch):
        monkeypatch.setattr(module, "ANSWER_WITHIN", AT_ONCE)

        async def work():
            async def resolving(_host, _port):
                await asyncio.sleep(30)

            return await gateway(resolving=resolving).post(claim(destination("http://agent.test/")))

        assert run(work).answer is Answer.UNSENT

    def test_where_the_secret_is_missing(self):
        def missing(variable):
            raise Misconfigured(f"The environment variable {variable} holds no secret.")

        async def work():
            sends = module.HttpGateway("https://horarium.test", keys_of=missing)
            return await sends.post(claim(destination("http://127.0.0.1:9/")))

        assert run(work).answer is Answer.UNSENT

    def test_where_it_speaks_no_tls(self):
        async def work():
            async with receiver(says(OK)) as there:
                return await gateway().post(claim(destination(there.url(scheme="https")))), there

        told, there = run(work)
        assert told.answer is Answer.UNSENT
        assert there.requests == []


class TestAddresses:
    def test_a_forbidden_address_is_not_even_connected_to(self):
        async def work():
            async with receiver(says(OK)) as there:
                to = destination(there.url(scheme="https"), private=False)
                return await gateway().post(claim(to)), there

        told, there = run(work)
        assert told.answer is Answer.REFUSED
        assert "not registered as private" in told.sentence
        assert there.connections == 0

    def test_a_name_is_looked_up_once_and_connected_to_what_was_found(self):
        """A name that means another address at the second lookup is never asked a second time."""
        asked = []

        async def work():
            async with receiver(says(OK)) as there:

                async def resolving(host, port):
                    asked.append((host, port))
                    return ["127.0.0.1"]

                # The system has no such name: a lookup of its own would fail.
                told = await gateway(resolving=resolving).post(claim(destination(there.url(host="agent.test"))))
                return told, there

        told, there = run(work)
        assert told.answer is Answer.TAKEN
        assert asked == [("agent.test", there.port)]
        assert there.requests[0].headers["host"] == f"agent.test:{there.port}"

    def test_the_next_address_is_tried_where_one_takes_no_connection(self):
        async def work():
            async with receiver(says(OK)) as there:

                async def resolving(_host, _port):
                    return ["::1", "127.0.0.1"]

                return await gateway(resolving=resolving).post(claim(destination(there.url(host="agent.test"))))

        assert run(work).answer is Answer.TAKEN

    def test_a_proxy_of_the_environment_is_not_asked(self, monkeypatch):
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
        assert posted(says(OK))[0].answer is Answer.TAKEN


def certificate(folder, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context with a certificate for a name, and a client's that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    both = folder / "both.pem"
    both.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.public_bytes(serialization.Encoding.PEM)
    )
    serves = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serves.load_cert_chain(both)
    return serves, ssl.create_default_context(cadata=made.public_bytes(serialization.Encoding.PEM).decode())


@pytest.mark.parametrize(
    ("named", "answer"), [("agent.test", Answer.TAKEN), ("other.test", Answer.UNSENT)], ids=["its name", "another"]
)
def test_the_certificate_has_to_be_that_of_the_name_whatever_address_was_checked(tmp_path, named, answer):
    serves, trusts = certificate(tmp_path, named)

    async def work():
        async def resolving(_host, _port):
            return ["127.0.0.1"]

        async with receiver(says(OK), tls=serves) as there:
            to = destination(there.url(host="agent.test", scheme="https"))
            return await gateway(resolving=resolving, trusts=trusts).post(claim(to)), there

    told, there = run(work)
    assert told.answer is answer
    assert len(there.requests) == (answer is Answer.TAKEN)


def test_a_certificate_that_nobody_vouches_for_is_not_taken(tmp_path):
    serves, _ = certificate(tmp_path, "agent.test")

    async def work():
        async def resolving(_host, _port):
            return ["127.0.0.1"]

        async with receiver(says(OK), tls=serves) as there:
            return await gateway(resolving=resolving).post(
                claim(destination(there.url(host="agent.test", scheme="https")))
            )

    assert run(work).answer is Answer.UNSENT


def test_no_secret_and_no_token_stands_in_a_log_or_a_sentence():
    with structlog.testing.capture_logs() as logged:
        told, there = posted(says(b"HTTP/1.1 500 X\r\n\r\n"))
    text = repr(logged) + repr(told)
    assert "500" in text
    assert SECRET.decode() not in text
    assert "the token of the run" not in text
    assert there.requests[0].headers["webhook-signature"] not in text


def answered(body: bytes, status: int = 200) -> Answering:
    return says(f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


class TestPolls:
    def polled(self, answering: Answering) -> tuple[module.Polled, Receiver]:
        async def work():
            async with receiver(answering) as there:
                return await gateway().poll(destination(there.url("/agent/")), "run-1"), there

        return run(work)

    def test_an_outcome_is_read(self):
        said, there = self.polled(answered(b'{"outcome": "failed", "summary": "no", "cost": 3}'))
        assert (said.report.outcome, said.report.summary, said.report.cost) == ("failed", "no", 3)
        (request,) = there.requests
        assert request.line == "GET /agent/runs/run-1 HTTP/1.1"
        assert verify(request.headers, b"", Keys((SECRET,)), now=NOON) == "poll:run-1"

    @pytest.mark.parametrize(
        "answering",
        [
            answered(b'{"outcome": "running"}'),
            answered(b'{"outcome": "done"}'),
            answered(b'{"outcome": "succeeded", "cost": -5}'),
            answered(b"rubbish"),
            answered(b"[" * 100_000),
            answered(b'"' + b"x" * (module.MAX_ANSWER + 1) + b'"'),
            answered(b'{"outcome": "succeeded"}', status=404),
            answered(b'{"outcome": "succeeded"}', status=302),
            answered(b'{"outcome": "succeeded"}', status=500),
            nothing,
        ],
        ids=["running", "unknown", "lie", "rubbish", "deep", "huge", "404", "302", "500", "closed"],
    )
    def test_whatever_is_no_outcome_is_asked_again(self, answering):
        assert self.polled(answering)[0] == module.Polled()

    def test_a_run_that_is_gone_has_no_outcome_any_more(self):
        assert self.polled(answered(b"", status=410))[0] == module.Polled(gone=True)


def test_a_cancellation_is_told_once_and_as_well_as_it_goes():
    async def work():
        async with receiver(says(OK)) as there:
            heard = await gateway().cancel(destination(there.url("/agent")), "run-1")
        nobody = await gateway().cancel(destination(f"http://127.0.0.1:{free_port()}/"), "run-1")
        return heard, nobody, there

    heard, nobody, there = run(work)
    assert (heard, nobody) == (True, False)
    (request,) = there.requests
    assert request.line == "POST /agent/runs/run-1/cancel HTTP/1.1"
    assert verify(request.headers, request.body, Keys((SECRET,)), now=NOON) == "cancel:run-1"
