"""Calendars in words: a table of what people write, and proof that the named dates are those."""

import calendar as months
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horarium.calendar import Calendar, parse_calendar, parse_cron, parse_instant
from horarium.calendar.words import MOST_PARTS, in_words

ANY = {"start_at": "0001-01-01T00:00:00Z", "end_at": "9999-12-31T23:59:59Z"}
WHOLE = {"second": (0, 59), "minute": (0, 59), "hour": (0, 23), "day_of_month": (1, 31), "month": (1, 12)}
YEARS = range(2027, 2041)
LEAP_YEARS = [year for year in YEARS if months.isleap(year)]
COMMON_YEARS = [year for year in YEARS if not months.isleap(year)]
BOUNDS = {"start_at": "2026-12-31T23:00:00Z", "end_at": "2040-12-31T22:59:59Z"}
"""Of those years in Zurich: a rule cannot hold all common years that there are."""


def field(name: str, values: Any) -> list[dict[str, int]]:
    """Values as ranges: an integer, a list of them, or (start, end) with an optional step."""
    if values is None:
        low, high = {**WHOLE, "day_of_week": (0, 6)}[name]
        return [{"start": low, "end": high, "step": 1}]
    if isinstance(values, tuple):
        start, end, step = (*values, 1)[:3]
        return [{"start": start, "end": end, "step": step}]
    return [{"start": each, "end": each, "step": 1} for each in (values if isinstance(values, list) else [values])]


def rule(**fields: Any) -> dict[str, Any]:
    """A rule at midnight of every day, except for what is said."""
    given = {"second": 0, "minute": 0, "hour": 0, "day_of_month": None, "month": None, "day_of_week": None, **fields}
    return {name: field(name, values) for name, values in given.items()}


def of(*rules: dict[str, Any], zone: str = "Europe/Zurich", intervals: Any = (), **bounds: str) -> Calendar:
    """A canonical calendar."""
    return parse_calendar({"timezone": zone, "calendars": list(rules), "intervals": list(intervals), **ANY, **bounds})


