"""What a step costs does not grow with the ledger, and no question of a step or of a tick reads a table through."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, insert, select

from horarium.catalog import Catalog, ledger, lingering, moved_on, presence, unsettled, watching
from horarium.catalog.schedules import insert_activation, list_schedules, require_schedule
from horarium.catalog.tables import entries, schedules, sweeps
from horarium.control.punctuality import next_to_account_for
from horarium.control.records import record
from horarium.schedule.identity import Scope
from horarium.schedule.ledger import Disposition, Reason
from horarium.schedule.v0 import CONTRACT
from tests.control.desk import NOON, SCOPE, Desk, Loop, at, every, open_catalog

PARTIAL = {"ix_activations_live", "ix_activations_in_order", "ix_activations_lingering"}
"""Indexes that hold only what is asked for: to read one through is to read the answer."""


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    opened = open_catalog(tmp_path)
    yield opened
    opened.close()


def fill(desk: Desk, rows: int) -> None:
    """A past of so many runs that succeeded, a minute apart."""
    values = [
        {
            "generation": 1,
            "trigger": "schedule",
            "first_at": at(-60 * number),
            "last_at": at(-60 * number),
            "count": 1,
            "disposition": "succeeded",
            "held_since": at(-60 * number),
            "closed_at": at(-60 * number + 1),
        }
        for number in range(1, rows + 1)
    ]

    def write(connection: Any) -> None:
        row = require_schedule(connection, desk.key).row
        connection.execute(insert(entries), [{"schedule": row, **each} for each in values])

    desk.write(write)


def a_life(desk: Desk, loop: Loop) -> None:
    """Everything that happens to a schedule again and again, and to its ledger when it is changed."""
    loop.step_at(57)
    desk.now = at(60)
    desk.admit(loop.run(60))
    assert desk.begin(loop.run(60)).previous_success is not None
    loop.step_at(118)
    desk.settle(loop.run(60))
    loop.step_at(119)
    desk.now = at(120)
    desk.admit(loop.run(120))
    loop.step_at(500)
    desk.settle(loop.run(120), Disposition.FAILED)
    desk.pause()
    again = Loop(desk, desk.enable().key)
    # The first entry of a generation that begins no run looks for one just before it.
    again.step_at(10_000)
    row = desk.read(lambda connection: require_schedule(connection, desk.key).row)
    desk.write(presence.observe, row, generation=3, state="active", reason=None, now=desk.now)
    ticks(desk)
    desk.read(lambda c: ledger.list_entries(c, require_schedule(c, desk.key), touched_since=at(0)))
    desk.read(lambda c: ledger.list_entries(c, require_schedule(c, desk.key), since=at(0)))


def ticks(desk: Desk) -> None:
    """What the controller asks."""
    desk.read(watching.watched, SCOPE)
    for name in (None, "00000000-0000-0000-0000-000000000000"):
        live, _ = desk.read(watching.live_page, SCOPE, after=name, limit=2)
        # For many of them, SQLite makes another plan than for a few.
        desk.read(next_to_account_for, [replace(each, row=each.row + more) for each in live for more in range(200)])
        desk.write(watching.note_look_by, [(each, desk.now) for each in live])
    for place in (None, (desk.now, 1)):
        desk.read(watching.late, SCOPE, before=desk.now, after=place, limit=200)
    for row in (None, 1):
        desk.read(watching.in_error, SCOPE, after=row, limit=200)
    desk.read(watching.current, SCOPE, [desk.key.schedule_id])
    desk.read(moved_on.state_of_environment, SCOPE)
    desk.read(unsettled.staged_by_hand, SCOPE, since=desk.now)
    desk.read(lingering.lingering, SCOPE)
    for after in (None, (0, desk.now, 1)):
        desk.read(unsettled.unsettled_runs, SCOPE, before=desk.now, limit=500, after=after)


def directory(desk: Desk) -> None:
    """What is asked for a page of one contract, whatever lies beside it."""
    for after in (None, "00000000-0000-0000-0000-000000000000"):
        found = desk.read(list_schedules, SCOPE, after=after, limit=2, include_retired=True, contract=CONTRACT)
        assert [each.contract for each in found] == [CONTRACT]


def one_of_v0(desk: Desk, among: int) -> None:
    """A schedule of scheduler v0, behind so many canonical ones."""
    common = {"org_id": SCOPE.org_id, "environment_id": SCOPE.environment_id, "created_at": NOON, "unobserved": False}
    rows = [
        {"schedule_id": f"00000000-0000-0000-0002-{number:012}", "contract": "schedules"} for number in range(among)
    ]
    rows.append({"schedule_id": "ffffffff-0000-0000-0000-000000000000", "contract": CONTRACT})
    every_one = [{"head_revision": 0, "generation": 0, **common, **row} for row in rows]

    def write(connection: Any) -> None:
        connection.execute(insert(schedules), every_one)

    desk.write(write)


def test_no_question_reads_a_table_through(catalog: Catalog) -> None:
    plans: dict[str, list[str]] = {}

    def explain(connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, many: bool) -> None:
        if not many and statement.split(maxsplit=1)[0] in {"SELECT", "UPDATE", "DELETE"}:
            raw = connection.connection.driver_connection
            plans[statement] = [row[3] for row in raw.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]

    desk = Desk(catalog)
    loop = desk.enabled(every(60))
    fill(desk, 100)
    one_of_v0(desk, among=10)
    event.listen(catalog.engine, "before_cursor_execute", explain)
    a_life(desk, loop)
    directory(desk)
    assert len(plans) > 20

    through = re.compile(
        r"SCAN (entries|activations|schedules|runs|versions|audit_events)(?: USING (?:COVERING )?INDEX (\w+))?"
    )
    for statement, plan in plans.items():
        for line in plan:
            found = through.match(line)
            assert found is None or found[2] in PARTIAL, (statement, plan)
            # The unique key answers for one instant, or for what lies beside one; by the schedule alone it is the whole ledger.
            assert not line.endswith("sqlite_autoindex_entries_1 (schedule=?)"), (statement, plan)
            # Nor is the whole environment visited for the few schedules of it that matter.
            assert not line.endswith("(org_id=? AND environment_id=?)") or any(
                name in line for name in ("environments", "stops", "unobserved")
            ), (
                statement,
                plan,
            )


def work(catalog: Catalog, do: Callable[[], None]) -> tuple[int, int]:
    """How many statements and how many hundreds of the database's own operations it takes."""
    counted = {"statements": 0, "hundreds": 0}

    def count(kind: str) -> None:
        counted[kind] += 1

    def statement(*_: Any) -> None:
        count("statements")

    def watch(raw: Any, *_: Any) -> None:
        raw.set_progress_handler(lambda: count("hundreds"), 100)

    event.listen(catalog.engine, "before_cursor_execute", statement)
    event.listen(catalog.engine, "checkout", watch)
    do()
    event.remove(catalog.engine, "before_cursor_execute", statement)
    event.remove(catalog.engine, "checkout", watch)
    return counted["statements"], counted["hundreds"]


