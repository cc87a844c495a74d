"""The canonical document: what is accepted, and every refusal with its place and code."""

import copy
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horarium import InvalidSchedule, parse_calendar
from horarium.calendar import documents
from horarium.calendar.documents import MAX_STEP
from horarium.calendar.faults import MAX_FAULTS, shown

GOOD = {
    "timezone": "Europe/Zurich",
    "calendars": [
        {
            "second": [{"start": 0, "end": 0, "step": 1}],
            "minute": [{"start": 30, "end": 30, "step": 1}],
            "hour": [{"start": 7, "end": 7, "step": 1}],
            "day_of_month": [{"start": 1, "end": 31, "step": 1}],
            "month": [{"start": 1, "end": 12, "step": 1}],
            "day_of_week": [{"start": 1, "end": 5, "step": 1}],
        }
    ],
    "intervals": [{"every_seconds": 3600, "offset_seconds": 0}],
    "start_at": "2026-01-01T00:00:00Z",
    "end_at": "2030-12-31T23:59:59Z",
}
GONE = object()


def changed(pointer: str, value: object) -> dict:
    """The good document with one place set, or removed."""
    document = copy.deepcopy(GOOD)
    *path, last = [int(part) if part.isdecimal() else part for part in pointer.split("/")[1:]]
    owner = document
    for part in path:
        owner = owner[part]
    if value is GONE:
        del owner[last]
    else:
        owner[last] = value
    return document


def faults_of(document: object, at: str = "") -> list[tuple[str, str]]:
    with pytest.raises(InvalidSchedule) as refused:
        parse_calendar(document, at=at)
    return [(fault.pointer, fault.code) for fault in refused.value.faults]


def one(start: int, end: int | None = None, step: int = 1) -> dict:
    return {"start": start, "end": start if end is None else end, "step": step}


HUGE = 10**10_000  # Python refuses to print it
HOUR = "/calendars/0/hour"

