"""Times that a person types. Each means exactly one instant, on whatever computer it is typed."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from typing import Final

from dateutil import parser as dateutil_parser
from dateutil import tz

from horarium.calendar import zone_names
from horarium.calendar.zones import local_time

_RELATIVE: Final = re.compile(r"([+-])((?:\d{1,9}[wdhms])+)", re.ASCII)
_PART: Final = re.compile(r"(\d+)([wdhms])", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_RFC_3339: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_NUMERIC_DATE: Final = re.compile(r"(?<!\d)\d{1,2}[./-]\d{1,2}[./-]\d{2,4}(?!\d)", re.ASCII)
_SIGNED_NAME: Final = re.compile(r"\b(?:UTC|GMT|Z)\s*[+-]\s*\d", re.ASCII | re.IGNORECASE)
_ZONE: Final = re.compile(r"[A-Za-z]+(?:[/_+-][A-Za-z0-9_+-]+)+", re.ASCII)
_UNITS: Final = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
EXAMPLES: Final = "2027-03-28T07:30:00Z, 2027-03-28T07:30:00+02:00 or '2027-03-28 07:30 Europe/Zurich'"


def parse_time(text: str, *, now: datetime) -> datetime:
    """Read `now`, `+2h`, `-1d12h`, a date (its midnight in UTC), RFC 3339, or a date and time with a zone.

    A zone is an offset, `Z`, `UTC` or an IANA name. Raises ValueError, with a sentence, for what names no zone and for what
    is read differently in different countries.
    """
    written = text.strip()
    text = text[:60]
    if written.lower() == "now":
        return now
    if relative := _RELATIVE.fullmatch(written):
        return _relative(relative, now)
    if _DATE.fullmatch(written):
        written += "T00:00:00Z"
    if not _RFC_3339.fullmatch(written):
        _refuse_ambiguous(written)
    *words, last = written.split() or [""]
    if words and last in zone_names():
        wall = _parsed(" ".join(words), text, now)
        if wall.tzinfo is not None:
            raise ValueError(f"{text!r} names an offset and a zone. Write one of the two, as in {EXAMPLES}.")
        return _local(wall, last, text)
    try:
        instant = _parsed(written, text, now)
    except ValueError:
        if words and _ZONE.fullmatch(last):
            _refuse_zone(words, last)
        raise
    if instant.tzinfo is None:
        _refuse_zone(words, last)
        raise ValueError(f"{text!r} names no zone, so it is no instant. Write {EXAMPLES}.")
    return _in_utc(instant, text)


def _refuse_zone(words: Sequence[str], last: str) -> None:
    """Refuse a last word that has the looks of a zone behind what is a time without it, with the zone probably meant."""
    if not words or not _ZONE.fullmatch(last):
        return
    try:
        dateutil_parser.parse(" ".join(words))
    except (ValueError, OverflowError):
        return
    same = sorted(name for name in zone_names() if name.casefold() == last.casefold())
    near = same or get_close_matches(last, sorted(zone_names()), n=1, cutoff=0.6)
    advice = f"Did you mean {near[0]!r}?" if near else "Names look like 'Europe/Zurich' or 'UTC'."
    raise ValueError(f"{last[:60]!r} is no zone that is known. {advice}")


def _refuse_ambiguous(written: str) -> None:
    if found := _NUMERIC_DATE.search(written):
        raise ValueError(f"{found[0]!r} is read as different days in different countries. Write {EXAMPLES}.")
    if found := _SIGNED_NAME.search(written):
        raise ValueError(f"{found[0]!r} is read as east by some and as west by others. Write {EXAMPLES}.")


def _relative(match: re.Match[str], now: datetime) -> datetime:
    try:
        distance = sum((timedelta(**{_UNITS[unit]: int(n)}) for n, unit in _PART.findall(match[2])), timedelta(0))
        return now + distance if match[1] == "+" else now - distance
    except OverflowError:
        raise ValueError(f"{match[0]!r} leads out of the years 1 to 9999.") from None


def _parsed(written: str, text: str, now: datetime) -> datetime:
    # What is not written is today at midnight, in UTC: the computer's own zone is not asked.
    default = now.replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0)
    try:
        parsed: datetime = dateutil_parser.parse(written, default=default, tzinfos=_named_zone)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is no time. Write {EXAMPLES}, a date, now, +2h or -1d.") from None
    return parsed


def _named_zone(name: str | None, offset: int | None) -> tzinfo | None:
    """What dateutil shall take a zone for: an offset, never a name such as CET or the computer's own."""
    if name is not None and name.upper() not in {"UTC", "Z"}:
        return None
    return None if offset is None else tz.tzoffset(None, offset)


def _local(wall: datetime, name: str, text: str) -> datetime:
    """The one instant that a wall time in a zone means; a time that is skipped or repeated means none or two."""
    as_utc = wall.replace(tzinfo=UTC)
    try:
        near = (local_time(as_utc + timedelta(days=days), name).utcoffset() for days in (-1, 1))
        offsets = {offset for offset in near if offset is not None}
        found = {
            as_utc - offset for offset in offsets if local_time(as_utc - offset, name).replace(tzinfo=UTC) == as_utc
        }
    except OverflowError:
        raise ValueError(f"{text!r} lies outside of the years 1 to 9999.") from None
    if len(found) != 1:
        happens = "does not exist" if not found else "happens twice"
        raise ValueError(
            f"{text!r} {happens}: the clocks change there. Write an offset, as in 2027-03-28T07:30:00+02:00."
        )
    return found.pop()


def _in_utc(instant: datetime, text: str) -> datetime:
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text!r} lies outside of the years 1 to 9999.") from None
