"""A run that a person asks for now: what it needs, how it counts, and who starts it."""

from datetime import timedelta
from typing import Any

import pytest

from horarium.catalog import presence, unsettled
from horarium.control.audit import audit
from horarium.control.operations import run_to_start
from horarium.control.records import occurrences
from horarium.errors import Conflict, Refused, Unavailable
from horarium.schedule.identity import ActivationKey, RunKey
from horarium.schedule.ledger import Disposition, Reason
from horarium.schedule.plan import plan
from starter.controller import SWEEP_EVERY
from starter.unsettled import OVERDUE
from tests.control.caller import Caller, events, new_key
from tests.control.desk import SCOPE, Desk, Loop, at, every, seconds


@pytest.fixture
def caller(desk: Desk) -> Caller:
    return Caller(desk)


def loop_of(caller: Caller, generation: int = 1) -> Loop:
    return Loop(caller.desk, ActivationKey(schedule=caller.desk.key, generation=generation))


def triggered(caller: Caller, reference: dict[str, Any], generation: int = 1, **other: Any) -> RunKey:
    receipt = caller.trigger(caller.about(reference, generation, **other))
    run = run_to_start(SCOPE, receipt)
    assert run is not None
    return run


def manual(desk: Desk) -> list[tuple[str, str | None]]:
    return [(str(entry.disposition), entry.reason) for entry in desk.entries() if entry.trigger != "schedule"]


def test_it_is_staged_for_the_present_second_and_runs_as_every_run(caller: Caller) -> None:
    reference = caller.enabled(every(3_600))
    desk = caller.desk
    desk.now = at(100.75)
    receipt = caller.trigger(caller.about(reference, 1))
    run = run_to_start(SCOPE, receipt)
    assert run is not None
    assert (run.nominal_time, run.trigger) == (at(100), f"manual:{receipt.document['receipt_id']}")
    assert receipt.document["run_id"] == run.run_id
    assert receipt.document["workflow_id"] == run.workflow_id
    assert receipt.document["nominal_time"] == "2026-11-30T12:01:40Z"
    assert desk.told() == [("staged", 100, 100, 1)]
    assert desk.admit(run).outcome == "admitted"
    desk.begin(run)
    desk.now = at(130)
    desk.settle(run)
    assert desk.told() == [("succeeded", 100, 100, 1)]


def test_the_ledger_and_the_events_say_who_asked_for_it(caller: Caller) -> None:
    reference = caller.enabled(every(3_600))
    caller.desk.now = at(5)
    receipt = caller.trigger(caller.about(reference, 1))
    row = caller.desk.read(occurrences, caller.desk.key)[0]
    assert (row["triggered_by"], row["trigger"]) == ("ada", receipt.document["trigger"])
    event = events(caller.desk)[-1]
    assert (event["kind"], event["actor"], event["generation"], event["revision"]) == ("triggered", "ada", 1, 1)
    assert event["details"]["receipt_id"] == receipt.document["receipt_id"]
    assert event["details"]["run_id"] == row["run_id"]


def test_a_run_by_the_calendar_was_triggered_by_nobody(caller: Caller) -> None:
    caller.enabled(every(60))
    loop_of(caller).step_at(57)
    assert caller.desk.read(occurrences, caller.desk.key)[0]["triggered_by"] is None


def never_enabled(caller: Caller, reference: dict[str, Any]) -> int:
    return 0


def paused(caller: Caller, reference: dict[str, Any]) -> int:
    caller.set(caller.about(reference, 0, enabled=True))
    caller.set(caller.about(reference, 1, enabled=False))
    return 2


def in_review(caller: Caller, reference: dict[str, Any]) -> int:
    caller.set(caller.about(reference, 0, enabled=True))
    loop = loop_of(caller)
    loop.step_at(57)
    loop.has_run(60, ends=70, disposition=Disposition.FAILED)
    return 1


