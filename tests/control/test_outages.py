"""After an outage the oldest instants that are still eligible come first (DESIGN.md, section 6).

What was staged before it and never decided held no slot: it is missed, and takes nothing with it.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horarium.catalog import Catalog
from horarium.control.stepping import Status
from horarium.schedule.ledger import Disposition, Reason
from horarium.schedule.plan import plan
from tests.control.desk import LOOK, Desk, Loop, at, configuration, every, offsets, seconds
from tests.control.world import Work, World


def staged_before(desk: Desk, **policy: Any) -> Loop:
    """A schedule of each minute whose first run is staged when everything stops."""
    loop = desk.enabled(every(60, **policy))
    loop.step_at(57)
    return loop


def test_the_schedule_waits_for_the_admission_that_is_overdue(desk: Desk) -> None:
    loop = staged_before(desk, window=300)
    decided = loop.step_at(400)
    assert decided.awaits
    assert loop.wake == at(400) + LOOK
    activation = desk.activation()
    assert (activation.waiting, activation.attended_until) == (True, at(400) + LOOK)
    # Beside it only what is missed whoever ran: nothing was listening.
    assert desk.told() == [("staged", 60, 60, 1)]
    assert loop.step_at(430).awaits


def test_a_run_that_is_missed_at_its_admission_held_nothing(desk: Desk) -> None:
    loop = staged_before(desk, window=300)
    loop.step_at(400)
    desk.now = at(400.1)
    admission = desk.admit(loop.run(60))
    assert (admission.outcome, admission.nudge) == ("missed", loop.key)
    loop.step_at(400.2)
    assert desk.told() == [("missed", 60, 60, 1), ("staged", 120, 120, 1), ("skipped", 180, 360, 4)]
    assert desk.admit(loop.run(120)).outcome == "admitted"
    desk.check_ledger()


def test_so_it_is_when_the_run_worker_is_back_first(desk: Desk) -> None:
    loop = staged_before(desk, window=300)
    desk.now = at(400)
    assert desk.admit(loop.run(60)).outcome == "missed"
    loop.step_at(400.2)
    assert desk.told() == [("missed", 60, 60, 1), ("staged", 120, 120, 1), ("skipped", 180, 360, 4)]


def test_a_run_that_is_admitted_late_is_what_the_others_overlap_with(desk: Desk) -> None:
    loop = staged_before(desk, window=3_600)
    loop.step_at(400)
    desk.now = at(400.1)
    admission = desk.admit(loop.run(60))
    assert (admission.outcome, admission.nudge) == ("admitted", loop.key)
    # The first nudge may be lost with the process that was to send it.
    assert desk.admit(loop.run(60)).nudge == loop.key
    loop.step_at(400.2)
    assert desk.told() == [("admitted", 60, 60, 1), ("skipped", 120, 360, 5)]
    assert desk.admit(loop.run(60)).nudge is None


def test_an_admission_in_time_nudges_nobody(desk: Desk) -> None:
    loop = desk.enabled(every(1))
    loop.step_at(0.5)
    loop.step_at(0.6)
    assert desk.activation().waiting
    desk.now = at(1)
    assert desk.admit(loop.run(1)).nudge is None


def test_a_promoted_run_is_overdue_by_its_slot_and_not_by_its_instant(desk: Desk) -> None:
    loop = staged_before(desk, overlap="buffer_all")
    desk.now = at(60)
    desk.admit(loop.run(60))
    loop.step_at(120.5)
    desk.now = at(400)
    desk.settle(loop.run(60))
    loop.step()
    assert [entry.disposition for entry in desk.entries()][1] is Disposition.STAGED
    awaits = []
    for offset in (401.9, 402.1):
        desk.now = at(offset)
        found = loop.gather()
        assert found.facts is not None
        awaits.append(found.facts.awaits)
    assert awaits == [False, True]


def test_a_plan_that_waits_for_a_decision_is_stale_once_it_is_there(desk: Desk) -> None:
    """The nudge of that decision went nowhere, since nobody had said yet that it waits."""
    loop = staged_before(desk, window=300)
    desk.now = at(400)
    found = loop.gather()
    assert found.facts is not None
    decided = plan(found.facts)
    assert decided.awaits
    assert desk.admit(loop.run(60)).nudge is None
    assert loop.commit(decided).status is Status.STALE
    loop.step_at(400.1)
    assert desk.told()[1] == ("staged", 120, 120, 1)


def test_a_staged_run_that_was_lost_undecided_held_nothing_either(desk: Desk) -> None:
    loop = staged_before(desk)
    loop.step_at(400)
    desk.now = at(410)
    assert desk.settle(loop.run(60), Disposition.NOT_STARTED, Reason.RUN_LOST) == loop.key
    loop.step()
    assert desk.told() == [("not_started", 60, 60, 1), ("staged", 120, 120, 1), ("skipped", 180, 360, 4)]


def test_a_pause_in_between_drops_what_was_left(desk: Desk) -> None:
    loop = staged_before(desk, window=300)
    loop.step_at(400)
    desk.now = at(410)
    desk.pause()
    assert desk.told() == [("dropped", 60, 60, 1), ("dropped", 120, 360, 5)]
    desk.check_ledger()


EVERY = st.sampled_from([1, 2, 3, 5, 10, 20])


# On one database: its many outages are about arithmetic, and the other tests about what is asked of a database.
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@settings(max_examples=60)
@given(
    EVERY,
    st.sampled_from(["skip", "buffer_one", "buffer_all", "allow"]),
    st.integers(1, 3),
    st.sampled_from([10, 12, 30, 600]),
    st.integers(20, 40),
    st.integers(1, 60),
    st.sampled_from(["together", "schedules first", "runs first"]),
)
def test_both_workers_were_away(
    catalog: Catalog, interval: int, overlap: str, slots: int, window: int, down: int, lasts: int, back: str
) -> None:
    """Runs take no time worth naming, so that at the end of the outage nothing runs and all slots are free.

    Then: what is older than the window is missed, and the oldest of the rest start, as many as there are slots; of the others
    each policy makes what it makes of any overlap.
    """
    desk = Desk(catalog, now=at(down - 8))
    world = World(desk, lambda _run: Work(takes=seconds(0.001)))
    rules = [{"every_seconds": interval, "offset_seconds": 0}]
    desk.publish(configuration(rules, overlap, window=window, runs=slots))
    world.establish(desk.enable())
    world.pass_until(at(down + 0.5))
    world.schedules_up = world.runs_up = False
    up = down + lasts + 0.5
    world.pass_until(at(up))
    for part in {"together": [], "schedules first": ["schedules_up"], "runs first": ["runs_up"]}[back]:
        setattr(world, part, True)
        world.pass_until(at(up + 0.002))
    world.schedules_up = world.runs_up = True
    decided = up + (0.002 if back == "schedules first" else 0.0)
    world.pass_until(at(up + 0.4))

    due = [second for second in range(down + 1, down + lasts + 1) if second % interval == 0]
    eligible = [second for second in due if decided - second <= window]
    assert [second for second in due if fate_of(desk, second) == "missed"] == [
        second for second in due if second not in eligible
    ]
    first, rest = (eligible, []) if overlap == "allow" else (eligible[:slots], eligible[slots:])
    assert {fate_of(desk, second) for second in first} <= {"succeeded"}
    if overlap == "skip":
        assert {fate_of(desk, second) for second in rest} <= {"skipped"}
    elif overlap == "buffer_one":
        assert [fate_of(desk, second) for second in rest] == ["succeeded", *["skipped"] * len(rest)][: len(rest)]
    else:
        assert {fate_of(desk, second) for second in rest} <= {"succeeded"}
    desk.check_ledger()


def fate_of(desk: Desk, second: int) -> str:
    [entry] = [entry for entry in desk.entries() if entry.first_at <= at(second) <= entry.last_at]
    assert offsets([entry.first_at])
    return entry.disposition.value