REFUSED = [
    # the object and its members
    ("/timezone", GONE, [("/timezone", "missing_field")]),
    ("/calendars", GONE, [("/calendars", "missing_field")]),
    ("/intervals", GONE, [("/intervals", "missing_field")]),
    ("/start_at", GONE, [("/start_at", "missing_field")]),
    ("/end_at", GONE, [("/end_at", "missing_field")]),
    ("/calendar", [], [("/calendar", "unknown_field")]),
    ("/calendars", None, [("/calendars", "null_array")]),
    ("/intervals", None, [("/intervals", "null_array")]),
    ("/calendars", {}, [("/calendars", "not_an_array")]),
    ("/intervals", "[]", [("/intervals", "not_an_array")]),
    ("/calendars", (), [("/calendars", "not_an_array")]),
    # rules together
    ("/intervals", [{"every_seconds": n + 1, "offset_seconds": 0} for n in range(32)], [("", "too_many_rules")]),
    ("/intervals", [GOOD["intervals"][0]] * 2, [("/intervals/1", "duplicate_rule")]),
    ("/calendars", [GOOD["calendars"][0]] * 2, [("/calendars/1", "duplicate_rule")]),
    # one rule
    ("/calendars/0", [], [("/calendars/0", "not_an_object")]),
    ("/calendars/0", None, [("/calendars/0", "not_an_object")]),
    (HOUR, GONE, [(HOUR, "missing_field")]),
    ("/calendars/0/hours", [], [("/calendars/0/hours", "unknown_field")]),
    ("/calendars/0/year", None, [("/calendars/0/year", "null_array")]),
    ("/calendars/0/a~b", 1, [("/calendars/0/a~0b", "unknown_field")]),
    # one field
    (HOUR, None, [(HOUR, "null_array")]),
    (HOUR, [], [(HOUR, "no_ranges")]),
    (HOUR, 7, [(HOUR, "not_an_array")]),
    (HOUR, "*", [(HOUR, "not_an_array")]),
    ("/calendars/0/minute", [one(0)] * 65, [("/calendars/0/minute", "too_many_ranges")] + [(f"/calendars/0/minute/{n}", "ranges_overlap") for n in (1, 2, 3)] + [("/calendars/0/minute", "ranges_overlap")]),
    (HOUR, [one(5), one(4), one(3), one(2)], [(f"{HOUR}/{n}", "ranges_overlap") for n in (1, 2, 3)]),
    (HOUR, [one(3, 5), one(5, 6)], [(f"{HOUR}/1", "ranges_overlap")]),
    (HOUR, [one(3, 5), one(1, 2)], [(f"{HOUR}/1", "ranges_overlap")]),
    # By bounds: 0-10 by 5 and 3-4 select different hours, and overlap all the same.
    (HOUR, [one(0, 10, 5), one(3, 4)], [(f"{HOUR}/1", "ranges_overlap")]),
    # one range
    (f"{HOUR}/0", 7, [(f"{HOUR}/0", "not_an_object")]),
    (f"{HOUR}/0", [7, 7, 1], [(f"{HOUR}/0", "not_an_object")]),
    (f"{HOUR}/0/start", GONE, [(f"{HOUR}/0/start", "missing_field")]),
    (f"{HOUR}/0/end", GONE, [(f"{HOUR}/0/end", "missing_field")]),
    (f"{HOUR}/0/step", GONE, [(f"{HOUR}/0/step", "missing_field")]),
    (f"{HOUR}/0/stop", 7, [(f"{HOUR}/0/stop", "unknown_field")]),
    (f"{HOUR}/0/start", 8, [(f"{HOUR}/0", "range_reversed")]),
    (f"{HOUR}/0/start", -1, [(f"{HOUR}/0/start", "out_of_range")]),
    (f"{HOUR}/0/end", 24, [(f"{HOUR}/0/end", "out_of_range")]),
    (f"{HOUR}/0/end", HUGE, [(f"{HOUR}/0/end", "out_of_range")]),
    (f"{HOUR}/0/step", 0, [(f"{HOUR}/0/step", "out_of_range")]),
    (f"{HOUR}/0/step", -1, [(f"{HOUR}/0/step", "out_of_range")]),
    (f"{HOUR}/0/step", MAX_STEP + 1, [(f"{HOUR}/0/step", "out_of_range")]),
    (f"{HOUR}/0/step", HUGE, [(f"{HOUR}/0/step", "out_of_range")]),
    *[(f"{HOUR}/0/{name}", value, [(f"{HOUR}/0/{name}", "not_an_integer")]) for name in ("start", "end", "step") for value in (True, 7.0, "7", None, [7], float("nan"))],
    ("/calendars/0/second/0/end", 60, [("/calendars/0/second/0/end", "out_of_range")]),
    ("/calendars/0/minute/0/end", 60, [("/calendars/0/minute/0/end", "out_of_range")]),
    ("/calendars/0/day_of_month/0/start", 0, [("/calendars/0/day_of_month/0/start", "out_of_range")]),
    ("/calendars/0/day_of_month/0/end", 32, [("/calendars/0/day_of_month/0/end", "out_of_range")]),
    ("/calendars/0/month/0/start", 0, [("/calendars/0/month/0/start", "out_of_range")]),
    ("/calendars/0/month/0/end", 13, [("/calendars/0/month/0/end", "out_of_range")]),
    ("/calendars/0/day_of_week/0/end", 7, [("/calendars/0/day_of_week/0/end", "out_of_range")]),
    ("/calendars/0/year", [one(1969)], [("/calendars/0/year/0/start", "out_of_range"), ("/calendars/0/year/0/end", "out_of_range")]),
    ("/calendars/0/year", [one(2026, 10_000)], [("/calendars/0/year/0/end", "out_of_range")]),
    # one interval
    ("/intervals/0", 60, [("/intervals/0", "not_an_object")]),
    ("/intervals/0/every_seconds", GONE, [("/intervals/0/every_seconds", "missing_field")]),
    ("/intervals/0/offset_seconds", GONE, [("/intervals/0/offset_seconds", "missing_field")]),
    ("/intervals/0/every", 1, [("/intervals/0/every", "unknown_field")]),
    *[("/intervals/0/every_seconds", value, [("/intervals/0/every_seconds", "out_of_range")]) for value in (0, -5, 316_224_001, 10**18, HUGE)],
    *[("/intervals/0/every_seconds", value, [("/intervals/0/every_seconds", "not_an_integer")]) for value in (0.5, True, "60", None)],
    ("/intervals/0/offset_seconds", -1, [("/intervals/0/offset_seconds", "out_of_range")]),
    ("/intervals/0/offset_seconds", 3600, [("/intervals/0/offset_seconds", "offset_too_large")]),
    # bounds
    *[
        ("/start_at", value, [("/start_at", "not_a_timestamp")])
        for value in (
            None,
            1_767_225_600,
            "",
            "2026-01-01",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00+00:00",
            "2026-01-01t00:00:00z",
            "2026-01-01 00:00:00Z",
            "2026-01-01T00:00Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00.1234567Z",
            "2026-01-01T00:00:00,5Z",
            " 2026-01-01T00:00:00Z",
            "2026-01-01T00:00:00Z\n",
            "\uff12026-01-01T00:00:00Z",
            "12026-01-01T00:00:00Z",
        )
    ],
    *[
        ("/start_at", value, [("/start_at", "no_such_time")])
        for value in (
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "0000-01-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2016-12-31T23:59:60Z",
        )
    ],
    ("/end_at", "2025-12-31T23:59:59.999999Z", [("/end_at", "end_before_start")]),
    # zones
    *[
        ("/timezone", value, [("/timezone", "unknown_timezone")])
        for value in (
            "Asia/Beijing", "US/Pacific-New", "america/new_york", "America/New York", "Europe/Berlin ", "UTC+3", "+03:00", "GMT+3", "Local",
            "localtime", "Factory", "posixrules", "right/Europe/Berlin", "posix/Europe/Berlin", "Europe", "tzdata.zi", "../../etc/passwd",
            "Europe/Berlin\x00", "/etc/localtime", "Europe/../Europe/Berlin", "Europe\\Berlin", "", "\ud800", "x" * 100_000, "zone.tab", "__init__.py",
        )
    ],
    *[("/timezone", value, [("/timezone", "not_a_timezone")]) for value in (None, 5, True, ["UTC"], {})],
]  # fmt: skip


