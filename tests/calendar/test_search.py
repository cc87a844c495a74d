# ruff: noqa: DTZ001 - hypothesis takes naive bounds, and naive datetimes are refused
"""What a calendar is as a value, how its answers agree with one another, and that no question takes long."""

import copy
import pickle
import random
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horarium import Calendar, parse_calendar, parse_cron
from horarium.calendar import parse_instant

FULL = {
    "second": (0, 0),
    "minute": (0, 0),
    "hour": (0, 0),
    "day_of_month": (1, 31),
    "month": (1, 12),
    "day_of_week": (0, 6),
}
START = datetime(2027, 1, 1, tzinfo=UTC)
END_OF_TIME = datetime.max.replace(tzinfo=UTC)
BEGIN_OF_TIME = datetime.min.replace(tzinfo=UTC)


def document(
    timezone="Europe/Zurich",
    *rules: dict,
    intervals=(),
    start="0001-01-01T00:00:00Z",
    end="9999-12-31T23:59:59.999999Z",
) -> dict:
    return {
        "timezone": timezone,
        "calendars": [
            {name: [{"start": part[0], "end": part[1], "step": (*part, 1)[2]}] for name, part in (FULL | rule).items()}
            for rule in rules
        ],
        "intervals": [{"every_seconds": every, "offset_seconds": offset} for every, offset in intervals],
        "start_at": start,
        "end_at": end,
    }


def calendar(*rules: dict, timezone="Europe/Zurich", **more) -> Calendar:
    return parse_calendar(document(timezone, *rules, **more))


WEEKDAYS = {"hour": (7, 7), "minute": (30, 30), "day_of_week": (1, 5)}


@pytest.mark.parametrize("naive", [datetime(2026, 1, 1), date(2026, 1, 1), "2026-01-01T00:00:00Z", None, 0])
def test_what_is_no_aware_datetime_is_refused_by_every_question(naive):
    asked = calendar(WEEKDAYS)
    for question in (asked.after, asked.selects):
        with pytest.raises(ValueError, match="aware"):
            question(naive)
    for question in (asked.between, asked.count):
        with pytest.raises(ValueError, match="aware"):
            question(naive, START)
        with pytest.raises(ValueError, match="aware"):
            question(START, naive)


def test_a_calendar_is_a_value():
    first, second = calendar(WEEKDAYS), calendar(WEEKDAYS)
    first.after(START)  # what it remembers is no part of it
    assert first == second
    assert hash(first) == hash(second)
    assert first != calendar(WEEKDAYS | {"hour": (8, 8)})
    with pytest.raises(AttributeError):
        first.timezone = "UTC"


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
@pytest.mark.parametrize("asked", [calendar(WEEKDAYS, intervals=[(5, 0)]), parse_cron("30 7 * * 1-5", "Europe/Zurich"), parse_instant("2028-01-01T00:00:00Z")], ids=["canonical", "cron", "instant"])  # fmt: skip
def test_a_copy_answers_the_same(way, asked):
    asked.after(START)
    other = way(asked)
    assert other == asked
    assert other.after(START) == asked.after(START)


def test_threads_may_share_a_calendar():
    asked = calendar(WEEKDAYS, {"second": (0, 59, 7), "minute": (0, 59, 3), "hour": (0, 23)})
    chance = random.Random(1)
    questions = [START + timedelta(seconds=chance.randrange(10**8)) for _ in range(3000)]
    expected = [
        calendar(WEEKDAYS, {"second": (0, 59, 7), "minute": (0, 59, 3), "hour": (0, 23)}).after(each)
        for each in questions
    ]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(asked.after, questions)) == expected


def test_an_empty_window_has_nothing():
    asked = calendar({"second": (0, 59), "minute": (0, 59), "hour": (0, 23)})
    assert list(asked.between(START, START - timedelta(seconds=1))) == []
    assert asked.count(START, START - timedelta(seconds=1)) == 0
    assert list(asked.between(START, START)) == [START]
    assert asked.count(START, START) == 1


