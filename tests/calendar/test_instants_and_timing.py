# ruff: noqa: DTZ001 - hypothesis takes naive bounds
"""Single instants, and the three forms of a stored timing."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horarium import InvalidSchedule, parse_calendar, parse_cron
from horarium.calendar import parse_instant, parse_timing

LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)


def faults_of(parse, document) -> list[tuple[str, str]]:
    with pytest.raises(InvalidSchedule) as refused:
        parse(document)
    return [(fault.pointer, fault.code) for fault in refused.value.faults]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2027-01-01T00:00:00Z", datetime(2027, 1, 1, tzinfo=UTC)),
        ("2027-01-01T02:00:00+02:00", datetime(2027, 1, 1, tzinfo=UTC)),
        ("2026-12-31T14:15:00-09:45", datetime(2027, 1, 1, tzinfo=UTC)),
        ("2027-01-01T00:00:00-00:00", datetime(2027, 1, 1, tzinfo=UTC)),
        ("2027-01-01T00:00:00.000000Z", datetime(2027, 1, 1, tzinfo=UTC)),
        # A run is never early, so a fraction moves to the next second.
        ("2027-01-01T00:00:00.25Z", datetime(2027, 1, 1, 0, 0, 1, tzinfo=UTC)),
        ("2026-12-31T23:59:59.000000001Z", datetime(2027, 1, 1, tzinfo=UTC)),
        ("0001-01-01T14:00:00+14:00", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-31T23:59:59Z", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_an_instant_is_due_once_at_its_second(text, expected):
    calendar = parse_instant(text)
    assert list(calendar.between(LONG_AGO, datetime.max.replace(tzinfo=UTC))) == [expected]
    assert calendar.count(LONG_AGO, datetime.max.replace(tzinfo=UTC)) == 1
    assert calendar.selects(expected)
    assert calendar.after(expected) is None
    if expected > LONG_AGO:
        assert calendar.after(expected - timedelta(microseconds=1)) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        *[(text, "not_a_timestamp") for text in ("", "2027-01-01T00:00:00", "2027-01-01", " 2027-01-01T00:00:00Z", "1798761600", "2027-W01-4T00:00:00Z", "20270101T000000Z", "2027-01-01T00:00:00+0200", "2027-01-01T00:00:00+02", "2027-01-01t00:00:00z", "2027-01-01T00:00:00.Z", "2027-01-01T00:00:00.1234567890Z", "\uff12027-01-01T00:00:00Z", None, 5, True, 1.5, [], {}, b"2027-01-01T00:00:00Z", "\ud800", "x" * 100_000)],
        *[(text, "no_such_time") for text in ("2027-01-01T24:00:00Z", "2026-12-31T23:59:60Z", "2027-02-30T00:00:00Z", "2027-13-01T00:00:00Z", "0000-01-01T00:00:00Z", "2027-01-01T00:00:00+25:00", "2027-01-01T00:00:00+24:00", "2027-01-01T00:00:00+02:60")],
        *[(text, "out_of_range") for text in ("9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.5Z")],
    ],
)  # fmt: skip
def test_what_is_no_instant_is_refused(text, code):
    assert faults_of(parse_instant, text) == [("", code)]


@given(st.datetimes(datetime(1900, 1, 1), datetime(9000, 1, 1)), st.integers(-23 * 60, 23 * 60))
def test_an_instant_is_the_same_in_every_offset(local, minutes):
    offset = timedelta(minutes=minutes)
    sign, size = ("-", -minutes) if minutes < 0 else ("+", minutes)
    text = f"{local.isoformat('T', 'seconds')}{sign}{size // 60:02}:{size % 60:02}"
    assert parse_instant(text).selects((local - offset).replace(tzinfo=UTC, microsecond=0))


CANONICAL = {
    "timezone": "Europe/Zurich",
    "calendars": [],
    "intervals": [{"every_seconds": 60, "offset_seconds": 5}],
    "start_at": "2026-01-01T00:00:00Z",
    "end_at": "2027-01-01T00:00:00Z",
}
CRON = {
    "minute": "30",
    "hour": "7",
    "day_of_month": "*",
    "month": "*",
    "day_of_week": "1-5",
    "timezone": "Europe/Zurich",
}


@pytest.mark.parametrize(
    ("timing", "calendar"),
    [
        ({"calendar": CANONICAL}, parse_calendar(CANONICAL)),
        ({"cron": CRON}, parse_cron("30 7 * * 1-5", "Europe/Zurich")),
        (
            {"cron": CRON | {"start_at": "2026-01-01T00:00:00Z", "end_at": None}},
            parse_cron("30 7 * * 1-5", "Europe/Zurich", start_at="2026-01-01T00:00:00Z"),
        ),
        ({"instant": "2027-01-01T00:00:00Z"}, parse_instant("2027-01-01T00:00:00Z")),
    ],
)
def test_a_stored_timing_is_the_calendar_of_its_form(timing, calendar):
    assert parse_timing(timing) == calendar


@pytest.mark.parametrize(
    ("timing", "expected"),
    [
        (None, [("", "not_an_object")]),
        ([], [("", "not_an_object")]),
        ({}, [("", "not_one_timing")]),
        ({"calendar": CANONICAL, "instant": "2027-01-01T00:00:00Z"}, [("", "not_one_timing")]),
        ({"crons": CRON}, [("/crons", "unknown_field"), ("", "not_one_timing")]),
        ({"calendar": CANONICAL | {"intervals": None}}, [("/calendar/intervals", "null_array")]),
        ({"cron": "30 7 * * 1-5"}, [("/cron", "not_an_object")]),
        (
            {"cron": CRON | {"hour": "24", "zone": "UTC"}},
            [("/cron/zone", "unknown_field"), ("/cron/hour", "out_of_range")],
        ),
        ({"cron": {"timezone": "UTC"}}, [(f"/cron/{name}", "missing_field") for name in list(CRON)[:5]]),
        ({"cron": {name: CRON[name] for name in list(CRON)[:5]}}, [("/cron/timezone", "missing_field")]),
        ({"instant": "tomorrow"}, [("/instant", "not_a_timestamp")]),
    ],
)
def test_a_bad_timing_is_refused_at_its_place(timing, expected):
    assert faults_of(parse_timing, timing) == expected


def test_pointers_begin_where_the_timing_stands():
    with pytest.raises(InvalidSchedule) as refused:
        parse_timing({"cron": CRON | {"hour": "24"}}, at="/timing")
    assert refused.value.faults[0].pointer == "/timing/cron/hour"