def words(calendar: Calendar) -> str:
    """The sentence."""
    return in_words(calendar).sentence


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"hour": 7, "minute": 30, "day_of_week": (1, 5)}, "weekdays at 07:30 Europe/Zurich"),
        ({"hour": 7, "minute": 30, "day_of_week": [0, 6]}, "weekends at 07:30 Europe/Zurich"),
        ({"hour": 7, "minute": 30}, "every day at 07:30 Europe/Zurich"),
        ({"hour": 7, "second": 5}, "every day at 07:00:05 Europe/Zurich"),
        ({"hour": [7, 12], "day_of_week": 3}, "Wednesdays at 07:00 and 12:00 Europe/Zurich"),
        ({"hour": 7, "day_of_week": (1, 6)}, "all days except Sundays at 07:00 Europe/Zurich"),
        ({"hour": 7, "day_of_week": [0, 2]}, "Tuesdays and Sundays at 07:00 Europe/Zurich"),
        ({"hour": 7, "day_of_month": 1}, "on the 1st of each month at 07:00 Europe/Zurich"),
        ({"hour": 7, "day_of_month": [1, 15]}, "on the 1st and 15th of each month at 07:00 Europe/Zurich"),
        ({"hour": 7, "day_of_month": (1, 7)}, "on the 1st to 7th of each month at 07:00 Europe/Zurich"),
        (
            {"hour": 7, "day_of_month": [2, 3, 11, 22]},
            "on the 2nd, 3rd, 11th and 22nd of each month at 07:00 Europe/Zurich",
        ),
        (
            {"hour": 7, "day_of_month": 1, "month": (1, 12, 3)},
            "on the 1st of January to October in steps of 3 at 07:00 Europe/Zurich",
        ),
        ({"hour": 7, "day_of_month": 29, "month": 2}, "on 29 February at 07:00 Europe/Zurich"),
        ({"hour": 7, "day_of_month": 1, "month": [1, 7]}, "on 1 January and 1 July at 07:00 Europe/Zurich"),
        ({"hour": 7, "month": 7}, "every day in July at 07:00 Europe/Zurich"),
        ({"hour": 7, "month": (1, 11)}, "every day in each month except December at 07:00 Europe/Zurich"),
        (
            {"hour": 7, "day_of_week": (1, 5), "month": [1, 2]},
            "weekdays in January and February at 07:00 Europe/Zurich",
        ),
        (
            {"hour": 7, "day_of_week": 5, "day_of_month": (1, 7)},
            "on the first Friday of each month at 07:00 Europe/Zurich",
        ),
        (
            {"hour": 7, "day_of_week": 2, "day_of_month": [*range(8, 15), *range(22, 29)]},
            "on the second and fourth Tuesday of each month at 07:00 Europe/Zurich",
        ),
        (
            {"hour": 7, "day_of_week": 1, "day_of_month": (29, 31)},
            "on the fifth Monday of each month that has one at 07:00 Europe/Zurich",
        ),
        (
            {"hour": 7, "day_of_week": 5, "day_of_month": 13},
            "on Fridays that fall on the 13th of each month at 07:00 Europe/Zurich",
        ),
        # In a month of 30 days this is no last Friday, and it is not called one.
        (
            {"hour": 7, "day_of_week": 5, "day_of_month": (25, 31)},
            "on Fridays that fall on the 25th to 31st of each month at 07:00 Europe/Zurich",
        ),
        (
            {"hour": 7, "day_of_week": 5, "day_of_month": (25, 31), "month": [1, 3]},
            "on the last Friday of January and March at 07:00 Europe/Zurich",
        ),
        ({"hour": 7, "day_of_month": 30, "month": [4, 6]}, "on the last day of April and June at 07:00 Europe/Zurich"),
        ({"hour": 7, "day_of_month": 3, "month": 3, "year": 2027}, "on 3 March 2027 at 07:00 Europe/Zurich"),
        ({"hour": 7, "year": (2027, 2029)}, "every day in 2027 to 2029 at 07:00 Europe/Zurich"),
        ({"hour": 7, "year": (1970, 9999)}, "every day at 07:00 Europe/Zurich"),
        ({"second": None, "minute": None, "hour": None}, "every second"),
        ({"second": (0, 59, 15), "minute": None, "hour": None}, "every 15 seconds, Europe/Zurich"),
        ({"minute": None, "hour": None}, "every minute"),
        ({"minute": (0, 59, 15), "hour": None}, "every 15 minutes, Europe/Zurich"),
        ({"hour": None}, "every hour, Europe/Zurich"),
        ({"minute": 5, "hour": None}, "every hour at :05 Europe/Zurich"),
        ({"hour": (0, 23, 6)}, "every 6 hours, Europe/Zurich"),
        ({"hour": (0, 23, 12)}, "every day at 00:00 and 12:00 Europe/Zurich"),
        ({"hour": (9, 17), "day_of_week": (1, 5)}, "every hour from 09:00 to 17:00 on weekdays, Europe/Zurich"),
        (
            {"minute": (0, 59, 15), "hour": (9, 17), "day_of_week": [1, 4]},
            "every 15 minutes from 09:00 to 17:45 on Mondays and Thursdays, Europe/Zurich",
        ),
        ({"minute": (5, 59, 15), "hour": None}, "every 15 minutes from 00:05 to 23:50, Europe/Zurich"),
        ({"minute": None, "hour": [8, 12]}, "every minute of the hours 08 and 12, Europe/Zurich"),
        ({"minute": (0, 59, 7), "hour": None}, "every 7 minutes from :00 to :56 of every hour, Europe/Zurich"),
        ({"minute": [0, 10, 35], "hour": None}, "at the minutes 0, 10 and 35 of every hour, Europe/Zurich"),
        (
            {"second": 30, "minute": [0, 10, 35], "hour": None},
            "at the second 30 of the minutes 0, 10 and 35 of every hour, Europe/Zurich",
        ),
        ({"second": [1, 5], "minute": None, "hour": None}, "at the seconds 1 and 5 of every minute, Europe/Zurich"),
    ],
)
def test_one_rule(fields: dict[str, Any], told: str) -> None:
    assert words(of(rule(**fields))) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("30 7 * * 1-5", "weekdays at 07:30 Europe/Zurich"),
        ("*/15 9-17 * * mon,thu", "every 15 minutes from 09:00 to 17:45 on Mondays and Thursdays, Europe/Zurich"),
        ("* * * * *", "every minute"),
        ("0 9 13 * fri", "on the 13th of each month and on Fridays at 09:00 Europe/Zurich"),
        ("0 9 13 1 fri", "on the 13th and on Fridays in January at 09:00 Europe/Zurich"),
        # One that begins with a star restricts together with the other.
        ("0 9 */2 * fri", "on Fridays that fall on the 1st to 31st in steps of 2 of each month at 09:00 Europe/Zurich"),
        ("0 9 1-31 * fri", "every day at 09:00 Europe/Zurich"),
    ],
)
def test_crons(text: str, told: str) -> None:
    assert words(parse_cron(text, "Europe/Zurich")) == told


