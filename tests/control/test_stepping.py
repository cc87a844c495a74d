"""Steps against a real catalog: what is committed once, what is stale, and what outlives a crash."""

import time

import pytest

from horarium.control.stepping import Status
from horarium.schedule.identity import RunKey
from horarium.schedule.ledger import Disposition
from horarium.schedule.plan import plan
from tests.control.desk import Desk, Loop, at, configuration, every, offsets, seconds
from tests.control.world import Work, World


def test_an_instant_is_staged_before_its_time_and_started_after_the_commit(desk: Desk) -> None:
    loop = desk.enabled(every(60))
    assert offsets(loop.step_at(56).starts) == [60]
    assert desk.told() == [("staged", 60, 60, 1)]
    assert desk.started == {loop.run(60)}
    assert desk.activation().accounted_through == at(60)


def test_a_repeated_commit_changes_nothing_and_starts_what_the_first_did_not(desk: Desk) -> None:
    loop = desk.enabled(every(60, overlap="allow"))
    desk.now = at(125)
    found = loop.gather()
    assert found.facts is not None
    decided = plan(found.facts)
    loop.commit(decided, start=False)
    before, activation = desk.entries(), desk.activation()
    assert desk.started == set()
    again = loop.commit(decided)
    assert again.status is Status.STALE
    assert (desk.entries(), desk.activation()) == (before, activation)
    assert desk.started == {loop.run(60), loop.run(120)}


def test_of_two_plans_for_the_same_instants_one_is_carried_out(desk: Desk) -> None:
    """Two workflows by mistake, or one that was reset: whoever commits second finds the mark moved."""
    loop = desk.enabled(every(60, overlap="buffer_all"))
    other = Loop(desk, loop.key)
    desk.now = at(185)
    one, two = loop.gather().facts, other.gather().facts
    assert one is not None
    assert two is not None
    assert loop.commit(plan(one)).status is Status.DONE
    desk.now = at(186)
    before = desk.entries()
    assert other.commit(plan(two)).status is Status.STALE
    assert desk.entries() == before
    assert other.step() is Status.DONE
    desk.check_ledger()


def test_a_repeated_promotion_that_moved_no_mark_is_stale_too(desk: Desk) -> None:
    loop = desk.enabled(every(60, overlap="buffer_all", runs=2))
    loop.step_at(200)
    desk.now = at(200)
    assert desk.told()[2] == ("buffered", 180, 180, 1)
    loop.has_run(60, starts=200, ends=200)
    found = loop.gather()
    assert found.facts is not None
    decided = plan(found.facts)
    assert offsets(decided.promotions) == [180]
    assert decided.accounted_through == decided.base
    assert loop.commit(decided).status is Status.DONE
    loop.has_run(120, starts=200, ends=200)
    assert loop.commit(decided).status is Status.STALE


def test_a_schedule_that_means_to_wait_is_told_when_the_slot_was_freed_meanwhile(desk: Desk) -> None:
    """The nudge of that settlement went nowhere, since nobody had said yet that it waits."""
    loop = desk.enabled(every(60))
    loop.step_at(56)
    desk.now = at(60)
    desk.admit(loop.run(60))
    desk.now = at(117)
    found = loop.gather()
    assert found.facts is not None
    decided = plan(found.facts)
    assert decided.blocked
    assert desk.settle(loop.run(60)) is None
    assert loop.commit(decided).status is Status.STALE
    assert not desk.activation().waiting
    loop.step_at(117.1)
    assert desk.told()[-1] == ("staged", 120, 120, 1)


def test_a_plan_whose_slot_was_taken_meanwhile_is_stale(desk: Desk) -> None:
    loop = desk.enabled(every(60))
    desk.now = at(57)
    found = loop.gather()
    assert found.facts is not None
    desk.hold_by_hand("receipt")
    assert loop.commit(plan(found.facts)).status is Status.STALE
    assert loop.step() is Status.DONE
    assert [entry.trigger for entry in desk.entries()] == ["manual:receipt"]
    assert desk.activation().waiting


