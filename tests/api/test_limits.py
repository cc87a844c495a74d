"""What one request may bring, and how often one caller may ask."""

import asyncio
import json
import time
from datetime import timedelta

import pytest

from horarium.api import limits as limits_module
from horarium.api.limits import Buckets, Limits, LongWork, Rate, peer
from horarium.api.problems import Rejected
from horarium.calendar.faults import shown
from horarium.schedule.document import MAX_DOCUMENT_BYTES
from tests.api.house import BASE, GENEROUS, HUMAN, UNLIMITED, Api, new, publication, token
from tests.control.desk import every

LARGEST = MAX_DOCUMENT_BYTES
JSON = {"Content-Type": "application/json", "Idempotency-Key": "k"}


def code(answer):
    return answer.status_code, answer.json()["code"]


def sized(size):
    """A body of exactly so many bytes, which is refused for its content only."""
    text = json.dumps({"padding": ""})
    return json.dumps({"padding": "x" * (size - len(text))}).encode()


async def in_parts(data, size=10_000):
    for start in range(0, len(data), size):
        yield data[start : start + size]


# Bodies


def test_a_body_of_the_largest_size_is_read_and_one_byte_more_is_not(api):
    assert code(api.post("/schedules", content=sized(LARGEST), headers=JSON)) == (422, "invalid_schedule")
    assert code(api.post("/schedules", content=sized(LARGEST + 1), headers=JSON)) == (413, "body_too_large")


def test_a_body_of_no_announced_length_is_bounded_too(api):
    assert code(api.post("/schedules", content=in_parts(sized(LARGEST)), headers=JSON)) == (422, "invalid_schedule")
    assert code(api.post("/schedules", content=in_parts(sized(LARGEST + 1)), headers=JSON)) == (413, "body_too_large")


def test_an_endless_body_is_cut_off(api):
    sent = 0

    async def endless():
        nonlocal sent
        while True:
            sent += 1
            yield b" " * 65_536

    assert code(api.post("/schedules", content=endless(), headers=JSON)) == (413, "body_too_large")
    assert sent <= 6


def test_a_body_that_is_announced_as_too_large_is_not_read_at_all(api):
    async def never():
        raise AssertionError("nobody may ask for it")
        yield b""

    for length in (LARGEST + 1, 10**17, "9" * 30):
        headers = {**JSON, "Content-Length": str(length)}
        assert code(api.post("/schedules", content=never(), headers=headers)) == (413, "body_too_large")
    assert code(api.get("/schedules", headers={"Content-Length": str(LARGEST + 1)})) == (413, "body_too_large")


def test_a_body_that_trickles_is_given_up(catalog):
    slow = Api(catalog, limits=Limits(per_principal=UNLIMITED, per_peer=UNLIMITED, body_within=timedelta(seconds=0.1)))

    async def trickle():
        yield b"{"
        await asyncio.sleep(30)

    began = time.monotonic()
    try:
        assert code(slow.post("/schedules", content=trickle(), headers=JSON)) == (408, "request_timeout")
    finally:
        slow.close()
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "application/x-www-form-urlencoded", "application/json5", "text/json"]
)
def test_only_json_is_read(api, kind):
    answer = api.post("/schedules", content=b"{}", headers={**JSON, "Content-Type": kind})
    assert code(answer) == (415, "unsupported_media_type")


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
def test_an_encoded_body_is_refused_so_that_none_grows_while_it_is_read(api, encoding):
    answer = api.post("/schedules", content=b"{}", headers={**JSON, "Content-Encoding": encoding})
    assert code(answer) == (415, "unsupported_media_type")


def test_a_charset_beside_json_is_read_past(api):
    headers = {"Content-Type": "application/json; charset=utf-8", "Idempotency-Key": new()}
    assert api.post("/schedules", content=json.dumps(publication()), headers=headers).status_code == 201


# Hostile JSON

