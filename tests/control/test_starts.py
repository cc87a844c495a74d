"""Runs that were to start and did not: the first of a burst with its traceback, the others by name, and then the total."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from horarium.control.starts import LONGEST, MAX_TRACE, QUIET, StartFailures
from tests.control.desk import NOON, at

TRACE = 'Traceback (most recent call last):\n  File "gateway.py", line 1, in post\nConnectError: refused'


@dataclass(slots=True)
class Clock:
    """A clock that may be set, and the seconds that pass whatever is done to it. A process looks every second."""

    failures: StartFailures = field(init=False)
    now: datetime = NOON
    elapsed: float = 1_000.0

    def __post_init__(self) -> None:
        self.failures = StartFailures(elapsed=lambda: self.elapsed, now=lambda: self.now)

    def turn(self, offset: float) -> None:
        while self.now < at(offset):
            step = min(1.0, (at(offset) - self.now).total_seconds())
            self.now += timedelta(seconds=step)
            self.elapsed += step
            self.failures.look()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def failures(clock: Clock) -> StartFailures:
    return clock.failures


def totals(logs: list[Any]) -> list[tuple[int, str, str]]:
    return [(each["total"], each["since"], each["until"]) for each in logs if each["event"] == "starts_failed"]


def test_the_first_carries_the_traceback_the_rest_who_they_are_and_a_total_follows(
    clock: Clock, failures: StartFailures
) -> None:
    with capture_logs() as logs:
        for number in range(3):
            clock.turn(number)
            failures.note(trace=TRACE, agent_class="Triage", profile=f"inbox-{number}")
        clock.turn(60)
    *lines, total = logs
    assert [each["event"] for each in lines] == ["run_not_started"] * 3
    assert [(each["agent_class"], each["profile"]) for each in lines] == [
        ("Triage", f"inbox-{number}") for number in range(3)
    ]
    assert [each.get("exception") for each in lines] == [TRACE, None, None]
    assert {each["log_level"] for each in logs} == {"error"}
    assert total == {
        "event": "starts_failed",
        "log_level": "error",
        "total": 3,
        "since": "2026-11-30T12:00:00Z",
        "until": "2026-11-30T12:00:02Z",
    }


def test_the_first_traceback_of_a_burst_is_told_whichever_failure_brings_it(failures: StartFailures) -> None:
    with capture_logs() as logs:
        for trace in ("", TRACE, TRACE):
            failures.note(trace=trace, run_id="r")
    assert [each.get("exception") for each in logs] == [None, TRACE, None]


def test_one_failure_alone_has_its_total_too_and_only_once(clock: Clock, failures: StartFailures) -> None:
    with capture_logs() as logs:
        failures.note(trace=TRACE)
        clock.turn(600)
    assert totals(logs) == [(1, "2026-11-30T12:00:00Z", "2026-11-30T12:00:00Z")]


def test_after_a_pause_a_burst_is_a_new_one(clock: Clock, failures: StartFailures) -> None:
    with capture_logs() as logs:
        for offset in (0, QUIET.total_seconds() - 1, 100, 101):
            clock.turn(offset)
            failures.note(trace=TRACE, offset=offset)
        clock.turn(200)
    assert [each["offset"] for each in logs if "exception" in each] == [0, 100]
    assert [total for total, _, _ in totals(logs)] == [2, 2]


def test_a_long_outage_is_told_about_again_and_again(clock: Clock, failures: StartFailures) -> None:
    with capture_logs() as logs:
        for offset in range(180):
            clock.turn(offset)
            failures.note(trace=TRACE)
        clock.turn(600)
    found = [total for total, _, _ in totals(logs)]
    assert sum(found) == 180
    assert max(found) <= LONGEST.total_seconds() + 1
    assert len([each for each in logs if "exception" in each]) == len(found)


def test_a_total_that_nobody_asked_for_comes_in_time(clock: Clock, failures: StartFailures) -> None:
    """Whoever watches the log need not wait for the next failure."""
    failures.note()
    with capture_logs() as logs:
        clock.turn(2 * QUIET.total_seconds())
    assert [each["event"] for each in logs] == ["starts_failed"]


def test_of_a_long_traceback_the_end_is_told(failures: StartFailures) -> None:
    with capture_logs() as logs:
        failures.note(trace="x" * MAX_TRACE + "ValueError: here")
    [line] = logs
    assert len(line["exception"]) == MAX_TRACE
    assert line["exception"].endswith("ValueError: here")


@pytest.mark.parametrize("step", [-3_600, 3_600])
def test_a_clock_that_is_set_neither_ends_a_burst_nor_turns_it_round(
    clock: Clock, failures: StartFailures, step: float
) -> None:
    with capture_logs() as logs:
        failures.note()
        clock.now = at(step)
        clock.turn(step + 2)
        failures.note()
        assert totals(logs) == []
        clock.turn(step + 600)
    assert totals(logs) == [(2, "2026-11-30T12:00:00Z", "2026-11-30T12:00:02Z")]


def test_whoever_leaves_tells_the_total_before_it_is_due_and_once(clock: Clock, failures: StartFailures) -> None:
    with capture_logs() as logs:
        for offset in (0, 1):
            clock.turn(offset)
            failures.note(trace=TRACE)
        for _ in range(2):
            failures.flush()
        clock.turn(600)
    assert totals(logs) == [(2, "2026-11-30T12:00:00Z", "2026-11-30T12:00:01Z")]


def test_many_threads_are_one_count(failures: StartFailures) -> None:
    with capture_logs() as logs:
        with ThreadPoolExecutor(8) as threads:
            for number in range(200):
                threads.submit(failures.note, trace=TRACE, number=number)
        failures.flush()
    assert [total for total, _, _ in totals(logs)] == [200]
    assert len([each for each in logs if "exception" in each]) == 1
