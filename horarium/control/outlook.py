"""What a calendar has before it: the days to come with what is due on each, in its own zone, and the changes of the clock."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Final

from horarium.calendar import Calendar, clock_changes
from horarium.calendar.calendars import EPOCH, FIRST_SECOND, LAST_SECOND
from horarium.calendar.zones import DAY, Change, local_time, zone

DAYS: Final = 30
MOST_TIMES: Final = 6
"""Times of one day that are told one by one."""
MOST_NOTES: Final = 20
"""Sentences on one day's changes of the clock."""
_SECOND: Final = timedelta(seconds=1)
_MOMENT: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One local day. `times` are the first due times on its wall clock, `count` how many there are.

    `clock` says what the clock does on that day, None where it does nothing; `notes` what that does to what is due.
    """

    date: date
    count: int
    times: tuple[str, ...]
    last: str | None
    clock: str | None
    notes: tuple[str, ...]

    @property
    def more(self) -> int:
        """Times beyond those that are told."""
        return self.count - len(self.times)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """A local day, and what is known of its clock."""

    date: date
    clock: str | None
    notes: tuple[str, ...]


def outlook(calendar: Calendar, *, now: datetime, days: int = DAYS) -> list[Day]:
    """The next local days of a calendar. On the first of them, only what is due after `now`."""
    begin, until, today, others = _whole_days(calendar, local_time(now, calendar.timezone).date(), days)
    first = max(EPOCH + begin * _SECOND, now + _MOMENT)
    return [_day(calendar, today, first, EPOCH + (until - 1) * _SECOND), *others]


# A page that refreshes itself asks the same all day long, and of a dense calendar that takes some tenths of a second.
@lru_cache(maxsize=256)
def _whole_days(calendar: Calendar, today: date, days: int) -> tuple[int, int, _Told, tuple[Day, ...]]:
    """When today begins and ends, in UTC seconds, what is known of its clock, and the days after it."""
    wanted = [each for each in (_date_after(today, number) for number in range(days)) if each is not None]
    numbers = [(each - EPOCH.date()).days for each in wanted]
    begins = [_begin(calendar.timezone, each) for each in numbers]
    end = _begin(calendar.timezone, numbers[-1] + 1)
    changes = {EPOCH + each.at * _SECOND: each for each in zone(calendar.timezone).changes(begins[0], end - 1)}
    clock = {_date_of(each): _clock(each) for each in changes.values()}
    notes: dict[date, list[str]] = {}
    for note in clock_changes(calendar, EPOCH + begins[0] * _SECOND, EPOCH + (end - 1) * _SECOND):
        notes.setdefault(_date_of(changes[note.at]), []).append(f"{note.sentence}.")
    told = [_Told(date=each, clock=clock.get(each), notes=tuple(notes.get(each, ())[:MOST_NOTES])) for each in wanted]
    ends = [*begins[1:], end]
    others = tuple(
        _day(calendar, each, EPOCH + begin * _SECOND, EPOCH + (until - 1) * _SECOND)
        for each, begin, until in zip(told[1:], begins[1:], ends[1:], strict=True)
    )
    return begins[0], ends[0], told[0], others


def _day(calendar: Calendar, of: _Told, first: datetime, last: datetime) -> Day:
    """What is due on a local day, from `first` to `last`."""
    count = calendar.count(first, last) if first <= last else 0
    listed = islice(calendar.between(first, last), MOST_TIMES) if count else ()
    final = _last_of(calendar, first, last) if count > MOST_TIMES else None
    return Day(
        date=of.date,
        count=count,
        times=tuple(_time(local_time(each, calendar.timezone)) for each in listed),
        last=None if final is None else _time(local_time(final, calendar.timezone)),
        clock=of.clock,
        notes=of.notes,
    )


def _last_of(calendar: Calendar, first: datetime, last: datetime) -> datetime:
    """The last due instant of a window that has one, by halving the window: a dense day has 86,400 of them."""
    low, high = (first - EPOCH) // _SECOND, (last - EPOCH) // _SECOND
    while low < high:
        middle = (low + high + 1) // 2
        if calendar.count(EPOCH + middle * _SECOND, last):
            low = middle
        else:
            high = middle - 1
    return EPOCH + low * _SECOND


def _date_of(change: Change) -> date:
    """The local date of a change: that of the first wall time which it leaves out or repeats."""
    return (EPOCH + (change.at + min(change.before, change.after)) * _SECOND).date()


def _clock(change: Change) -> str:
    """What the clock does at a change: `The clock goes from 03:00 back to 02:00.`"""
    before, after = (EPOCH + (change.at + offset) * _SECOND for offset in (change.before, change.after))
    way = "forward" if change.after > change.before else "back"
    day = "" if before.date() == after.date() else f" on {after:%-d %b}"
    return f"The clock goes from {_time(before)} {way} to {_time(after)}{day}."


def _begin(name: str, day: int) -> int:
    """The first UTC second of a local day, counted from 1970-01-01: not that of midnight where the clock leaves that out."""
    midnight = day * DAY
    around = {zone(name).span(midnight + distance).offset for distance in (-DAY, DAY)}
    candidates = [midnight - offset for offset in around]
    found = min(
        (each for each in candidates if each + zone(name).span(each).offset >= midnight), default=max(candidates)
    )
    return min(max(found, FIRST_SECOND), LAST_SECOND + 1)


def _date_after(day: date, days: int) -> date | None:
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return None


def _time(local: datetime) -> str:
    return f"{local:%H:%M}" if local.second == 0 else f"{local:%H:%M:%S}"
