"""Reading a compiled zone file (TZif, RFC 9636): when the offset changes, and the rule for later years."""

import re
import struct
from dataclasses import dataclass

_HEADER = struct.Struct(">4sc15x6l")
_RULE = r"([MJ]?[\d.]+)(?:/([+-]?[\d:]+))?"
_FOOTER = re.compile(
    rf"(?:<[^>]+>|[A-Za-z]+)([+-]?[\d:]+)(?:(?:<[^>]+>|[A-Za-z]+)([+-]?[\d:]+)?,{_RULE},{_RULE})?",
)
_DEFAULT_TIME = "2"  # POSIX: a change without a time is at 02:00 of the clock before it
_DAYS_BEFORE_MONTH = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365)


@dataclass(frozen=True, slots=True, kw_only=True)
class YearlyChange:
    """One of the two changes of every year: `day` as POSIX writes it, `second` of that day in UTC, the new `offset`."""

    day: str
    second: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneFile:
    """The content of one file, in seconds: `offsets[0]` holds before `changes[0]`, `offsets[i + 1]` from `changes[i]`.

    `yearly` holds after the second `settled`, and is empty where the offset stays for good.
    """

    changes: tuple[int, ...]
    offsets: tuple[int, ...]
    settled: int
    yearly: tuple[YearlyChange, ...]


def read_tzif(data: bytes) -> ZoneFile:
    """Read the 64-bit part of a zone file. Changes of name alone, or of the daylight flag alone, are dropped."""
    start = _HEADER.size + _block_size(_counts(data, 0), 4)
    counts = _counts(data, start)
    _, _, _, changes_count, types_count, _ = counts
    start += _HEADER.size
    instants = struct.unpack_from(f">{changes_count}q", data, start)
    kinds = data[start + 8 * changes_count : start + 9 * changes_count]
    types = struct.iter_unpack(">lBB", data[start + 9 * changes_count : start + 9 * changes_count + 6 * types_count])
    offset_of = [offset for offset, _, _ in types]
    footer = data[start + _block_size(counts, 8) :].strip(b"\n").decode("ascii")

    changes: list[int] = []
    offsets = [offset_of[0]]
    for instant, kind in zip(instants, kinds, strict=True):
        if offset_of[kind] != offsets[-1]:
            changes.append(instant)
            offsets.append(offset_of[kind])
    # The yearly rule begins after the last entry, also where that entry changes nothing but the name.
    settled = instants[-1] if instants else -62_135_596_800  # 0001-01-01
    return ZoneFile(changes=tuple(changes), offsets=tuple(offsets), settled=settled, yearly=_yearly(footer))


def day_of_year(day: str, *, leap: bool, weekday_of_january_first: int) -> int:
    """Turn a POSIX day (`M3.5.0`, `J60` or `59`) into days after 1 January, in a year of that kind. Sunday is 0."""
    if day.startswith("J"):
        julian = int(day[1:])
        return julian - 1 + (leap and julian >= 60)
    if not day.startswith("M"):
        return int(day)
    month, week, weekday = (int(part) for part in day[1:].split("."))
    start = _DAYS_BEFORE_MONTH[month - 1] + (leap and month > 2)
    end = _DAYS_BEFORE_MONTH[month] + (leap and month > 1)
    found = start + (weekday - weekday_of_january_first - start) % 7 + 7 * (week - 1)
    return found if found < end else found - 7


def _counts(data: bytes, start: int) -> tuple[int, ...]:
    magic, _version, *counts = _HEADER.unpack_from(data, start)
    assert magic == b"TZif", "the zone data of the package are TZif files"
    return tuple(counts)


def _block_size(counts: tuple[int, ...], width: int) -> int:
    utc, standard, leaps, changes, types, characters = counts
    return changes * (width + 1) + types * 6 + characters + leaps * (width + 4) + standard + utc


def _yearly(footer: str) -> tuple[YearlyChange, ...]:
    match = _FOOTER.fullmatch(footer)
    assert match, f"the zone data hold a rule that RFC 9636 does not know: {footer!r}"
    standard_text, daylight_text, begin_day, begin_time, end_day, end_time = match.groups()
    if begin_day is None:
        return ()
    standard = -_seconds(standard_text)  # POSIX counts west of Greenwich as positive
    daylight = -_seconds(daylight_text) if daylight_text else standard + 3600
    return (
        YearlyChange(day=begin_day, second=_seconds(begin_time or _DEFAULT_TIME) - standard, offset=daylight),
        YearlyChange(day=end_day, second=_seconds(end_time or _DEFAULT_TIME) - daylight, offset=standard),
    )


def _seconds(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    parts = [int(part) for part in text.lstrip("+-").split(":")]
    return sign * sum(part * unit for part, unit in zip(parts, (3600, 60, 1), strict=False))
