"""A sweep looks at what may be wrong and at some of the rest, and writes down only what changed."""

from datetime import timedelta

import pytest
from sqlalchemy import event

from horarium.control.records import record
from starter import unsettled
from starter.temporal import Found
from starter.unsettled import OVERDUE
from tests.control.desk import NOON, Desk, every
from tests.controller.known import Clock, Known, controller, runtime

MINUTE = timedelta(minutes=1)


async def test_a_sweep_costs_as_many_questions_for_a_hundred_schedules_as_for_one(catalog):
    """And one of them is the time of the sweep, which is when each was looked at last."""
    desks: list[Desk] = []
    clock = Clock()
    one = controller(catalog, Known(), clock)
    costs = []
    for count in (1, 100):
        while len(desks) < count:
            desks.append(Desk(catalog))
            desks[-1].enabled(every(86_400))
        await one.tick()
        await one.sweep()
        clock.now += timedelta(seconds=10)
        costs.append(len(await statements(catalog, one.sweep)))
        for desk in desks:
            told = desk.read(record, desk.key, now=clock.now)["runtime"]
            assert told == {"state": "active", "generation": 1, "observed_at": text(clock.now)}
    assert costs[0] == costs[1] <= 10


async def test_a_schedule_that_sleeps_for_days_is_never_reckoned(catalog):
    """Its mark is old at every sweep. Reading and evaluating its calendar each time would cost more than the sweep."""
    desk, clock = Desk(catalog), Clock()
    desk.enabled(every(86_400))
    one = controller(catalog, Known(), clock)
    await one.sweep()
    reads = []
    for _ in range(4):
        clock.now += MINUTE
        reads.append(sum("FROM versions" in each for each in await statements(catalog, one.sweep)))
    assert reads == [0, 0, 0, 0]
    assert runtime(catalog, desk.key) == ("active", None)


@pytest.mark.parametrize("lost", range(7))
async def test_a_lost_run_is_found_among_more_open_ones_than_one_page_holds(catalog, monkeypatch, lost):
    monkeypatch.setattr(unsettled, "RUNS_AT_ONCE", 2)
    desk, temporal = Desk(catalog), Known()
    loop = desk.enabled(every(60, overlap="allow"))
    temporal.found[loop.key.workflow_id] = Found.RUNNING
    runs = []
    for number in range(1, 8):
        loop.step_at(60 * number - 3)
        desk.now = NOON + number * MINUTE
        runs.append(loop.run(60 * number))
        desk.admit(runs[-1])
        temporal.found[runs[-1].workflow_id] = Found.RUNNING
    temporal.found[runs[lost].workflow_id] = Found.TERMINATED

    one = controller(catalog, temporal, Clock(desk.now + 2 * OVERDUE))
    for _ in range(4):
        before = sum(temporal.described[run.workflow_id] for run in runs)
        await one.sweep()
        assert sum(temporal.described[run.workflow_id] for run in runs) - before <= 2

    told = [disposition for disposition, *_ in desk.told()]
    assert told == ["terminated" if number == lost else "admitted" for number in range(7)]


async def test_what_is_enabled_is_started_by_one_call_and_looked_at_where_somebody_else_has_started_it(catalog):
    desks = [Desk(catalog) for _ in range(3)]
    temporal, keys = Known(), [desk.enabled(every(60)).key for desk in desks]
    temporal.found |= {keys[1].workflow_id: Found.RUNNING, keys[2].workflow_id: Found.TERMINATED}
    await controller(catalog, temporal, Clock()).tick()
    assert [temporal.described[key.workflow_id] for key in keys] == [1, 2, 2]
    assert [runtime(catalog, desk.key)[0] for desk in desks] == ["active", "active", "review"]


async def test_a_staged_run_that_temporal_forgot_is_started_again_as_often_as_it_forgets(catalog):
    desk, temporal = Desk(catalog), Known()
    loop = desk.enabled(every(60))
    loop.step_at(57)
    one = controller(catalog, temporal, Clock(NOON + MINUTE + 2 * OVERDUE))
    for _ in range(2):
        await one.sweep()
        assert temporal.found.pop(loop.run(60).workflow_id) is Found.RUNNING


def text(instant) -> str:
    return instant.isoformat().replace("+00:00", "Z")


async def statements(catalog, act) -> list[str]:
    """The statements that an action of ours makes."""
    made = []

    def note(_connection, _cursor, statement, *_rest):
        if not statement.startswith(("BEGIN", "PRAGMA")):
            made.append(statement)

    engines = {catalog.engine, catalog._reader}
    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)
    try:
        await act()
    finally:
        for engine in engines:
            event.remove(engine, "before_cursor_execute", note)
    return made