def test_between_is_lazy():
    forever = calendar({"second": (0, 59), "minute": (0, 59), "hour": (0, 23)}).between(START, END_OF_TIME)
    assert [next(forever) for _ in range(3)] == [START + timedelta(seconds=each) for each in range(3)]


@pytest.mark.parametrize(
    "timezone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "Europe/Zurich", "America/New_York", "Asia/Manila"]
)
def test_both_ends_of_time_are_reached_and_not_passed(timezone):
    minutely = calendar({"minute": (0, 59), "hour": (0, 23)}, timezone=timezone)
    last = minutely.after(END_OF_TIME - timedelta(days=2))
    count = 0
    while last is not None:
        latest, last = last, minutely.after(last)
        count += 1
    assert END_OF_TIME - latest < timedelta(hours=15)  # where the local date passes the year 9999 it ends
    assert count == minutely.count(END_OF_TIME - timedelta(days=2), END_OF_TIME)
    first = minutely.after(BEGIN_OF_TIME)
    assert first - BEGIN_OF_TIME < timedelta(hours=16)
    assert minutely.after(END_OF_TIME) is None


def test_a_question_near_the_end_of_time_in_another_offset_is_answered():
    hourly = calendar(intervals=[(3600, 0)], timezone="UTC")
    assert hourly.after(datetime.max.replace(tzinfo=timezone(timedelta(hours=-12)))) is None
    assert hourly.after(datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))) == BEGIN_OF_TIME


IMPOSSIBLE = [
    ("30 February", {"day_of_month": (30, 30), "month": (2, 2)}),
    ("31 April to June on no date", {"day_of_month": (31, 31), "month": (4, 4)}),
    ("29 February in common years", {"day_of_month": (29, 29), "month": (2, 2), "year": (2025, 9999, 4)}),
    ("a year of the past", {"year": (1999, 1999)}),
    ("always inside the gap", {"hour": (2, 2), "minute": (30, 30), "month": (3, 3), "day_of_month": (25, 31), "day_of_week": (0, 0)}),
    ("inside the gap, in all years", {"hour": (2, 2), "minute": (30, 30), "month": (3, 3), "day_of_month": (25, 31), "day_of_week": (0, 0), "year": (2026, 9999)}),
]  # fmt: skip


@pytest.mark.parametrize(("why", "rule"), IMPOSSIBLE, ids=[why for why, _ in IMPOSSIBLE])
def test_what_can_never_be_due_is_told_at_once(why, rule):
    asked = calendar(rule, start="2026-01-01T00:00:00Z")
    begun = time.perf_counter()
    assert asked.is_empty
    assert asked.after(START) is None
    assert time.perf_counter() - begun < 0.05, "the budget is 5 ms; a busy machine gets ten times as much"
    assert asked.count(START, END_OF_TIME) == 0
    assert list(asked.between(START, END_OF_TIME)) == []


@pytest.mark.parametrize(
    ("rule", "start", "end", "empty"),
    [
        (WEEKDAYS, "2026-01-03T00:00:00Z", "2026-01-04T23:00:00Z", True),  # a weekend
        (WEEKDAYS, "2026-01-02T06:30:00Z", "2026-01-02T06:30:00Z", False),
        (WEEKDAYS, "2026-01-02T06:30:00.000001Z", "2026-01-05T06:29:59.999999Z", True),
        (
            {"day_of_month": (29, 29), "month": (2, 2)},
            "2097-01-01T00:00:00Z",
            "2104-02-28T22:59:59Z",
            True,
        ),  # not in 2100
        ({"day_of_month": (29, 29), "month": (2, 2)}, "2097-01-01T00:00:00Z", "2104-02-28T23:00:00Z", False),
    ],
)
def test_emptiness_is_judged_inside_the_bounds(rule, start, end, empty):
    assert calendar(rule, start=start, end=end).is_empty is empty


