"""A cron at both changes of the clock in five zones, worked out by hand: what runs when, and what a preview says of it.

New York and Berlin move by an hour inside the night, Lord Howe by half an hour, Santiago and Cairo at midnight. So the day of
the change has no midnight in one direction, and in the other the hour before it twice.
"""

from datetime import UTC, datetime

import pytest

from horarium import parse_cron
from horarium.calendar import clock_changes

NEW_YORK = "America/New_York"  # 2026-03-08 07:00Z from 02:00 to 03:00, 2026-11-01 06:00Z from 02:00 to 01:00
BERLIN = "Europe/Berlin"  # 2027-03-28 01:00Z from 02:00 to 03:00, 2027-10-31 01:00Z from 03:00 to 02:00
LORD_HOWE = "Australia/Lord_Howe"  # 2026-10-03 15:30Z from 02:00 to 02:30, 2026-04-04 15:00Z from 02:00 to 01:30
SANTIAGO = "America/Santiago"  # 2027-09-05 04:00Z from 00:00 to 01:00, 2027-04-04 03:00Z from 00:00 to 23:00
CAIRO = "Africa/Cairo"  # 2026-04-23 22:00Z from 00:00 to 01:00, 2026-10-29 21:00Z from 00:00 to 23:00

FIXED = [
    # forward: once, at the first instant behind the gap
    (NEW_YORK, "30 2 * * *", "2026-03-07T07:30 2026-03-08T07:00 2026-03-09T06:30", "02:30 does not exist on 2026-03-08; runs at 03:00"),
    (BERLIN, "30 2 * * *", "2027-03-27T01:30 2027-03-28T01:00 2027-03-29T00:30", "02:30 does not exist on 2027-03-28; runs at 03:00"),
    (LORD_HOWE, "15 2 * * *", "2026-10-02T15:45 2026-10-03T15:30 2026-10-04T15:15", "02:15 does not exist on 2026-10-04; runs at 02:30"),
    (SANTIAGO, "30 0 * * *", "2027-09-04T04:30 2027-09-05T04:00 2027-09-06T03:30", "00:30 does not exist on 2027-09-05; runs at 01:00"),
    (CAIRO, "30 0 * * *", "2026-04-22T22:30 2026-04-23T22:00 2026-04-24T21:30", "00:30 does not exist on 2026-04-24; runs at 01:00"),
    # midnight itself, on the one weekday that has none
    (SANTIAGO, "0 0 * * 0", "2027-08-29T04:00 2027-09-05T04:00 2027-09-12T03:00", "00:00 does not exist on 2027-09-05; runs at 01:00"),
    (CAIRO, "0 0 * * 5", "2026-04-16T22:00 2026-04-23T22:00 2026-04-30T21:00", "00:00 does not exist on 2026-04-24; runs at 01:00"),
    # back: once, at the first of the two
    (NEW_YORK, "30 1 * * *", "2026-10-31T05:30 2026-11-01T05:30 2026-11-02T06:30", "01:30 happens twice on 2026-11-01; one run, at the first"),
    (BERLIN, "30 2 * * *", "2027-10-30T00:30 2027-10-31T00:30 2027-11-01T01:30", "02:30 happens twice on 2027-10-31; one run, at the first"),
    (LORD_HOWE, "45 1 * * *", "2026-04-03T14:45 2026-04-04T14:45 2026-04-05T15:15", "01:45 happens twice on 2026-04-05; one run, at the first"),
    (SANTIAGO, "30 23 * * *", "2027-04-03T02:30 2027-04-04T02:30 2027-04-05T03:30", "23:30 happens twice on 2027-04-03; one run, at the first"),
    (CAIRO, "30 23 * * *", "2026-10-28T20:30 2026-10-29T20:30 2026-10-30T21:30", "23:30 happens twice on 2026-10-29; one run, at the first"),
]  # fmt: skip

STARRED = [
    # forward: what the clock skips is skipped
    (NEW_YORK, "30 * * * *", "2026-03-08T06:30 2026-03-08T07:30", "02:30 does not exist on 2026-03-08; no run"),
    (BERLIN, "30 * * * *", "2027-03-28T00:30 2027-03-28T01:30", "02:30 does not exist on 2027-03-28; no run"),
    (LORD_HOWE, "15 * * * *", "2026-10-03T14:45 2026-10-03T16:15", "02:15 does not exist on 2026-10-04; no run"),
    (SANTIAGO, "30 * * * *", "2027-09-05T03:30 2027-09-05T04:30", "00:30 does not exist on 2027-09-05; no run"),
    (CAIRO, "30 * * * *", "2026-04-23T21:30 2026-04-23T22:30", "00:30 does not exist on 2026-04-24; no run"),
    # back: what the clock repeats is repeated
    (NEW_YORK, "30 * * * *", "2026-11-01T05:30 2026-11-01T06:30 2026-11-01T07:30", "01:30 happens twice on 2026-11-01; two runs"),
    (BERLIN, "30 * * * *", "2027-10-31T00:30 2027-10-31T01:30 2027-10-31T02:30", "02:30 happens twice on 2027-10-31; two runs"),
    (LORD_HOWE, "45 * * * *", "2026-04-04T14:45 2026-04-04T15:15 2026-04-04T16:15", "01:45 happens twice on 2026-04-05; two runs"),
    (SANTIAGO, "30 * * * *", "2027-04-04T02:30 2027-04-04T03:30 2027-04-04T04:30", "23:30 happens twice on 2027-04-03; two runs"),
    (CAIRO, "30 * * * *", "2026-10-29T20:30 2026-10-29T21:30 2026-10-29T22:30", "23:30 happens twice on 2026-10-29; two runs"),
    # a star in one of the two positions is enough to follow the clock
    (BERLIN, "*/30 2 * * *", "2027-10-31T00:00 2027-10-31T00:30 2027-10-31T01:00 2027-10-31T01:30", "02:00 happens twice on 2027-10-31; two runs, 02:30 happens twice on 2027-10-31; two runs"),
]  # fmt: skip


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def named(case) -> str:
    zone, expression, instants, _ = case
    return f"{zone.split('/')[1]} {expression} at {instants.split()[0]}"


@pytest.mark.parametrize(
    ("zone", "expression", "instants", "note"), [*FIXED, *STARRED], ids=map(named, [*FIXED, *STARRED])
)
def test_a_change_of_the_clock(zone, expression, instants, note):
    cron = parse_cron(expression, zone)
    due = [at(each) for each in instants.split()]
    assert list(cron.between(due[0], due[-1])) == due
    assert cron.count(due[0], due[-1]) == len(due)
    assert [cron.after(each) for each in due[:-1]] == due[1:]
    assert ", ".join(each.sentence for each in clock_changes(cron, due[0], due[-1])) == note


def test_several_times_of_one_gap_run_once_together():
    cron = parse_cron("0,15,30 2 * * *", BERLIN)
    day = (at("2027-03-28T00:00"), at("2027-03-28T23:00"))
    assert list(cron.between(*day)) == [at("2027-03-28T01:00")]
    assert [each.sentence for each in clock_changes(cron, *day)] == [
        f"02:{minute} does not exist on 2027-03-28; runs at 03:00" for minute in ("00", "15", "30")
    ]
