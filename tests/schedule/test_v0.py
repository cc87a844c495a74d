"""Scheduler v0's documents (seed 002): what is accepted, what is refused and where, and what they compile to."""

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from horarium.errors import InvalidSchedule
from horarium.schedule.canonical import digest
from horarium.schedule.configuration import read_stored
from horarium.schedule.policy import Overlap
from horarium.schedule.v0 import Misfire, ScheduleType, parse_v0, stored_document

ONE_SHOT = {
    "type": "one-shot",
    "spec": {"run_at": "2026-03-25T09:00:00Z"},
    "target": {"workspace_id": "ws-001", "agent_id": "codex"},
    "policy": {"misfire": "skip", "max_concurrent_runs": 1},
}
CRON = {
    "type": "cron",
    "spec": {"expr": "*/15 * * * *"},
    "target": {"workspace_id": "ws-001", "agent_id": "opencode"},
    "policy": {"misfire": "defer_once", "max_concurrent_runs": 1},
}
INTERVAL = {**CRON, "type": "interval", "spec": {"every_seconds": 90}}
RUN = {
    "agent_version": "codex@1",
    "input": "in",
    "output_target": "out",
    "grants": [],
    "budget_id": None,
    "usage_class": "test_simulation",
}


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)


def changed(document: dict[str, Any], path: str, value: Any = None) -> dict[str, Any]:
    """A copy with one member set, or taken out where no value is given."""
    document = copy.deepcopy(document)
    *parents, last = path.split("/")
    inside = document
    for parent in parents:
        inside = inside[parent]
    if value is None:
        del inside[last]
    else:
        inside[last] = value
    return document


def faults_of(document: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidSchedule) as refused:
        parse_v0(document)
    assert all(fault.sentence for fault in refused.value.faults)
    return [(fault.pointer, fault.code) for fault in refused.value.faults]


