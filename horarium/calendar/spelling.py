"""Small words: durations, times, days, and lists of numbers, as a sentence tells them."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

from horarium.calendar.calendars import EPOCH
from horarium.calendar.translation import ranges
from horarium.calendar.zones import DAY

HOUR: Final = 3_600
MINUTE: Final = 60
_MOST_VALUES: Final = 12
"""Parts of a list that are told; of what is beyond them only how many they are."""

WEEKDAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def duration(seconds: int) -> str:
    """How long, as it stands behind `every`: `second`, `15 minutes`, `1 hour 30 minutes`."""
    for size, unit in ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (1, "second")):
        if seconds == size:
            return unit
        if seconds % size == 0 and (seconds < 100 * size or size == DAY):
            return counted(seconds // size, unit)
    parts, rest = [], seconds
    for size, unit in ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (1, "second")):
        count, rest = divmod(rest, size)
        if count:
            parts.append(counted(count, unit))
    return " ".join(parts)


def counted(count: int, what: str) -> str:
    """So many of something: `1 rule`, `2 rules`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def time_of_day(second: int) -> str:
    """A second of the day: `07:30`, and `07:30:05` where it is not the minute's first."""
    hour, rest = divmod(second, HOUR)
    minute, rest = divmod(rest, MINUTE)
    return f"{hour:02d}:{minute:02d}" + (f":{rest:02d}" if rest else "")


def past_hour(second: int) -> str:
    """A second of an hour: `:30`, `:30:05`."""
    minute, rest = divmod(second, MINUTE)
    return f":{minute:02d}" + (f":{rest:02d}" if rest else "")


def moment(second: int) -> str:
    """A second since 1970, in UTC: `30 November 2026 at 12:00 UTC`."""
    return f"{date_of(second)} at {time_of_day(second % DAY)} UTC"


def date_of(second: int) -> str:
    """The day of a second since 1970, in UTC: `30 November 2026`."""
    day: datetime = EPOCH + timedelta(seconds=second)
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def ordinal(number: int) -> str:
    """A number as an adjective: `1st`."""
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def listed(mask: int, show: Callable[[int], str]) -> str:
    """Values of a field, runs of them as such; the end of a very long list is counted."""
    told: list[str] = []
    for each in ranges(mask):
        start, end, step = each["start"], each["end"], each["step"]
        if start == end:
            told.append(show(start))
        elif end == start + step:
            told += [show(start), show(end)]
        else:
            told.append(f"{show(start)} to {show(end)}" + (f" in steps of {step}" if step > 1 else ""))
    if len(told) > _MOST_VALUES:
        told = [*told[:_MOST_VALUES], f"{len(told) - _MOST_VALUES} more"]
    return all_of(told)


def all_of(words: Iterable[str]) -> str:
    """Join words as a sentence does: `a, b and c`."""
    *before, last = words
    return f"{', '.join(before)} and {last}" if before else last
