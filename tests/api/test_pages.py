"""Lists, a page at a time: nothing lost, nothing twice, in one order, whatever is inserted meanwhile."""

import asyncio
import random
import re
import threading
import uuid
from datetime import timedelta

import pytest
from sqlalchemy import event, insert

from horarium.api.cursors import cursor_text, read_cursor
from horarium.api.problems import Rejected
from horarium.catalog import ledger_changes
from horarium.catalog.pages import Position, Wanted, page
from horarium.catalog.schedules import require_schedule
from horarium.catalog.tables import entries
from horarium.control.publication import publish
from horarium.schedule.identity import ActivationKey, RunKey, schedule_key
from horarium.schedule.ledger import Disposition
from tests.api.house import BASE, Api, make_catalog
from tests.control.desk import NOON, SCOPE, every

COUNT = 1_000


def uuids(count, seed):
    chance = random.Random(seed)
    return [str(uuid.UUID(int=chance.getrandbits(128), version=4)) for _ in range(count)]


def publish_all(catalog, ids, *, at_once=100):
    for start in range(0, len(ids), at_once):
        with catalog.writing() as connection:
            for schedule_id in ids[start : start + at_once]:
                publish(
                    connection, schedule_key(SCOPE, schedule_id), every(3600), expected_revision=0, by="ada", now=NOON
                )


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    catalog = make_catalog(tmp_path_factory.mktemp("many"))
    publish_all(catalog, uuids(COUNT, 1))
    api = Api(catalog)
    yield api
    api.close()
    catalog.close()


@pytest.mark.parametrize("limit", [7, 50])
def test_a_thousand_schedules_under_concurrent_insertion_are_each_listed_once(many, limit):
    """Those that were there before the first page are on exactly one page; new ones may or may not be."""
    known, new = set(uuids(COUNT, 1)), uuids(300, limit)
    stop = threading.Event()

    def insert_more():
        for schedule_id in new:
            if stop.is_set():
                return
            publish_all(many.catalog, [schedule_id])

    async def read():
        seen, after = [], None
        async with many.client() as client:
            while True:
                query = {"limit": limit} | ({} if after is None else {"after": after})
                found = (await client.get(f"{BASE}/schedules", params=query)).json()
                seen += [each["schedule_id"] for each in found["schedules"]]
                after = found["next_cursor"]
                if after is None:
                    return seen
                await asyncio.sleep(0)

    writer = threading.Thread(target=insert_more)
    writer.start()
    try:
        seen = many.run(read())
    finally:
        stop.set()
        writer.join()
    assert len(seen) == len(set(seen))
    assert known <= set(seen)
    assert seen == sorted(seen)


def test_the_last_page_says_so_even_where_it_is_full(tmp_path):
    catalog = make_catalog(tmp_path)
    publish_all(catalog, uuids(4, 2))
    api = Api(catalog)
    first = api.get("/schedules?limit=2").json()
    second = api.get(f"/schedules?limit=2&after={first['next_cursor']}").json()
    assert (len(second["schedules"]), second["next_cursor"]) == (2, None)
    assert api.get(f"/schedules?after={'f' * 8}-ffff-4fff-bfff-{'f' * 12}").json() == {
        "schedules": [],
        "next_cursor": None,
    }
    api.close()
    catalog.close()


# Ledgers


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory):
    """Three schedules whose entries fall due at the same instants, spans that reach far, and some runs."""
    catalog = make_catalog(tmp_path_factory.mktemp("ledgers"))
    ids = uuids(3, 3)
    publish_all(catalog, ids)
    with catalog.writing() as connection:
        for number, schedule_id in enumerate(ids):
            key = schedule_key(SCOPE, schedule_id)
            schedule = require_schedule(connection, key)
            for minute in range(40):
                at = NOON + timedelta(minutes=minute)
                if minute % 10 == number:
                    run = RunKey(activation=ActivationKey(schedule=key, generation=1), nominal_time=at)
                    ledger_changes.stage(connection, schedule, run, now=at)
                    continue
                reach = timedelta(minutes=0.5 if minute % 3 else 25)
                connection.execute(
                    insert(entries).values(
                        schedule=schedule.row,
                        generation=1 + minute // 20,
                        trigger="schedule",
                        first_at=at,
                        last_at=at + (reach if minute % 2 else timedelta(0)),
                        count=30 if minute % 2 else 1,
                        disposition=Disposition.SKIPPED if minute % 4 else Disposition.MISSED,
                        reason="overlap",
                        closed_at=at + timedelta(hours=1),
                    )
                )
    api = Api(catalog)
    yield api, ids
    api.close()
    catalog.close()


def instant(minute):
    return (NOON + timedelta(minutes=minute)).isoformat().replace("+00:00", "Z")


def read_all(api, path, limit, **query):
    """All lines of a list, and the pages they came on."""
    lines, after, name = [], None, "runs" if path == "/runs" else "occurrences"
    for _ in range(1_000):
        found = api.get(path, params={**query, "limit": limit} | ({} if after is None else {"after": after})).json()
        assert len(found[name]) <= limit
        lines += found[name]
        after = found["next_cursor"]
        if after is None:
            return lines
        assert len(found[name]) == limit
    raise AssertionError("the pages do not end")