class TestAccepted:
    def test_the_one_shot_of_the_contract_as_it_stands(self) -> None:
        schedule = parse_v0(ONE_SHOT)
        assert (schedule.type, schedule.misfire, schedule.max_concurrent_runs) == (
            ScheduleType.ONE_SHOT,
            Misfire.SKIP,
            1,
        )
        assert schedule.target.binding == "v0:ws-001/codex"
        assert list(schedule.calendar.between(utc(2000, 1, 1), utc(2100, 1, 1))) == [utc(2026, 3, 25, 9)]
        assert schedule.source == ONE_SHOT

    def test_the_cron_of_the_contract_as_it_stands(self) -> None:
        schedule = parse_v0(CRON)
        assert (schedule.type, schedule.misfire) == (ScheduleType.CRON, Misfire.DEFER_ONCE)
        quarters = [utc(2027, 1, 1, 0, minute) for minute in (0, 15, 30, 45)]
        assert list(schedule.calendar.between(utc(2027, 1, 1), utc(2027, 1, 1, 0, 59))) == quarters

    def test_without_a_policy_it_skips_and_runs_one_at_a_time(self) -> None:
        for document in (changed(CRON, "policy"), {**CRON, "policy": {}}):
            schedule = parse_v0(document)
            assert (schedule.misfire, schedule.max_concurrent_runs) == (Misfire.SKIP, 1)

    @pytest.mark.parametrize(
        ("timezone", "first"), [(None, utc(2027, 7, 1, 7, 30)), ("Europe/Zurich", utc(2027, 7, 1, 5, 30))]
    )
    def test_a_cron_is_in_utc_unless_it_names_a_zone(self, timezone: str | None, first: datetime) -> None:
        spec = {"expr": "30 7 * * *", **({} if timezone is None else {"timezone": timezone})}
        assert parse_v0({**CRON, "spec": spec}).calendar.after(utc(2027, 7, 1)) == first

    @pytest.mark.parametrize(("offset", "first"), [(None, 90), (0, 90), (7, 7)])
    def test_an_interval_counts_from_the_epoch(self, offset: int | None, first: int) -> None:
        spec = {"every_seconds": 90, **({} if offset is None else {"offset_seconds": offset})}
        calendar = parse_v0({**INTERVAL, "spec": spec}).calendar
        assert calendar.after(utc(1970, 1, 1)) == utc(1970, 1, 1, 0, first // 60, first % 60)


REFUSED = {
    "no target": (changed(CRON, "target"), [("/target", "missing_field")]),
    "no workspace": (changed(CRON, "target/workspace_id"), [("/target/workspace_id", "missing_field")]),
    "no agent": (changed(CRON, "target/agent_id"), [("/target/agent_id", "missing_field")]),
    "an empty agent": (changed(CRON, "target/agent_id", ""), [("/target/agent_id", "not_an_identity")]),
    "a slash": (changed(CRON, "target/workspace_id", "a/b"), [("/target/workspace_id", "not_an_identity")]),
    "a number": (changed(CRON, "target/agent_id", 7), [("/target/agent_id", "not_an_identity")]),
    "a session": (changed(CRON, "target/session_id", "s"), [("/target/session_id", "session_identity")]),
    "a session beside": (changed(CRON, "session_id", "s"), [("/session_id", "session_identity")]),
    "a session alone": (
        {**CRON, "target": {"session_id": "s"}},
        [
            ("/target/workspace_id", "missing_field"),
            ("/target/agent_id", "missing_field"),
            ("/target/session_id", "session_identity"),
        ],
    ),
    "no type": (changed(CRON, "type"), [("/type", "missing_field")]),
    "another type": (changed(CRON, "type", "daily"), [("/type", "unknown_value")]),
    "no spec": (changed(CRON, "spec"), [("/spec", "missing_field")]),
    "one-shot with a cron": (
        {**ONE_SHOT, "spec": CRON["spec"]},
        [("/spec/expr", "type_spec_mismatch"), ("/spec/run_at", "missing_field")],
    ),
    "cron with an instant": (
        {**CRON, "spec": ONE_SHOT["spec"]},
        [("/spec/run_at", "type_spec_mismatch"), ("/spec/expr", "missing_field")],
    ),
    "interval with a zone": (
        changed(INTERVAL, "spec/timezone", "UTC"),
        [("/spec/timezone", "type_spec_mismatch")],
    ),
    "a one-shot that defers": (
        changed(ONE_SHOT, "policy/misfire", "defer_once"),
        [("/policy/misfire", "one_shot_skips")],
    ),
    "another misfire": (changed(CRON, "policy/misfire", "fire_all"), [("/policy/misfire", "unknown_value")]),
    "no run at all": (
        changed(CRON, "policy/max_concurrent_runs", 0),
        [("/policy/max_concurrent_runs", "out_of_range")],
    ),
    "a boolean": (
        changed(CRON, "policy/max_concurrent_runs", True),
        [("/policy/max_concurrent_runs", "out_of_range")],
    ),
    "a null policy": ({**CRON, "policy": None}, [("/policy", "not_an_object")]),
    "an unknown field": (changed(CRON, "name", "x"), [("/name", "unknown_field")]),
    "an unknown part": (changed(CRON, "policy/jitter", 3), [("/policy/jitter", "unknown_field")]),
    "no instant": (changed(ONE_SHOT, "spec/run_at", "soon"), [("/spec/run_at", "not_a_timestamp")]),
    "no such instant": (
        changed(ONE_SHOT, "spec/run_at", "2026-02-30T09:00:00Z"),
        [("/spec/run_at", "no_such_time")],
    ),
    "the first second": (
        changed(ONE_SHOT, "spec/run_at", "0001-01-01T00:00:00Z"),
        [("/spec/run_at", "out_of_range")],
    ),
    "an endless interval": (changed(INTERVAL, "spec/every_seconds", 0), [("/spec/every_seconds", "out_of_range")]),
    "an offset beyond": (changed(INTERVAL, "spec/offset_seconds", 90), [("/spec/offset_seconds", "offset_too_large")]),
    "six positions": (changed(CRON, "spec/expr", "0 * * * * *"), [("/spec/expr", "cron_positions")]),
    "positions apart": (changed(CRON, "spec/expr", {"minute": "*"}), [("/spec/expr", "not_a_cron")]),
    "no zone": (changed(CRON, "spec/timezone", "Mars/Base"), [("/spec/timezone", "unknown_timezone")]),
    "no object": ([], [("", "not_an_object")]),
}


class TestRefused:
    @pytest.mark.parametrize("name", REFUSED)
    def test_it_is_refused_where_the_fault_stands(self, name: str) -> None:
        document, faults = REFUSED[name]
        assert faults_of(document) == faults

    def test_all_faults_are_told_at_once(self) -> None:
        document = {"type": "one-shot", "spec": {}, "target": {"session_id": "s"}, "policy": {"misfire": "defer_once"}}
        assert [pointer for pointer, _ in faults_of(document)] == [
            "/spec/run_at",
            "/target/workspace_id",
            "/target/agent_id",
            "/target/session_id",
            "/policy/misfire",
        ]


class TestCompiled:
    @pytest.mark.parametrize("document", [ONE_SHOT, CRON, INTERVAL])
    def test_what_is_stored_is_due_when_the_document_says(self, document: dict[str, Any]) -> None:
        schedule = parse_v0(document)
        read = read_stored(stored_document(schedule, RUN))
        window = utc(2026, 3, 25, 8, 59), utc(2026, 3, 25, 9, 1)
        due = list(schedule.calendar.between(*window))
        assert due
        assert list(read.calendar.between(*window)) == due
        assert read.run.agent_version == "codex@1"

    def test_skip_is_a_window_of_ten_seconds(self) -> None:
        policy = read_stored(stored_document(parse_v0(ONE_SHOT), RUN)).policy
        assert (policy.overlap, policy.catchup_window.total_seconds(), policy.defer_once) == (Overlap.SKIP, 10, False)

    def test_defer_once_is_one_buffered_instant_within_a_day(self) -> None:
        policy = read_stored(stored_document(parse_v0(CRON), RUN)).policy
        assert (policy.overlap, policy.catchup_window.total_seconds(), policy.defer_once) == (
            Overlap.BUFFER_ONE,
            86_400,
            True,
        )
        assert not policy.pause_on_failure

    def test_the_document_is_kept_as_it_came_and_its_digest_can_be_known_before(self) -> None:
        document = changed(CRON, "policy")
        stored = stored_document(parse_v0(document), RUN)
        assert stored["source"] == document
        assert digest(stored) == digest(stored_document(parse_v0(copy.deepcopy(document)), dict(RUN)))

    def test_the_longest_names_still_make_a_name(self) -> None:
        document = {**CRON, "target": {"workspace_id": "w" * 200, "agent_id": "a" * 200}}
        assert len(stored_document(parse_v0(document), RUN)["name"]) == 200
