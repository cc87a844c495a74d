"""The HTTP adapter takes whatever is no valid answer in time for none, says why, and raises nothing."""

import asyncio
import gzip
import random
import time
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from horarium.authority.asking import Answers
from horarium.authority.content import MAX_INPUT_BYTES
from horarium.authority.http import MAX_ANSWER_BYTES, HttpAuthority
from horarium.authority.signing import Keys
from horarium.errors import NotFound, Refused, Unavailable
from starter.ports import free_port
from tests.authority.conformance.subjects import FURNITURE, SCOPE, new_run, question
from tests.authority.platform import KEYS, KINDS, Platform, serving

OK = b"HTTP/1.1 200 OK\r\n"
SHORT = timedelta(seconds=0.3)


def furnished():
    platform = Platform()
    platform.declared = {
        (kind, name): KINDS[kind].model_validate(facts)
        for kind, names in FURNITURE["declarations"].items()
        for name, facts in names.items()
    }
    platform.contents = {name: text.encode() for name, text in FURNITURE["contents"].items()}
    return platform


@pytest.fixture
def platform():
    return furnished()


@pytest.fixture
def url(platform):
    with serving(platform) as url:
        yield url


@asynccontextmanager
async def asked_at(base, **about):
    authority = HttpAuthority(base=base, keys=KEYS, **about)
    try:
        yield authority
    finally:
        await authority.aclose()


@asynccontextmanager
async def answering(answer, *, reads=b"\r\n\r\n"):
    """A server that answers each request by writing what it likes, and where it is."""

    async def serve(reader, writer):
        try:
            if reads:
                await reader.readuntil(reads)
            await answer(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


JSON = b"content-type: application/json"


def whole(body, *headers, status=OK):
    headers = (JSON, *headers)
    lines = b"".join(each + b"\r\n" for each in headers)
    return status + lines + b"content-length: %d\r\n\r\n" % len(body) + body


def writes(*parts, pause=0.0, ends=True):
    async def answer(writer):
        for each in parts:
            writer.write(each)
            await writer.drain()
            await asyncio.sleep(pause)
        if not ends:
            await asyncio.sleep(60)

    return answer


def trickles(head, part):
    async def answer(writer):
        writer.write(head)
        while True:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.02)

    return answer


def floods(part):
    async def answer(writer):
        writer.write(OK + JSON + b"\r\n\r\n")
        while True:
            writer.write(part)
            await writer.drain()

    return answer


FULL = b'{"member": true}'
NO_ANSWERS = {
    "hangs": (writes(ends=False), "timeout"),
    "hangs after its head": (writes(OK + JSON + b"\r\ncontent-length: 16\r\n\r\n", ends=False), "timeout"),
    "trickles its head": (trickles(OK, b"x-more: 1\r\n"), "timeout"),
    "trickles its body": (trickles(OK + JSON + b"\r\ncontent-length: 16000\r\n\r\n", b" "), "timeout"),
    "closes at once": (writes(), "broken_off"),
    "breaks off": (writes(OK + JSON + b"\r\ncontent-length: 16\r\n\r\n" + FULL[:8]), "broken_off"),
    "speaks another protocol": (writes(b"SSH-2.0-OpenSSH_9.9\r\n"), "broken_off"),
    "has a head without end": (writes(OK + b"x: " + b"y" * 200_000 + b"\r\n\r\n"), "broken_off"),
    "floods": (floods(b" " * 65_536), "too_large"),
    "says it is huge": (writes(whole(b" " * (MAX_ANSWER_BYTES + 1))), "too_large"),
    "compresses": (writes(whole(gzip.compress(FULL), b"content-encoding: gzip")), "encoded"),
    "answers for another": (writes(OK + b"content-type: text/html\r\ncontent-length: 4\r\n\r\ntrue"), "another_kind"),
    "answers nothing": (writes(whole(b"")), "invalid"),
    "answers a page": (writes(whole(b"<html>Welcome</html>")), "invalid"),
    "answers half a document": (writes(whole(b'{"member": tr')), "invalid"),
    "answers a list": (writes(whole(b"[]")), "invalid"),
    "answers a document without end": (writes(whole(b'{"member":' + b"[" * 100_000)), "invalid"),
    "answers in another encoding": (writes(whole('{"member": true}'.encode("utf-16"))), "invalid"),
    "answers not a number": (writes(whole(b'{"member": true, "room": NaN}')), "invalid"),
    "answers a number without end": (writes(whole(b'{"member": true, "room": ' + b"9" * 10_000 + b"}")), "invalid"),
    "answers text for a boolean": (writes(whole(b'{"member": "true"}')), "invalid"),
    "reserved for no run": (writes(whole(b'{"member": true, "reserved": 5}')), "invalid"),
    "redirects": (writes(whole(FULL, b"location: /v2", status=b"HTTP/1.1 307 Go on\r\n")), "status_307"),
    "says that it has gone": (writes(whole(FULL, status=b"HTTP/1.1 404 No\r\n")), "status_404"),
    "says that it is accepted": (writes(whole(FULL, status=b"HTTP/1.1 202 Later\r\n")), "status_202"),
    "fails": (writes(whole(FULL, status=b"HTTP/1.1 500 Oh\r\n")), "status_500"),
    "is too busy": (writes(whole(FULL, status=b"HTTP/1.1 503 No\r\n")), "status_503"),
}