@pytest.mark.parametrize(
    ("every", "offset", "told"),
    [
        (1, 0, "every second"),
        (15, 0, "every 15 seconds"),
        (90, 0, "every 90 seconds, UTC"),
        (900, 0, "every 15 minutes, UTC"),
        (900, 300, "every 15 minutes from 00:05 to 23:50 UTC"),
        (7 * 3600, 0, "every 7 hours, counted from 1 January 1970 at 00:00 UTC"),
        (86_400, 27_000, "every day at 07:30 UTC"),
        (604_800, 27_000, "Thursdays at 07:30 UTC"),
        (604_800, 4 * 86_400, "Mondays at 00:00 UTC"),
        (2 * 604_800, 4 * 86_400, "every 14 days at 00:00 UTC, counted from 5 January 1970"),
        (3_661, 0, "every 1 hour 1 minute 1 second, counted from 1 January 1970 at 00:00 UTC"),
        (316_224_000, 0, "every 3,660 days at 00:00 UTC, counted from 1 January 1970"),
    ],
)
def test_intervals(every: int, offset: int, told: str) -> None:
    assert words(of(intervals=[{"every_seconds": every, "offset_seconds": offset}])) == told


def test_one_instant() -> None:
    assert words(parse_instant("2027-01-31T08:30:00+01:00")) == "once, on 31 January 2027 at 07:30 UTC"


def test_bounds_and_several_rules() -> None:
    found = of(
        rule(hour=7, day_of_week=(1, 5)),
        rule(hour=9, day_of_week=[0, 6]),
        intervals=[{"every_seconds": 3600, "offset_seconds": 0}],
        start_at="2027-01-01T00:00:00Z",
        end_at="2027-12-31T23:59:59Z",
    )
    assert in_words(found).parts == (
        "weekdays at 07:00 Europe/Zurich",
        "weekends at 09:00 Europe/Zurich",
        "every hour, UTC",
    )
    assert words(found) == (
        "weekdays at 07:00 Europe/Zurich; weekends at 09:00 Europe/Zurich; every hour, UTC, "
        "from 1 January 2027 at 00:00 UTC, until 31 December 2027 at 23:59:59 UTC"
    )


def test_a_sentence_counts_what_it_does_not_tell() -> None:
    found = in_words(of(*(rule(hour=hour, day_of_week=hour % 7) for hour in range(20))))
    assert len(found.parts) == 20
    assert found.sentence.endswith(f"; and {20 - MOST_PARTS} more rules")


def test_what_can_never_be_due_says_so() -> None:
    assert words(of(rule(hour=7, day_of_month=30, month=2))) == "never: on 30 February at 07:00 Europe/Zurich"
    bounds = {"start_at": "2027-01-01T00:00:01Z", "end_at": "2027-01-01T00:00:01Z"}
    assert words(of(rule(hour=7), **bounds)).startswith("never: every day at 07:00 Europe/Zurich, from 1 January 2027")


LONG, SHORT = [1, 3, 5, 7, 8, 10, 12], [4, 6, 9, 11]


def test_the_last_friday_of_each_month_takes_four_rules_and_has_one_name() -> None:
    last = [
        rule(hour=9, day_of_week=5, day_of_month=(25, 31), month=LONG),
        rule(hour=9, day_of_week=5, day_of_month=(24, 30), month=SHORT),
        rule(hour=9, day_of_week=5, day_of_month=(22, 28), month=2, year=COMMON_YEARS),
        rule(hour=9, day_of_week=5, day_of_month=(23, 29), month=2, year=LEAP_YEARS),
    ]
    found = of(*last, **BOUNDS)
    assert in_words(found).parts == ("on the last Friday of each month at 09:00 Europe/Zurich",)
    first, until = datetime(2027, 1, 1, tzinfo=UTC), datetime(2032, 12, 31, 23, tzinfo=UTC)
    fridays = [max(week[4] for week in months.monthcalendar(y, m)) for y in range(2027, 2033) for m in range(1, 13)]
    assert [each.day for each in found.between(first, until)] == fridays
    # Without its leap years it is no last Friday any more, and each rule stands for itself.
    assert len(in_words(of(*last[:3], **BOUNDS)).parts) == 3
    # Nor is it one where the calendar goes on behind the years that the rules name.
    assert len(in_words(of(*last)).parts) == 4