def test_a_slot_taken_between_the_step_s_time_and_its_commit_is_taken(desk: Desk) -> None:
    """A commit may come late. The next step must neither start on top of that run nor plan for ever what is refused."""
    loop = desk.enabled(every(10, window=10))
    desk.now = at(19.9)
    found = loop.gather()
    assert found.facts is not None
    decided = plan(found.facts)
    assert offsets(decided.starts) == [10]
    desk.now = at(20.2)
    assert loop.commit(decided).status is Status.DONE
    decided = loop.step_at(20.3)
    assert offsets(decided.starts) == []
    assert desk.told() == [("staged", 10, 10, 1), ("skipped", 20, 20, 1)]


def test_a_slot_that_a_late_commit_took_and_gave_back_was_taken_since_its_step(desk: Desk) -> None:
    """Its step had decided on it before the next instant, whenever the catalog came to write it down."""
    loop = desk.enabled(every(10))
    desk.now = at(19.9)
    found = loop.gather()
    assert found.facts is not None
    desk.now = at(20.2)
    loop.commit(plan(found.facts))
    loop.has_run(10, starts=20.3, ends=20.4)
    loop.step_at(20.5)
    assert desk.told() == [("succeeded", 10, 10, 1), ("skipped", 20, 20, 1)]


@pytest.mark.parametrize("ahead", [0.4, 5])
def test_an_end_dated_by_a_clock_that_is_ahead_frees_the_slot_now(desk: Desk, ahead: float) -> None:
    """Were the slot taken until then, the schedule would wait for a run that has ended, and be told so, without pause."""
    loop = desk.enabled(every(60))
    loop.step_at(57)
    desk.now = at(58)
    desk.admit(loop.run(60), now=at(60))
    assert loop.step() is Status.DONE
    desk.now = at(117)
    assert loop.step() is Status.DONE
    desk.now = at(118 + ahead)
    assert desk.settle(loop.run(60)) == loop.key
    desk.now = at(118)
    assert loop.step() is Status.DONE
    assert desk.told()[-1] == ("staged", 120, 120, 1)


def test_a_step_of_an_activation_that_ended_does_nothing(desk: Desk) -> None:
    loop = desk.enabled(every(60))
    desk.now = at(57)
    found = loop.gather()
    assert found.facts is not None
    desk.pause()
    assert loop.commit(plan(found.facts)).status is Status.ENDED
    assert loop.step() is Status.ENDED
    assert desk.entries() == []


def test_the_calendar_s_end_sends_the_activation_to_review(desk: Desk) -> None:
    loop = desk.enabled(configuration([{"every_seconds": 60, "offset_seconds": 0}], "skip", end_at=at(90)))
    loop.step_at(56)
    desk.now = at(60)
    assert desk.admit(loop.run(60)).outcome == "admitted"
    loop.step_at(70)
    activation = desk.activation()
    assert loop.ended
    assert (activation.ended_as, activation.ended_at) == ("review", at(70))
    assert "calendar_exhausted" in (activation.ended_reason or "")
    desk.settle(loop.run(60))
    assert desk.told() == [("succeeded", 60, 60, 1)]
    desk.check_ledger()


def test_one_that_never_was_due_goes_to_review_at_its_first_step(desk: Desk) -> None:
    loop = desk.enabled(configuration([{"every_seconds": 60, "offset_seconds": 0}], "skip", end_at=at(-60)))
    loop.step_at(1)
    assert desk.activation().ended_as == "review"
    assert desk.entries() == []


def test_a_lost_nudge_costs_time_and_nothing_else(desk: Desk) -> None:
    """Runs of seven seconds, every ten; the schedule looks by itself after a minute, then after two, and so on."""
    loop = desk.enabled(every(10, overlap="buffer_all", window=10))
    world = World(desk, lambda _run: Work(takes=seconds(15)), nudges_arrive=False)
    world.loops[1] = loop
    loop.wake = at(0)
    world.pass_until(at(400))
    world.nudges_arrive = True
    loop.wake = at(400)
    world.pass_until(at(400))
    desk.check_ledger()
    assert {entry.disposition for entry in desk.entries()} <= {
        Disposition.SUCCEEDED,
        Disposition.BUFFERED,
        Disposition.STAGED,
        Disposition.STARTED,
    }