@pytest.mark.parametrize(("pointer", "value", "expected"), REFUSED, ids=shown)
def test_a_bad_document_is_refused_at_its_place(pointer, value, expected):
    assert faults_of(changed(pointer, value)) == expected


def test_the_good_document_is_accepted_as_it_is():
    assert parse_calendar(GOOD).after(datetime(2026, 1, 2, 6, 10, tzinfo=UTC)) == datetime(
        2026, 1, 2, 6, 30, tzinfo=UTC
    )


@pytest.mark.parametrize("document", [None, [], "calendar", 5, True, 1.5, [GOOD]])
def test_what_is_no_object_is_refused_as_a_whole(document):
    assert faults_of(document) == [("", "not_an_object")]


def test_both_lists_empty_is_refused():
    assert faults_of(GOOD | {"calendars": [], "intervals": []}) == [("", "no_rules")]


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/calendars", []),
        ("/intervals", []),
        ("/intervals", [{"every_seconds": n + 1, "offset_seconds": 0} for n in range(31)]),
        ("/calendars/0/minute", [one(n) for n in range(60)]),
        ("/calendars/0/year", [one(1970 + 2 * n) for n in range(64)]),
        ("/calendars/0/year", [one(1970, 9999)]),
        ("/calendars/0/hour", [one(3, 5), one(6, 6)]),
        ("/calendars/0/hour/0/step", MAX_STEP),
        ("/calendars/0/day_of_month", [one(30)]),
        ("/intervals/0/every_seconds", 316_224_000),
        ("/intervals/0/offset_seconds", 3599),
        ("/end_at", "2026-01-01T00:00:00Z"),
        ("/end_at", "9999-12-31T23:59:59.999999Z"),
        ("/start_at", "0001-01-01T00:00:00.0Z"),
        ("/start_at", "2028-02-29T23:59:59.999999Z"),
        *[("/timezone", name) for name in ("UTC", "Etc/UTC", "Europe/Kiev", "Europe/Kyiv", "Asia/Calcutta", "EST", "Etc/GMT+3", "America/Argentina/ComodRivadavia")],
    ],
)  # fmt: skip
def test_the_ends_of_every_bound_are_accepted(pointer, value):
    assert parse_calendar(changed(pointer, value)).timezone


