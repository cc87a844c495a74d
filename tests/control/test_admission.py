"""Admission: one decision a run, on what is true at that second, with what was looked at."""

from datetime import datetime

import pytest

from horarium.catalog import presence
from horarium.catalog.environments import ensure_environment
from horarium.catalog.ledger import Run
from horarium.catalog.tables import agents
from horarium.errors import Unavailable
from horarium.schedule.identity import ActivationKey, RunKey, Scope, schedule_key
from horarium.schedule.ledger import Disposition
from tests.control.desk import AGENT, FAR, NOON, Desk, Loop, at, every, seconds


@pytest.fixture
def loop(desk: Desk) -> Loop:
    """A schedule in an environment of its own, with the run of the first minute staged."""
    scope = Scope(org_id="acme", environment_id=f"env{desk.key.schedule_id[-6:]}")
    desk.key = schedule_key(scope, desk.key.schedule_id)
    desk.write(ensure_environment, scope, mode="simulation", runtime_profile="embedded")
    agent(desk)
    loop = desk.enabled(every(60, window=300))
    loop.step_at(57)
    desk.now = at(60)
    return loop


def agent(desk: Desk, *, schedulable: bool = True, idempotent: bool = False, lease_until: datetime = FAR) -> None:
    discovery = {
        "is_schedulable": schedulable,
        "task_queue": "agents",
        "max_run_seconds": 90,
        "idempotent": idempotent,
    }
    desk.write(presence.register_agent, desk.key.scope, AGENT, discovery, lease_until=lease_until, now=NOON)


def row(desk: Desk, run: RunKey) -> Run:
    found = desk.run_row(run)
    assert found is not None
    return found


def test_an_admitted_run_is_told_where_its_agent_is(desk: Desk, loop: Loop) -> None:
    admission = desk.admit(loop.run(60))
    assert admission.outcome == "admitted"
    dispatch = admission.dispatch
    assert dispatch is not None
    assert (dispatch.run_id, dispatch.agent_version, dispatch.task_queue) == (loop.run(60).run_id, AGENT, "agents")
    assert (dispatch.max_run_seconds, dispatch.pick_up_seconds, dispatch.idempotent) == (90, 300.0, False)
    assert desk.told() == [("admitted", 60, 60, 1)]
    evidence = row(desk, loop.run(60)).evidence
    assert evidence is not None
    assert evidence["agent"]["lifecycle"] == "ready"
    assert evidence["version"]["revision"] == 1


@pytest.mark.parametrize(
    ("late", "lease", "pick_up"),
    [(0, 1_000, 300), (100, 1_000, 200), (0, 30, 30), (299.5, 1_000, 1), (0, 0.2, 1)],
)
def test_a_run_waits_for_its_agent_as_long_as_window_and_lease_last(
    desk: Desk, loop: Loop, late: float, lease: float, pick_up: float
) -> None:
    desk.now = at(60 + late)
    agent(desk, lease_until=desk.now + seconds(lease))
    dispatch = desk.admit(loop.run(60)).dispatch
    assert dispatch is not None
    assert dispatch.pick_up_seconds == pytest.approx(pick_up)


def test_nothing_is_decided_before_its_second(desk: Desk, loop: Loop) -> None:
    desk.now = at(59.999)
    with pytest.raises(Unavailable, match=r"due at 2026-11-30T12:01:00Z, in 0.001 s"):
        desk.admit(loop.run(60))
    assert desk.told() == [("staged", 60, 60, 1)]
    desk.now = at(60)
    assert desk.admit(loop.run(60)).outcome == "admitted"


def test_a_second_attempt_of_the_same_owner_is_given_the_same_decision(desk: Desk, loop: Loop) -> None:
    first = desk.admit(loop.run(60), owner="one")
    # Whatever has changed since: the decision stands.
    desk.write(presence.release_agent, desk.key.scope, AGENT, now=at(61))
    desk.content.readable = False
    again = desk.admit(loop.run(60), owner="one")
    assert again.outcome == first.outcome
    assert again.dispatch is not None
    assert again.dispatch.run_id == loop.run(60).run_id
    assert row(desk, loop.run(60)).decided_at == at(60)


def test_another_owner_is_given_nothing_to_do(desk: Desk, loop: Loop) -> None:
    desk.admit(loop.run(60), owner="one")
    other = desk.admit(loop.run(60), owner="two")
    assert (other.outcome, other.dispatch) == ("withdrawn", None)
    assert desk.told() == [("admitted", 60, 60, 1)]
    assert row(desk, loop.run(60)).owner == "one"


def test_a_second_attempt_after_a_refusal_is_told_the_refusal(desk: Desk, loop: Loop) -> None:
    desk.content.readable = False
    first = desk.admit(loop.run(60), owner="one")
    desk.content.readable = True
    again = desk.admit(loop.run(60), owner="one")
    assert (first.outcome, again.outcome) == ("refused", "refused")
    assert (first.reason, again.reason) == ("input_unreadable", "input_unreadable")
    assert desk.admit(loop.run(60), owner="two").outcome == "withdrawn"


def test_a_second_attempt_after_the_run_has_ended_does_nothing(desk: Desk, loop: Loop) -> None:
    desk.admit(loop.run(60))
    desk.begin(loop.run(60))
    desk.settle(loop.run(60))
    again = desk.admit(loop.run(60))
    assert (again.outcome, again.dispatch) == ("succeeded", None)
    assert desk.told() == [("succeeded", 60, 60, 1)]


