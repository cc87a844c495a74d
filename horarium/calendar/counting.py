"""Counting what several rules select together, where one second selected twice counts once."""

from typing import Final

from horarium.calendar.rules import Interval
from horarium.calendar.wall import WallClock
from horarium.calendar.zones import DAY

# A map of one day costs about as much as this many steps from instant to instant.
_STEPS_PER_MAP: Final = 100


def count_united(wall: WallClock | None, intervals: tuple[Interval, ...], first: int, last: int) -> int:
    """Count the UTC seconds from `first` to `last`, both included, that the rules or some interval select."""
    parts = [interval.count(first, last) for interval in intervals]
    if wall is not None:
        parts.append(wall.count(first, last))
    selected = [part for part in parts if part]
    if len(selected) <= 1:
        return sum(selected)
    days = (last - first) // DAY + 1
    if sum(parts) <= days * _STEPS_PER_MAP:
        return _count_by_steps(wall, intervals, first, last)
    return sum(
        _count_by_map(wall, intervals, start, min(start + DAY, last + 1)) for start in range(first, last + 1, DAY)
    )


def _count_by_steps(wall: WallClock | None, intervals: tuple[Interval, ...], first: int, last: int) -> int:
    count = 0
    second = first
    while True:
        following = [interval.next(second) for interval in intervals]
        if wall is not None and (found := wall.next(second)) is not None:
            following.append(found)
        if not following or (second := min(following)) > last:
            return count
        count += 1
        second += 1


def _count_by_map(wall: WallClock | None, intervals: tuple[Interval, ...], start: int, end: int) -> int:
    """Mark every selected second of `start <= second < end` in a byte of its own, then count the marks."""
    marks = bytearray(end - start)
    if wall is not None:
        wall.mark(marks, start)
    for interval in intervals:
        selected = range(interval.next(start) - start, len(marks), interval.every_seconds)
        if selected:
            marks[selected.start :: interval.every_seconds] = b"\x01" * len(selected)
    return int.from_bytes(marks, "big").bit_count()
