"""The days to come, in the calendar's own zone: each with what is due, and with what the clock does."""

from datetime import UTC, date, datetime, timedelta

import pytest

from horarium.calendar import parse_cron, parse_instant
from horarium.calendar.zones import local_time
from horarium.control.outlook import DAYS, MOST_TIMES, outlook


def test_weekdays_are_told_day_by_day() -> None:
    days = outlook(parse_cron("30 7 * * 1-5", "Europe/Zurich"), now=datetime(2026, 11, 30, 8, tzinfo=UTC))
    assert len(days) == DAYS
    # The run of today has passed.
    assert [(each.date.day, each.times) for each in days[:7]] == [
        (30, ()),
        (1, ("07:30",)),
        (2, ("07:30",)),
        (3, ("07:30",)),
        (4, ("07:30",)),
        (5, ()),
        (6, ()),
    ]
    assert all(each.clock is None and each.notes == () for each in days)


def test_a_change_of_the_clock_stands_at_its_day_with_what_it_does() -> None:
    days = outlook(parse_cron("30 2 * * *", "Europe/Zurich"), now=datetime(2027, 3, 20, tzinfo=UTC))
    (changed,) = [each for each in days if each.clock]
    assert changed.date == date(2027, 3, 28)
    assert changed.clock == "The clock goes from 02:00 forward to 03:00."
    assert changed.notes == ("02:30 does not exist on 2027-03-28; runs at 03:00.",)
    assert changed.times == ("03:00",)


def test_the_clock_is_told_where_it_changes_nothing_too() -> None:
    days = outlook(parse_cron("0 12 * * *", "Europe/Zurich"), now=datetime(2027, 10, 20, tzinfo=UTC))
    (changed,) = [each for each in days if each.clock]
    assert (changed.date, changed.clock) == (date(2027, 10, 31), "The clock goes from 03:00 back to 02:00.")
    assert changed.notes == ()


@pytest.mark.parametrize(
    "name", ["UTC", "Europe/Zurich", "America/Santiago", "America/Havana", "Australia/Lord_Howe", "Pacific/Apia"]
)
def test_every_instant_is_of_exactly_one_day(name: str) -> None:
    """Days begin where the clock says, midnight left out (Santiago) or repeated (Havana) as it may be."""
    hourly = parse_cron("0 * * * *", name)
    for now in (
        datetime(2027, 3, 1, tzinfo=UTC),
        datetime(2027, 8, 25, tzinfo=UTC),
        datetime(2027, 10, 20, tzinfo=UTC),
    ):
        days = outlook(hourly, now=now)
        counted: dict[date, int] = {}
        for instant in hourly.between(now + timedelta(seconds=1), now + timedelta(days=DAYS + 2)):
            day = local_time(instant, name).date()
            counted[day] = counted.get(day, 0) + 1
        assert {each.date: each.count for each in days} == {each.date: counted.get(each.date, 0) for each in days}
        assert all(each.times == tuple(sorted(each.times)) or each.clock for each in days)


def test_a_dense_day_is_counted_and_its_last_time_is_found() -> None:
    first, second, *_ = outlook(
        parse_cron("*/5 * * * *", "Europe/Zurich"), now=datetime(2026, 11, 30, 22, 58, tzinfo=UTC)
    )
    assert (first.date, first.count, first.times, first.last) == (date(2026, 11, 30), 0, (), None)
    assert (second.count, len(second.times), second.more, second.last) == (288, MOST_TIMES, 282, "23:55")


def test_one_instant_is_on_its_own_day() -> None:
    days = outlook(parse_instant("2026-12-03T10:00:05Z"), now=datetime(2026, 11, 30, tzinfo=UTC))
    assert [each.date.day for each in days if each.count] == [3]
    assert days[3].times == ("10:00:05",)


def test_the_last_days_of_all_are_no_fault() -> None:
    days = outlook(parse_cron("0 0 * * *", "Asia/Tokyo"), now=datetime(9999, 12, 29, tzinfo=UTC))
    assert days[-1].date <= date.max
