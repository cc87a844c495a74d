"""What people reported of other schedulers, as far as it is about calendars. `tests/control/scenarios.py` lists all of them."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horarium import InvalidSchedule, parse_calendar, parse_cron
from tests.calendar.test_known_answers import at, canonical, written

LAST = "9999-12-31T23:59:59Z"

CALENDARS = {
    "cal-feb-29-sunday": (
        canonical("UTC", {"hour": "2", "day_of_month": "29", "month": "2", "day_of_week": "0"}),
        ("2032-03-01", "2060-03-01"),
        ["2060-02-29T02:00"],
    ),
    "cal-quarterly-8th-wednesday": (
        canonical("UTC", {"hour": "13", "day_of_month": "8", "month": "1,4,7,10", "day_of_week": "3"}),
        ("2020-09-24", "2026-12-31"),
        ["2025-01-08T13:00", "2025-10-08T13:00", "2026-04-08T13:00", "2026-07-08T13:00"],
    ),
    "bound-2100": (
        canonical("UTC", {"day_of_month": "1", "month": "1"}),
        ("2098-06-01", "2102-06-01"),
        ["2099-01-01T00:00", "2100-01-01T00:00", "2101-01-01T00:00", "2102-01-01T00:00"],
    ),
    "interval-start-at-half-second": (
        canonical("UTC", intervals=[(3_600, 0)], start="2026-01-01T00:00:00.500000Z"),
        ("2025-12-31T22:00", "2026-01-01T03:00"),
        ["2026-01-01T01:00", "2026-01-01T02:00", "2026-01-01T03:00"],
    ),
    "calendar-start-at-half-second": (
        canonical("UTC", {"hour": "0-23"}, start="2026-01-01T00:00:00.500000Z"),
        ("2025-12-31T22:00", "2026-01-01T03:00"),
        ["2026-01-01T01:00", "2026-01-01T02:00", "2026-01-01T03:00"],
    ),
    "cron-name-range-wrap": (
        parse_cron("0 0 * * fri-sun", "UTC"),
        ("2026-01-01", "2026-01-09T12:00"),
        ["2026-01-02T00:00", "2026-01-03T00:00", "2026-01-04T00:00", "2026-01-09T00:00"],
    ),
}


@pytest.mark.parametrize("scenario", CALENDARS)
def test_a_calendar_that_others_get_wrong_selects_what_it_should(scenario):
    calendar, (after, until), expected = CALENDARS[scenario]
    assert written(calendar.between(at(after) + timedelta(microseconds=1), at(until))) == expected


CRONS = {
    "cron-hour-wrap": ["0 22-2 * * *"],
    "cron-macros-and-tz-prefix": [
        "@daily",
        "@every 1h",
        "@reboot",
        "CRON_TZ=Asia/Tokyo 0 9 * * *",
        "TZ=Asia/Tokyo 0 9 * * *",
    ],
    "cron-out-of-range": [
        "60 * * * *",
        "* 24 * * *",
        "* 0-24 * * *",
        "0 9 0 * *",
        "0 9 32 * *",
        "0 9 * 0 *",
        "0 9 * 13 *",
        "0 9 * * 8",
        "*/0 * * * *",
        "99999999999999999999 * * * *",
    ],
    "cron-empty-and-huge": ["", "     ", "0 9 * * " + ",".join("1" * 100_000)],
}


@pytest.mark.parametrize("scenario", CRONS)
def test_a_cron_that_others_take_for_something_else_is_refused_at_once(scenario):
    for text in CRONS[scenario]:
        began = time.perf_counter()
        with pytest.raises(InvalidSchedule):
            parse_cron(text, "UTC")
        assert time.perf_counter() - began < 0.05, text[:40]


def document(**parts: Any) -> dict[str, Any]:
    whole = {"timezone": "UTC", "calendars": [], "intervals": [], "start_at": "1970-01-01T00:00:00Z", "end_at": LAST}
    return {**whole, **parts}


def rule(**fields: Any) -> dict[str, Any]:
    full = {"second": (0, 0), "minute": (0, 0), "hour": (0, 0), "day_of_month": (1, 31), "month": (1, 12)}
    ranges = {name: [part(*bounds)] for name, bounds in (full | {"day_of_week": (0, 6)}).items()}
    return {**ranges, **fields}


def part(start: int, end: int, step: int = 1) -> dict[str, int]:
    return {"start": start, "end": end, "step": step}


def interval(every: Any, offset: Any = 0) -> dict[str, Any]:
    return {"every_seconds": every, "offset_seconds": offset}


def many_rules() -> dict[str, Any]:
    sixty = [part(each, each) for each in range(60)]
    return document(calendars=[rule(second=sixty, minute=sixty[: each % 60 + 1]) for each in range(1_000)])


BAD = {
    "interval-bad-values": [
        document(intervals=[each])
        for each in (
            interval(3_600, 3_600),
            interval(3_600, -1),
            interval(0),
            interval(-5),
            interval(0.5),
            interval(True),
            interval("60"),
            interval(10**18),
        )
    ],
    "calendar-second-60": [
        document(calendars=[rule(second=[part(60, 60)])]),
        document(intervals=[interval(60)], start_at="2016-12-31T23:59:60Z"),
    ],
    # Ours are the years 1970 to 9999 (DESIGN.md, section 4), so 1999 and 2101 are years.
    "bound-year-field": [document(calendars=[rule(year=[part(year, year)])]) for year in (1969, 10_000)],
    "cal-step-zero-negative": [document(calendars=[rule(minute=[part(0, 59, step)])]) for step in (0, -1)],
    "cal-empty-field-list": [
        document(calendars=[rule(day_of_month=[])]),
        document(calendars=[rule(hour=[])]),
        document(),
    ],
    "perf-many-rules": [many_rules()],
}


@pytest.mark.parametrize("scenario", BAD)
def test_a_calendar_that_others_accept_and_never_run_is_refused_at_once(scenario):
    for each in BAD[scenario]:
        began = time.perf_counter()
        with pytest.raises(InvalidSchedule):
            parse_calendar(each)
        assert time.perf_counter() - began < 0.5


def test_years_that_others_refuse_are_years():
    for year in (1999, 2101):
        parse_calendar(document(calendars=[rule(year=[part(year, year)])]))


ZONES_REFUSED = [
    "Asia/Beijing",
    "US/Pacific-New",
    "america/new_york",
    "America/New York",
    "Europe/Berlin ",
    "UTC+3",
    "+03:00",
    "GMT+3",
    "Local",
    "localtime",
    "Factory",
    "posixrules",
    "right/Europe/Berlin",
    "posix/Europe/Berlin",
    "Europe",
    "tzdata.zi",
    "../../etc/passwd",
    "Europe/Berlin\0",
    "/etc/localtime",
    "",
    None,
    5,
]
ZONES_ACCEPTED = ["UTC", "Etc/UTC", "Europe/Kiev", "Europe/Kyiv", "Asia/Calcutta", "EST", "Etc/GMT+3"]


@pytest.mark.parametrize("name", ZONES_REFUSED, ids=repr)
def test_a_name_that_is_no_zone_is_one_fault_of_the_zone(name):
    with pytest.raises(InvalidSchedule) as refused:
        parse_calendar(document(timezone=name, intervals=[interval(60)]))
    assert [fault.pointer for fault in refused.value.faults] == ["/timezone"]


@pytest.mark.parametrize("name", ZONES_ACCEPTED)
def test_a_name_of_a_zone_is_kept_as_it_was_written(name):
    assert parse_calendar(document(timezone=name, intervals=[interval(60)])).timezone == name


SPARSE = [
    (parse_cron("0 0 1 1 *", "UTC"), "2027-01-01T00:00"),
    (parse_cron("0 0 29 2 *", "UTC"), "2028-02-29T00:00"),
    (canonical("UTC", {"hour": "2", "day_of_month": "29", "month": "2", "day_of_week": "0"}), "2032-02-29T02:00"),
    (parse_cron("0 16 2 5 *", "America/New_York"), "2026-05-02T20:00"),
    *[(parse_cron("0 0 29 2 *", zone), None) for zone in ("America/Santiago", "Australia/Lord_Howe")],
]


@pytest.mark.parametrize(("calendar", "expected"), SPARSE, ids=range(len(SPARSE)))
def test_a_date_that_is_far_away_is_found_at_once(calendar, expected):
    """The scenarios perf-sparse-next and perf-zone-object-per-step: others take seconds on their event loop."""
    began = time.perf_counter()
    found = calendar.after(datetime(2026, 1, 2, tzinfo=UTC))
    assert time.perf_counter() - began < 0.05
    assert found is not None
    assert expected is None or written([found]) == [expected]


def test_an_interval_has_no_memory_of_the_one_before_it():
    """The scenario interval-state-survives-edit: every hour until 16:20, then every three hours."""
    edited = at("2026-01-01T16:20")
    assert written([canonical("UTC", intervals=[(3_600, 0)]).after(edited)]) == ["2026-01-01T17:00"]
    three_hourly = canonical("UTC", intervals=[(3 * 3_600, 0)])
    assert written(three_hourly.between(edited, at("2026-01-01T22:00"))) == ["2026-01-01T18:00", "2026-01-01T21:00"]