@pytest.mark.parametrize("answer", NO_ANSWERS)
def test_what_is_no_answer_admits_nothing_and_says_why(answer):
    act, cause = NO_ANSWERS[answer]

    async def ask():
        async with answering(act) as base, asked_at(base, within=SHORT) as authority:
            began = time.monotonic()
            told = await authority.ask(question())
            return told, dict(authority.unanswered), time.monotonic() - began

    with capture_logs() as logs:
        told, counted, took = asyncio.run(ask())
    assert counted == {cause: 1}
    assert isinstance(told, Answers)
    assert (told.facts, told.reserved, told.are_there) == (None, None, False)
    assert told.unanswered_code == "authority_unavailable"
    assert told.unanswered
    assert told.unanswered.isprintable()
    assert took < 2
    with pytest.raises(Unavailable) as raised:
        told.has_input("letters")
    assert raised.value.code == "authority_unavailable"
    (line,) = logs
    assert (line["event"], line["cause"], line["because"]) == ("authority_unanswered", cause, told.unanswered)


def test_one_that_is_not_there_is_no_answer():
    async def ask():
        async with asked_at(f"http://127.0.0.1:{free_port()}") as authority:
            return await authority.ask(question()), dict(authority.unanswered)

    told, counted = asyncio.run(ask())
    assert counted == {"no_connection": 1}
    assert told.unanswered == "The platform's authority cannot be reached."


def test_one_without_a_certificate_is_no_answer():
    async def ask():
        plain = answering(writes(whole(FULL)), reads=b"")
        async with plain as base, asked_at(base.replace("http:", "https:")) as authority:
            return await authority.ask(question()), dict(authority.unanswered)

    told, counted = asyncio.run(ask())
    assert (told.facts, counted) == (None, {"no_connection": 1})


@pytest.mark.parametrize("confirmed", [b"{}", b"", b"{", b'{"run_id": "another"}', b'{"run_id": 1}'])
def test_an_end_is_told_again_until_it_is_confirmed_for_that_run(confirmed):
    async def close():
        async with answering(writes(whole(confirmed))) as base, asked_at(base) as authority:
            await authority.close_reservation(SCOPE, new_run(), spent=1)

    with pytest.raises(Unavailable):
        asyncio.run(close())


def test_the_page_of_a_proxy_is_not_taken_for_an_input():
    async def read():
        async with answering(writes(whole(b"Please log in."))) as base, asked_at(base) as authority:
            await authority.read_input(SCOPE, "letters", person="ada")

    with pytest.raises(Unavailable, match="something else than application/octet-stream"):
        asyncio.run(read())


def test_one_that_holds_another_secret_is_no_answer(platform, url):
    platform.keys = Keys((b"a secret that was changed at one side",))

    async def ask():
        async with asked_at(url) as authority:
            return await authority.ask(question(), run_id=new_run()), dict(authority.unanswered)

    told, counted = asyncio.run(ask())
    assert (told.facts, counted, platform.holds()) == (None, {"status_401": 1}, {})


def test_no_text_of_the_other_side_reaches_the_sentence():
    body = b'{"member": true, "grants": {"\\u001b[31m hunter2": {"hunter2\\u0007": 1}}}'

    async def ask():
        async with answering(writes(whole(body))) as base, asked_at(base) as authority:
            return await authority.ask(question())

    told = asyncio.run(ask())
    assert told.unanswered is not None
    assert told.unanswered.isprintable()