def test_a_rule_with_every_year_written_out_is_another_rule_than_one_without_years():
    """Duplicates are judged by canonical JSON, not by what they select."""
    rule = GOOD["calendars"][0]
    assert parse_calendar(GOOD | {"calendars": [rule, rule | {"year": [one(1970, 9999)]}]}).rules[1]


def test_the_order_of_members_does_not_hide_a_duplicate():
    rule = GOOD["calendars"][0]
    assert faults_of(GOOD | {"calendars": [rule, dict(reversed(rule.items()))]}) == [("/calendars/1", "duplicate_rule")]


def test_all_faults_are_told_at_once_in_the_order_of_the_contract():
    document = {
        "timezone": "Mars/Olympus",
        "calendars": [{"second": None, "minute": [one(0, 60)], "hour": [one(5, 4)], "day_of_month": [], "month": 1}],
        "intervals": [{"every_seconds": True}],
        "start_at": "2026-01-01",
        "extra": 1,
    }
    assert faults_of(document) == [
        ("/timezone", "unknown_timezone"),
        ("/calendars/0/second", "null_array"),
        ("/calendars/0/minute/0/end", "out_of_range"),
        ("/calendars/0/hour/0", "range_reversed"),
        ("/calendars/0/day_of_month", "no_ranges"),
        ("/calendars/0/month", "not_an_array"),
        ("/calendars/0/day_of_week", "missing_field"),
        ("/intervals/0/every_seconds", "not_an_integer"),
        ("/intervals/0/offset_seconds", "missing_field"),
        ("/end_at", "missing_field"),
        ("/start_at", "not_a_timestamp"),
        ("/extra", "unknown_field"),
    ]


def test_pointers_begin_where_the_document_stands():
    assert faults_of(changed("/timezone", 1), at="/configuration/calendar") == [
        ("/configuration/calendar/timezone", "not_a_timezone")
    ]


def test_a_null_array_is_answered_with_what_to_write():
    with pytest.raises(InvalidSchedule, match=r"Write \[\] for none"):
        parse_calendar(GOOD | {"intervals": None})


def test_a_misspelt_field_is_answered_with_the_right_one():
    with pytest.raises(InvalidSchedule, match="Did you mean 'day_of_month'"):
        parse_calendar(changed("/calendars/0/day_of_mont", []))


def test_a_zone_in_the_wrong_case_is_answered_with_its_exact_name():
    with pytest.raises(InvalidSchedule, match="Did you mean 'America/New_York'"):
        parse_calendar(GOOD | {"timezone": "america/new york"})


def test_thousands_of_faults_are_counted_and_not_shown():
    with pytest.raises(InvalidSchedule) as refused:
        parse_calendar(GOOD | {f"extra{n}": 1 for n in range(5000)})
    faults = refused.value.faults
    assert len(faults) == MAX_FAULTS
    assert faults[-1].code == "more_faults"
    assert "4801 more faults" in faults[-1].sentence


