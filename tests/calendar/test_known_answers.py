"""Instants that we know: what a canonical rule and a cron do where clocks change, and where other programs have erred."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from horarium import Calendar, parse_calendar, parse_cron

FULL = {"second": "0", "minute": "0", "hour": "0", "day_of_month": "1-31", "month": "1-12", "day_of_week": "0-6"}


def ranges(text: str) -> list[dict[str, int]]:
    """`0-59/15,7` as canonical ranges, so that a table can be read."""
    found = []
    for part in text.split(","):
        bounds, _, step = part.partition("/")
        start, _, end = bounds.partition("-")
        found.append({"start": int(start), "end": int(end or start), "step": int(step or 1)})
    return found


def canonical(
    timezone: str, *rules: dict[str, str], intervals=(), start="1970-01-01T00:00:00Z", end="9999-12-31T23:59:59Z"
) -> Calendar:
    return parse_calendar(
        {
            "timezone": timezone,
            "calendars": [{name: ranges(text) for name, text in (FULL | rule).items()} for rule in rules],
            "intervals": [{"every_seconds": every, "offset_seconds": offset} for every, offset in intervals],
            "start_at": start,
            "end_at": end,
        }
    )


def at(text: str) -> datetime:
    return datetime.fromisoformat(text + ("" if "T" in text else "T00:00:00")).replace(tzinfo=UTC)


def written(instants) -> list[str]:
    return [instant.strftime("%Y-%m-%dT%H:%M:%S").removesuffix(":00") for instant in instants]


ANSWERS = [
    # New York skips 02:00-02:59 on 8 March 2026 and repeats 01:00-01:59 on 1 November
    ("America/New_York", {"hour": "2", "minute": "30"}, "2026-03-07", "2026-03-10", ["2026-03-07T07:30", "2026-03-09T06:30"]),
    ("America/New_York", {"hour": "1", "minute": "30"}, "2026-10-31", "2026-11-03", ["2026-10-31T05:30", "2026-11-01T05:30", "2026-11-01T06:30", "2026-11-02T06:30"]),
    # Ireland's winter time is the one with a saving, a negative one
    ("Europe/Dublin", {"hour": "1"}, "2019-03-30T01:30", "2019-04-02", ["2019-04-01T00:00", "2019-04-02T00:00"]),
    ("Europe/Dublin", {"hour": "1", "minute": "30"}, "2026-10-24", "2026-10-27", ["2026-10-24T00:30", "2026-10-25T00:30", "2026-10-25T01:30", "2026-10-26T01:30"]),
    # half an hour, three quarters, two hours
    ("Australia/Lord_Howe", {"hour": "2", "minute": "15"}, "2026-10-02", "2026-10-05", ["2026-10-02T15:45", "2026-10-04T15:15"]),
    ("Australia/Lord_Howe", {"hour": "1", "minute": "45"}, "2026-04-03", "2026-04-06", ["2026-04-03T14:45", "2026-04-04T14:45", "2026-04-04T15:15", "2026-04-05T15:15"]),
    ("Pacific/Chatham", {"hour": "3", "minute": "15,50"}, "2026-09-26T12:00", "2026-09-28", ["2026-09-26T14:05", "2026-09-27T13:30", "2026-09-27T14:05"]),
    ("Antarctica/Troll", {"hour": "1,2"}, "2026-10-24T20:00", "2026-10-25T06:00", ["2026-10-24T23:00", "2026-10-25T00:00", "2026-10-25T01:00", "2026-10-25T02:00"]),
    # a gap at midnight takes the time, not the day
    ("America/Santiago", {"hour": "0", "day_of_week": "0"}, "2022-08-28", "2022-09-26", ["2022-08-28T04:00", "2022-09-04T04:00", "2022-09-18T03:00", "2022-09-25T03:00"]),
    ("America/Sao_Paulo", {"hour": "1", "day_of_month": "4", "month": "11"}, "2018-11-04", "2018-11-06", ["2018-11-04T03:00"]),
    ("Africa/Cairo", {"hour": "9", "day_of_week": "1-5"}, "2026-04-23", "2026-04-28", ["2026-04-23T07:00", "2026-04-24T06:00", "2026-04-27T06:00"]),
    # a repeated hour at midnight is of one date
    ("Africa/Cairo", {"hour": "23", "minute": "30"}, "2026-10-29", "2026-10-31", ["2026-10-29T20:30", "2026-10-29T21:30", "2026-10-30T21:30"]),
    ("America/Havana", {"minute": "30", "day_of_month": "2", "month": "11"}, "2025-11-01", "2025-11-04", ["2025-11-02T04:30", "2025-11-02T05:30"]),
    # St. John's went back at 00:01, so the evening before came again after midnight
    ("America/St_Johns", {"hour": "23", "minute": "59"}, "2006-10-28", "2006-10-31", ["2006-10-28T02:29", "2006-10-29T02:29", "2006-10-29T03:29", "2006-10-30T03:29"]),
    ("America/St_Johns", {"hour": "0"}, "2006-10-28T12:00", "2006-10-30T12:00", ["2006-10-29T02:30", "2006-10-29T03:30", "2006-10-30T03:30"]),
    # days that never were
    ("Pacific/Apia", {"hour": "9"}, "2011-12-29", "2012-01-01", ["2011-12-29T19:00", "2011-12-30T19:00", "2011-12-31T19:00"]),
    ("Pacific/Apia", {"hour": "9", "day_of_month": "30", "month": "12"}, "2011-01-01", "2012-12-31", ["2012-12-29T19:00"]),
    ("Pacific/Kwajalein", {"hour": "12"}, "1993-08-19", "1993-08-24", ["1993-08-19T00:00", "1993-08-20T00:00", "1993-08-21T00:00", "1993-08-22T00:00", "1993-08-23T00:00", "1993-08-24T00:00"]),
    # an offset with seconds: Monrovia left -00:44:30 on 7 January 1972
    ("Africa/Monrovia", {"hour": "12"}, "1972-01-06", "1972-01-09", ["1972-01-06T12:44:30", "1972-01-07T12:00", "1972-01-08T12:00"]),
    # leap days, and a leap day's hour that came twice
    ("UTC", {"hour": "2", "day_of_month": "29", "month": "2", "day_of_week": "0"}, "2032-03-01", "2060-03-01", ["2060-02-29T02:00"]),
    ("UTC", {"day_of_month": "29", "month": "2", "day_of_week": "1"}, "2072-03-01", "2140-01-01", ["2112-02-29T00:00"]),
    ("Asia/Almaty", {"hour": "23", "minute": "30", "day_of_month": "29", "month": "2"}, "2024-01-01", "2024-12-31", ["2024-02-29T17:30", "2024-02-29T18:30"]),
    # both day fields must match, and a year restricts
    ("UTC", {"day_of_month": "29-31", "day_of_week": "3,4"}, "2018-03-08", "2018-09-01", ["2018-03-29T00:00", "2018-05-30T00:00", "2018-05-31T00:00", "2018-08-29T00:00", "2018-08-30T00:00"]),
    ("UTC", {"day_of_month": "1", "month": "1", "year": "2098-2101/3"}, "1970-01-01", "9999-01-01", ["2098-01-01T00:00", "2101-01-01T00:00"]),
    ("UTC", {"second": "0-59/15", "minute": "59", "hour": "23"}, "2026-12-31T23:59:30", "2027-01-01", ["2026-12-31T23:59:30", "2026-12-31T23:59:45"]),
]  # fmt: skip


@pytest.mark.parametrize(("timezone", "rule", "first", "last", "expected"), ANSWERS)
def test_a_canonical_rule_selects_what_the_wall_clock_shows(timezone, rule, first, last, expected):
    calendar = canonical(timezone, rule)
    assert written(calendar.between(at(first), at(last))) == expected
    assert calendar.count(at(first), at(last)) == len(expected)


CRON = [
    # a skipped time moves to the end of the gap; several of one gap run together
    ("30 2 * * *", "America/New_York", "2026-03-07", "2026-03-10", ["2026-03-07T07:30", "2026-03-08T07:00", "2026-03-09T06:30"]),
    ("15,50 3 * * *", "Pacific/Chatham", "2026-09-26", "2026-09-28", ["2026-09-26T14:00", "2026-09-26T14:05", "2026-09-27T13:30", "2026-09-27T14:05"]),
    ("0,30 0,23 * * *", "Asia/Beirut", "2026-03-28T21:30", "2026-03-29T20:30", ["2026-03-28T21:30", "2026-03-28T22:00", "2026-03-29T20:00", "2026-03-29T20:30"]),
    ("30 2 * * *", "Africa/Casablanca", "2026-03-21", "2026-03-24", ["2026-03-21T02:30", "2026-03-22T02:00", "2026-03-23T01:30"]),
    ("45 23 * * *", "Asia/Pyongyang", "2018-05-03", "2018-05-06", ["2018-05-03T15:15", "2018-05-04T15:00", "2018-05-05T14:45"]),
    # moved onto a time of its own it runs once
    ("30 2,3 * * *", "Europe/Zurich", "2027-03-28", "2027-03-28T12:00", ["2027-03-28T01:00", "2027-03-28T01:30"]),
    ("0 2,3 * * *", "Europe/Zurich", "2027-03-28", "2027-03-28T12:00", ["2027-03-28T01:00"]),
    # a skipped time of another day does not move
    ("30 2 * * 1", "Europe/Zurich", "2027-03-28", "2027-03-29T12:00", ["2027-03-29T00:30"]),
    # a repeated time runs at the first
    ("30 1 * * *", "America/New_York", "2026-10-31", "2026-11-03", ["2026-10-31T05:30", "2026-11-01T05:30", "2026-11-02T06:30"]),
    ("30 23 * * *", "Africa/Cairo", "2026-10-28", "2026-10-31", ["2026-10-28T20:30", "2026-10-29T20:30", "2026-10-30T21:30"]),
    ("0 1-23/2 * * *", "Europe/Lisbon", "2024-10-26T22:30", "2024-10-27T06:00", ["2024-10-27T00:00", "2024-10-27T03:00", "2024-10-27T05:00"]),
    # three hours are a change of the clock still (Casey 2010), a day is not (Apia 2011), nor are seven hours (Vostok 1994)
    ("0 1 * * *", "Antarctica/Casey", "2010-03-03T12:00", "2010-03-05T12:00", ["2010-03-03T14:00", "2010-03-04T14:00"]),
    ("0 9 30 12 *", "Pacific/Apia", "2011-01-01", "2012-12-31", ["2012-12-29T19:00"]),
    ("0 23 * * *", "Antarctica/Vostok", "1994-01-30", "1994-02-02", ["1994-01-30T16:00", "1994-01-31T16:00", "1994-01-31T23:00", "1994-02-01T23:00"]),
    # a star in the minute or the hour follows the clock
    ("30 * * * *", "Europe/Zurich", "2026-10-24T23:45", "2026-10-25T02:45", ["2026-10-25T00:30", "2026-10-25T01:30", "2026-10-25T02:30"]),
    ("*/30 2 * * *", "Europe/Zurich", "2026-10-25", "2026-10-25T12:00", ["2026-10-25T00:00", "2026-10-25T00:30", "2026-10-25T01:00", "2026-10-25T01:30"]),
    ("*/30 2 * * *", "Europe/Zurich", "2027-03-28", "2027-03-28T23:00", []),
    ("20 */4 * * *", "America/Los_Angeles", "2023-03-12T04:00", "2023-03-12T12:00", ["2023-03-12T04:20", "2023-03-12T08:20", "2023-03-12T11:20"]),
    # elsewhere
    ("0 13 * * 1-5", "UTC", "2026-01-02T13:01", "2026-01-06", ["2026-01-05T13:00"]),
    ("0 9 29 2 *", "UTC", "2096-01-01", "2105-01-01", ["2096-02-29T09:00", "2104-02-29T09:00"]),
    ("* * * 1,4,7,10 *", "America/New_York", "2015-02-15", "2015-04-01T04:01", ["2015-04-01T04:00", "2015-04-01T04:01"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "timezone", "first", "last", "expected"), CRON)
def test_a_cron_runs_when_vixies_would(text, timezone, first, last, expected):
    calendar = parse_cron(text, timezone)
    assert written(calendar.between(at(first), at(last))) == expected
    assert calendar.count(at(first), at(last)) == len(expected)


INTERVALS = [
    # multiples count from 1970 in UTC, whatever the zone and the bounds: every 28 days, Mondays, across a change of the clock
    ([(28 * 86400, 0)], "2026-01-01", "2026-03-01", ["2026-01-15T00:00", "2026-02-12T00:00"]),
    ([(7 * 86400, 4 * 86400)], "2026-01-01", "2026-01-20", ["2026-01-05T00:00", "2026-01-12T00:00", "2026-01-19T00:00"]),
    ([(86400, 25200)], "2018-11-03", "2018-11-06", ["2018-11-03T07:00", "2018-11-04T07:00", "2018-11-05T07:00"]),
    ([(3600, 0), (5400, 0)], "2026-01-01", "2026-01-01T04:00", ["2026-01-01T00:00", "2026-01-01T01:00", "2026-01-01T01:30", "2026-01-01T02:00", "2026-01-01T03:00", "2026-01-01T04:00"]),
    ([(316_224_000, 0)], "1960-01-01", "1990-01-01", ["1970-01-01T00:00", "1980-01-09T00:00"]),
]  # fmt: skip


@pytest.mark.parametrize(("intervals", "first", "last", "expected"), INTERVALS)
def test_intervals_count_from_1970_in_utc(intervals, first, last, expected):
    calendar = canonical("America/Los_Angeles", intervals=intervals)
    assert written(calendar.between(at(first), at(last))) == expected
    assert calendar.count(at(first), at(last)) == len(expected)


def test_both_bounds_are_part_of_the_calendar():
    calendar = canonical("UTC", intervals=[(3600, 0)], start="2026-01-01T00:00:00Z", end="2026-01-01T02:00:00Z")
    assert written(calendar.between(at("2025-12-31"), at("2026-01-02"))) == [
        "2026-01-01T00:00",
        "2026-01-01T01:00",
        "2026-01-01T02:00",
    ]
    assert calendar.after(at("2026-01-01T02:00")) is None


@pytest.mark.parametrize("rule", [{"hour": "0-23"}, None])
def test_an_instant_before_a_fractional_start_is_before_it(rule):
    intervals = () if rule else [(3600, 0)]
    calendar = canonical(
        "UTC",
        *([rule] if rule else []),
        intervals=intervals,
        start="2026-01-01T00:00:00.5Z",
        end="2026-01-01T01:59:59.999999Z",
    )
    assert written(calendar.between(at("2025-12-31"), at("2026-01-02"))) == ["2026-01-01T01:00"]


def test_what_two_rules_select_is_due_once():
    calendar = canonical("UTC", {"hour": "6-8"}, {"hour": "7", "day_of_week": "1-5"}, intervals=[(28_800, 0)])
    day = (at("2026-01-05"), at("2026-01-05T23:59:59"))
    expected = ["2026-01-05T00:00", "2026-01-05T06:00", "2026-01-05T07:00", "2026-01-05T08:00", "2026-01-05T16:00"]
    assert written(calendar.between(*day)) == expected
    assert calendar.count(*day) == 5


def test_a_fraction_of_a_second_counts_in_the_question():
    calendar = parse_cron("0 9 * * *", "UTC")
    nine = at("2026-01-02T09:00")
    assert calendar.after(nine - timedelta(microseconds=1)) == nine
    assert calendar.after(nine + timedelta(microseconds=1)) == nine + timedelta(days=1)
    assert list(calendar.between(nine + timedelta(microseconds=1), nine + timedelta(hours=1))) == []
    assert calendar.count(nine - timedelta(microseconds=1), nine) == 1
    assert not calendar.selects(nine + timedelta(microseconds=1))


def test_a_question_may_come_from_any_zone_and_is_answered_in_utc():
    calendar = parse_cron("0 9 * * *", "Europe/Zurich")
    found = calendar.after(datetime(2026, 7, 1, 1, tzinfo=ZoneInfo("America/New_York")))
    assert (found, found.tzinfo) == (at("2026-07-01T07:00"), UTC)
