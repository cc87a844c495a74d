"""A preview tells what a calendar will do, counts all of it, and is bounded."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from horarium.control.preview import MAX_NOTES, calendar_of, preview
from horarium.errors import InvalidSchedule, Refused

ANY = {
    "second": [{"start": 0, "end": 0, "step": 1}],
    "minute": [{"start": 0, "end": 59, "step": 1}],
    "hour": [{"start": 0, "end": 23, "step": 1}],
    "day_of_month": [{"start": 1, "end": 31, "step": 1}],
    "month": [{"start": 1, "end": 12, "step": 1}],
    "day_of_week": [{"start": 0, "end": 6, "step": 1}],
}


def calendar(
    *, rules=(), intervals=(), timezone="Europe/Zurich", start_at="1970-01-01T00:00:00Z", end_at="9999-12-31T23:59:59Z"
):
    return calendar_of(
        {
            "timezone": timezone,
            "calendars": [{**ANY, **rule} for rule in rules],
            "intervals": [{"every_seconds": every, "offset_seconds": 0} for every in intervals],
            "start_at": start_at,
            "end_at": end_at,
        }
    )


def one(value: int):
    return [{"start": value, "end": value, "step": 1}]


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


HALF_PAST_TWO = {"hour": one(2), "minute": one(30)}


def test_both_ends_are_included():
    told = preview(calendar(intervals=[3600]), start=day("2027-01-01T01:00"), until=day("2027-01-01T03:00"))
    assert told["occurrences"] == [f"2027-01-01T0{hour}:00:00Z" for hour in (1, 2, 3)]
    assert (told["count"], told["truncated"], told["notes"]) == (3, False, [])


def test_a_repeated_hour_is_told():
    told = preview(calendar(rules=[HALF_PAST_TWO]), start=day("2027-10-31"), until=day("2027-11-01"))
    assert told["occurrences"] == ["2027-10-31T00:30:00Z", "2027-10-31T01:30:00Z"]
    assert told["notes"] == ["02:30 happens twice on 2027-10-31; two runs."]


def test_the_count_is_true_where_the_list_is_cut():
    told = preview(calendar(intervals=[1]), start=day("2027-01-01"), until=day("2028-01-01"), limit=5)
    assert (len(told["occurrences"]), told["count"], told["truncated"]) == (5, 365 * 86_400 + 1, True)


def test_a_number_of_instants_needs_no_end_and_is_not_cut():
    told = preview(calendar(intervals=[3600]), start=day("2027-01-01"), limit=3)
    assert (len(told["occurrences"]), told["count"], told["truncated"]) == (3, 3, False)


def test_a_number_of_instants_beyond_the_end_of_the_calendar_is_what_there_is():
    told = preview(calendar(intervals=[3600], end_at="2027-01-01T01:30:00Z"), start=day("2027-01-01"), limit=10)
    assert (told["count"], told["truncated"], told["notes"]) == (2, False, [])


@pytest.mark.parametrize(
    ("changes", "until", "sentence"),
    [
        ({"rules": [{"month": one(2), "day_of_month": one(30)}]}, None, "can never select an instant"),
        ({"intervals": [60], "end_at": "2026-01-01T00:00:00Z"}, None, "its last one has passed"),
        ({"rules": [HALF_PAST_TWO]}, "2027-01-01T00:10", "The next one is 2027-01-01T01:30:00Z."),
    ],
    ids=["never", "over", "later"],
)
def test_nothing_to_list_is_explained(changes, until, sentence):
    told = preview(calendar(**changes), start=day("2027-01-01"), until=until and day(until), limit=10)
    assert told["occurrences"] == []
    assert len(told["warnings"]) == 1
    assert sentence in told["warnings"][0]


@pytest.mark.parametrize("length", [timedelta(seconds=-1), timedelta(days=36_526)])
def test_a_window_that_runs_backwards_or_is_longer_than_a_century_is_refused(length):
    start = day("2027-01-01")
    with pytest.raises(Refused, match="invalid_window"):
        preview(calendar(intervals=[60]), start=start, until=start + length)


def test_notes_are_bounded():
    rule = {"hour": one(2), "minute": [{"start": 0, "end": 23, "step": 1}]}
    told = preview(calendar(rules=[rule]), start=day("2027-01-01"), until=day("2126-01-01"), limit=0)
    assert len(told["notes"]) == MAX_NOTES + 1
    assert told["notes"][-1].endswith("more notes on changes of the clock are not shown.")


def test_a_preview_of_a_dense_year_is_quick():
    dense = calendar(rules=[{}], intervals=[7])
    began = time.perf_counter()
    told = preview(dense, start=day("2027-01-01"), until=day("2028-01-01"), limit=10)
    assert time.perf_counter() - began < 1
    # Each minute, each seventh second, and what both select once.
    assert told["count"] == 525_601 + 4_505_143 - 75_086


KINDS = {
    "calendar": {
        "calendar": {
            "timezone": "UTC",
            "calendars": [],
            "intervals": [{"every_seconds": 60, "offset_seconds": 0}],
            "start_at": "2027-01-01T00:00:00Z",
            "end_at": "2027-01-01T00:00:30Z",
        }
    },
    "instant": {"instant": "2027-01-01T01:00:00+01:00"},
    "cron": {
        "cron": {"minute": "0", "hour": "0", "day_of_month": "1", "month": "1", "day_of_week": "*", "timezone": "UTC"}
    },
}


@pytest.mark.parametrize("document", KINDS.values(), ids=KINDS)
def test_a_stored_timing_can_be_previewed(document):
    told = preview(calendar_of(document), start=day("2026-12-31"), until=day("2027-01-02"))
    assert told["occurrences"] == ["2027-01-01T00:00:00Z"]


@pytest.mark.parametrize("document", [None, [], {}, "x", {"cron": {}}, {"calendars": []}, {"cron": 1, "instant": 2}])
def test_what_has_no_calendar_is_refused_with_faults(document):
    with pytest.raises(InvalidSchedule):
        calendar_of(document)
