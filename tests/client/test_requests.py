"""What is sent: one request, as it was when the method was called, with a fresh token and the caller's key."""

import asyncio
import copy
import json
from datetime import UTC, datetime

import httpx
import pytest

import horarium
from horarium.errors import InvalidSchedule, Misconfigured, Refused
from horarium.schedule.document import MAX_DOCUMENT_BYTES
from horarium.schedule.identity import Scope

from .wire import (
    CHANGE,
    ENTRY,
    ENVIRONMENT,
    EVENT,
    OCCURRENCE,
    PREVIEW,
    PUBLICATION,
    RECEIPT,
    RECORD,
    REFERENCE,
    RESOURCE,
    ROOT,
    SCHEDULE,
    SCOPE,
    Server,
)

CALLS = {
    "environment": (lambda c: c.environments.get(SCOPE), ENVIRONMENT, "GET", ROOT, None),
    "publish": (
        lambda c: c.schedules.publish(SCOPE, PUBLICATION, "k 1"),
        RECEIPT,
        "POST",
        f"{ROOT}/schedules",
        PUBLICATION,
    ),
    "enable": (
        lambda c: c.schedules.set_enabled(SCOPE, {**CHANGE, "enabled": True}, "k 1"),
        RECEIPT,
        "POST",
        f"{ROOT}/schedules/{SCHEDULE}/activation",
        {**CHANGE, "enabled": True},
    ),
    "retire": (
        lambda c: c.schedules.retire(SCOPE, CHANGE, "k 1"),
        RECEIPT,
        "POST",
        f"{ROOT}/schedules/{SCHEDULE}/retirement",
        CHANGE,
    ),
    "trigger": (
        lambda c: c.schedules.trigger(SCOPE, {**CHANGE, "overlap": "allow"}, "k 1"),
        RECEIPT,
        "POST",
        f"{ROOT}/schedules/{SCHEDULE}/runs",
        {**CHANGE, "overlap": "allow"},
    ),
    "get": (lambda c: c.schedules.get(SCOPE, SCHEDULE), RECORD, "GET", f"{ROOT}/schedules/{SCHEDULE}", None),
    "get at a revision": (
        lambda c: c.schedules.get(SCOPE, SCHEDULE, revision=2),
        RECORD,
        "GET",
        f"{ROOT}/schedules/{SCHEDULE}?revision=2",
        None,
    ),
    "get_version": (
        lambda c: c.schedules.get_version(SCOPE, RESOURCE),
        RECORD,
        "GET",
        f"{ROOT}/schedule-versions/{RESOURCE}",
        None,
    ),
    "list": (
        lambda c: c.schedules.list(SCOPE),
        {"schedules": [ENTRY], "next_cursor": None},
        "GET",
        f"{ROOT}/schedules?limit=25&include_retired=false",
        None,
    ),
    "list the next page": (
        lambda c: c.schedules.list(SCOPE, limit=2, after=SCHEDULE, include_retired=True),
        {"schedules": [ENTRY], "next_cursor": None},
        "GET",
        f"{ROOT}/schedules?limit=2&include_retired=true&after={SCHEDULE}",
        None,
    ),
    "occurrences": (
        lambda c: c.schedules.occurrences(
            SCOPE,
            SCHEDULE,
            since=datetime(2026, 11, 30, tzinfo=UTC),
            dispositions=["failed", "missed"],
            newest_first=True,
        ),
        {"occurrences": [OCCURRENCE], "next_cursor": None},
        "GET",
        f"{ROOT}/schedules/{SCHEDULE}/occurrences?limit=100&disposition=failed&disposition=missed&from=2026-11-30T00%3A00%3A00Z&newest_first=true",
        None,
    ),
    "events": (
        lambda c: c.schedules.events(SCOPE, SCHEDULE, after=6),
        {"events": [EVENT], "next_cursor": None},
        "GET",
        f"{ROOT}/schedules/{SCHEDULE}/events?limit=100&after=6",
        None,
    ),
    "preview": (
        lambda c: c.schedules.preview(SCOPE, {"name": "Review"}, since=datetime(2026, 12, 1, tzinfo=UTC), limit=1),
        PREVIEW,
        "POST",
        f"{ROOT}/schedule-previews",
        {"spec": {"name": "Review"}, "from": "2026-12-01T00:00:00Z", "limit": 1},
    ),
    "receipt": (lambda c: c.receipts.get(SCOPE, "k/1 #?"), RECEIPT, "GET", f"{ROOT}/receipts/k%2F1%20%23%3F", None),
}
MUTATIONS = ("publish", "enable", "retire", "trigger")


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_one_request_with_a_bearer_token_and_the_key_of_a_mutation(name):
    call, answer, method, target, body = CALLS[name]
    server = Server(answer)
    asyncio.run(call(server.client("abc.def")))
    sent = server.only
    assert (sent.method, sent.url.raw_path.decode()) == (method, target)
    assert (json.loads(sent.content) if sent.content else None) == body
    assert sent.headers["Authorization"] == "Bearer abc.def"
    assert sent.headers.get("Idempotency-Key") == ("k 1" if name in MUTATIONS else None)
    assert sent.headers.get("Content-Type") == (None if body is None else "application/json")


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_request_is_copied_before_the_token_is_awaited(name):
    request = copy.deepcopy({**PUBLICATION, **CHANGE, "configuration": {"policy": {"overlap": "skip"}}})
    before = copy.deepcopy(request)
    server = Server(RECEIPT)

    async def live() -> None:
        asked, given = asyncio.Event(), asyncio.Event()

        async def token() -> str:
            asked.set()
            await given.wait()
            return "late"

        schedules = server.client(token).schedules
        method = {"enable": schedules.set_enabled}.get(name) or getattr(schedules, name)
        call = asyncio.create_task(method(SCOPE, request, "k"))
        # The task has not begun yet, and already the caller's own may change.
        request["expected_revision"] = 99
        await asked.wait()
        request["configuration"]["policy"]["overlap"] = "allow"
        request["version"] = {**REFERENCE, "schedule_id": "another"}
        assert server.requests == []
        given.set()
        await call

    asyncio.run(live())
    assert json.loads(server.only.content) == before
    assert server.only.url.path.startswith(f"{ROOT}/schedules")
    assert "another" not in server.only.url.path


