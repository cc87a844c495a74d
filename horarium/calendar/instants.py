"""Timestamps in documents, and the calendar of a single instant."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from horarium.calendar.calendars import EPOCH, FIRST_SECOND, LAST_SECOND, Calendar
from horarium.calendar.faults import Faults, pointer, shown
from horarium.calendar.rules import Interval

ANY_START: Final = "0001-01-01T00:00:00Z"
ANY_END: Final = "9999-12-31T23:59:59Z"
"""They stand for a bound that is not given."""

_BOUND: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?Z", re.ASCII)
_RUN_AT: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)
_EVERY_SECOND: Final = Interval(every_seconds=1, offset_seconds=0)


def parse_instant(run_at: object, *, at: str = "") -> Calendar:
    """Make the calendar of one instant, written as RFC 3339 with `Z` or any offset.

    An instant with a fraction of a second is moved up to the next whole second, so that it is never early. Raises
    `InvalidSchedule` for another form, a date or time that does not exist, second 60, and what lies outside the years
    1 to 9999 in UTC.
    """
    faults = Faults()
    second = _read_instant(run_at, at, faults)
    faults.raise_if_any()
    return Calendar(timezone="UTC", intervals=(_EVERY_SECOND,), first=second, last=second)


def read_bounds(start_at: object, end_at: object, at: str, faults: Faults) -> tuple[int, int]:
    """Read both bounds of a calendar as whole seconds inside them, and note what is wrong with either."""
    start = _read_bound(start_at, pointer(at, "start_at"), faults)
    end = _read_bound(end_at, pointer(at, "end_at"), faults)
    if start is None or end is None:
        return FIRST_SECOND, LAST_SECOND
    if start > end:
        sentence = f"The end {end_at} lies before the start {start_at}. Both bounds are part of the calendar."
        faults.add(pointer(at, "end_at"), "end_before_start", sentence)
    first = (start - EPOCH) // timedelta(seconds=1) + (start.microsecond > 0)
    return first, (end - EPOCH) // timedelta(seconds=1)


def _read_bound(value: object, at: str, faults: Faults) -> datetime | None:
    expected = "a UTC time such as 2027-01-31T07:30:00Z, with at most 6 digits of a second's fraction and a capital Z"
    if not isinstance(value, str):
        faults.add(at, "not_a_timestamp", f"Expected {expected}, not {shown(value)}.")
        return None
    match = _BOUND.fullmatch(value)
    if match is None:
        faults.add(at, "not_a_timestamp", f"Expected {expected}, not {shown(value)}.")
        return None
    *parts, fraction = match.groups(default="0")
    return _read_fields(value, parts, fraction.ljust(6, "0"), at, faults)


def _read_fields(value: str, parts: list[str], microseconds: str, at: str, faults: Faults) -> datetime | None:
    year, month, day, hour, minute, second = (int(part) for part in parts)
    try:
        return datetime(year, month, day, hour, minute, second, int(microseconds), tzinfo=UTC)
    except ValueError:
        sentence = (
            f"{shown(value)} does not exist: the years are 0001 to 9999, the hours end at 23 and the seconds at 59."
        )
        faults.add(at, "no_such_time", sentence)
        return None


def _read_instant(value: object, at: str, faults: Faults) -> int:
    match = _RUN_AT.fullmatch(value) if isinstance(value, str) else None
    if match is None or not isinstance(value, str):
        expected = "an instant such as 2027-01-31T07:30:00Z or 2027-01-31T08:30:00+01:00"
        faults.add(at, "not_a_timestamp", f"Expected {expected}, not {shown(value)}.")
        return 0
    parts, fraction = list(match.groups()[:6]), match[7] or "0"
    wall = _read_fields(value, parts, "0", at, faults)
    if wall is None:
        return 0
    sign, hours, minutes = match[8] or "+", int(match[9] or 0), int(match[10] or 0)
    if hours > 23 or minutes > 59:
        faults.add(at, "no_such_time", f"{shown(value)} has an offset that does not exist; offsets end at 23:59.")
        return 0
    offset = (hours * 3600 + minutes * 60) * (-1 if sign == "-" else 1)
    second = (wall - EPOCH) // timedelta(seconds=1) - offset + (int(fraction) > 0)
    if not FIRST_SECOND <= second <= LAST_SECOND:
        faults.add(at, "out_of_range", f"{shown(value)} lies outside the years 1 to 9999 in UTC.")
        return 0
    return second