def test_the_published_example_of_buffer_one(desk: Desk) -> None:
    """Runs of six seconds, due each second: the earliest that overlaps waits, and it starts when the run ends."""
    desk.now = at(-0.5)
    loop = desk.enabled(every(1, overlap="buffer_one"))
    world = World(desk, lambda _run: Work(takes=seconds(6)))
    world.loops[1] = loop
    loop.wake = desk.now
    world.pass_until(at(14))
    starts = sorted((run.nominal_time, start) for run, start in world.actual_starts.items())
    assert [offsets(pair) for pair in starts] == [[0, 0], [1, 6], [7, 12]]
    skipped = [told[1:] for told in desk.told() if told[0] == "skipped"]
    assert skipped == [(2, 6, 5), (8, 12, 5)]


def test_a_run_that_never_ends_fills_the_buffer_and_no_more(desk: Desk) -> None:
    loop = desk.enabled(every(1, overlap="buffer_all"))
    loop.step_at(0.5)
    desk.now = at(1)
    desk.admit(loop.run(1))
    for offset in range(2, 2_000, 60):
        loop.step_at(offset + 0.5)
    waiting = [told for told in desk.told() if told[0] == "buffered"]
    assert len(waiting) == 1_000
    assert desk.told()[-1] == ("dropped", 1_002, 1_982, 981)
    desk.check_ledger()
    desk.pause()
    desk.check_ledger()
    assert {told[0] for told in desk.told()} == {"admitted", "dropped"}


def test_a_run_ended_by_hand_gives_way_to_the_next_instant_only(desk: Desk) -> None:
    """Hourly, and the run of the first hour is stuck: the hours that it took are gone, and are not made up for."""
    loop = desk.enabled(every(3_600))
    loop.step_at(3_597)
    desk.now = at(3_600)
    desk.admit(loop.run(3_600))
    desk.begin(loop.run(3_600))
    loop.step_at(7_197)
    desk.now = at(3.5 * 3_600)
    assert desk.settle(loop.run(3_600), Disposition.TERMINATED) == loop.key
    loop.step()
    loop.step_at(4 * 3_600 - 3)
    assert desk.told() == [
        ("terminated", 3_600, 3_600, 1),
        ("skipped", 7_200, 10_800, 2),
        ("staged", 14_400, 14_400, 1),
    ]


@pytest.mark.parametrize("overlap", ["skip", "buffer_one", "buffer_all", "allow"])
@pytest.mark.parametrize("window", [10, 3_600, 86_400])
def test_a_day_without_workers_is_at_most_three_rows_beside_the_runs(desk: Desk, overlap: str, window: int) -> None:
    loop = desk.enabled(every(1, overlap=overlap, window=window))
    desk.now = at(86_400)
    began = time.perf_counter()
    found = loop.gather()
    assert found.facts is not None
    plan(found.facts)
    assert time.perf_counter() - began < 1
    while loop.step() is Status.DONE and loop.last is not None and loop.last.more:
        assert loop.wake is not None
        desk.now = loop.wake
    entries = desk.entries()
    assert sum(entry.held_since is None and entry.disposition is not Disposition.BUFFERED for entry in entries) <= 3
    desk.check_ledger()


def test_a_run_s_end_after_its_activation_s_frees_the_slot_for_the_next_generation(desk: Desk) -> None:
    loop = desk.enabled(every(60))
    loop.step_at(57)
    desk.now = at(60)
    desk.admit(loop.run(60))
    desk.begin(loop.run(60))
    desk.now = at(70)
    second = Loop(desk, desk.enable().key)
    second.step_at(117)
    assert second.last is not None
    assert second.last.blocked
    second.step_at(177)
    assert second.last.blocked
    desk.now = at(178)
    assert desk.settle(loop.run(60), Disposition.FAILED) == second.key
    second.step()
    assert desk.told() == [("failed", 60, 60, 1), ("skipped", 120, 120, 1), ("staged", 180, 180, 1)]
    desk.check_ledger()


def test_a_second_s_pause_between_two_steps_is_no_outage(desk: Desk) -> None:
    """What falls due at the very microsecond of a step belongs to that step, and to no other."""
    loop = desk.enabled(every(1, overlap="allow"))
    for offset in range(1, 20):
        loop.step_at(offset)
    assert [told[1] for told in desk.told()] == list(range(1, 24))
    assert RunKey(activation=loop.key, nominal_time=at(1)) in desk.started
    desk.check_ledger()