LONG = "9" * 10_000
HOSTILE = {
    "empty": (b"", 400),
    "not JSON": (b"{", 400),
    "two documents": (b"{}{}", 400),
    "single quotes": (b"{'a': 1}", 400),
    "byte order mark": (b"\xef\xbb\xbf{}", 400),
    "not UTF-8": (b'{"a": "\xff"}', 400),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), 400),
    "NaN": (b'{"expected_revision": NaN}', 400),
    "infinity": (b'{"expected_revision": 1e999}', 400),
    "10,000 digits": (b'{"expected_revision": ' + LONG.encode() + b"}", 400),
    "10,000 digits, negative": (b'{"expected_revision": -' + LONG.encode() + b"}", 400),
    "20 digits": (b'{"expected_revision": 18446744073709551616}', 400),
    "18 digits": (b'{"expected_revision": 999999999999999999}', 422),
    "deep lists": (b"[" * 100_000, 400),
    "deep lists that close": (b"[" * 5_000 + b"]" * 5_000, 400),
    "deep objects": (b'{"a":' * 20_000 + b"1" + b"}" * 20_000, 400),
    "duplicate key": (b'{"schedule_id": "a", "schedule_id": "b"}', 400),
    "NUL": (b"\x00", 400),
    "NUL in the text": (b'{"a": "\x00"}', 400),
    "NUL in a name": (json.dumps(publication(configuration={**every(60), "name": "a\x00b"})).encode(), 422),
    "NUL in a key": (b'{"a\\u0000": 1}', 422),
    "lone surrogate": (b'{"schedule_id": "\\ud800"}', 400),
    "lone surrogate in a key": (b'{"\\udfff": 1}', 400),
    "lone surrogate in a name": (
        json.dumps(publication(configuration={**every(60), "name": "a\ud800"})).encode(),
        400,
    ),
    "null": (b"null", 422),
    "list": (b"[]", 422),
    "number": (b"1", 422),
    "text": (b'"x"', 422),
    "true": (b"true", 422),
    "many keys": (json.dumps({f"k{n}": n for n in range(10_000)}).encode(), 422),
    "floats for integers": (json.dumps({**publication(), "expected_revision": 0.0}).encode(), 422),
    "text for an integer": (json.dumps({**publication(), "expected_revision": "0"}).encode(), 422),
    "boolean for an integer": (json.dumps({**publication(), "expected_revision": False}).encode(), 422),
}
BODIES = {
    "/schedules": 201,
    "/schedules/7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11/activation": 201,
    "/schedules/7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11/retirement": 201,
    "/schedules/7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11/runs": 201,
    "/runs/7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11/cancel": 202,
    "/schedule-previews": 200,
}


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_json_is_refused_everywhere(api, path, name):
    body, status = HOSTILE[name]
    answer = api.post(path, content=body, headers={**JSON, "Idempotency-Key": new()})
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["errors"], "each fault has its place"
    assert len(answer.content) < 65_536, "an answer does not grow with what was sent"


def test_a_long_number_is_refused_at_once(api):
    body = b'{"expected_revision": ' + b"9" * (LARGEST - 100) + b"}"
    began = time.monotonic()
    assert api.post("/schedules", content=body, headers=JSON).status_code == 400
    assert time.monotonic() - began < 1


# Headers, paths, queries


def test_headers_are_bounded(api):
    assert api.get("", headers={"X-Padding": "x" * 14_000}).status_code == 200
    answer = api.get("", headers={"X-Padding": "x" * 17_000})
    assert code(answer) == (431, "headers_too_large")
    assert code(api.get("", headers={f"X-{n}": "x" for n in range(4_000)})) == (431, "headers_too_large")


def test_queries_and_paths_are_bounded(api):
    assert code(api.get("/schedules?after=" + "x" * 5_000)) == (414, "query_too_long")
    assert code(api.get("/receipts/" + "x" * 3_000)) == (414, "path_too_long")


@pytest.mark.parametrize(
    ("query", "pointer", "fault"),
    [
        ("limit=0", "/query/limit", "greater_than_equal"),
        ("limt=1", "/query/limt", "unknown_parameter"),
        ("after=x", "/query/after", "invalid_value"),
        ("after=7b0c7c3e4f0e4f539f0b0a5d2f2d8a11", "/query/after", "invalid_value"),
        ("after=urn:uuid:7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11", "/query/after", "invalid_value"),
        ("after=%7B7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11%7D", "/query/after", "invalid_value"),
        ("include_retired=yes", "/query/include_retired", "invalid_value"),
        ("include_retired=1", "/query/include_retired", "invalid_value"),
        ("%00=1", "/query/\x00", "unknown_parameter"),
        ("%ff=1", "/query/\ufffd", "unknown_parameter"),
    ],
)
def test_a_parameter_is_refused_with_its_place(api, query, pointer, fault):
    answer = api.get(f"/schedules?{query}")
    assert code(answer) == (422, "invalid_parameter")
    assert [(each["pointer"], each["code"]) for each in answer.json()["errors"]] == [(pointer, fault)]
    assert shown(pointer.removeprefix("/query/")) in answer.json()["detail"]


