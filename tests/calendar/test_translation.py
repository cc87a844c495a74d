"""A canonical calendar is shown for another timing only where both select the same instants, and else why none does."""

import copy
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horarium import Calendar, parse_calendar, parse_cron
from horarium.calendar import parse_instant, zone_names
from horarium.calendar.calendars import EPOCH
from horarium.calendar.rules import Interval
from horarium.calendar.translation import EQUAL, ranges, translate
from horarium.calendar.zones import zone

NOW = datetime(2026, 11, 30, tzinfo=UTC)
FULL = {
    "second": [{"start": 0, "end": 0, "step": 1}],
    "minute": [{"start": 0, "end": 59, "step": 1}],
    "hour": [{"start": 0, "end": 23, "step": 1}],
    "day_of_month": [{"start": 1, "end": 31, "step": 1}],
    "month": [{"start": 1, "end": 12, "step": 1}],
    "day_of_week": [{"start": 0, "end": 6, "step": 1}],
}
ALWAYS = {"start_at": "0001-01-01T00:00:00Z", "end_at": "9999-12-31T23:59:59Z"}


def one(value: int) -> list[dict[str, int]]:
    return [{"start": value, "end": value, "step": 1}]


def document(timezone: str, *rules: dict) -> dict:
    return {"timezone": timezone, "calendars": [FULL | rule for rule in rules], "intervals": [], **ALWAYS}


@pytest.mark.parametrize(
    ("expression", "timezone", "rules"),
    [
        ("30 7 * * 1-5", "UTC", [{"minute": one(30), "hour": one(7), "day_of_week": [{"start": 1, "end": 5, "step": 1}]}]),
        ("30 2 * * *", "Etc/GMT-3", [{"minute": one(30), "hour": one(2)}]),
        # a star follows the clock, as a calendar does, whatever the zone does
        ("*/15 * * * *", "Europe/Berlin", [{"minute": [{"start": 0, "end": 45, "step": 15}]}]),
        ("30 * * * *", "Australia/Lord_Howe", [{"minute": one(30)}]),
        # no change of New York's clock, that of 1883 at noon included, was or is near that time
        ("30 7 * * *", "America/New_York", [{"minute": one(30), "hour": one(7)}]),
        # both day fields restricted: either, which a canonical rule does not know
        ("0 0 1 * 1", "UTC", [{"minute": one(0), "hour": one(0), "day_of_month": one(1)}, {"minute": one(0), "hour": one(0), "day_of_week": one(1)}]),
        # either of two, of which one is every day: two rules would be the same rule twice
        ("0 0 1-31 * 0-6", "UTC", [{"minute": one(0), "hour": one(0)}]),
        ("0 0 1-31 * 1", "UTC", [{"minute": one(0), "hour": one(0)}]),
        ("0 0 1 * 0-6", "UTC", [{"minute": one(0), "hour": one(0)}]),
        # one of them begins with a star: both
        ("0 0 */10 * 1", "UTC", [{"minute": one(0), "hour": one(0), "day_of_month": [{"start": 1, "end": 31, "step": 10}], "day_of_week": one(1)}]),
        # what a gap moves to its end is selected there anyway, and Lisbon's autumn repeats 01:00, never 02:00
        ("0 1,2 * 3-4 *", "Europe/Lisbon", None),
    ],
)  # fmt: skip
def test_a_cron_that_no_change_of_the_clock_touches_is_a_calendar(expression, timezone, rules):
    found = translate(parse_cron(expression, timezone), since=NOW)
    assert found.calendar is not None, found.sentence
    parse_calendar(found.calendar)
    if rules is not None:
        assert (found.calendar, found.sentence) == (document(timezone, *rules), EQUAL)