def test_a_ledger_of_fifty_thousand_rows_costs_a_step_what_one_of_a_hundred_does(tmp_path: Path) -> None:
    """Counted are statements and operations of the database, so that a slow machine proves nothing and hides nothing."""
    costs = []
    for rows in (100, 50_000):
        (tmp_path / str(rows)).mkdir()
        catalog = open_catalog(tmp_path / str(rows))
        desk = Desk(catalog)
        loop = desk.enabled(every(60))
        fill(desk, rows)
        costs.append(work(catalog, lambda desk=desk, loop=loop: a_life(desk, loop)))
        catalog.close()
    (statements, operations), (again, more) = costs
    assert again == statements
    assert more <= operations * 1.5, costs


def test_a_page_of_one_contract_costs_the_same_among_however_many_schedules_of_others(tmp_path: Path) -> None:
    costs = []
    for number in (10, 5_000):
        (tmp_path / str(number)).mkdir()
        catalog = open_catalog(tmp_path / str(number))
        desk = Desk(catalog)
        one_of_v0(desk, among=number)
        costs.append(work(catalog, lambda desk=desk: directory(desk)))
        catalog.close()
    (statements, operations), (again, more) = costs
    assert again == statements
    assert more <= operations + 2, costs


def test_a_thousand_schedules_that_are_as_they_should_be_cost_a_tick_nothing(tmp_path: Path) -> None:
    costs = []
    for number in (5, 1_000):
        (tmp_path / str(number)).mkdir()
        catalog = open_catalog(tmp_path / str(number))
        for _ in range(number):
            desk = Desk(catalog)
            desk.publish(every(60))
            desk.write(desk_is_paused, desk)
        costs.append(work(catalog, lambda desk=desk: ticks(desk)))
        catalog.close()
    assert costs[1][1] <= costs[0][1] + 2, costs


def desk_is_paused(connection: Any, desk: Desk) -> None:
    """Enabled once, paused, its workflow closed, and seen so."""
    schedule = require_schedule(connection, desk.key)
    insert_activation(connection, schedule, revision=1, by="ada", now=at(0), since=at(0), ended_as=Reason.PAUSED)
    presence.observe(connection, schedule.row, generation=1, state="paused", reason=None, now=at(1))


@pytest.mark.parametrize(
    ("state", "looked_at"),
    [("active", False), ("pending", True), ("error", False), ("stopping", True), ("review", False)],
)
def test_a_schedule_is_looked_at_by_every_tick_until_it_is_as_it_should_be(
    catalog: Catalog, state: str, looked_at: bool
) -> None:
    desk = Desk(catalog)
    desk.enabled(every(60))
    row = desk.read(lambda connection: require_schedule(connection, desk.key).row)

    def watched() -> list[int]:
        return [each.row for each in desk.read(watching.watched, SCOPE)]

    assert watched() == [row]
    desk.write(presence.observe, row, generation=1, state=state, reason=None, now=at(1))
    assert watched() == ([row] if looked_at else [])
    live, last = desk.read(watching.live_page, SCOPE, after=None, limit=1)
    assert ([each.row for each in live], last) == ([row], None)
    failing, _ = desk.read(watching.in_error, SCOPE, after=None, limit=1)
    assert [each.row for each in failing] == ([row] if state == "error" else [])