@pytest.mark.parametrize("timezone", ["UTC", "America/Santiago", "Australia/Lord_Howe"])
def test_a_leap_day_on_a_monday_is_found_at_once(timezone):
    asked = calendar(
        {"day_of_month": (29, 29), "month": (2, 2), "day_of_week": (1, 1), "hour": (2, 2)}, timezone=timezone
    )
    questions = [START + timedelta(days=37 * each) for each in range(1000)]
    begun = time.perf_counter()
    found = [asked.after(each) for each in questions]
    assert time.perf_counter() - begun < 1.0, "the budget is 100 µs each; a busy machine gets ten times as much"
    assert {each.year for each in found} == {2044, 2072, 2112, 2140}


def test_a_month_of_a_per_second_rule_is_counted_by_arithmetic():
    asked = calendar({"second": (0, 59), "minute": (0, 59), "hour": (0, 23)})
    begun = time.perf_counter()
    assert asked.count(START, START + timedelta(days=30)) == 30 * 86_400 + 1
    assert time.perf_counter() - begun < 0.05


def test_a_month_of_many_dense_rules_is_counted_without_walking():
    rules = [{"second": (each, 59, each + 2), "minute": (0, 59, each + 1), "hour": (0, 23)} for each in range(12)]
    asked = calendar(*rules[1:], intervals=[(each, 1) for each in range(3, 23)])
    begun = time.perf_counter()
    count = asked.count(START, START + timedelta(days=30))
    assert time.perf_counter() - begun < 2
    assert count > 30 * 86_400 // 2
    day = (START, START + timedelta(days=1))
    assert asked.count(*day) == sum(1 for _ in asked.between(*day)) < 86_400


VALUES = {name: st.tuples(st.integers(low, high), st.integers(low, high), st.integers(1, 20)) for name, (low, high) in {"second": (0, 59), "minute": (0, 59), "hour": (0, 23), "day_of_month": (1, 31), "month": (1, 12), "day_of_week": (0, 6)}.items()}  # fmt: skip
RULES = st.fixed_dictionaries({}, optional=VALUES).map(
    lambda rule: {name: (min(low, high), max(low, high), step) for name, (low, high, step) in rule.items()}
)
ZONES = st.sampled_from(["UTC", "Europe/Zurich", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Pacific/Apia", "America/St_Johns"])  # fmt: skip


@given(
    ZONES,
    st.lists(RULES, max_size=4),
    st.lists(st.tuples(st.integers(1, 10_000), st.just(0)), max_size=3),
    st.datetimes(datetime(1990, 1, 1), datetime(2050, 1, 1), timezones=st.just(UTC)),
    st.timedeltas(timedelta(0), timedelta(days=3)),
)
def test_all_questions_agree(timezone, rules, intervals, first, length):
    """Walking, stepping, selecting and counting give one answer, and the union is the sum of its parts."""
    rules = [rule for index, rule in enumerate(rules) if rule not in rules[:index]]
    intervals = sorted(set(intervals))
    if not rules and not intervals:
        return
    last = first + length
    asked = calendar(*rules, timezone=timezone, intervals=intervals)
    walked = []
    for instant in asked.between(first, last):
        walked.append(instant)
        if len(walked) == 2000:
            last = instant
            break
    assert all(earlier < later for earlier, later in pairwise(walked))
    assert asked.count(first, last) == len(walked)
    parts = [calendar(rule, timezone=timezone) for rule in rules] + [
        calendar(timezone=timezone, intervals=[each]) for each in intervals
    ]
    assert sorted({instant for part in parts for instant in part.between(first, last)}) == walked
    stepped = first - timedelta(microseconds=1)
    for expected in walked[:100]:
        stepped = asked.after(stepped)
        assert stepped == expected
        assert asked.selects(stepped)
    fresh = parse_calendar(document(timezone, *rules, intervals=intervals))
    for expected in reversed(walked[-20:]):
        assert fresh.after(expected - timedelta(microseconds=1)) == expected


@given(
    ZONES,
    RULES,
    st.lists(st.datetimes(datetime(2026, 1, 1), datetime(2028, 1, 1), timezones=st.just(UTC)), min_size=2, max_size=20),
)
def test_what_was_asked_before_does_not_change_an_answer(timezone, rule, questions):
    remembering = calendar(rule, timezone=timezone)
    for question in questions:
        assert remembering.after(question) == calendar(rule, timezone=timezone).after(question)