def test_a_parameter_that_stands_twice_is_refused(api):
    assert code(api.get("/schedules?limit=1&limit=2")) == (422, "invalid_parameter")
    assert api.get("/occurrences?disposition=failed&disposition=missed").status_code == 200


@pytest.mark.parametrize("name", ["from", "until"])
@pytest.mark.parametrize(
    "text",
    [
        "2027-01-31",
        "2027-02-30T00:00:00Z",
        "2027-01-31T07:30:00",
        "now",
        "0",
        "9999-12-31T23:59:59-14:00",
        "2027-01-31T07:30:00+01:60",
    ],
)
def test_times_of_a_query_are_instants_with_a_zone(api, name, text):
    answer = api.get("/occurrences", params={name: text})
    assert code(answer) == (422, "invalid_parameter")
    assert answer.json()["errors"][0]["pointer"] == f"/query/{name}"


@pytest.mark.parametrize("key", ["", " ", "x" * 201, "a\x7f"])
def test_an_idempotency_key_has_a_form(api, key):
    answer = api.post("/schedules", publication(), headers={"Idempotency-Key": key})
    assert answer.status_code in {400, 422}
    assert answer.json()["code"] in {"idempotency_key_missing", "invalid_idempotency_key"}


@pytest.mark.parametrize("key", ["%20", "x" * 201, "a%7F", "%00", "%C3%A9", "a%20"])
def test_a_receipt_is_looked_up_by_a_key_of_that_form(api, key):
    assert code(api.get(f"/receipts/{key}")) == (422, "invalid_idempotency_key")


TWICE = {
    "media types": [("Content-Type", "application/json"), ("Content-Type", "text/plain")],
    "encodings": [("Content-Type", "application/json"), ("Content-Encoding", "identity"), ("Content-Encoding", "gzip")],
}


@pytest.mark.parametrize("headers", TWICE.values(), ids=TWICE)
def test_a_body_that_is_described_in_two_ways_is_not_read(api, headers):
    async def send():
        async with api.client() as client:
            content = json.dumps(publication()).encode()
            return await client.post(
                f"{BASE}/schedules", content=content, headers=[*headers, ("Idempotency-Key", new())]
            )

    assert code(api.run(send())) == (415, "unsupported_media_type")


def test_two_idempotency_keys_are_none(api):
    async def send():
        async with api.client() as client:
            headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
            return await client.post(f"{BASE}/schedules", json=publication(), headers=headers)

    assert code(api.run(send())) == (400, "idempotency_key_missing")


# Rates


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_bucket_gives_a_burst_and_then_the_rate():
    clock = Clock()
    buckets = Buckets(Rate(per_second=2, burst=3), clock=clock)
    for _ in range(3):
        buckets.take("ada")
    with pytest.raises(Rejected) as refusal:
        buckets.take("ada")
    assert (refusal.value.status, refusal.value.headers) == (429, {"Retry-After": "1"})
    buckets.take("grace")
    clock.now = 0.5
    buckets.take("ada")
    with pytest.raises(Rejected):
        buckets.take("ada")
    clock.now = 1_000
    for _ in range(3):
        buckets.take("ada")
    with pytest.raises(Rejected):
        buckets.take("ada")


def test_a_slow_rate_says_how_long_to_wait():
    buckets = Buckets(Rate(per_second=0.1, burst=1), clock=Clock())
    buckets.take("ada")
    with pytest.raises(Rejected) as refusal:
        buckets.take("ada")
    assert refusal.value.headers["Retry-After"] == "10"


def test_buckets_are_bounded(monkeypatch):
    monkeypatch.setattr(limits_module, "REMEMBERED_CALLERS", 10)
    buckets = Buckets(Rate(per_second=1, burst=1), clock=Clock())
    for caller in range(1_000):
        buckets.take(caller)
    assert len(buckets._buckets) == 10


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:1", "2001:db8::/64"),
        ("unix", "unix"),
        (None, "unknown"),
    ],
)
def test_a_peer_is_an_address_or_the_network_of_one_host(host, found):
    assert peer(host) == found