@pytest.mark.parametrize(("late", "outcome"), [(300, "admitted"), (300.000001, "missed")])
def test_the_window_is_inclusive_at_admission_too(desk: Desk, loop: Loop, late: float, outcome: str) -> None:
    desk.now = at(60) + seconds(late)
    assert desk.admit(loop.run(60)).outcome == outcome
    assert desk.told() == [(outcome, 60, 60, 1)]


def test_an_instant_that_waited_is_as_late_as_its_slot_is_old(desk: Desk) -> None:
    loop = desk.enabled(every(60, overlap="buffer_all", window=10))
    loop.step_at(57)
    desk.now = at(60)
    desk.admit(loop.run(60))
    loop.step_at(121)
    desk.now = at(400)
    desk.settle(loop.run(60))
    loop.step()
    assert row(desk, loop.run(120)).buffered
    desk.now = at(410)
    assert desk.admit(loop.run(120)).outcome == "admitted"


class TestRefusals:
    """Each is one entry for good, with what was looked at, and its slot is free at once."""

    def refused(self, desk: Desk, loop: Loop) -> tuple[str, dict[str, object]]:
        admission = desk.admit(loop.run(60))
        assert (admission.outcome, admission.dispatch) == ("refused", None)
        [entry] = desk.entries()
        assert (entry.disposition, entry.reason, entry.closed_at) == (Disposition.REFUSED, admission.reason, desk.now)
        assert desk.holding() == 0
        desk.check_ledger()
        evidence = row(desk, loop.run(60)).evidence
        assert evidence is not None
        assert evidence["sentence"]
        return str(admission.reason), evidence

    def test_an_agent_that_is_not_registered_any_more(self, desk: Desk, loop: Loop) -> None:
        desk.write(lambda c: c.execute(agents.delete().where(agents.c.environment_id == desk.key.environment_id)))
        reason, evidence = self.refused(desk, loop)
        assert (reason, evidence["agent_version"]) == ("agent_missing", AGENT)

    def test_an_agent_that_handles_no_schedule_any_more(self, desk: Desk, loop: Loop) -> None:
        agent(desk, schedulable=False)
        assert self.refused(desk, loop)[0] == "agent_not_schedulable"

    def test_an_agent_whose_runner_went_away_without_a_word(self, desk: Desk, loop: Loop) -> None:
        agent(desk, lease_until=at(55))
        reason, evidence = self.refused(desk, loop)
        assert reason == "agent_offline"
        assert (evidence["offline_seconds"], evidence["lease_until"]) == (5.0, at(55).isoformat())

    def test_an_agent_whose_runner_left_in_good_order(self, desk: Desk, loop: Loop) -> None:
        desk.write(presence.release_agent, desk.key.scope, AGENT, now=at(58))
        reason, evidence = self.refused(desk, loop)
        assert (reason, evidence["lifecycle"]) == ("agent_not_ready", "stopped")

    def test_an_input_that_cannot_be_read(self, desk: Desk, loop: Loop) -> None:
        desk.content.readable = False
        reason, evidence = self.refused(desk, loop)
        assert (reason, evidence["input"]) == ("input_unreadable", "in")

    def test_an_output_target_that_is_gone(self, desk: Desk, loop: Loop) -> None:
        desk.content.writable = False
        reason, evidence = self.refused(desk, loop)
        assert (reason, evidence["output_target"]) == ("output_missing", "out")

    def test_the_first_reason_wins(self, desk: Desk, loop: Loop) -> None:
        agent(desk, schedulable=False, lease_until=at(0))
        desk.content.readable = desk.content.writable = False
        assert self.refused(desk, loop)[0] == "agent_not_schedulable"


def test_a_lease_that_ends_at_this_very_instant_is_valid(desk: Desk, loop: Loop) -> None:
    agent(desk, lease_until=at(60))
    assert desk.admit(loop.run(60)).outcome == "admitted"


def test_an_instant_that_the_calendar_does_not_select_is_refused_as_a_fault_of_ours(desk: Desk, loop: Loop) -> None:
    stray = RunKey(activation=loop.key, nominal_time=at(61))
    desk.stage(stray)
    desk.now = at(61)
    admission = desk.admit(stray)
    assert (admission.outcome, admission.reason) == ("refused", "not_in_calendar")


def test_a_manual_run_needs_no_calendar(desk: Desk) -> None:
    desk.enabled(every(3_600))
    desk.now = at(61.5)
    assert desk.admit(desk.hold_by_hand("receipt")).outcome == "admitted"


def test_a_run_that_nobody_knows_is_withdrawn(desk: Desk, loop: Loop) -> None:
    desk.now = at(500)
    assert desk.admit(loop.run(120)).outcome == "withdrawn"
    stranger = RunKey(activation=ActivationKey(schedule=desk.key, generation=9), nominal_time=at(60))
    assert desk.admit(stranger).outcome == "withdrawn"


@pytest.mark.parametrize("cause", ["refused", "missed"])
def test_a_slot_that_admission_frees_is_told_to_the_schedule_that_waits(desk: Desk, loop: Loop, cause: str) -> None:
    if cause == "missed":
        desk.now = at(410)
    else:
        desk.now = at(117)
        desk.content.readable = False
    assert desk.activation().waiting is False
    loop.step()
    assert desk.activation().waiting is True
    assert desk.admit(loop.run(60)).nudge == loop.key
    # The first nudge may be lost with the process that was to send it.
    assert desk.admit(loop.run(60)).nudge == loop.key
    loop.step()
    assert desk.admit(loop.run(60)).nudge is None
