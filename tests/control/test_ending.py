"""The closing step of an activation leaves nothing of it open but the runs that were admitted."""

import pytest

from horarium.schedule.ledger import Disposition
from tests.control.desk import Desk, at, configuration, every


@pytest.mark.parametrize("overlap", ["skip", "buffer_one", "buffer_all", "allow"])
@pytest.mark.parametrize("away", [0.2, 3, 61, 500, 90_000])
@pytest.mark.parametrize("act", ["pause", "retire", "enable"])
def test_whenever_it_ends_every_due_instant_has_its_answer(desk: Desk, overlap: str, away: float, act: str) -> None:
    loop = desk.enabled(every(60, overlap=overlap, runs=2 if overlap != "allow" else None))
    loop.step_at(57)
    desk.now = at(60)
    desk.admit(loop.run(60))
    loop.step_at(118)
    desk.now = at(118 + away)
    getattr(desk, act)()
    desk.check_ledger()
    ended = desk.activation(1)
    assert (ended.ended_at, ended.accounted_through, ended.waiting) == (desk.now, desk.now, False)
    assert desk.holding() == 1


def test_a_long_time_without_steps_is_one_entry(desk: Desk) -> None:
    desk.enabled(every(1, overlap="buffer_all"))
    desk.now = at(86_400)
    desk.pause()
    assert desk.told() == [("dropped", 1, 86_400, 86_400)]


def test_waiting_instants_and_undecided_ones_after_them_are_told_with_one_reason(desk: Desk) -> None:
    loop = desk.enabled(every(60, overlap="buffer_all"))
    loop.step_at(57)
    desk.now = at(60)
    desk.admit(loop.run(60))
    loop.step_at(190)
    desk.now = at(400)
    desk.pause()
    assert desk.told() == [("admitted", 60, 60, 1), ("dropped", 120, 120, 1), ("dropped", 180, 360, 4)]


def test_of_two_staged_ahead_the_one_before_a_decided_instant_is_dropped(desk: Desk) -> None:
    """A worker with a clock that is ahead decided the later one first."""
    rules = [{"every_seconds": 60, "offset_seconds": 0}, {"every_seconds": 60, "offset_seconds": 1}]
    desk.now = at(2)
    loop = desk.enabled(configuration(rules, "allow"))
    loop.step_at(58)
    desk.now = at(59)
    assert desk.admit(loop.run(61), now=at(61)).outcome == "admitted"
    desk.pause()
    assert desk.activation(1).ended_at == at(61)
    assert desk.told() == [("dropped", 60, 60, 1), ("admitted", 61, 61, 1)]
    desk.check_ledger()


def test_an_ended_activation_is_not_ended_again(desk: Desk) -> None:
    loop = desk.enabled(every(60, pause_on_failure=True))
    loop.step_at(57)
    loop.has_run(60, ends=70, disposition=Disposition.TIMED_OUT)
    ended = desk.activation(1)
    desk.now = at(500)
    desk.retire()
    assert desk.activation(1) == ended
    assert desk.told() == [("timed_out", 60, 60, 1)]
    desk.check_ledger()