def test_a_secret_stands_in_no_log_line_and_in_no_text_of_the_adapter():
    async def ask():
        async with asked_at(f"http://127.0.0.1:{free_port()}") as authority:
            await authority.ask(question())
            return repr(authority)

    with capture_logs() as logs:
        shown = asyncio.run(ask())
    for text in (shown, repr(logs)):
        assert KEYS.first.decode() not in text
        assert "v1," not in text


def test_the_environment_sends_no_question_elsewhere(url, monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")

    async def ask():
        async with asked_at(url) as authority:
            return await authority.ask(question())

    assert asyncio.run(ask()).facts is not None


def test_one_adapter_serves_one_loop_after_the_other(url):
    authority = HttpAuthority(base=url, keys=KEYS)

    async def ask():
        try:
            return await authority.ask(question())
        finally:
            await authority.aclose()

    assert [asyncio.run(ask()).facts is not None for _ in range(2)] == [True, True]


def test_a_run_that_costs_nothing_is_asked_about_without_its_id(platform, url):
    async def ask():
        async with asked_at(url) as authority:
            return await authority.ask(question(usage="test_simulation", budget=None), run_id=new_run())

    assert asyncio.run(ask()).facts is not None
    assert [each["run_id"] for each in platform.asked] == [None]


def test_one_that_flaps_is_believed_when_it_answers_and_holds_nothing_once_all_is_told(platform, url):
    """Whatever it does in between, each run reserves once, and what was told is told for good."""
    chance = random.Random(4)

    async def flap(_path):
        match chance.randrange(6):
            case 0:
                return 500, b"{}"
            case 1:
                return 200, b"{"
            case 2:
                await asyncio.sleep(0.2)
        return None

    platform.fault = flap

    async def all_of_it():
        answered, runs = 0, [new_run() for _ in range(40)]
        async with asked_at(url, within=timedelta(seconds=0.1)) as authority:
            for run in runs:
                for _ in range(3):
                    told = await authority.ask(question(), run_id=run)
                    assert told.are_there == (told.facts is not None) == (told.unanswered is None)
                    if told.facts is not None:
                        answered += 1
                        assert told.reserved == 100
            for run in runs:
                while True:
                    try:
                        await authority.close_reservation(SCOPE, run, spent=None)
                    except Unavailable:
                        continue
                    break
            return answered, sum(authority.unanswered.values())

    answered, unanswered = asyncio.run(all_of_it())
    assert answered >= 40
    assert unanswered >= 20
    assert platform.holds() == {}


def test_an_input_of_four_mebibytes_is_read_and_one_byte_more_is_refused(platform, url):
    platform.contents["letters"] = bytes(MAX_INPUT_BYTES)
    platform.contents["diary"] = bytes(MAX_INPUT_BYTES + 1)

    async def read():
        async with asked_at(url) as authority:
            assert await authority.read_input(SCOPE, "letters", person="ada") == bytes(MAX_INPUT_BYTES)
            with pytest.raises(Refused) as refused:
                await authority.read_input(SCOPE, "diary", person="bob")
            assert refused.value.code == "input_too_large"

    asyncio.run(read())


@pytest.mark.parametrize(
    ("status", "raised", "code"),
    [
        (403, NotFound, "input_unreadable"),
        (404, NotFound, "input_unreadable"),
        (410, NotFound, "input_unreadable"),
        (301, Unavailable, "authority_unavailable"),
        (401, Unavailable, "authority_unavailable"),
        (429, Unavailable, "authority_unavailable"),
        (500, Unavailable, "authority_unavailable"),
    ],
)
def test_an_input_that_is_not_given_is_not_there_or_the_authority_is_not(platform, url, status, raised, code):
    async def fault(_path):
        return status, b"no"

    platform.fault = fault

    async def read():
        async with asked_at(url) as authority:
            await authority.read_input(SCOPE, "letters", person="ada")

    with pytest.raises(raised) as error:
        asyncio.run(read())
    assert error.value.code == code


def test_being_cancelled_is_no_answer_of_anybodys(platform, url):
    async def hang(_path):
        await asyncio.sleep(1)

    platform.fault = hang

    async def ask():
        async with asked_at(url) as authority:
            task = asyncio.create_task(authority.ask(question()))
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return dict(authority.unanswered)

    assert asyncio.run(ask()) == {}