@pytest.mark.parametrize(
    ("expression", "timezone", "reason"),
    [
        ("30 2 * * *", "Europe/Berlin", "02:30 does not exist on 2027-03-28; runs at 03:00; a canonical calendar would skip it."),
        ("30 2 * * *", "America/New_York", "02:30 does not exist on 2027-03-14; runs at 03:00; a canonical calendar would skip it."),
        ("30 1 * * *", "America/New_York", "01:30 happens twice on 2027-11-07; one run, at the first; a canonical calendar would run it twice."),
        ("15 2 * * *", "Australia/Lord_Howe", "02:15 does not exist on 2027-10-03; runs at 02:30; a canonical calendar would skip it."),
        ("0 0 * * *", "America/Santiago", "00:00 does not exist on 2027-09-05; runs at 01:00; a canonical calendar would skip it."),
        ("0 0 * * *", "Africa/Cairo", "00:00 does not exist on 2027-04-30; runs at 01:00; a canonical calendar would skip it."),
        # each Sunday, or a 31 March that is a Sunday of the change: the next one is told
        ("30 2 31 3 0", "Europe/Berlin", "02:30 does not exist on 2027-03-28; runs at 03:00; a canonical calendar would skip it."),
        ("30 2 31 3 *", "Europe/Berlin", "02:30 does not exist on 2030-03-31; runs at 03:00; a canonical calendar would skip it."),
        (f"{','.join(map(str, range(60)))} 2 * 3 *", "Europe/Berlin", "02:00 on 2027-03-28 to 02:59:59 do not exist; 60 times run together once, at 03:00; a canonical calendar would skip them."),
    ],
)  # fmt: skip
def test_a_cron_that_a_change_touches_is_none_and_the_change_is_named(expression, timezone, reason):
    found = translate(parse_cron(expression, timezone), since=NOW)
    assert found.calendar is None
    assert found.sentence == f"A canonical calendar of the same fields differs: {reason}"


def test_a_rare_change_far_ahead_counts():
    """The 28th of March is a Sunday next in 2027, and then in 2032."""
    later = datetime(2027, 4, 1, tzinfo=UTC)
    found = translate(parse_cron("30 2 28 3 *", "Europe/Berlin"), since=later)
    assert found.calendar is None
    assert "on 2032-03-28" in found.sentence


def test_where_only_the_past_differs_the_calendar_begins_after_it():
    """São Paulo ended its summer time in 2019, and began it at midnight for the last time on 2018-11-04."""
    cron = parse_cron("0 0 * * *", "America/Sao_Paulo")
    found = translate(cron, since=NOW)
    assert found.calendar == document("America/Sao_Paulo", {"minute": one(0), "hour": one(0)}) | {
        "start_at": "2018-11-04T03:00:01Z"
    }
    assert found.sentence == "Equals the canonical calendar shown from its start_at on, which lies in the past."
    before = translate(cron, since=datetime(2018, 11, 4, 3, tzinfo=UTC))
    assert before.calendar is None
    assert "2018-11-04" in before.sentence


def test_where_the_last_difference_was_a_repeated_hour_the_calendar_begins_behind_it():
    """At 2019-02-17T02:00Z São Paulo went back to 23:00, for the last time. A calendar would run at 02:30Z as well."""
    cron = parse_cron("30 23 * * *", "America/Sao_Paulo")
    found = translate(cron, since=NOW)
    assert found.calendar["start_at"] == "2019-02-17T03:00:00Z"
    window = (datetime(2019, 2, 17, 3, tzinfo=UTC), NOW)
    assert list(parse_calendar(found.calendar).between(*window)) == list(cron.between(*window))


@pytest.mark.parametrize(
    ("zone_name", "bounds"),
    [
        ("Pacific/Apia", ("2011-06-01T00:00:00Z", "2012-06-01T00:00:00Z")),  # without a 30 December
        ("America/Juneau", ("1867-06-01T00:00:00Z", "1868-06-01T00:00:00Z")),  # with a day twice
    ],
)
def test_a_correction_of_the_clock_is_followed_by_either(zone_name, bounds):
    cron = parse_cron("0 9 * * *", zone_name, start_at=bounds[0], end_at=bounds[1])
    found = translate(cron, since=NOW)
    assert found.sentence == EQUAL
    year = tuple(map(datetime.fromisoformat, bounds))
    assert list(parse_calendar(found.calendar).between(*year)) == list(cron.between(*year))