@pytest.mark.parametrize("arrange", [never_enabled, paused, in_review])
def test_only_what_is_enabled_can_be_run(caller: Caller, arrange: Any) -> None:
    reference = caller.publish(every(60, pause_on_failure=True)).document["reference"]
    generation = arrange(caller, reference)
    with pytest.raises(Conflict) as refused:
        triggered(caller, reference, generation)
    assert refused.value.code == "not_enabled"
    assert manual(caller.desk) == []


def test_it_needs_both_workers_since_now_means_now(caller: Caller) -> None:
    reference = caller.enabled(every(60))
    caller.desk.write(presence.leave, instance="runs")
    try:
        with pytest.raises(Unavailable, match="A manual run needs both runtime workers"):
            triggered(caller, reference)
    finally:
        caller.desk.write(presence.beat, instance="runs", role="runs", tzdata="t", now=at(0))
    assert manual(caller.desk) == []


@pytest.mark.parametrize("overlap", ["skip", "buffer_one", "buffer_all"])
def test_an_overlap_is_refused_and_nothing_waits(caller: Caller, overlap: str) -> None:
    reference = caller.enabled(every(3_600, overlap=overlap))
    caller.desk.now = at(10)
    first = triggered(caller, reference)
    key = new_key()
    request = caller.about(reference, 1)
    with pytest.raises(Conflict) as refused:
        caller.trigger(request, key)
    assert refused.value.code == "overlap"
    assert len(caller.desk.entries()) == 1
    caller.desk.admit(first)
    caller.desk.settle(first)
    caller.desk.now = at(20)
    assert not caller.trigger(request, key).replayed


def test_a_run_by_the_calendar_is_an_overlap_from_its_staging_on(caller: Caller) -> None:
    reference = caller.enabled(every(60))
    loop_of(caller).step_at(57)
    with pytest.raises(Conflict, match="hold 1 of 1 slots"):
        triggered(caller, reference)


def test_as_many_run_as_there_are_slots(caller: Caller) -> None:
    reference = caller.enabled(every(3_600, runs=2))
    triggered(caller, reference)
    triggered(caller, reference)
    with pytest.raises(Refused, match="hold 2 of 2 slots"):
        triggered(caller, reference)


@pytest.mark.parametrize(("overlap", "asked"), [("skip", {"overlap": "allow"}), ("allow", {})])
def test_overlap_is_allowed_by_the_policy_or_by_the_person(caller: Caller, overlap: str, asked: dict[str, str]) -> None:
    reference = caller.enabled(every(3_600, overlap=overlap))
    caller.desk.now = at(10)
    runs = {triggered(caller, reference, **asked) for _ in range(3)}
    assert len(runs) == 3
    assert {run.nominal_time for run in runs} == {at(10)}
    assert caller.desk.holding() == 3
    assert events(caller.desk)[-1]["details"]["overlap"] == "allow"


def test_it_holds_a_slot_against_what_falls_due_meanwhile(caller: Caller) -> None:
    reference = caller.enabled(every(60))
    desk, loop = caller.desk, loop_of(caller)
    desk.now = at(30)
    run = triggered(caller, reference)
    desk.admit(run)
    loop.step_at(60.2)
    assert [told for told in desk.told() if told[0] == "skipped"] == [("skipped", 60, 60, 1)]
    desk.now = at(90)
    desk.settle(run)
    assert loop.step_at(117).starts == (at(120),)
    desk.check_ledger()


def test_a_plan_that_did_not_see_it_is_made_again(caller: Caller) -> None:
    """Facts were gathered, then the person came: the commit counts the slots under the same lock."""
    reference = caller.enabled(every(60))
    desk, loop = caller.desk, loop_of(caller)
    desk.now = at(57)
    facts = loop.gather().facts
    assert facts is not None
    decided = plan(facts)
    assert decided.starts == (at(60),)
    triggered(caller, reference)
    assert loop.commit(decided).status.value == "stale"
    assert [entry.trigger for entry in desk.entries()] != ["schedule"]
    assert desk.holding() == 1


@pytest.mark.parametrize("disposition", [Disposition.FAILED, Disposition.TIMED_OUT])
def test_its_failure_does_not_pause_the_schedule(caller: Caller, disposition: Disposition) -> None:
    reference = caller.enabled(every(3_600, pause_on_failure=True))
    run = triggered(caller, reference)
    caller.desk.admit(run)
    caller.desk.settle(run, disposition, Reason.AGENT_LOST)
    assert caller.desk.activation().is_live