@pytest.mark.parametrize("state", ["active", "error"])
def test_what_was_seen_before_a_change_does_not_hide_the_change(catalog: Catalog, state: str) -> None:
    """The controller looked, then the activation ended or a new one came, then the controller wrote down what it had seen."""
    desk = Desk(catalog)
    loop = desk.enabled(every(60, pause_on_failure=True))
    loop.step_at(57)
    loop.has_run(60, ends=70, disposition=Disposition.FAILED)
    row = desk.read(lambda connection: require_schedule(connection, desk.key).row)
    desk.write(presence.observe, row, generation=1, state=state, reason=None, now=at(71))
    assert [each.row for each in desk.read(watching.watched, SCOPE)] == [row]
    desk.write(presence.observe, row, generation=1, state="review", reason=None, now=at(72))
    assert desk.read(watching.watched, SCOPE) == []
    desk.pause()
    desk.write(presence.observe, row, generation=1, state="review", reason=None, now=at(73))
    assert [each.row for each in desk.read(watching.watched, SCOPE)] == [row]


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_a_run_without_an_answer_is_found_oldest_first_and_on_whatever_page(catalog: Catalog, limit: int) -> None:
    """Undecided ones before the others; two are due at the same time."""
    found = []
    for offset in (60, 120, 120, 180):
        desk = Desk(catalog)
        loop = desk.enabled(every(offset))
        loop.step_at(offset - 3)
        found.append(loop.run(offset))
        if offset == 60:
            desk.now = at(61)
            desk.admit(found[0])
    listed = []
    after = None
    while page := desk.read(unsettled.unsettled_runs, SCOPE, before=at(300), limit=limit, after=after):
        listed += [each.key for each in page]
        after = page[-1].place
    assert listed == [*found[1:], found[0]]


def test_a_clean_sweep_is_the_last_check_of_what_did_not_change(catalog: Catalog) -> None:
    """Of every schedule of its environment that was not looked at later still."""
    desk, other = Desk(catalog), Desk(catalog)
    for each, seen in ((desk, 10), (other, 30)):
        each.enabled(every(60))
        row = each.read(lambda connection, each=each: require_schedule(connection, each.key).row)
        each.write(presence.observe, row, generation=1, state="active", reason=None, now=at(seen))

    def checked(each: Desk) -> str:
        return str(each.read(record, each.key, now=at(40))["runtime"]["observed_at"])

    assert (checked(desk), checked(other)) == ("2026-11-30T12:00:10Z", "2026-11-30T12:00:30Z")
    desk.write(presence.note_sweep, SCOPE, began_at=at(20), now=at(40))
    desk.write(presence.note_sweep, Scope(org_id="acme", environment_id="other"), began_at=at(90), now=at(90))
    assert (checked(desk), checked(other)) == ("2026-11-30T12:00:20Z", "2026-11-30T12:00:30Z")
    desk.write(presence.note_sweep, SCOPE, began_at=at(35), now=at(40))
    assert (checked(desk), checked(other)) == ("2026-11-30T12:00:35Z", "2026-11-30T12:00:35Z")


def test_a_round_that_ends_late_takes_back_no_later_one_but_what_a_clock_was_ahead(catalog: Catalog) -> None:
    """Two rounds go on side by side while a controller starts, and one machine's clock may have been wrong."""
    desk = Desk(catalog)
    told = []
    for began, now in ((20, 60), (10, 70), (20, 70), (30, 80), (9_000, 9_000), (90, 100), (95, 110)):
        desk.write(presence.note_sweep, SCOPE, began_at=at(began), now=at(now))
        told.append(desk.read(lambda connection: connection.execute(select(sweeps.c.swept_at)).scalar_one()))
    assert told == [at(each) for each in (20, 20, 20, 30, 9_000, 90, 95)]


def test_an_entry_that_begins_before_a_time_and_reaches_into_it_is_listed(catalog: Catalog) -> None:
    desk = Desk(catalog)
    loop = desk.enabled(every(60, window=10))
    loop.step_at(330)
    desk.hold_by_hand("receipt")
    assert desk.told() == [("missed", 60, 300, 5), ("staged", 330, 330, 1)]

    def listed(since: float) -> list[int]:
        return [int((entry.first_at - at(0)).total_seconds()) for entry in desk.entries(since=at(since))]

    assert listed(0) == listed(60) == listed(180) == listed(300) == [60, 330]
    assert listed(301) == listed(330) == [330]
    assert listed(331) == []
