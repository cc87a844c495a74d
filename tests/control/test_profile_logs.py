"""What a profile's occurrences came to that did not run stands in the log, with class and profile, after its commit."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from horarium.catalog import presence
from horarium.catalog.tables import agents, versions
from horarium.control import admission, profile_logs, running, starts
from horarium.control.running import Outcome
from horarium.control.starts import StartFailures
from horarium.schedule.ceilings import Ceilings
from horarium.schedule.identity import RunKey
from horarium.schedule.ledger import Disposition, Reason
from tests.control.desk import AGENT, Desk, Loop, at, every
from tests.control.profiler import TRIAGE, Profiler, profiler_of, saved

Logs = list[dict[str, Any]]


@pytest.fixture
def profiler(own_desk: Desk) -> Profiler:
    return profiler_of(own_desk)


@pytest.fixture
def loop(profiler: Profiler) -> Loop:
    """A profile that fires each minute."""
    profiler.save()
    return profiler.loop()


@pytest.fixture(autouse=True)
def logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Logs]:
    """The lines of this module's subject. Failures to start are those of this test alone."""
    monkeypatch.setattr(profile_logs, "STARTS", StartFailures())
    with capture_logs() as captured:
        yield captured


def due(loop: Loop, offset: int = 60) -> RunKey:
    """The run of an instant, staged, at its second."""
    loop.step_at(offset - 3)
    loop.desk.now = at(offset)
    return loop.run(offset)


def only(logs: Logs, event: str) -> dict[str, Any]:
    """The one line, without what is the same for all."""
    [line] = logs
    assert line["event"] == event
    return line


def about(profiler: Profiler, **more: Any) -> dict[str, Any]:
    return {
        "agent_class": TRIAGE,
        "profile": profiler.agent_id,
        "org_id": "acme",
        "environment_id": "test",
        "schedule_id": profiler.desk.key.schedule_id,
        "log_level": "warning",
        **more,
    }


def named(run: RunKey) -> dict[str, str]:
    return {"nominal_time": "2026-11-30T12:01:00Z", "run_id": run.run_id, "trigger": "schedule"}


class TestOffline:
    def test_an_occurrence_of_an_absent_class_is_dropped_with_how_long_it_has_been_away(
        self, profiler: Profiler, loop: Loop, logs: Logs
    ) -> None:
        desk = profiler.desk
        desk.write(presence.renew_lease, profiler.scope, AGENT, lease_until=at(17.5), now=at(2.5))
        run = due(loop)
        assert desk.admit(run).reason == "agent_offline"
        line = only(logs, "occurrence_dropped_offline")
        told = about(profiler, **named(run), offline_seconds=42.5)
        assert line == {"event": "occurrence_dropped_offline", **told}

    def test_so_it_is_where_its_runner_has_left_in_good_order(self, profiler: Profiler, loop: Loop, logs: Logs) -> None:
        profiler.desk.write(presence.release_agent, profiler.scope, AGENT, now=at(20))
        assert profiler.desk.admit(due(loop)).reason == "agent_not_ready"
        assert only(logs, "occurrence_dropped_offline")["offline_seconds"] == 40.0

    def test_a_runner_that_is_there_and_takes_nothing_is_no_absence(
        self, profiler: Profiler, loop: Loop, logs: Logs
    ) -> None:
        profiler.desk.write(set_lifecycle, "paused")
        assert profiler.desk.admit(due(loop)).reason == "agent_not_ready"
        assert only(logs, "occurrence_refused")["reason"] == "agent_not_ready"

    def test_each_occurrence_is_told_once_however_often_it_is_asked_for(
        self, profiler: Profiler, loop: Loop, logs: Logs
    ) -> None:
        desk = profiler.desk
        desk.write(presence.release_agent, profiler.scope, AGENT, now=at(0))
        for offset in (60, 120, 180):
            run = due(loop, offset)
            for _ in range(3):
                desk.admit(run)
        assert [(each["event"], each["nominal_time"][-6:]) for each in logs] == [
            ("occurrence_dropped_offline", f"{minute:02}:00Z") for minute in (1, 2, 3)
        ]