def test_what_a_document_says_is_repeated_only_in_part():
    document = changed("/" + "k" * 1_000_000, 1) | {"timezone": "z" * 1_000_000, "start_at": "s" * 1_000_000}
    with pytest.raises(InvalidSchedule) as refused:
        parse_calendar(document)
    assert all(len(str(fault)) < 500 for fault in refused.value.faults)


def nested(depth: int) -> object:
    value: object = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "junk", [nested(100_000), HUGE, -HUGE, float("nan"), float("inf"), "\ud800", "\x00", b"x", object()], ids=shown
)
@pytest.mark.parametrize("pointer", ["/timezone", "/calendars", "/calendars/0", "/calendars/0/hour", "/calendars/0/hour/0", "/calendars/0/hour/0/end", "/intervals", "/intervals/0/every_seconds", "/start_at", "/junk"])  # fmt: skip
def test_junk_anywhere_is_a_fault_and_never_a_crash(pointer, junk):
    assert faults_of(changed(pointer, junk))


def test_names_of_members_that_are_no_text_are_faults():
    assert faults_of(GOOD | {5: 1, None: 1, ("a",): 1, "\ud800/~": 1}) == [
        ("/5", "unknown_field"),
        ("/null", "unknown_field"),
        ("/an array of 1", "unknown_field"),
        ("/\\ud800~1~0", "unknown_field"),
    ]


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(0, 60), st.floats(), st.text(max_size=8),
    st.sampled_from(["UTC", "Europe/Zurich", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00.5Z"]),
)  # fmt: skip
NAMES = st.sampled_from(
    ["timezone", "calendars", "intervals", "start_at", "end_at", "second", "minute", "hour", "day_of_month", "month", "day_of_week", "year", "start", "end", "step", "every_seconds", "offset_seconds"]
)  # fmt: skip
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | st.text(max_size=4), inner, max_size=8),
    max_leaves=40,
)


def refusal_of(document: object) -> InvalidSchedule | None:
    try:
        parse_calendar(document)
    except InvalidSchedule as refused:
        return refused
    return None


@given(JSON)
def test_any_value_is_parsed_or_refused(document):
    refused = refusal_of(document)
    if refused is not None:
        told = [(fault.pointer, fault.code, fault.sentence) for fault in refused.faults]
        assert json.dumps(told, ensure_ascii=False).encode()
        assert all(pointer == "" or pointer.startswith("/") for pointer, _, _ in told)


@given(st.data())
def test_a_good_document_with_one_place_spoilt_is_parsed_or_refused(data):
    """Closer to the mark than arbitrary values: all but one place is right."""
    document = copy.deepcopy(GOOD)
    places = []

    def collect(value):
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, inner in items:
            places.append((value, key))
            collect(inner)

    collect(document)
    owner, key = data.draw(st.sampled_from(places))
    owner[key] = data.draw(JSON)
    if refusal_of(document) is None:
        found = parse_calendar(document).after(datetime(2026, 6, 1, tzinfo=UTC))
        assert found is None or found > datetime(2026, 6, 1, tzinfo=UTC)


RANGES = st.fixed_dictionaries(
    {"start": st.integers(-1, 61), "end": st.integers(-1, 61), "step": st.sampled_from([1, 2, 7, 60, MAX_STEP])}
)
SPOILT = st.dictionaries(st.sampled_from(["start", "end", "step", "by"]), LEAVES, max_size=4)
FIELDS = st.lists(RANGES | RANGES | RANGES | SPOILT | JSON, max_size=5) | JSON


@given(st.dictionaries(st.sampled_from([*GOOD["calendars"][0], "year"]), FIELDS, max_size=3))
def test_a_field_without_a_fault_is_read_as_if_each_part_had_been_looked_at(fields):
    """What is read the short way, and what is told of the rest, is the same as the long way gives."""
    document = changed("/calendars/0", {**GOOD["calendars"][0], **fields})

    def read() -> object:
        try:
            return parse_calendar(document)
        except InvalidSchedule as refused:
            return refused.faults

    short = read()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(documents, "_plain_field", lambda _field, _value: None)
        assert read() == short
