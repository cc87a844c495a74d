"""What a step and a tick ask of PostgreSQL reads a few blocks, however long the ledger is and however many schedules lie beside."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event, insert, text

from horarium.catalog import Catalog
from horarium.catalog.schedules import require_schedule
from horarium.catalog.tables import entries, schedules
from horarium.control.threads import PROFILES_AT_ONCE
from tests.catalog.test_profile_plans import deleted, live, lived, pruned, told
from tests.catalog.test_query_plans import a_life, directory, fill, one_of_v0
from tests.control.desk import NOON, SCOPE, Desk, every, furnish
from tests.control.profiler import profiler_of
from tests.postgres.databases import Database
from tests.postgres.server import PostgresServer

BLOCKS = 60
"""Of 8 KiB. The table of entries has some hundreds here."""
PASSED_OVER = 10


@pytest.fixture
def catalog(postgres: PostgresServer, tmp_path) -> Iterator[Catalog]:
    with Database(postgres).migrated(tmp_path) as url:
        opened = Catalog.open(url)
        furnish(opened)
        yield opened
        opened.close()


def crowd(desk: Desk, count: int) -> None:
    """So many schedules beside it that have rested for long, each with a run of its own."""
    key = {"org_id": SCOPE.org_id, "environment_id": SCOPE.environment_id, "contract": "schedules"}
    state = {"head_revision": 0, "generation": 0, "created_at": NOON, "unobserved": False}
    then = NOON - timedelta(days=3)
    run = {"generation": 1, "trigger": "schedule", "first_at": then, "last_at": then, "count": 1}
    ended = {"disposition": "succeeded", "held_since": then, "closed_at": then}

    def write(connection: Any) -> None:
        first = 1_000_000
        rows = range(first, first + count)
        connection.execute(
            insert(schedules),
            [{"id": row, "schedule_id": f"00000000-0000-0000-0001-{row:012}", **key, **state} for row in rows],
        )
        connection.execute(insert(entries), [{"schedule": row, **run, **ended} for row in rows])

    desk.write(write)


def blocks(plan: dict[str, Any]) -> int:
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


def scans(plan: dict[str, Any]) -> list[str]:
    """The tables that a plan reads through."""
    own = [plan["Relation Name"]] if plan["Node Type"] == "Seq Scan" else []
    return own + [name for each in plan.get("Plans", []) for name in scans(each)]


def passed_over(plan: dict[str, Any]) -> int:
    """How many rows are read and are no part of the answer; those that are sorted for a page among them."""
    sorted_for_a_page = plan["Plans"][0]["Actual Rows"] if plan["Node Type"] in {"Sort", "Incremental Sort"} else 0
    own = plan.get("Rows Removed by Filter", 0) + max(0, sorted_for_a_page - plan["Actual Rows"])
    return int(own) + sum(passed_over(each) for each in plan.get("Plans", []))


def plans(catalog: Catalog, do: Callable[[], None]) -> dict[str, dict[str, Any]]:
    """Each statement that it takes, with its plan as PostgreSQL carries it out, by what it knows of its tables by then."""
    with catalog.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE"))
    asked: dict[str, Any] = {}

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, many: bool) -> None:
        if not many and statement.split(maxsplit=1)[0] in {"SELECT", "UPDATE", "DELETE"}:
            asked[statement] = parameters

    for engine in (catalog.engine, catalog._reader):
        event.listen(engine, "before_cursor_execute", note)
    do()
    for engine in (catalog.engine, catalog._reader):
        event.remove(engine, "before_cursor_execute", note)
    found: dict[str, dict[str, Any]] = {}
    with catalog.engine.connect() as connection:
        for statement, parameters in asked.items():
            explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}"
            told = connection.exec_driver_sql(explain, parameters).scalar_one()
            [one] = told if isinstance(told, list) else json.loads(told)
            found[statement] = one["Plan"]
        connection.rollback()
    return found


def test_no_question_of_a_step_or_a_tick_reads_more_than_a_few_blocks(catalog: Catalog) -> None:
    desk = Desk(catalog)
    loop = desk.enabled(every(60))
    fill(desk, 20_000)
    crowd(desk, 5_000)
    one_of_v0(desk, among=0)

    def live() -> None:
        a_life(desk, loop)
        directory(desk)

    asked = plans(catalog, live)
    assert len(asked) > 20
    assert desk.read(require_schedule, desk.key).generation == 3
    for statement, plan in asked.items():
        assert blocks(plan) <= BLOCKS, (statement, plan)
        assert not {"entries", "schedules"}.intersection(scans(plan)), (statement, plan)


def test_no_question_about_a_profile_or_its_thread_does_either(catalog: Catalog) -> None:
    """Pruning looks at a page of profiles, in the order of an index, and for each at the end of its own thread."""
    profiler = profiler_of(Desk(catalog))
    profiler.save()
    deleted(profiler, 5_000)
    live(profiler, 5_000)
    told(profiler, 5_000)

    def do() -> None:
        lived(profiler)
        pruned(profiler, after=0)

    asked = {
        statement: plan
        for statement, plan in plans(catalog, do).items()
        if "profiles" in statement or "thread" in statement
    }
    assert len(asked) >= 6
    for statement, plan in asked.items():
        # Each row of a page of profiles is locked, and each has a thread of its own.
        at_once = PROFILES_AT_ONCE if "FOR SHARE" in statement or "thread_events.thread_id IN" in statement else 1
        assert blocks(plan) <= BLOCKS + 3 * at_once, (statement, plan)
        assert "FROM profiles" not in statement or passed_over(plan) <= PASSED_OVER, (statement, plan)
        assert not {"profiles", "thread_events"}.intersection(scans(plan)), (statement, plan)
