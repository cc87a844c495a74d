"""Tables as a person sees them, at a terminal of 80 and of 110 columns: what is copied stands in one line."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from datetime import UTC, datetime, timedelta

import pytest

from horarium.calendar.cron import POSITION_NAMES
from horarium.catalog.audit_events import record_event
from horarium.catalog.schedules import require_schedule
from horarium.catalog.tables import entries, runtime, workers
from horarium.control.activation import Reviewed, enable, pause
from horarium.control.publication import publish
from horarium.schedule.identity import schedule_key
from starter.cli.printing import short_ids
from starter.cli.timings import ago, brief, in_words, when

from .conftest import SCOPE, without_ours

FIRST, SECOND, THIRD = (f"7b0c7c3e-{part}f0e-4f53-9f0b-0a5d2f2d8a11" for part in "123")
NAME = "A name that is rather too long for a table of eighty columns"
NOW = datetime(2026, 11, 29, 23, 50, tzinfo=UTC)


def seen(width: int, *arguments: str) -> list[str]:
    """The lines that a command writes to a terminal."""
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    environment = {name: value for name, value in without_ours().items() if name not in {"COLUMNS", "LINES"}}
    process = subprocess.Popen([sys.executable, "-m", "starter", *arguments], stdout=inner, env=environment)
    os.close(inner)
    written = b""
    try:
        while part := os.read(outer, 65_536):
            written += part
    except OSError:  # Linux says so that nobody writes any more
        pass
    finally:
        os.close(outer)
    process.wait(60)
    return written.decode().splitlines()


@pytest.fixture
def shown(installation, configuration):
    """Three schedules: one enabled at an older revision, one paused, one never enabled; nothing runs since seven minutes."""
    installation.populate()
    now = datetime.now(UTC)
    configuration["name"] = NAME
    for schedule_id in (FIRST, SECOND, THIRD):
        key = schedule_key(SCOPE, schedule_id)
        installation.write(publish, key, configuration, expected_revision=0, by="local:ada", now=now)
        if schedule_id != THIRD:
            installation.write(enable, key, Reviewed(), installation.settings.content, by="local:ada", now=now)
    installation.write(pause, schedule_key(SCOPE, SECOND), Reviewed(), by="local:grace", now=now)
    configuration["policy"]["overlap"] = "allow"
    newer = schedule_key(SCOPE, FIRST)
    installation.write(publish, newer, configuration, expected_revision=1, by="local:ada", now=now)

    def fill(connection) -> None:
        schedule = require_schedule(connection, newer)
        rows = [
            ("failed", "agent_reported_failure", 1),
            ("skipped", "overlap", 1_200),
            ("refused", "agent_offline", 1),
        ]
        for hour, (disposition, reason, count) in enumerate(rows):
            first = NOW - timedelta(hours=9 - hour)
            connection.execute(
                entries.insert().values(
                    schedule=schedule.row,
                    generation=1,
                    trigger="schedule",
                    first_at=first,
                    last_at=first + timedelta(seconds=count - 1),
                    count=count,
                    disposition=disposition,
                    reason=reason,
                    closed_at=now,
                )
            )
        connection.execute(workers.update().values(seen_at=now - timedelta(minutes=7)))
        observed = {"generation": 1, "state": "active", "observed_at": now - timedelta(minutes=8)}
        connection.execute(runtime.insert().values(schedule=schedule.row, **observed))

    installation.write(fill)
    return installation


@pytest.mark.parametrize("width", [80, 110])
def test_the_directory_fits_and_never_breaks_an_id_or_a_time(shown, width):
    lines = seen(width, "list", "--data", shown.data)
    table = lines[: [index for index, line in enumerate(lines) if line.startswith(FIRST[:8])][-1] + 1]
    assert max(map(len, table)) <= width
    ids = [line.split()[0] for line in table if line.startswith("7b0c7c3e")]
    assert ids == [FIRST, SECOND, THIRD] if width >= 110 else ids == [each[:10] for each in (FIRST, SECOND, THIRD)]
    (first,) = [line for line in table if line.startswith(ids[0])]
    assert re.search(r" 1 +2 +\d\d-\d\d \d\d:\d\d:\d\dZ$", first), "enabled at 1, the head is 2"
    (third,) = [line for line in table if line.startswith(ids[2])]
    assert re.search(r"never enabled +1 +-$", third)
    text = " ".join("\n".join(lines).split())
    assert re.search(r" active, 8 min\b.* ago\b", text)
    assert re.search(r"Nothing is running here. Workers: none since \d\d-\d\d \d\d:\d\d:\d\dZ", text)
    assert ("Ids are shown by their beginnings" in text) is (width < 110)


@pytest.mark.parametrize("width", [80, 110])
def test_the_ledger_fits_and_only_the_reason_wraps(shown, width):
    lines = seen(width, "occurrences", FIRST, "--data", shown.data)
    assert max(map(len, lines)) <= width
    (failed,) = [line for line in lines if " failed " in line]
    assert failed.startswith(("11-29 14:50:00Z", "2026-11-29 14:50:00Z"))
    assert "[agent_reported_failure]" in failed
    text = " ".join("\n".join(lines).split())
    assert re.search(r"1200 +skipped +- +until (2026-)?11-29 16:09:59Z:", "\n".join(lines))
    assert "[agent_offline]" in text


@pytest.mark.parametrize("width", [80, 110])
def test_events_and_the_audit_fit(shown, width):
    events = seen(width, "events", SECOND, "--data", shown.data)
    assert max(map(len, events)) <= width
    assert [line.split()[3] for line in events if re.match(r"\d", line)] == ["published", "enabled", "paused"]
    assert len(events) <= 9
    audit = seen(width, "audit", "--data", shown.data)
    assert max(map(len, audit[:8])) <= width


def test_an_instant_in_the_details_of_an_event_is_never_cut(shown):
    details = {"first_at": "2026-11-30T08:21:00Z", "last_at": "2026-11-30T08:25:00.250000Z", "run_id": FIRST}

    def told(connection) -> None:
        schedule = require_schedule(connection, schedule_key(SCOPE, SECOND))
        record_event(connection, schedule, "MISFIRED_SKIPPED", at=NOW, actor="system:schedule", details=details)

    shown.write(told)
    (line,) = [each for each in seen(200, "events", SECOND, "--data", shown.data) if "MISFIRED_SKIPPED" in each]
    assert "first_at 2026-11-30T08:21:00Z; last_at 2026-11-30T08:25:00.250000Z; run_id " in line
    assert f"run_id {FIRST[:15]}…" in line, "an id is known by its beginning"


def test_a_record_says_in_words_when_it_is_due_who_paused_it_and_that_nobody_is_there(shown):
    fields = dict(
        re.split(r" {2,}", line, maxsplit=1)
        for line in seen(110, "get", SECOND, "--data", shown.data)
        if line[0] != " "
    )
    assert fields["Calendar"] == "at 02:30:00 every day"
    assert re.fullmatch(r"paused by local:grace at 20.*Z \(generation 2, revision 1\)", fields["Activation"])
    assert re.fullmatch(r"none since \d\d-\d\d \d\d:\d\d:\d\dZ", fields["Workers"])
    fields = dict(
        re.split(r" {2,}", line, maxsplit=1) for line in seen(110, "get", FIRST, "--data", shown.data) if line[0] != " "
    )
    assert fields["Runtime"].endswith("Z, 8 min ago")


def test_a_follower_at_a_terminal_has_a_header_and_as_many_lines_of_the_past_as_it_asked_for(shown):
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    command = [sys.executable, "-m", "starter", "occurrences", FIRST, "--follow", "--limit", "2", "--data", shown.data]
    process = subprocess.Popen(command, stdout=inner, env=without_ours())
    os.close(inner)
    try:
        written = b""
        while written.count(b"\n") < 3:
            written += os.read(outer, 65_536)
        header, *lines = written.decode().splitlines()
        assert re.split(r" {2,}", header) == ["Due", "Outcome", "Late", "Run", "Why"]
        assert [line.split()[2] for line in lines] == ["skipped", "refused"]
        assert max(map(len, lines)) <= 80
    finally:
        process.terminate()
        process.wait(30)
        os.close(outer)


def spans(*values: tuple[int, int, int]) -> list[dict]:
    return [{"start": start, "end": end, "step": step} for start, end, step in values]


EVERY = {
    "second": spans((0, 0, 1)),
    "minute": spans((30, 30, 1)),
    "hour": spans((7, 7, 1)),
    "day_of_month": spans((1, 31, 1)),
    "month": spans((1, 12, 1)),
    "day_of_week": spans((0, 6, 1)),
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "at 07:30:00 every day"),
        ({"day_of_week": spans((1, 5, 1))}, "at 07:30:00 on Mon-Fri"),
        (
            {"day_of_month": spans((1, 1, 1), (15, 15, 1)), "month": spans((1, 3, 1))},
            "at 07:30:00 on day 1, 15 of the month, in Jan-Mar",
        ),
        ({"year": spans((2027, 2027, 1))}, "at 07:30:00 in 2027"),
        ({"year": spans((1970, 9999, 1))}, "at 07:30:00 every day"),
        ({"minute": spans((0, 59, 15))}, "at hour 7, minute 0-59/15, second 0 every day"),
        ({"minute": spans((0, 59, 1)), "hour": spans((0, 23, 1))}, "at every hour, every minute, second 0 every day"),
    ],
)
def test_a_rule_is_told_in_words(change, words):
    bounds = {"start_at": "2026-01-01T00:00:00Z", "end_at": "2027-01-01T00:00:00Z"}
    calendar = {"calendars": [{**EVERY, **change}], "intervals": [], **bounds}
    assert in_words(calendar) == [words, "from 2026-01-01T00:00:00Z to 2027-01-01T00:00:00Z"]


@pytest.mark.parametrize(
    ("timing", "told"),
    [
        (
            {
                "cron": dict(
                    zip((*POSITION_NAMES, "timezone"), ["30", "7", "*", "*", "1-5", "Europe/Zurich"], strict=True)
                )
            },
            ("Europe/Zurich", [("Cron", "30 7 * * 1-5")]),
        ),
        ({"instant": "2027-01-31T07:30:00Z"}, ("UTC", [("Once", "2027-01-31T07:30:00Z")])),
        ({"moon": "full"}, ("-", [("Due", "by a timing that this release does not know")])),
    ],
)
def test_what_another_contract_stored_is_told_in_its_own_words(timing, told):
    assert when({"timing": timing}) == told


def test_a_calendar_is_told_alike_wherever_it_stands(configuration):
    calendar = configuration["calendar"]
    assert when(configuration) == when({"timing": {"calendar": calendar}})
    assert when(configuration) == ("Europe/Zurich", [("Calendar", rule) for rule in in_words(calendar)])


def test_intervals_are_told_in_words():
    intervals = [{"every_seconds": 5, "offset_seconds": 0}, {"every_seconds": 60, "offset_seconds": 7}]
    calendar = {"calendars": [], "intervals": intervals, "start_at": "a", "end_at": "b"}
    assert in_words(calendar)[:2] == [
        "every 5 s since 1970 in UTC",
        "every 60 s, 7 s after each multiple since 1970 in UTC",
    ]


def test_instants_are_brief_and_never_in_doubt_about_their_year():
    assert brief("2026-11-29T23:42:00Z", now=NOW) == "11-29 23:42:00Z"
    assert brief("2026-11-29T23:42:00.25Z", now=NOW) == "11-29 23:42:00Z"
    assert brief("2027-01-01T00:00:00Z", now=NOW) == "2027-01-01 00:00:00Z"
    texts = [
        "2026-11-29T23:49:40Z",
        "2026-11-29T23:49:20Z",
        "2026-11-29T23:40:00Z",
        "2026-11-29T20:40:00Z",
        "2026-11-01T00:00:00Z",
    ]
    assert [ago(text, now=NOW) for text in texts] == ["", "40 s ago", "10 min ago", "3 h ago", "28 d ago"]


def test_ids_are_as_short_as_tells_them_apart():
    assert short_ids([FIRST, SECOND, THIRD]) == [each[:10] for each in (FIRST, SECOND, THIRD)]
    assert short_ids([FIRST]) == [FIRST[:8]]
    assert short_ids([FIRST, FIRST]) == [FIRST[:8]] * 2