@pytest.mark.parametrize(("start_at", "equal"), [("2027-03-28T01:00:00Z", False), ("2027-03-28T01:00:01Z", True)])
def test_what_a_gap_moves_counts_where_the_bounds_hold_its_end(start_at, equal):
    cron = parse_cron("30 2 * * *", "Europe/Berlin", start_at=start_at, end_at="2027-09-01T00:00:00Z")
    assert (translate(cron, since=NOW).calendar is not None) == equal


def test_the_bounds_of_a_cron_are_those_of_its_calendar():
    """In its bounds no clock is changed, so the bounds make it equal."""
    bounds = {"start_at": "2027-04-01T00:00:00Z", "end_at": "2027-09-01T00:00:00Z"}
    found = translate(parse_cron("30 2 * * *", "Europe/Berlin", **bounds), since=NOW)
    assert found.sentence == EQUAL
    assert {name: found.calendar[name] for name in bounds} == bounds


@pytest.mark.parametrize(("start_at", "equal"), [("2027-10-31T01:15:00Z", False), ("2027-10-31T01:30:01Z", True)])
def test_a_bound_inside_a_repeated_hour_counts_to_the_second(start_at, equal):
    """02:30 is there at 00:30Z and at 01:30Z; from in between on, a cron has none of that day and a calendar the second."""
    bounds = {"start_at": start_at, "end_at": "2027-11-30T00:00:00Z"}
    cron = parse_cron("30 2 * * *", "Europe/Berlin", **bounds)
    found = translate(cron, since=NOW)
    assert (found.calendar is not None) == equal
    if not equal:
        assert "the change of the clock at 2027-10-31T01:00:00Z" in found.sentence


@pytest.mark.parametrize("end_at", ["2027-10-31T01:30:00Z", "2027-10-31T01:45:00Z"])
def test_a_cron_that_is_over_before_anything_is_equal_has_no_calendar(end_at):
    cron = parse_cron("30 2 * * *", "Europe/Berlin", end_at=end_at, start_at="2027-03-28T01:00:00Z")
    found = translate(cron, since=datetime(2028, 1, 1, tzinfo=UTC))
    assert found.calendar is None
    assert "02:30 happens twice on 2027-10-31" in found.sentence


def test_a_single_instant_is_the_rule_of_its_fields_between_equal_bounds():
    found = translate(parse_instant("2026-03-25T10:00:00+01:00"), since=NOW)
    fields = {"second": 0, "minute": 0, "hour": 9, "day_of_month": 25, "month": 3, "day_of_week": 3, "year": 2026}
    assert found.sentence == EQUAL
    assert found.calendar == {
        "timezone": "UTC",
        "calendars": [{name: one(value) for name, value in fields.items()}],
        "intervals": [],
        "start_at": "2026-03-25T09:00:00Z",
        "end_at": "2026-03-25T09:00:00Z",
    }


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59Z"])
def test_an_instant_at_the_ends_of_time_has_a_calendar_too(text):
    found = translate(parse_instant(text), since=NOW)
    selected = parse_calendar(found.calendar)
    assert [
        each.isoformat()
        for each in selected.between(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
    ] == [text.replace("Z", "+00:00")]


def test_an_interval_is_an_interval():
    calendar = Calendar(timezone="UTC", intervals=(Interval(every_seconds=90, offset_seconds=7),))
    found = translate(calendar, since=NOW)
    rule = {"every_seconds": 90, "offset_seconds": 7}
    assert found.calendar == {"timezone": "UTC", "calendars": [], "intervals": [rule], **ALWAYS}


def test_a_canonical_calendar_equals_itself():
    spec = document("Europe/Berlin", {"hour": one(2), "year": [{"start": 2027, "end": 2031, "step": 2}]})
    spec["intervals"] = [{"every_seconds": 60, "offset_seconds": 0}]
    given_document = copy.deepcopy(spec)
    assert translate(parse_calendar(spec), since=NOW).calendar == given_document


def test_a_naive_moment_is_refused():
    with pytest.raises(ValueError, match="aware"):
        translate(parse_cron("0 0 * * *", "UTC"), since=datetime(2027, 1, 1))  # noqa: DTZ001 - refused


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0, 15, 30, 45], [(0, 45, 15)]),
        ([0, 30], [(0, 0, 1), (30, 30, 1)]),
        ([1, 2], [(1, 2, 1)]),
        ([0, 2, 3, 4], [(0, 0, 1), (2, 4, 1)]),
    ],
)
def test_ranges_are_those_that_a_person_would_write(values, expected):
    found = ranges(sum(1 << value for value in values))
    assert [(each["start"], each["end"], each["step"]) for each in found] == expected


