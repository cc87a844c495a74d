"""An instant as the wall clock of a zone shows it, for people."""

from datetime import datetime

from horarium.calendar.zones import DAY, local_time, zone_names
from horarium.calendar.zones import zone as zone_of


def clock_text(instant: datetime, zone: str = "UTC") -> str:
    """An instant on the wall clock of a zone: `Mon 30 Nov 2026 07:30`, with seconds and milliseconds only where there are any,
    and with the offset from UTC where the clock shows this time twice: `Sun 25 Oct 2026 02:30 (UTC+02:00)`.

    A zone that this release does not know is told as UTC; `zone_shown` says which one it is.
    """
    local = local_time(instant, zone_shown(zone))
    told = local.strftime("%a %-d %b %Y %H:%M")
    if local.second or local.microsecond:
        told += f":{local.second:02d}"
    told += f".{local.microsecond // 1_000:03d}" if local.microsecond else ""
    return f"{told} (UTC{_offset(local)})" if _happens_twice(instant, zone_shown(zone)) else told


def zone_shown(zone: str) -> str:
    """The zone that `clock_text` shows an instant in."""
    return zone if zone in zone_names() else "UTC"


def _offset(local: datetime) -> str:
    told = local.strftime("%z")
    return f"{told[:3]}:{told[3:5]}"


def _happens_twice(at: datetime, name: str) -> bool:
    """Whether the clock of a zone shows this time twice, since it goes back: then only the offset tells which one is meant."""
    second = int(at.timestamp() // 1)
    span = zone_of(name).span(second)
    if second - span.start < span.before - span.offset:
        return True
    left = span.end - second
    return left <= DAY and left <= span.offset - zone_of(name).span(span.end).offset
