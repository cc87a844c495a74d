"""Times of the day and intervals in words: `at 07:30`, `every 15 minutes`, `every day at 06:00 UTC`."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from horarium.calendar.rules import Interval, bits
from horarium.calendar.spelling import (
    HOUR,
    MINUTE,
    WEEKDAYS,
    all_of,
    date_of,
    duration,
    listed,
    moment,
    past_hour,
    time_of_day,
)
from horarium.calendar.translation import ranges
from horarium.calendar.zones import DAY

_MOST_TIMES: Final = 6
_MOST_NAMED: Final = 4
"""Times of a day that are told one by one though they lie at equal distances."""
_EVERY_SECOND: Final = (1 << 60) - 1
_EVERY_HOUR: Final = (1 << 24) - 1
_THURSDAY: Final = 4  # 1970-01-01 was one


@lru_cache(maxsize=512)
def times_of(seconds: int, minutes: int, hours: int) -> str:
    """The times of a day: those themselves, a repetition, or what the fields say."""
    count = seconds.bit_count() * minutes.bit_count() * hours.bit_count()
    evenly = _evenly(seconds, minutes, hours) if count > 1 else None
    if evenly is not None and count >= _MOST_NAMED:
        first, last, step = evenly
        if last + step - DAY == first:
            if first == 0:
                return f"every {duration(step)}"
            if step == HOUR:
                return f"every hour at {past_hour(first)}"
        if count > _MOST_NAMED:
            return f"every {duration(step)} from {time_of_day(first)} to {time_of_day(last)}"
    if count <= _MOST_TIMES:
        return f"at {all_of([time_of_day(each) for each in _each_time(seconds, minutes, hours)])}"
    if seconds == 1:
        return f"{_within(minutes, 'minute')} of {_hours(hours)}"
    inside = "" if minutes == _EVERY_SECOND and hours == _EVERY_HOUR else f" of {_hours(hours)}"
    which = "every minute" if minutes == _EVERY_SECOND else f"the minutes {listed(minutes, str)}"
    return f"{_within(seconds, 'second')} of {which}{inside}"


def _each_time(seconds: int, minutes: int, hours: int) -> Iterator[int]:
    return (
        hour * HOUR + minute * MINUTE + second
        for hour in bits(hours)
        for minute in bits(minutes)
        for second in bits(seconds)
    )


def _evenly(seconds: int, minutes: int, hours: int) -> tuple[int, int, int] | None:
    """The first time, the last and the distance, where all times lie at one distance."""
    times = _each_time(seconds, minutes, hours)
    first, last = next(times), next(times)
    step = last - first
    for each in times:
        if each - last != step:
            return None
        last = each
    return first, last, step


def _within(values: int, unit: str) -> str:
    """Which minutes of an hour, or seconds of a minute."""
    if values == _EVERY_SECOND:
        return f"every {unit}"
    found = ranges(values)
    if len(found) == 1 and found[0]["step"] > 1:
        first, last, step = found[0]["start"], found[0]["end"], found[0]["step"]
        return f"every {step} {unit}s from :{first:02d} to :{last:02d}"
    if len(found) == 1 and found[0]["start"] == found[0]["end"]:
        return f"at the {unit} {found[0]['start']}"
    return f"at the {unit}s {listed(values, str)}"


def _hours(hours: int) -> str:
    if hours == _EVERY_HOUR:
        return "every hour"
    return f"the hour{'s' if hours.bit_count() > 1 else ''} {listed(hours, '{:02d}'.format)}"


def interval_of(interval: Interval) -> str:
    """When an interval is due, such as `every 15 minutes, UTC`. It counts in UTC, whatever the zone of its calendar."""
    every, offset = interval.every_seconds, interval.offset_seconds
    repeated = f"every {duration(every)}"
    if every <= MINUTE and MINUTE % every == 0 and offset == 0:
        return repeated
    if every % DAY == 0:
        day, time = divmod(offset, DAY)
        if every == DAY:
            return f"every day at {time_of_day(time)} UTC"
        if every == 7 * DAY:
            return f"{WEEKDAYS[(day + _THURSDAY) % 7]}s at {time_of_day(time)} UTC"
        return f"{repeated} at {time_of_day(time)} UTC, counted from {date_of(offset)}"
    if DAY % every == 0:
        return (
            f"{repeated}, UTC"
            if offset == 0
            else f"{repeated} from {time_of_day(offset)} to {time_of_day(DAY - every + offset)} UTC"
        )
    return f"{repeated}, counted from {moment(offset)}"
