"""What the changes of the clock do to a calendar in a window: sentences for a preview."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from horarium.calendar.calendars import EPOCH, AtClockChange, Calendar
from horarium.calendar.wall import GREATEST_SHIFT, WallClock
from horarium.calendar.zones import DAY, Change

_MOST_NOTES: Final = 24  # of one change; a rule that selects more gets one sentence about all of them
_WALL: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - local seconds are counted from this wall time, in any zone


class ClockEffect(StrEnum):
    """What becomes of the wall times of a note."""

    SKIPPED = "skipped"
    """They do not exist and have no run."""

    MOVED = "moved"
    """They do not exist and run right after the gap, all of one gap together once."""

    REPEATED = "repeated"
    """They happen twice and have two runs."""

    FIRST_ONLY = "first_only"
    """They happen twice and have one run, at the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockNote:
    """One wall time, or many of one change, that a change of the clock skips, moves or repeats.

    `at` is the instant of the change, in UTC; `local_times` is how many selected wall times the note is about, and
    `sentence` is for people.
    """

    at: datetime
    effect: ClockEffect
    local_times: int
    sentence: str


def clock_changes(calendar: Calendar, first: datetime, last: datetime) -> list[ClockNote]:
    """Give the notes for all changes of the clock from `first` to `last` that concern the calendar's rules.

    Intervals count in UTC and are never concerned. Changes outside the bounds of the calendar are left out. Raises
    `ValueError` for naive datetimes.
    """
    if first.tzinfo is None or last.tzinfo is None:
        raise ValueError("The window of clock changes needs aware datetimes, such as datetime(…, tzinfo=UTC).")
    if calendar.wall is None:
        return []
    start = max((first - EPOCH) // timedelta(seconds=1), calendar.first)
    end = min((last - EPOCH) // timedelta(seconds=1), calendar.last)
    changes = calendar.wall.zone.changes(start, end) if start <= end else ()
    return [note for change in changes for note in _notes(calendar, calendar.wall, change)]


def _notes(calendar: Calendar, wall: WallClock, change: Change) -> Iterator[ClockNote]:
    # A gap holds the wall times from `before` to `after`, a repeated hour those from `after` to `before`.
    start, end = (change.at + offset for offset in sorted((change.before, change.after)))
    count = wall.count_local(start, end)
    if not count:
        return
    forward = change.after > change.before
    once = calendar.at_clock_change is AtClockChange.ONCE and end - start <= GREATEST_SHIFT
    if forward:
        effect = ClockEffect.MOVED if once else ClockEffect.SKIPPED
    else:
        effect = ClockEffect.FIRST_ONLY if once else ClockEffect.REPEATED
    at = EPOCH + timedelta(seconds=change.at)
    after_gap = _time(end)
    if count > _MOST_NOTES:
        yield ClockNote(
            at=at, effect=effect, local_times=count, sentence=_about_all(effect, start, end, count, after_gap)
        )
        return
    local = wall.next_local(start)
    while local is not None and local < end:
        subject = f"{_time(local)} {_HAPPENS[forward]} on {_date(local)}"
        yield ClockNote(at=at, effect=effect, local_times=1, sentence=f"{subject}; {_outcome(effect, after_gap)}")
        local = wall.next_local(local + 1)


_HAPPENS = {True: "does not exist", False: "happens twice"}


def _outcome(effect: ClockEffect, after_gap: str) -> str:
    if effect is ClockEffect.SKIPPED:
        return "no run"
    if effect is ClockEffect.MOVED:
        return f"runs at {after_gap}"
    return "two runs" if effect is ClockEffect.REPEATED else "one run, at the first"


def _about_all(effect: ClockEffect, start: int, end: int, count: int, after_gap: str) -> str:
    forward = effect in {ClockEffect.SKIPPED, ClockEffect.MOVED}
    first_day, last_day = start // DAY, (end - 1) // DAY
    until = _time(end - 1) if first_day == last_day else f"{_time(end - 1)} on {_date(end - 1)}"
    verb = "do not exist" if forward else "happen twice"
    outcome = {
        ClockEffect.SKIPPED: f"{count} times have no run",
        ClockEffect.MOVED: f"{count} times run together once, at {after_gap}",
        ClockEffect.REPEATED: f"{count} times have two runs",
        ClockEffect.FIRST_ONLY: f"{count} times have one run, at the first",
    }[effect]
    return f"{_time(start)} on {_date(start)} to {until} {verb}; {outcome}"


def _date(local: int) -> str:
    return (_WALL + timedelta(seconds=local)).date().isoformat()


def _time(local: int) -> str:
    time = (_WALL + timedelta(seconds=local)).time()
    return time.isoformat("seconds" if time.second else "minutes")