def test_the_last_day_of_each_month() -> None:
    found = of(
        rule(hour=9, day_of_month=31, month=LONG),
        rule(hour=9, day_of_month=30, month=SHORT),
        rule(hour=9, day_of_month=28, month=2, year=COMMON_YEARS),
        rule(hour=9, day_of_month=29, month=2),
        **BOUNDS,
    )
    assert in_words(found).parts == ("on the last day of each month at 09:00 Europe/Zurich",)


def test_the_first_working_day_of_each_month() -> None:
    found = of(rule(hour=9, day_of_month=1, day_of_week=(1, 5)), rule(hour=9, day_of_month=(2, 3), day_of_week=1))
    assert words(found) == "on the first weekday (Monday to Friday) of each month at 09:00 Europe/Zurich"
    first, until = datetime(2027, 1, 1, tzinfo=UTC), datetime(2030, 12, 31, 23, tzinfo=UTC)
    days = [
        next(day for day in range(1, 8) if date(year, month, day).isoweekday() <= 5)
        for year in range(2027, 2031)
        for month in range(1, 13)
    ]
    assert [each.day for each in found.between(first, until)] == days


def _ranges(low: int, high: int) -> st.SearchStrategy[list[dict[str, int]]]:
    """Any ranges that a document may have: in order and apart, with any step."""

    def built(drawn: tuple[set[int], list[int]]) -> list[dict[str, int]]:
        ends, steps = sorted(drawn[0]), drawn[1]
        pairs = zip(ends[::2], ends[1::2] or ends, strict=False)
        return [
            {"start": start, "end": end, "step": steps[index % len(steps)]} for index, (start, end) in enumerate(pairs)
        ]

    numbers = st.sets(st.integers(low, high), min_size=2, max_size=8)
    return st.tuples(numbers, st.lists(st.integers(1, 20), min_size=1, max_size=4)).map(built) | st.just(
        [{"start": low, "end": high, "step": 1}]
    )


RULES = st.fixed_dictionaries(
    {name: _ranges(*bounds) for name, bounds in {**WHOLE, "day_of_week": (0, 6)}.items()},
    optional={"year": _ranges(1970, 9999)},
)
INTERVALS = st.integers(1, 316_224_000).flatmap(
    lambda every: st.fixed_dictionaries({"every_seconds": st.just(every), "offset_seconds": st.integers(0, every - 1)})
)


def _key(entry: dict[str, Any]) -> str:
    return repr(sorted(entry.items()))


@given(
    st.lists(RULES, min_size=1, max_size=6, unique_by=_key),
    st.lists(INTERVALS, max_size=3, unique_by=_key),
    st.sampled_from([ANY, BOUNDS]),
)
def test_any_calendar_has_words(
    rules: list[dict[str, Any]], intervals: list[dict[str, int]], bounds: dict[str, str]
) -> None:
    found = in_words(of(*rules, intervals=intervals, **bounds))
    assert found.parts
    for part in found.parts[:MOST_PARTS]:
        assert part in found.sentence
        assert part == " ".join(part.split())
        assert len(part) < 1_000
    assert found.sentence.startswith("never: ") == of(*rules, intervals=intervals, **bounds).is_empty


@given(st.sampled_from(range(1, 32)), st.sampled_from(range(7)), st.sampled_from(range(1, 13)))
def test_a_date_with_a_name_is_the_only_one_of_its_month(first: int, weekday: int, month: int) -> None:
    """Where words say "the last Friday of March", each March has one run, and a week later there is no other."""
    days = (first, min(first + 6, 31))
    found = of(rule(hour=9, day_of_month=days, day_of_week=weekday, month=month), zone="UTC")
    if "the last" not in words(found):
        return
    for year in range(2024, 2053):
        length = months.monthrange(year, month)[1]
        due = list(found.between(datetime(year, month, 1, tzinfo=UTC), datetime(year, month, length, 23, tzinfo=UTC)))
        assert len(due) == 1
        assert due[0].day + 7 > length