def test_each_principal_is_limited_by_itself_with_retry_after(catalog):
    limited = Api(catalog, limits=Limits(per_principal=Rate(per_second=0.5, burst=3), per_peer=UNLIMITED))
    try:
        answers = [limited.get("") for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
        assert code(answers[-1]) == (429, "rate_limited")
        assert int(answers[-1].headers["retry-after"]) == 2
        assert limited.get("", by=token(sub="grace")).status_code == 200
        # The same name in another organization is another principal.
        assert (
            limited.ask("GET", "!/v1/organizations/globex/environments/test", by=token(org="globex")).status_code == 200
        )
    finally:
        limited.close()


def test_requests_without_a_valid_token_are_limited_by_address_and_others_are_not_held_up(catalog):
    limited = Api(catalog, limits=Limits(per_principal=UNLIMITED, per_peer=Rate(per_second=0.5, burst=3)))
    try:
        bad = [limited.get("", by=by) for by in (None, "a.b.c", "x", None, "y")]
        assert [answer.status_code for answer in bad] == [401, 401, 401, 429, 429]
        assert "retry-after" in bad[-1].headers
        assert limited.get("", by=HUMAN).status_code == 200
        assert limited.ask("GET", "!/version", by=None).status_code == 429
        assert limited.ask("GET", "!/healthz", by=None).status_code == 200, "a probe shall not kill what is only busy"

        async def elsewhere():
            async with limited.client(None, client=("192.0.2.9", 1)) as client:
                return await client.get(BASE)

        assert limited.run(elsewhere()).status_code == 401
    finally:
        limited.close()


def test_the_defaults_are_bounds():
    assert Limits().body == 256 * 1024
    assert Limits().per_principal.per_second > 0
    assert GENEROUS.per_peer == UNLIMITED


# Long work


def test_of_long_work_a_few_pieces_are_done_at_once_and_one_of_each_caller():
    long_work, now, most, theirs = LongWork(at_once=2, waiting=10), [], [0], [0]

    async def work(caller):
        async with long_work.of(caller):
            now.append(caller)
            most[0], theirs[0] = max(most[0], len(now)), max(theirs[0], now.count(caller))
            await asyncio.sleep(0.001)
            now.remove(caller)

    async def all_at_once():
        await asyncio.gather(*(work(f"caller {number % 4}") for number in range(20)))

    asyncio.run(all_at_once())
    assert (most, theirs) == ([2], [1])


def test_whoever_asks_for_much_long_work_waits_for_themselves_and_is_refused_in_the_end():
    long_work, done = LongWork(at_once=1, waiting=3), []

    async def work(caller):
        async with long_work.of(caller):
            await asyncio.sleep(0)
            done.append(caller)

    async def all_at_once():
        return await asyncio.gather(*(work("many") for _ in range(5)), work("one"), return_exceptions=True)

    answers = asyncio.run(all_at_once())
    refused = [each for each in answers if isinstance(each, Rejected)]
    assert [(each.status, each.code, each.headers["Retry-After"]) for each in refused] == [
        (429, "rate_limited", "1")
    ] * 2
    assert done.index("one") == 1
    asyncio.run(work("many"))
    assert done.count("many") == 4


def test_a_place_is_given_back_by_work_that_fails_or_is_given_up():
    long_work = LongWork(at_once=1, waiting=1)

    async def fail():
        with pytest.raises(ZeroDivisionError):
            async with long_work.of("ada"):
                raise ZeroDivisionError

    async def give_up():
        async with long_work.of("grace"):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01), long_work.of("ada"):
                    pass

    async def in_turn():
        await fail()
        await give_up()
        async with long_work.of("ada"):
            return True

    assert asyncio.run(in_turn())


def test_previews_wait_for_their_turn(catalog):
    api = Api(catalog)
    try:
        object.__setattr__(api.app.state.service, "long_work", LongWork(at_once=1, waiting=0))
        assert code(api.post("/schedule-previews", {"spec": every(3600)})) == (429, "rate_limited")
    finally:
        api.close()