def set_lifecycle(connection: Any, lifecycle: str) -> None:

    connection.execute(agents.update().where(agents.c.agent_version == AGENT).values(lifecycle=lifecycle))


def refused_and_undone(connection: Any, run: RunKey, desk: Desk) -> None:
    assert admission.decide(connection, run, desk.content, owner="one", now=desk.now).outcome == "refused"
    raise ZeroDivisionError


class TestMissesAndDrops:
    def test_a_refusal_is_told_with_its_reason_and_its_sentence(
        self, profiler: Profiler, loop: Loop, logs: Logs
    ) -> None:
        run = due(loop)
        over = Ceilings(per_profile=43_199)
        desk = profiler.desk
        desk.write(admission.decide, run, desk.content, owner="execution", now=desk.now, ceilings=over)
        line = only(logs, "occurrence_refused")
        assert line["because"].startswith("It declares 43,200 runs in 30 days")
        told = about(profiler, **named(run), reason="ceiling_exceeded", because=line["because"])
        assert line == {"event": "occurrence_refused", **told}

    def test_what_an_outage_left_behind_is_told_as_one_span(self, profiler: Profiler, loop: Loop, logs: Logs) -> None:
        loop.step_at(3_600)
        missed = [each for each in logs if each["event"] == "occurrence_missed"]
        counted = sum(entry.count for entry in profiler.desk.entries() if entry.disposition is Disposition.MISSED)
        assert counted > 1
        assert sum(each["count"] for each in missed) == counted
        first = missed[0]
        assert first["nominal_time"] == "2026-11-30T12:01:00Z"
        assert (first["agent_class"], first["profile"]) == (TRIAGE, profiler.agent_id)
        assert first["reason"] == "outside_window"

    def test_a_decision_that_comes_too_late_is_a_miss(self, profiler: Profiler, loop: Loop, logs: Logs) -> None:
        run = due(loop)
        profiler.desk.now = at(60 + 901)
        assert profiler.desk.admit(run).outcome == "missed"
        line = only(logs, "occurrence_missed")
        assert (line["nominal_time"], line["count"], line["reason"]) == ("2026-11-30T12:01:00Z", 1, "outside_window")

    def test_a_run_that_nobody_started_in_time_is_a_miss(self, profiler: Profiler, loop: Loop, logs: Logs) -> None:
        profiler.desk.settle(due(loop), Disposition.MISSED, Reason.OUTSIDE_WINDOW)
        assert only(logs, "occurrence_missed")["nominal_time"] == "2026-11-30T12:01:00Z"

    def test_what_a_pause_drops_is_told_staged_or_not(self, profiler: Profiler, loop: Loop, logs: Logs) -> None:
        due(loop)
        profiler.desk.now = at(200)
        profiler.save(saved(None))
        told = [(each["event"], each["nominal_time"], each["count"], each["reason"]) for each in logs]
        assert told == [
            ("occurrence_dropped", "2026-11-30T12:01:00Z", 1, "paused"),
            ("occurrence_dropped", "2026-11-30T12:02:00Z", 2, "paused"),
        ]

    def test_what_runs_is_not_told(self, profiler: Profiler, loop: Loop, logs: Logs) -> None:
        loop.step_at(57)
        loop.has_run(60, ends=61)
        assert logs == []

    def test_other_contracts_have_their_ledger_alone(self, own_desk: Desk, logs: Logs) -> None:
        loop = own_desk.enabled(every(60))
        run = due(loop)
        own_desk.content.readable = False
        own_desk.admit(run)
        loop.step_at(86_400)
        own_desk.pause()
        assert logs == []

    def test_what_is_rolled_back_is_not_told(self, profiler: Profiler, loop: Loop, logs: Logs) -> None:
        run = due(loop)
        desk = profiler.desk
        desk.content.writable = False
        with pytest.raises(ZeroDivisionError):
            desk.write(refused_and_undone, run, desk)
        assert logs == []
        desk.admit(run)
        only(logs, "occurrence_refused")

    def test_a_damaged_version_is_told_by_its_profile_too(self, profiler: Profiler, loop: Loop, logs: Logs) -> None:
        run = due(loop)
        broken = json.dumps({"name": "x"})
        profiler.desk.write(lambda connection: connection.execute(versions.update().values(configuration=broken)))
        profiler.desk.admit(run)
        line = next(each for each in logs if each["event"] == "occurrence_refused")
        assert (line["agent_class"], line["profile"]) == (TRIAGE, profiler.agent_id)
        assert line["reason"] == "version_unusable"


