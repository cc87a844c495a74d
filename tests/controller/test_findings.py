"""What the controller finds is counted once, whoever looks how often, and outlives it."""

import structlog.testing

from horarium.catalog import findings
from horarium.schedule.findings import Finding
from starter import controller as module
from starter.punctuality import GRACE
from starter.temporal import Found
from starter.unsettled import OVERDUE
from tests.control.desk import SCOPE, Desk, at, every, seconds
from tests.controller.known import Clock, Known, controller, runtime


def counts(catalog):
    """What was found at all."""
    with catalog.reading() as connection:
        return {kind: count for kind, count in findings.totals(connection).items() if count}


async def test_what_is_as_it_should_be_is_no_finding(catalog):
    desk, clock = Desk(catalog), Clock()
    loop = desk.enabled(every(60))
    one = controller(catalog, Known(), clock)
    loop.step_at(57)
    loop.has_run(60, ends=61)
    for offset in range(60, 100, 5):
        clock.now = at(offset)
        await one.sweep()
    assert counts(catalog) == {}


async def test_a_due_time_that_passes_counts_once_and_the_next_one_again(catalog):
    desk, clock, temporal = Desk(catalog), Clock(), Known()
    loop = desk.enabled(every(60))
    one = controller(catalog, temporal, clock)
    for offset in range(0, 300, 5):
        clock.now = at(offset)
        await one.sweep()
    assert counts(catalog) == {Finding.DUE_TIME_PASSED: 1}
    loop.step_at(301)
    temporal.found[loop.run(60).workflow_id] = Found.RUNNING
    for offset in range(305, 600, 5):
        clock.now = at(offset)
        await one.sweep()
    assert counts(catalog) == {Finding.DUE_TIME_PASSED: 2}


async def test_a_mark_ahead_of_the_clock_is_an_error_that_says_until_when(catalog):
    """A server's clock was a day ahead, and was set right: nothing fires for a day, and that must not be silent."""
    desk, clock = Desk(catalog), Clock()
    loop = desk.enabled(every(60))
    loop.step_at(86_400 + 1)
    one = controller(catalog, Known(), clock)
    for offset in (5, 10, 15):
        clock.now = at(offset)
        await one.sweep()
        state, reason = runtime(catalog, desk.key)
        assert state == "error"
        assert reason.startswith("It is accounted for until 2026-12-01T12:00:01Z, which is ahead of the clock.")
    assert counts(catalog) == {Finding.MARK_AHEAD: 1}
    clock.now = at(86_400) - GRACE + seconds(2)
    await one.sweep()
    assert runtime(catalog, desk.key) == ("active", None)


async def test_a_staged_run_that_temporal_forgot_counts_each_time_that_it_is_started_again(catalog):
    desk, temporal = Desk(catalog), Known()
    loop = desk.enabled(every(60))
    loop.step_at(57)
    one = controller(catalog, temporal, Clock(at(60) + 2 * OVERDUE))
    for _ in range(2):
        await one.sweep()
        temporal.found.pop(loop.run(60).workflow_id)
    assert counts(catalog) == {Finding.RUN_STARTED_AGAIN: 2}


async def test_two_controllers_that_find_the_same_lost_run_count_it_once(catalog):
    desk, temporal = Desk(catalog), Known()
    loop = desk.enabled(every(60))
    loop.step_at(57)
    desk.now = at(60)
    desk.admit(loop.run(60))
    temporal.found |= {loop.key.workflow_id: Found.RUNNING, loop.run(60).workflow_id: Found.COMPLETED}
    for _ in range(2):
        await controller(catalog, temporal, Clock(at(60) + 2 * OVERDUE)).sweep()
    assert counts(catalog) == {Finding.RUN_NEVER_SETTLED: 1}


async def test_a_sweep_that_takes_too_long_says_how_long(catalog, monkeypatch):
    monkeypatch.setattr(module, "SWEEP_LIMIT", seconds(0))
    with structlog.testing.capture_logs() as logs:
        await controller(catalog, Known(), Clock()).sweep()
    assert [(each["log_level"], each["limit_seconds"]) for each in logs if each["event"] == "sweep_outran_limit"] == [
        ("warning", 0)
    ]


async def test_what_cannot_be_written_down_is_kept_for_the_next_sweep(catalog, monkeypatch):
    desk, temporal = Desk(catalog), Known()
    loop = desk.enabled(every(60))
    loop.step_at(57)
    one = controller(catalog, temporal, Clock(at(60) + 2 * OVERDUE))
    with monkeypatch.context() as broken:

        def fail(*_, **__):
            raise RuntimeError("A row that cannot be written.")

        broken.setattr(findings, "add", fail)
        await one.sweep()
    assert counts(catalog) == {}
    await one.sweep()
    assert counts(catalog) == {Finding.RUN_STARTED_AGAIN: 1}


async def test_counts_of_several_processes_are_added(catalog):
    desk = Desk(catalog)
    for count in (1, 2):
        desk.write(findings.add, SCOPE, {Finding.CLOCK_SKEW: count, Finding.STEP_OUTRAN_LIMIT: 1}, now=at(0))
    assert counts(catalog) == {Finding.CLOCK_SKEW: 3, Finding.STEP_OUTRAN_LIMIT: 2}