QUERIES = [
    {},
    {"from": instant(20)},
    {"until": instant(20)},
    {"from": instant(10), "until": instant(30)},
    {"from": instant(30.25)},
    {"from": instant(-60), "until": instant(-1)},
    {"disposition": ["missed"]},
    {"disposition": ["staged", "missed"], "from": instant(15)},
]


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("path", ["/occurrences", "/runs", "/schedules/{}/occurrences"])
@pytest.mark.parametrize("query", QUERIES)
def test_a_ledger_is_the_same_on_pages_of_any_size(ledgers, path, query, newest_first):
    api, ids = ledgers
    path, flag = path.format(ids[1]), {"newest_first": "true"} if newest_first else {}
    whole = read_all(api, path, 1_000, **query, **flag)
    for limit in (1, 7, 13):
        assert read_all(api, path, limit, **query, **flag) == whole
    order = [line["first_at"] for line in whole]
    assert order == sorted(order, reverse=newest_first)
    assert newest_first or whole == list(reversed(read_all(api, path, 1_000, **query, newest_first="true")))


@pytest.mark.parametrize("query", QUERIES)
def test_a_ledger_holds_what_was_asked_for_and_nothing_else(ledgers, query):
    api, _ = ledgers

    def wanted(line):
        since, until = query.get("from"), query.get("until")
        return (
            (since is None or line["last_at"] >= since)
            and (until is None or line["first_at"] <= until)
            and ("disposition" not in query or line["disposition"] in query["disposition"])
        )

    everything = read_all(api, "/occurrences", 1_000)
    assert len(everything) == 120
    assert read_all(api, "/occurrences", 50, **query) == [line for line in everything if wanted(line)]


def test_a_schedules_ledger_knows_generations_and_what_was_touched(ledgers):
    api, ids = ledgers
    path = f"/schedules/{ids[0]}/occurrences"
    whole = read_all(api, path, 1_000)
    assert read_all(api, path, 9, generation=2) == [line for line in whole if line["generation"] == 2]
    touched = read_all(api, path, 9, touched_since=instant(80))
    assert 0 < len(touched) < len(whole)
    assert all(line["disposition"] == "staged" or line["first_at"] >= instant(20) for line in touched)
    assert all("schedule_id" not in line for line in whole)


def test_the_environments_lists_name_the_schedule_and_runs_are_those_with_one(ledgers):
    api, ids = ledgers
    runs = read_all(api, "/runs", 5)
    assert len(runs) == 12
    assert {line["schedule_id"] for line in runs} == set(ids)
    assert api.get(f"/runs/{runs[0]['run_id']}").json() == runs[0]


HALF_PAST = NOON + timedelta(minutes=30.5)
PLANS = [
    (Wanted(), None, ["ix_entries_first_at"]),
    (Wanted(newest_first=True), None, ["ix_entries_first_at"]),
    (Wanted(), Position(first_at=NOON, row=1), ["ix_entries_first_at"]),
    (Wanted(since=HALF_PAST), None, ["ix_entries_spans", "ix_entries_first_at"]),
    (Wanted(since=NOON), Position(first_at=HALF_PAST, row=1), ["ix_entries_first_at"]),
    (Wanted(schedule_row=1, since=HALF_PAST), None, ["ix_entries_spans_of_schedule", "sqlite_autoindex_entries_1"]),
    (Wanted(schedule_row=1, newest_first=True), None, ["sqlite_autoindex_entries_1"]),
]


@pytest.mark.parametrize(("wanted", "after", "indexes"), PLANS)
def test_a_page_is_led_to_by_an_index_and_not_sorted_out_of_the_whole_ledger(ledgers, wanted, after, indexes):
    api, _ = ledgers
    plans = []

    def explain(_connection, cursor, statement, parameters, _context, _many):
        plans.append([row[3] for row in cursor.connection.execute("EXPLAIN QUERY PLAN " + statement, parameters)])

    with api.catalog.reading() as connection:
        event.listen(connection, "before_cursor_execute", explain)
        page(connection, SCOPE, wanted, after=after, limit=1_000)
    found = [next(line for line in plan if re.match("(SEARCH|SCAN) entries", line)) for plan in plans]
    assert [re.search(r"INDEX (\w+)", line)[1] for line in found] == indexes
    # Only the spans that reach into a time are sorted.
    sorts = ["USE TEMP B-TREE FOR ORDER BY" in plan for plan in plans]
    assert sorts == ["spans" in index for index in indexes]


# Cursors


@pytest.mark.parametrize("row", [0, 1, 10**18 - 1])
@pytest.mark.parametrize(
    "moment", [NOON, NOON + timedelta(microseconds=1), NOON.replace(year=1), NOON.replace(year=9999)]
)
def test_a_cursor_is_read_as_it_was_written(row, moment):
    position = Position(first_at=moment, row=row)
    text = cursor_text(position)
    assert read_cursor(text) == position
    assert text.isascii()
    assert "=" not in text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "====",
        "é",
        "MjAyNw",
        "a" * 200,
        "AAAA",
        cursor_text(Position(first_at=NOON, row=1))[:-2],
        "MjAyNy0wMi0zMFQwNjozMDowMFp8NDI",
        "\x00",
    ],
)
def test_another_text_is_no_cursor(text):
    with pytest.raises(Rejected, match="none of this list"):
        read_cursor(text)


# Events


def test_events_continue_behind_the_last_one(api):
    receipt = api.publish()
    for generation in range(6):
        api.change(receipt, generation, "pause" if generation % 2 else "enable")
    path = f"/schedules/{receipt['schedule_id']}/events"
    whole = api.get(path).json()
    assert (len(whole["events"]), whole["next_cursor"]) == (7, None)
    seen, after = [], 0
    while after is not None:
        found = api.get(f"{path}?limit=2&after={after}").json()
        seen += found["events"]
        after = found["next_cursor"]
    assert seen == whole["events"]
    for refused in ("-1", "x", "9223372036854775808"):
        assert api.get(f"{path}?after={refused}").status_code == 422
