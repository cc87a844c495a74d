"""A calendar: which instants are due. Told the time, it never reads a clock, and it never changes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from horarium.calendar.counting import count_united
from horarium.calendar.rules import Interval, Rule
from horarium.calendar.wall import WallClock
from horarium.calendar.zones import zone

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_SECOND: Final = int((datetime.min.replace(tzinfo=UTC) - EPOCH).total_seconds())
_NEAR = 3600
_STEPS = tuple(timedelta(seconds=seconds + 1) for seconds in range(_NEAR))
LAST_SECOND: Final = int((datetime.max.replace(tzinfo=UTC, microsecond=0) - EPOCH).total_seconds())


class AtClockChange(StrEnum):
    """What becomes of a local time that a change of the clock skips or repeats."""

    FOLLOW = "follow"
    """A skipped time does not happen and a repeated one happens twice."""

    ONCE = "once"
    """Cron's rule for fixed times: a skipped time happens right after the gap, a repeated one at the first of the two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """The instants that some rules and intervals select between two bounds, each once, in whole UTC seconds.

    Every question takes aware datetimes of any zone and raises `ValueError` for a naive one, whose instant nobody
    knows. Answers are aware and in UTC. `first` and `last` are the bounds in seconds since 1970, both included.
    Calendars can be compared, hashed, pickled and shared by threads.
    """

    timezone: str
    rules: tuple[Rule, ...] = ()
    intervals: tuple[Interval, ...] = ()
    at_clock_change: AtClockChange = AtClockChange.FOLLOW
    first: int = FIRST_SECOND
    last: int = LAST_SECOND
    wall: WallClock | None = field(init=False, repr=False, compare=False)
    """The prepared search for the rules; None if there are only intervals. It follows from the fields above."""

    def __post_init__(self) -> None:
        assert self.rules or self.intervals, "a calendar has at least one rule"
        once = self.at_clock_change is AtClockChange.ONCE
        wall = (
            WallClock(zone(self.timezone), self.rules, once=once, first=self.first, last=self.last)
            if self.rules
            else None
        )
        object.__setattr__(self, "wall", wall)

    def after(self, instant: datetime) -> datetime | None:
        """Give the first due instant strictly later than this one, or None if there is none.

        A fraction of a second counts: after 08:59:59.5 comes 09:00:00, and after 09:00:00.5 does not.
        """
        wall = self.wall
        if wall is None or self.intervals:
            found = self._next(_floor(instant) + 1)
            return None if found is None else EPOCH + timedelta(0, found)
        if wall.dense is not None:
            # A rule that is due often is asked often, and near its last answer: this is `_next` for that day.
            midnight, start, end, times, gaps = wall.dense
            try:
                since = instant - midnight
            except TypeError:
                raise _no_instant(instant) from None
            time = since.seconds + 1
            if start <= time < end and not since.days:
                ahead = gaps[time % 60] if gaps else times.next(time) - time
                if time + ahead < end:
                    if ahead < _NEAR and instant.tzinfo is UTC and not since.microseconds:
                        return instant + _STEPS[ahead]
                    return midnight + timedelta(0, time + ahead)
        found = wall.next(max(_floor(instant) + 1, self.first))
        return None if found is None else EPOCH + timedelta(0, found)

    def between(self, first: datetime, last: datetime) -> Iterator[datetime]:
        """Give the due instants from `first` to `last`, both included, one by one and strictly increasing."""
        return self._walk(_ceiling(first), _floor(last))

    def count(self, first: datetime, last: datetime) -> int:
        """Count the due instants from `first` to `last`, both included, without walking over them."""
        start, end = max(_ceiling(first), self.first), min(_floor(last), self.last)
        return count_united(self.wall, self.intervals, start, end) if start <= end else 0

    def selects(self, instant: datetime) -> bool:
        """Tell if this very instant is due. One with a fraction of a second never is."""
        second = _floor(instant)
        return second == _ceiling(instant) and self._next(second) == second

    @property
    def is_empty(self) -> bool:
        """Tell if no instant within the bounds can ever be due, such as 30 February."""
        return self._next(self.first) is None

    def __reduce__(self) -> tuple[object, ...]:
        fields = ("timezone", "rules", "intervals", "at_clock_change", "first", "last")
        return (_rebuild, ({name: getattr(self, name) for name in fields},))

    def _walk(self, second: int, last: int) -> Iterator[datetime]:
        while second <= last:
            found = self._next(second)
            if found is None or found > last:
                return
            yield EPOCH + timedelta(seconds=found)
            second = found + 1

    def _next(self, second: int) -> int | None:
        """Give the first due second that is not before this one."""
        second = max(second, self.first)
        if second > self.last:
            return None
        found = self.wall.next(second) if self.wall else None
        for interval in self.intervals:
            other = interval.next(second)
            if found is None or other < found:
                found = other
        if found is None or found > self.last:
            return None
        assert found >= second, f"the calendar went back from second {second} to {found}"
        return found


def _rebuild(fields: dict[str, Any]) -> Calendar:
    return Calendar(**fields)


def _floor(instant: datetime) -> int:
    try:
        since = instant - EPOCH
    except TypeError:
        raise _no_instant(instant) from None
    return since.days * 86_400 + since.seconds


def _no_instant(value: object) -> ValueError:
    return ValueError(f"{value!r} is no instant; give an aware datetime, such as datetime(…, tzinfo=UTC).")


def _ceiling(instant: datetime) -> int:
    return _floor(instant) + (instant.microsecond > 0)