class TestFailedStarts:
    @pytest.mark.parametrize(
        "reason",
        [Reason.NOT_PICKED_UP, Reason.CLAIM_FAILED, Reason.DISPATCH_FAILED, Reason.START_UNKNOWN, Reason.RUN_LOST],
    )
    def test_a_run_that_no_agent_began_is_told_by_class_profile_and_occurrence(
        self, profiler: Profiler, loop: Loop, logs: Logs, reason: Reason
    ) -> None:
        run = due(loop)
        profiler.desk.admit(run)
        settle(profiler.desk, run, Outcome(disposition=Disposition.NOT_STARTED, reason=reason, summary="It is gone."))
        line = only(logs, "run_not_started")
        told = about(profiler, **named(run), reason=reason.value, because="It is gone.")
        assert line == {"event": "run_not_started", **told, "log_level": "error"}

    def test_a_run_whose_runner_died_before_it_claimed_did_not_start(
        self, profiler: Profiler, loop: Loop, logs: Logs
    ) -> None:
        run = due(loop)
        profiler.desk.admit(run)
        lost = Outcome(disposition=Disposition.FAILED, reason=Reason.AGENT_LOST, summary="Heartbeat.", trace="a trace")
        settle(profiler.desk, run, lost)
        line = only(logs, "run_not_started")
        assert (line["reason"], line["exception"]) == ("start_unknown", "a trace")

    def test_in_a_burst_the_first_carries_the_traceback(self, profiler: Profiler, loop: Loop, logs: Logs) -> None:
        failed = Outcome(disposition=Disposition.NOT_STARTED, reason=Reason.CLAIM_FAILED, trace="a trace")
        for offset in (60, 120, 180):
            run = due(loop, offset)
            profiler.desk.admit(run)
            settle(profiler.desk, run, failed)
        assert [each.get("exception") for each in logs] == ["a trace", None, None]
        assert len({each["nominal_time"] for each in logs}) == 3

    def test_settling_it_again_tells_nothing_more(self, profiler: Profiler, loop: Loop, logs: Logs) -> None:
        run = due(loop)
        profiler.desk.admit(run)
        for _ in range(2):
            settle(profiler.desk, run, Outcome(disposition=Disposition.NOT_STARTED, reason=Reason.RUN_LOST))
        only(logs, "run_not_started")

    def test_a_traceback_is_for_the_log_alone(self, profiler: Profiler, loop: Loop) -> None:
        run = due(loop)
        profiler.desk.admit(run)
        trace = 'File "/srv/secret.py", line 1'
        settle(
            profiler.desk, run, Outcome(disposition=Disposition.NOT_STARTED, reason=Reason.CLAIM_FAILED, trace=trace)
        )
        assert "secret.py" not in repr(profiler.desk.run_row(run))
        assert "secret.py" not in repr(profiler.thread())
        assert "secret.py" not in repr(Outcome(disposition=Disposition.FAILED, reason=None, trace=trace))


def settle(desk: Desk, run: RunKey, outcome: Outcome) -> None:
    desk.write(running.settle, run, outcome, now=desk.now)


def test_the_failures_of_a_process_are_one_log() -> None:
    assert isinstance(starts.STARTS, StartFailures)
