"""What a calendar will do, before anything is published: its instants, and what changes of the clock do to them."""

from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from horarium.calendar import Calendar, clock_changes, parse_calendar, parse_timing, tzdata_version
from horarium.errors import Refused
from horarium.schedule.configuration import parse_configuration
from horarium.schedule.identity import instant_text

MAX_LISTED = 100_000
"""Instants that one preview lists at the most."""
MAX_WINDOW = timedelta(days=36_525)
"""Of 100 years. To count a dense calendar whose rules overlap takes some tenths of a millisecond for each day."""
MAX_NOTES = 1_000
"""Sentences that one preview gives at the most."""
_TIMINGS = frozenset({"calendar", "cron", "instant"})


def calendar_of(document: object) -> Calendar:
    """The calendar in a document that a person may preview, or `InvalidSchedule` with every fault.

    That is a whole configuration, a canonical calendar by itself, or a timing as a version stores it: an object with
    `calendar`, `cron` or `instant` alone.
    """
    if isinstance(document, dict):
        if document and set(document) <= _TIMINGS:
            return parse_timing(document)
        if "calendars" in document or "intervals" in document:
            return parse_calendar(document)
    return parse_configuration(document).calendar


def preview(
    calendar: Calendar, *, start: datetime, until: datetime | None = None, limit: int = MAX_LISTED
) -> dict[str, Any]:
    """The due instants from `start` to `until`, both included; without `until`, the first `limit` of them.

    `occurrences` holds at most `limit`, and `count` is how many there are even where the list was cut, which `truncated`
    tells. `notes` are sentences for a person: `warnings`, and what the changes of the clock in that time skip, move or repeat.
    `tzdata` is the release of the zone data. Nothing is stored, and no past instant will ever be run.

    Raises `Refused` where `until` lies before `start` or more than 100 years behind it.
    """
    assert 0 <= limit <= MAX_LISTED
    if until is not None and not timedelta(0) <= until - start <= MAX_WINDOW:
        raise Refused(
            "invalid_window",
            f"A preview ends at or after its start and at most 100 years later; found {instant_text(start)} to "
            f"{instant_text(until)}.",
            next_step="Name another end, or a number of instants.",
        )
    listed = list(islice(calendar.between(start, until or datetime.max.replace(tzinfo=start.tzinfo)), limit))
    count = len(listed) if until is None else calendar.count(start, until)
    end = until or (listed[-1] if listed else start)
    warnings = _warnings(calendar, start, until, count)
    return {
        "occurrences": [instant_text(instant) for instant in listed],
        "count": count,
        "notes": [*warnings, *_clock_notes(calendar, start, end)],
        "warnings": warnings,
        "truncated": count > len(listed),
        "timezone": calendar.timezone,
        "tzdata": tzdata_version(),
    }


def _warnings(calendar: Calendar, start: datetime, until: datetime | None, count: int) -> list[str]:
    if calendar.is_empty:
        return ["The calendar can never select an instant within its bounds."]
    if count:
        return []
    following = calendar.after(start) if until is None else calendar.after(until)
    if following is None:
        return ["The calendar selects no instant from then on: its last one has passed."]
    return [f"The calendar selects no instant in that time. The next one is {instant_text(following)}."]


def _clock_notes(calendar: Calendar, start: datetime, end: datetime) -> list[str]:
    sentences = [f"{note.sentence}." for note in clock_changes(calendar, start, end)]
    if len(sentences) <= MAX_NOTES:
        return sentences
    return [*sentences[:MAX_NOTES], f"{len(sentences) - MAX_NOTES} more notes on changes of the clock are not shown."]
