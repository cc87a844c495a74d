"""Which seconds of a day some rules select. A day has 86,400 seconds here; clock changes are handled elsewhere."""

from collections.abc import Iterable
from functools import lru_cache
from itertools import accumulate
from typing import Final

from horarium.calendar.rules import Rule, bits, lowest_bit

NONE: Final = -1
_MINUTES = 1440


class Times:
    """The selected times of a day: the same seconds in each selected minute.

    `flags` holds one byte a minute, so that the next selected minute is found by a search in memory. `gaps`, unless it is
    empty, tells for each second of a minute how many seconds later the next selected one comes.
    """

    __slots__ = ("_flags", "_next_second", "_seconds", "_start", "first", "gaps", "last", "total")

    def __init__(self, flags: bytes, seconds: int) -> None:
        self._flags = flags
        self._seconds = seconds
        self._start = lowest_bit(seconds)
        self._next_second = tuple(
            second + lowest_bit(seconds >> second) if seconds >> second else NONE for second in range(60)
        )
        self.first = flags.find(1) * 60 + self._start
        # Where every minute is selected, the wait for the next second depends on the second alone.
        self.gaps: tuple[int, ...] = ()
        if flags.count(1) == _MINUTES:
            found = (60 + self._start if second == NONE else second for second in self._next_second)
            self.gaps = tuple(following - second for second, following in enumerate(found))
        self.last = flags.rfind(1) * 60 + seconds.bit_length() - 1
        self.total = flags.count(1) * seconds.bit_count()

    def next(self, second: int) -> int:
        """Give the first selected second of the day that is not before this one, or `NONE`."""
        minute = second // 60
        if self._flags[minute]:
            found = self._next_second[second - minute * 60]
            if found >= 0:
                return minute * 60 + found
        minute = self._flags.find(1, minute + 1)
        return minute * 60 + self._start if minute >= 0 else NONE

    def count(self, start: int, end: int) -> int:
        """Count the selected seconds from `start` up to, not including, `end`."""
        return self._below(end) - self._below(start)

    def minutes(self) -> list[int]:
        """Give, for every minute of the day, the mask of its seconds."""
        return [self._seconds if flag else 0 for flag in self._flags]

    def marks(self) -> bytes:
        """Give one byte for every second of the day, 1 where it is selected."""
        return _marks(self.minutes())

    def _below(self, second: int) -> int:
        minute, rest = divmod(second, 60)
        count = self._flags.count(1, 0, minute) * self._seconds.bit_count()
        if rest and self._flags[minute]:
            count += (self._seconds & (1 << rest) - 1).bit_count()
        return count


class UnitedTimes:
    """The times of several rules whose seconds differ; a second selected by two of them counts once."""

    __slots__ = ("_below_minute", "_masks", "_parts", "first", "gaps", "last")

    def __init__(self, parts: tuple[Times, ...]) -> None:
        self._parts = parts
        self.first = min(part.first for part in parts)
        self.last = max(part.last for part in parts)
        self.gaps: tuple[int, ...] = ()
        self._masks = [0] * _MINUTES
        for part in parts:
            self._masks = [mask | more for mask, more in zip(self._masks, part.minutes(), strict=True)]
        self._below_minute = [0, *accumulate(mask.bit_count() for mask in self._masks)]

    @property
    def total(self) -> int:
        return self._below_minute[-1]

    def next(self, second: int) -> int:
        """As `Times.next`."""
        return min((found for part in self._parts if (found := part.next(second)) >= 0), default=NONE)

    def count(self, start: int, end: int) -> int:
        """As `Times.count`."""
        return self._below(end) - self._below(start)

    def marks(self) -> bytes:
        """As `Times.marks`."""
        return _marks(self._masks)

    def _below(self, second: int) -> int:
        minute, rest = divmod(second, 60)
        count = self._below_minute[minute]
        return count + (self._masks[minute] & (1 << rest) - 1).bit_count() if rest else count


def unite(rules: Iterable[Rule]) -> Times | UnitedTimes:
    """Prepare the times of the rules that hold on one date. Rules with the same seconds become one search."""
    several = tuple(rules)
    if len(several) == 1:
        return _of_one(several[0].second, several[0].minute, several[0].hour)
    flags: dict[int, int] = {}
    for rule in several:
        flags[rule.second] = flags.get(rule.second, 0) | int.from_bytes(_flags(rule.minute, rule.hour), "big")
    parts = tuple(Times(united.to_bytes(_MINUTES, "big"), seconds) for seconds, united in flags.items())
    return parts[0] if len(parts) == 1 else UnitedTimes(parts)


# About 2 KB each. Many calendars have the same times, and none changes them.
@lru_cache(maxsize=512)
def _of_one(second: int, minute: int, hour: int) -> Times:
    return Times(_flags(minute, hour), second)


def _flags(minutes: int, hours_of_day: int) -> bytes:
    hour = bytes(minutes >> minute & 1 for minute in range(60))
    hours = [bytes(60)] * 24
    for each in bits(hours_of_day):
        hours[each] = hour
    return b"".join(hours)


def _marks(masks: list[int]) -> bytes:
    rows = {mask: bytes(mask >> second & 1 for second in range(60)) for mask in set(masks)}
    return b"".join([rows[mask] for mask in masks])
