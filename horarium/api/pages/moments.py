"""Instants and durations in words, for the templates. Instants come as texts in UTC, as documents have them."""

import re
from datetime import MAXYEAR, UTC, datetime, timedelta

from horarium.calendar.clock_text import clock_text

_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)", re.ASCII)
NOTHING = "\N{EN DASH}"
"""What stands where there is nothing to tell."""


def instant(text: str | datetime) -> datetime:
    """The instant of a document's text."""
    return text if isinstance(text, datetime) else datetime.fromisoformat(text)


def is_instant(value: object) -> bool:
    """Whether something that others wrote is an instant with its offset from UTC, as evidence has them."""
    if not isinstance(value, str) or _INSTANT.fullmatch(value) is None:
        return False
    try:
        return 1 < datetime.fromisoformat(value).year < MAXYEAR
    except ValueError:
        return False


def machine(text: str | datetime) -> str:
    """An instant as the attribute `datetime` has it, in UTC."""
    return instant(text).astimezone(UTC).isoformat().replace("+00:00", "Z")


def wall(text: str | datetime, zone: str = "UTC") -> str:
    """An instant on the wall clock of a zone, as `horarium.calendar.clock_text` tells it."""
    return clock_text(instant(text), zone)


def clock(text: str | datetime) -> str:
    """An instant as a time of the day in UTC: `07:30:00 UTC`."""
    return f"{instant(text).astimezone(UTC):%H:%M:%S} UTC"


def ago(text: str | datetime, now: datetime) -> str:
    """How far an instant is from now: `in 3 h`, `12 min ago`."""
    distance = instant(text) - now
    if abs(distance) < timedelta(seconds=1):
        return "now"
    told = brief_duration(abs(distance))
    return f"in {told}" if distance > timedelta(0) else f"{told} ago"


def brief_duration(of: timedelta) -> str:
    """A duration in its two largest units: `3 h 20 min`."""
    seconds = int(of.total_seconds())
    units = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
    parts: list[str] = []
    for size, unit in units:
        count, seconds = divmod(seconds, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])


def lateness(milliseconds: int | None) -> str:
    """How late a run began: `24 ms`, `1.4 s`, `2 min 5 s`; a dash where none did."""
    if milliseconds is None:
        return NOTHING
    if milliseconds < 1_000:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1_000:.1f} s"
    return brief_duration(timedelta(milliseconds=milliseconds))


def took(begun: str | None, ended: str | None, now: datetime | None = None) -> str:
    """How long something took, or has taken until `now` where it has not ended; a dash where it has not begun."""
    if begun is None or (ended is None and now is None):
        return NOTHING
    end = now if ended is None else instant(ended)
    assert end is not None
    length = max(end - instant(begun), timedelta(0))
    told = lateness(length // timedelta(milliseconds=1))
    return f"{told} so far" if ended is None else told