def test_admission_decides_on_it_too(caller: Caller) -> None:
    reference = caller.enabled(every(3_600))
    run = triggered(caller, reference)
    caller.desk.content.readable = False
    assert caller.desk.admit(run).outcome == "refused"
    assert manual(caller.desk) == [("refused", Reason.INPUT_UNREADABLE)]


@pytest.mark.parametrize("clock", [0.0, -5.0])
def test_a_pause_before_its_admission_drops_it_and_keeps_its_line(caller: Caller, clock: float) -> None:
    """Also by one whose clock is behind, to whom the run is not due yet: its receipt was given."""
    reference = caller.enabled(every(3_600))
    caller.desk.now = at(100)
    run = triggered(caller, reference)
    caller.desk.now = at(100 + clock)
    caller.set(caller.about(reference, 1, enabled=False))
    assert manual(caller.desk) == [("dropped", Reason.PAUSED)]
    caller.desk.now = at(100)
    assert caller.desk.admit(run).outcome == "withdrawn"


def test_the_audit_takes_it_for_no_occurrence(caller: Caller) -> None:
    reference = caller.enabled(every(3_600))
    caller.desk.now = at(33)
    triggered(caller, reference)
    result = caller.desk.read(audit, caller.desk.key, now=at(60))
    assert result.clean
    assert result.due == 0


class TestWhoStartsIt:
    def test_the_next_step_of_the_schedule_does(self, caller: Caller) -> None:
        reference = caller.enabled(every(3_600))
        run = triggered(caller, reference)
        loop = loop_of(caller)
        loop.step_at(1)
        assert caller.desk.started == {run}

    def test_a_step_that_has_nothing_else_to_do_does_not_end_the_activation_over_it(self, caller: Caller) -> None:
        document = every(60)
        document["calendar"]["end_at"] = "2026-11-30T12:01:30Z"
        reference = caller.enabled(document)
        loop, desk = loop_of(caller), caller.desk
        loop.step_at(57)
        loop.has_run(60, ends=65)
        desk.now = at(70)
        run = triggered(caller, reference)
        loop.step_at(71)
        assert desk.started == {loop.run(60), run}
        assert desk.activation().is_live
        desk.admit(run)
        desk.settle(run)
        loop.step_at(90)
        assert desk.activation().ended_as == "review"
        assert manual(desk) == [("succeeded", None)]

    def test_the_controller_finds_it_within_fifteen_seconds_while_the_schedule_sleeps(self, caller: Caller) -> None:
        reference = caller.enabled(every(86_400 * 3))
        caller.desk.now = at(50_000)
        run = triggered(caller, reference)
        assert seconds(15) >= OVERDUE + SWEEP_EVERY
        found = self.overdue(caller.desk, caller.desk.now + OVERDUE + timedelta(milliseconds=1), OVERDUE)
        assert run in found
        assert run not in self.overdue(caller.desk, caller.desk.now + OVERDUE - seconds(1), OVERDUE)

    def test_however_many_runs_are_long_it_is_found(self, caller: Caller) -> None:
        reference = caller.enabled(every(3_600, overlap="allow"))
        for number in range(5):
            caller.desk.now = at(60_000 + number)
            long = triggered(caller, reference)
            caller.desk.admit(long)
            caller.desk.begin(long)
        caller.desk.now = at(60_100)
        run = triggered(caller, reference)
        found = caller.desk.read(unsettled.unsettled_runs, SCOPE, before=at(60_200), limit=10_000)
        keys = [each.key for each in found]
        decided = [each.disposition is not Disposition.STAGED for each in found]
        assert decided == sorted(decided)
        assert keys.index(run) < keys.index(long)

    def overdue(self, desk: Desk, now: Any, overdue: timedelta) -> list[RunKey]:
        found = desk.read(unsettled.unsettled_runs, SCOPE, before=now - overdue, limit=10_000)
        return [each.key for each in found]
