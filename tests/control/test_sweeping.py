"""What is concluded from a run whose workflow is gone, and that nothing is concluded from old news."""

import pytest

from horarium.catalog.unsettled import Unsettled, unsettled_runs
from horarium.control.sweeping import settle_lost
from horarium.schedule.identity import ActivationKey
from horarium.schedule.ledger import Disposition
from tests.control.desk import SCOPE, Desk, Loop, at, every


def brought_to(desk: Desk, state: Disposition) -> Loop:
    """A schedule whose first run is as far as `state`."""
    loop = desk.enabled(every(60))
    loop.step_at(57)
    desk.now = at(60)
    if state is not Disposition.STAGED:
        desk.admit(loop.run(60))
    if state is Disposition.STARTED:
        desk.begin(loop.run(60))
    return loop


def listed(desk: Desk) -> Unsettled:
    found = desk.read(unsettled_runs, SCOPE, before=at(100), limit=500)
    [mine] = [each for each in found if each.key.activation.schedule == desk.key]
    return mine


def lost(desk: Desk, run: Unsettled, closed_as: str) -> ActivationKey | None:
    desk.now = at(200)
    return desk.write(settle_lost, run, closed_as=closed_as, now=desk.now)


@pytest.mark.parametrize(
    ("state", "closed_as", "ends_as", "reason"),
    [
        ("staged", "absent", "missed", "outside_window"),
        ("staged", "completed", "not_started", "run_lost"),
        ("staged", "terminated", "not_started", "run_lost"),
        ("admitted", "completed", "not_started", "start_unknown"),
        ("admitted", "absent", "not_started", "start_unknown"),
        ("admitted", "terminated", "terminated", "terminated_by_operator"),
        ("started", "terminated", "terminated", "terminated_by_operator"),
        ("started", "cancelled", "cancelled", "cancelled_by_operator"),
        # It had begun, so it was not lost before it was decided: what is lost is how it ended.
        ("started", "completed", "failed", "outcome_lost"),
        ("started", "absent", "failed", "outcome_lost"),
    ],
)
def test_a_run_whose_workflow_is_gone_has_an_answer(
    desk: Desk, state: str, closed_as: str, ends_as: str, reason: str
) -> None:
    brought_to(desk, Disposition(state))
    lost(desk, listed(desk), closed_as)
    [entry] = desk.entries()
    assert (entry.disposition, entry.reason, entry.closed_at) == (ends_as, reason, at(200))


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ("staged", "admitted"),
        ("staged", "started"),
        ("staged", "succeeded"),
        ("admitted", "started"),
        ("admitted", "succeeded"),
        ("started", "succeeded"),
    ],
)
@pytest.mark.parametrize("closed_as", ["absent", "completed", "terminated"])
def test_a_run_that_went_on_since_it_was_listed_is_left_alone(desk: Desk, then: str, now: str, closed_as: str) -> None:
    """Temporal was asked about it in between; the next sweep looks again."""
    loop = brought_to(desk, Disposition(then))
    run = listed(desk)
    state = Disposition(now)
    if then == "staged":
        desk.admit(loop.run(60))
    if then != "started" and state is not Disposition.ADMITTED:
        desk.begin(loop.run(60))
    if state is Disposition.SUCCEEDED:
        desk.settle(loop.run(60))
    before = desk.entries()
    assert lost(desk, run, closed_as) is None
    assert desk.entries() == before


def test_a_run_that_was_withdrawn_since_it_was_listed_is_nobody_s(desk: Desk) -> None:
    loop = desk.enabled(every(60))
    loop.step_at(57)
    run = listed(desk)
    desk.now = at(58)
    desk.pause()
    assert lost(desk, run, "completed") is None
    assert desk.entries() == []


def test_the_schedule_that_waits_is_told(desk: Desk) -> None:
    loop = brought_to(desk, Disposition.STARTED)
    run = listed(desk)
    loop.step_at(118)
    assert lost(desk, run, "terminated") == loop.key
