"""A stored timing is a calendar, a cron or an instant, and answers the same questions whichever it is."""

from datetime import UTC, datetime
from typing import Any

import pytest

from horarium.errors import InvalidSchedule
from horarium.schedule.configuration import parse_configuration, read_stored
from tests.control.desk import every

HALF_PAST_TWO = {"minute": "30", "hour": "2", "day_of_month": "*", "month": "*", "day_of_week": "*"}
NOON = "2027-03-28T12:00:00Z"


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)


def stored(timing: Any) -> dict[str, Any]:
    document = every(60)
    del document["calendar"]
    return {**document, "contract": "v0", "timing": timing}


TIMINGS = {
    "calendar": (every(86_400)["calendar"], [utc(2027, 3, 28), utc(2027, 3, 29)]),
    # 02:30 does not exist in Berlin on that day; the cron runs at the first instant after the gap.
    "cron": ({**HALF_PAST_TWO, "timezone": "Europe/Berlin"}, [utc(2027, 3, 28, 1), utc(2027, 3, 29, 0, 30)]),
    "instant": (NOON, [utc(2027, 3, 28, 12)]),
}


@pytest.mark.parametrize("kind", TIMINGS)
def test_each_kind_answers_the_same_questions(kind: str) -> None:
    timing, due = TIMINGS[kind]
    read = read_stored(stored({kind: timing}))
    first, last = utc(2027, 3, 28), utc(2027, 3, 29, 23)
    assert list(read.calendar.between(first, last)) == due
    assert read.calendar.count(first, last) == len(due)
    assert read.calendar.after(due[0]) == (due[1] if len(due) > 1 else None)
    assert [read.calendar.selects(instant) for instant in (*due, utc(2027, 3, 28, 7, 7))] == [True] * len(due) + [False]
    assert read.timing == {kind: timing}


def test_a_document_of_the_canonical_contract_reads_as_it_always_did() -> None:
    read, parsed = read_stored(every(60)), parse_configuration(every(60))
    assert (read.timing, read.calendar, read.policy) == (parsed.timing, parsed.calendar, parsed.policy)


@pytest.mark.parametrize("key", ["timing", "contract", "source"])
def test_the_canonical_contract_accepts_a_calendar_only(key: str) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        parse_configuration({**every(60), key: {"instant": NOON}})
    assert [(fault.pointer, fault.code) for fault in refused.value.faults] == [(f"/{key}", "unknown_field")]


def test_the_canonical_contract_has_no_word_for_defer_once() -> None:
    document = every(60, overlap="buffer_one")
    document["policy"]["defer_once"] = True
    with pytest.raises(InvalidSchedule) as refused:
        parse_configuration(document)
    assert [fault.pointer for fault in refused.value.faults] == ["/policy/defer_once"]


@pytest.mark.parametrize(
    ("timing", "pointer"),
    [
        ({"cron": {**HALF_PAST_TWO, "timezone": "Europe/Gone"}}, "/timing/cron/timezone"),
        ({"instant": "some day"}, "/timing/instant"),
        ({"instant": NOON, "calendar": every(60)["calendar"]}, "/timing"),
        (None, "/timing"),
    ],
)
def test_a_timing_that_cannot_be_evaluated_spoils_nothing_else(timing: Any, pointer: str) -> None:
    read = read_stored(stored(timing))
    assert read.name == "A schedule"
    with pytest.raises(InvalidSchedule) as refused:
        _ = read.calendar
    assert refused.value.faults[0].pointer == pointer


def test_a_document_without_any_timing_is_damaged() -> None:
    document = stored({})
    del document["timing"]
    with pytest.raises(InvalidSchedule) as refused:
        read_stored(document)
    assert refused.value.faults[0].code == "unreadable"