@given(st.sets(st.integers(0, 59), min_size=1))
def test_ranges_hold_exactly_the_values_of_a_mask(values):
    found = ranges(sum(1 << value for value in values))
    assert sorted(value for each in found for value in range(each["start"], each["end"] + 1, each["step"])) == sorted(
        values
    )
    assert all(left["end"] < right["start"] for left, right in pairwise(found))


def positions(low: int, high: int):
    value = st.integers(low, high)
    listed = st.lists(value, min_size=1, max_size=3).map(lambda found: ",".join(map(str, found)))
    spans = st.tuples(value, value).map(lambda ends: f"{min(ends)}-{max(ends)}")
    steps = st.integers(1, high).map(lambda step: f"*/{step}")
    return st.one_of(st.just("*"), listed, listed, spans, steps)


CHANGING = (
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Africa/Cairo",
    "Africa/Casablanca",
)
crons = st.tuples(
    positions(0, 59),
    st.one_of(positions(0, 23), st.sampled_from(["0", "1", "2", "3", "23", "0,1", "1,2", "2,3"])),
    positions(1, 31),
    positions(1, 12),
    positions(0, 7),
).map(" ".join)
zones = st.one_of(st.sampled_from(CHANGING), st.sampled_from(sorted(zone_names())))
moments = st.datetimes(datetime(1900, 1, 1), datetime(2120, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - made aware


@settings(max_examples=150)
@given(crons, zones, moments, moments)
def test_what_is_shown_selects_the_same_instants(expression, timezone, since, moment):
    cron = parse_cron(expression, timezone)
    found = translate(cron, since=since)
    if found.calendar is None:
        return
    shown = parse_calendar(found.calendar)
    begins = EPOCH + timedelta(seconds=shown.first)
    assert begins <= max(since, begins.min.replace(tzinfo=UTC)) + timedelta(hours=3)
    # Around a dozen changes of the clock, wherever they are, and around any other time.
    second = int((moment - EPOCH).total_seconds())
    windows = [
        EPOCH + timedelta(seconds=change.at)
        for change in list(zone(timezone).changes(second, second + 20 * 366 * 86_400))[:12]
    ]
    for near in (*windows, moment):
        first, last = max(near - timedelta(days=2), begins), near + timedelta(days=2)
        assert list(cron.between(first, last)) == list(shown.between(first, last))
    years = (max(moment, begins), max(moment, begins) + timedelta(days=40 * 365))
    assert cron.count(*years) == shown.count(*years)


@settings(max_examples=150)
@given(crons, zones, moments)
def test_where_none_is_shown_one_of_the_same_fields_selects_others(expression, timezone, since):
    """The other half: nothing is called different that is the same. The same rule, with the clock followed, is the oracle."""
    cron = parse_cron(expression, timezone)
    if translate(cron, since=since).calendar is not None:
        return
    follows = Calendar(timezone=timezone, rules=cron.rules)
    second = int((since - EPOCH).total_seconds())
    changes = zone(timezone).changes(second - 3 * 3600, second + 402 * 366 * 86_400)
    near = ((EPOCH + timedelta(seconds=change.at)) for change in changes)
    span = timedelta(hours=4)
    assert any(
        list(cron.between(each - span, each + span)) != list(follows.between(each - span, each + span)) for each in near
    )