def plain_token():
    return "plain"


async def coroutine_token():
    return "awaited"


@pytest.mark.parametrize(
    ("token", "sent"),
    [("text", "text"), (plain_token, "plain"), (coroutine_token, "awaited")],
    ids=["text", "function", "coroutine"],
)
def test_a_token_is_a_text_or_whatever_gives_one(token, sent):
    server = Server(ENVIRONMENT)
    asyncio.run(server.client(token).environments.get(SCOPE))
    assert server.only.headers["Authorization"] == f"Bearer {sent}"


def test_the_token_is_asked_anew_for_each_call():
    tokens = iter(["first", "second"])
    server = Server(ENVIRONMENT)

    async def live() -> None:
        async with server.client(lambda: next(tokens)) as client:
            await client.environments.get(SCOPE)
            await client.environments.get(SCOPE)

    asyncio.run(live())
    assert [each.headers["Authorization"] for each in server.requests] == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize("token", ["", "two words", "a\nb", "ä", "secret\r\nX-Admin: yes"])
def test_what_cannot_be_a_token_is_refused_and_not_repeated(token):
    server = Server(ENVIRONMENT)
    with pytest.raises(Misconfigured) as refused:
        asyncio.run(server.client(token).environments.get(SCOPE))
    assert server.requests == []
    assert "secret" not in str(refused.value)


def test_a_token_that_cannot_be_had_sends_nothing():
    server = Server(RECEIPT)

    async def token() -> str:
        raise RuntimeError("the identity provider is away")

    with pytest.raises(RuntimeError, match="identity provider"):
        asyncio.run(server.client(token).schedules.publish(SCOPE, PUBLICATION, "k"))
    assert server.requests == []


@pytest.mark.parametrize("key", ["", "a" * 201, " k", "k ", "k\n", "clé", "\x7f"])
def test_what_cannot_be_a_key_is_refused_before_anything_is_sent(key):
    server = Server(RECEIPT)
    with pytest.raises(InvalidSchedule, match="1 to 200 printable ASCII"):
        server.client().schedules.publish(SCOPE, PUBLICATION, key)
    assert server.requests == []


NO_JSON = {
    "datetime": {"at": datetime(2026, 1, 1, tzinfo=UTC)},
    "not a number": {"at": float("nan")},
    "half a character": {"at": "\ud800"},
    "huge integer": {"at": 2**60},
    "key that is no text": {"at": {1: 2}},
}


