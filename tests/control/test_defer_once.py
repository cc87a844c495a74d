"""Scheduler v0's `defer_once`: one deferred run, the earliest missed or overlapped instant; the rest is skipped."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from horarium.catalog import Catalog
from horarium.control.audit import audit
from horarium.control.publication import publish
from horarium.schedule.configuration import read_stored
from horarium.schedule.facts import LATE
from horarium.schedule.identity import RunKey
from tests.control.desk import Desk, at, every, offsets, seconds
from tests.control.world import Work, World

DOWN = ((True, False), (False, True), (True, True))
"""Which workers an outage takes: those of schedules, those of runs, or both."""


def deferring(interval: int, *, runs: int = 1) -> dict[str, Any]:
    """As v0 stores it: the canonical contract has no `defer_once`."""
    document = every(interval, overlap="buffer_one", window=86_400, runs=runs)
    timing = {"calendar": document.pop("calendar")}
    return {**document, "timing": timing, "policy": {**document["policy"], "defer_once": True}}


def world_of(desk: Desk, document: dict[str, Any], takes: Any = lambda _: seconds(1)) -> World:
    read = read_stored(document)
    desk.write(
        publish, desk.key, document, expected_revision=0, by="ada", now=desk.now, configuration=read, contract="v0"
    )
    world = World(desk, lambda run: Work(takes=takes(run)))
    world.establish(desk.enable())
    return world


def outage(world: World, first: float, last: float, *, runs: bool = True, schedules: bool = True) -> None:
    world.pass_until(at(first))
    world.schedules_up, world.runs_up = not schedules, not runs
    world.pass_until(at(last))
    world.schedules_up = world.runs_up = True


@pytest.fixture
def asked(desk: Desk) -> Iterator[list[str]]:
    """The statements that are asked of the catalog."""
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    engines = {desk.catalog.engine, desk.catalog._reader}
    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)
    yield statements
    for engine in engines:
        event.remove(engine, "before_cursor_execute", note)


@pytest.mark.parametrize("runs", [1, 3])
def test_after_an_outage_of_ten_instants_there_is_one_deferred_run(desk: Desk, runs: int) -> None:
    world = world_of(desk, deferring(60, runs=runs))
    outage(world, 90, 690)
    world.pass_until(at(750))
    assert desk.told() == [
        ("succeeded", 60, 60, 1),
        ("succeeded", 120, 120, 1),
        ("skipped", 180, 660, 9),
        ("succeeded", 720, 720, 1),
    ]
    assert {entry.reason for entry in desk.entries() if entry.count > 1} == {"coalesced"}
    desk.check_ledger()


@pytest.mark.parametrize("back", [661, 665, 669.5, 670.5])
def test_an_instant_that_is_due_when_the_outage_ends_adds_no_second_one(desk: Desk, back: float) -> None:
    world = world_of(desk, deferring(60))
    outage(world, 90, back)
    world.pass_until(at(700))
    assert desk.told()[1:] == [("succeeded", 120, 120, 1), ("skipped", 180, 660, 9)]


def test_a_run_that_was_staged_when_everything_stopped_is_the_deferred_one(desk: Desk) -> None:
    world = world_of(desk, deferring(60))
    outage(world, 58, 400)
    world.pass_until(at(430))
    assert desk.told() == [("succeeded", 60, 60, 1), ("skipped", 120, 360, 5), ("succeeded", 420, 420, 1)]
    desk.check_ledger()


def test_an_outage_of_more_than_a_day_defers_the_earliest_that_is_not_too_old(desk: Desk) -> None:
    world = world_of(desk, deferring(3_600))
    outage(world, 100, 30 * 3_600 + 100)
    world.pass_until(at(30 * 3_600 + 200))
    assert [each[0] for each in desk.told()] == ["missed", "succeeded", "skipped"]
    assert sum(each[3] for each in desk.told()) == 30
    assert desk.told()[1][1] == 7 * 3_600


def test_overlapped_instants_give_one_deferred_run_when_the_slot_is_free(desk: Desk) -> None:
    world = world_of(desk, deferring(60), lambda run: seconds(200 if run.nominal_time == at(60) else 1))
    world.pass_until(at(330))
    assert desk.told() == [
        ("succeeded", 60, 60, 1),
        ("succeeded", 120, 120, 1),
        ("skipped", 180, 240, 2),
        ("succeeded", 300, 300, 1),
    ]
    assert world.actual_starts[RunKey(activation=world.loops[1].key, nominal_time=at(120))] == at(260)
    desk.check_ledger()


def test_an_outage_behind_a_run_that_ends_in_it_gives_one_deferred_run(desk: Desk) -> None:
    """The run of 60 ends at 150, unseen: what waited since 120 answers for all until it starts."""
    world = world_of(desk, deferring(60), lambda run: seconds(90 if run.nominal_time == at(60) else 1))
    world.pass_until(at(130))
    world.schedules_up = False
    desk.now = at(150)
    world.settle(RunKey(activation=world.loops[1].key, nominal_time=at(60)))
    world.pass_until(at(505))
    world.schedules_up = True
    world.pass_until(at(535))
    assert desk.told() == [("succeeded", 60, 60, 1), ("succeeded", 120, 120, 1), ("skipped", 180, 480, 6)]
    assert offsets([world.actual_starts[world.loops[1].run(120)]]) == [505]


@pytest.mark.parametrize("lasts", [9.9, 11, 20])
@pytest.mark.parametrize("interval", [1, 2, 3])
@pytest.mark.parametrize("runs", [1, 2, 3])
def test_runs_that_were_staged_side_by_side_while_nobody_decided_are_one_deferred_run(
    desk: Desk, runs: int, interval: int, lasts: float
) -> None:
    """Only the run workers are away: several slots were taken before the first of the runs was late."""
    world = world_of(desk, deferring(interval, runs=runs))
    outage(world, 8.1, 8.1 + lasts, schedules=False)
    back = desk.now
    world.pass_until(at(8.1 + lasts + 12))
    late = sorted(run.nominal_time for run, start in world.actual_starts.items() if start - run.nominal_time > LATE)
    due = [at(each) for each in range(interval * (8 // interval + 1), 200, interval)]
    assert late == [each for each in due[:1] if back - each > LATE]
    if late:
        begun = [run.nominal_time for run in world.actual_starts]
        assert not [each for each in begun if late[0] < each < back]
        assert {entry.reason for entry in desk.entries() if late[0] < entry.first_at < back} == {"coalesced"}
    desk.pause()
    desk.check_ledger()
    found = desk.read(audit, desk.key, now=desk.now)
    assert found.clean, found.schedules


def test_what_is_asked_does_not_grow_with_the_runs_beside_it(desk: Desk, asked: list[str]) -> None:
    """Under a lock, in each step and each decision."""
    counts = []
    for slots in (3, 9):
        one = Desk(desk.catalog)
        world = world_of(one, deferring(1, runs=slots), lambda _: seconds(1_000))
        world.pass_until(at(slots - 0.5))
        loop = world.loops[1]
        assert len(one.entries()) == slots
        one.now = at(slots)
        asked.clear()
        assert one.admit(loop.run(slots)).outcome == "admitted"
        decision = len(asked)
        asked.clear()
        assert loop.gather().facts is not None
        counts.append((decision, len(asked)))
    assert counts[0] == counts[1]


def test_a_slow_schedule_defers_again_and_again_and_loses_count_of_nothing(desk: Desk) -> None:
    world = world_of(desk, deferring(1), lambda _: seconds(2.5))
    world.pass_until(at(60))
    told = desk.told()
    assert {each[0] for each in told} <= {"succeeded", "skipped", "started", "admitted", "staged", "buffered"}
    assert sum(each[0] == "succeeded" for each in told) == 23
    world.establish(desk.pause())
    desk.check_ledger()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    interval=st.integers(3, 90),
    takes=st.lists(st.integers(0, 200), min_size=1, max_size=5),
    outages=st.lists(st.tuples(st.integers(1, 300), st.integers(1, 400), st.sampled_from(DOWN)), max_size=4),
    nudges=st.booleans(),
)
def test_a_run_that_starts_late_answers_for_all_that_is_due_until_it_starts(
    catalog: Catalog,
    interval: int,
    takes: list[int],
    outages: list[tuple[int, int, tuple[bool, bool]]],
    *,
    nudges: bool,
) -> None:
    desk = Desk(catalog)
    world = world_of(desk, deferring(interval), lambda run: seconds(takes[run.nominal_time.second % len(takes)]))
    world.nudges_arrive = nudges
    passed = 0
    for after, lasts, (schedules, runs) in outages:
        outage(world, passed + after, passed + after + lasts, schedules=schedules, runs=runs)
        passed += after + lasts
    world.pass_until(at(passed + 600))
    begun = {run.nominal_time: start for run, start in world.actual_starts.items()}
    for nominal, start in begun.items():
        if start - nominal > LATE:
            assert not [other for other in begun if nominal < other < start], (nominal, start)
    desk.pause()
    desk.check_ledger()
