"""What a calendar declares in a month: counted by the calendar itself, from a moment on and without it."""

from datetime import UTC, datetime, timedelta

import pytest

from horarium.calendar import Calendar, parse_timing
from horarium.schedule.ceilings import EVERY_MINUTE, USUAL, runs_per_month

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def cron(text: str, timezone: str = "UTC") -> Calendar:
    names = ("minute", "hour", "day_of_month", "month", "day_of_week")
    return parse_timing({"cron": {**dict(zip(names, text.split(), strict=True)), "timezone": timezone}}, at="")


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo"])
def test_the_densest_cron_declares_what_a_profile_may_by_default_whatever_the_clocks_do(zone: str) -> None:
    assert USUAL.per_profile == EVERY_MINUTE == 43_200
    for day in range(0, 366, 5):
        assert runs_per_month(cron("* * * * *", zone), now=NOON + timedelta(days=day, seconds=day)) == 43_200


@pytest.mark.parametrize(
    ("text", "runs"), [("0 * * * *", 720), ("0 0 * * *", 30), ("*/5 * * * *", 8_640), ("0 0 30 2 *", 0)]
)
def test_a_month_has_thirty_days(text: str, runs: int) -> None:
    assert runs_per_month(cron(text), now=NOON) == runs


def test_a_moment_does_not_count_itself_and_counts_the_one_thirty_days_later() -> None:
    daily = cron("0 12 * * *")
    first, last = NOON, NOON + timedelta(days=30)
    assert daily.selects(first)
    assert daily.selects(last)
    for offset, runs in ((-1.0, 30), (-0.5, 30), (0.0, 30), (0.5, 30)):
        assert runs_per_month(daily, now=NOON + timedelta(seconds=offset)) == runs
    once = parse_timing({"instant": "2026-11-30T12:00:00Z"}, at="")
    assert [
        runs_per_month(once, now=NOON + offset) for offset in (-timedelta(days=30) - SECOND, -timedelta(days=30))
    ] == [0, 1]
    assert [runs_per_month(once, now=NOON + offset) for offset in (-SECOND, 0 * SECOND, SECOND)] == [1, 0, 0]


def test_an_hour_that_is_skipped_or_repeated_is_counted_as_it_is_run() -> None:
    """30 days around 2027-03-28 and 2026-10-25 in Berlin: the fixed hour runs once on each day, those of each hour as hours pass."""
    spring, autumn = datetime(2027, 3, 10, tzinfo=UTC), datetime(2026, 10, 10, tzinfo=UTC)
    for start in (spring, autumn):
        assert runs_per_month(cron("30 2 * * *", "Europe/Berlin"), now=start) == 30
        assert runs_per_month(cron("0 * * * *", "Europe/Berlin"), now=start) == 720