@pytest.mark.parametrize("configuration", NO_JSON.values(), ids=NO_JSON)
def test_a_request_that_is_no_json_is_refused_with_its_place(configuration):
    server = Server(RECEIPT)
    with pytest.raises(InvalidSchedule) as refused:
        server.client().schedules.publish(SCOPE, {**PUBLICATION, "configuration": configuration}, "k")
    assert refused.value.faults[0].pointer == "/configuration/at"
    assert server.requests == []


@pytest.mark.parametrize("version", [None, {}, {"schedule_id": 7}, "text"])
def test_a_change_that_names_no_version_is_refused(version):
    with pytest.raises(InvalidSchedule) as refused:
        Server().client().schedules.retire(SCOPE, {**CHANGE, "version": version}, "k")
    assert refused.value.faults[0].pointer == "/version/schedule_id"


def test_a_scope_is_a_mapping_or_a_value_and_cannot_leave_its_place_in_the_path():
    server = Server(ENVIRONMENT)
    asyncio.run(server.client().environments.get(Scope(org_id="acme", environment_id="test")))
    assert server.only.url.path == ROOT
    for scope in ({"org_id": "acme"}, {**SCOPE, "more": "x"}, {**SCOPE, "org_id": 7}, {**SCOPE, "org_id": "../../x"}):
        with pytest.raises(Refused, match="invalid_scope"):
            server.client().environments.get(scope)


def test_ids_are_quoted_in_the_path():
    server = Server(RECORD)
    asyncio.run(server.client().schedules.get(SCOPE, "../receipts/x?y#z"))
    assert server.only.url.raw_path.decode() == f"{ROOT}/schedules/..%2Freceipts%2Fx%3Fy%23z"


def test_a_naive_time_is_refused():
    with pytest.raises(InvalidSchedule, match="names no zone"):
        Server().client().schedules.occurrences(SCOPE, SCHEDULE, since=datetime(2026, 1, 1))  # noqa: DTZ001


@pytest.mark.parametrize(
    "address", ["", "api.test", "ftp://api.test", "http://", "http://user:hunter2@api.test", "http://api.test?x=1"]
)
def test_an_address_that_is_none_is_refused_and_no_password_repeated(address):
    with pytest.raises(Misconfigured) as refused:
        horarium.Client(address, token="t")
    assert "hunter2" not in str(refused.value)


def test_an_address_may_have_a_path():
    server = Server(ENVIRONMENT)
    client = horarium.Client("http://api.test/horarium/", token="t", transport=httpx.MockTransport(server))
    asyncio.run(client.environments.get(SCOPE))
    assert server.only.url.path == f"/horarium{ROOT}"


def test_all_pages_of_the_directory_are_walked():
    def answer(request: httpx.Request) -> httpx.Response:
        after = int(request.url.params.get("after", "0"))
        entries = [{**ENTRY, "schedule_id": str(after + each)} for each in (1, 2)]
        return httpx.Response(200, json={"schedules": entries, "next_cursor": None if after >= 4 else str(after + 2)})

    server = Server(answer)

    async def live() -> list[str]:
        return [each.schedule_id async for each in server.client().schedules.iterate(SCOPE, include_retired=True)]

    assert asyncio.run(live()) == ["1", "2", "3", "4", "5", "6"]
    assert {each.url.params["limit"] for each in server.requests} == {"50"}
    assert {each.url.params["include_retired"] for each in server.requests} == {"true"}


def test_a_request_that_no_server_reads_is_refused_before_it_is_sent():
    """The server answers before all of it has arrived, and then that answer may be lost: the outcome seemed unknown."""
    server = Server(RECEIPT)

    def publish(padding):
        configuration = {"name": "x" * padding}
        return server.client().schedules.publish(SCOPE, {**PUBLICATION, "configuration": configuration}, "key")

    smallest = len(json.dumps({**PUBLICATION, "configuration": {"name": ""}}, separators=(",", ":")))
    asyncio.run(publish(MAX_DOCUMENT_BYTES - smallest))
    with pytest.raises(InvalidSchedule, match="too_large"):
        publish(MAX_DOCUMENT_BYTES - smallest + 1)
    assert len(server.only.content) == MAX_DOCUMENT_BYTES
