"""Which canonical calendar selects the same instants as another timing, where that is proven.

Proven means looked at, change by change: a cron of fixed times and a calendar of the same fields differ only at changes of the
clock, and the zone data name all of those; its last rule repeats after 400 years. Nothing is concluded from a sample of
instants.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from horarium.calendar.calendars import EPOCH, FIRST_SECOND, LAST_SECOND, AtClockChange, Calendar
from horarium.calendar.clock_changes import clock_changes
from horarium.calendar.rules import EVERY_YEAR, Interval, Rule, bits
from horarium.calendar.wall import GREATEST_SHIFT, WallClock
from horarium.calendar.zones import DAY, Change

EQUAL: Final = "Equals the canonical calendar shown."
_EQUAL_FROM: Final = "Equals the canonical calendar shown from its start_at on, which lies in the past."
_DIFFERS: Final = "A canonical calendar of the same fields differs:"
_CYCLE: Final = 401 * 366 * DAY
"""Longer than the 400 years after which dates, weekdays and the last rule of a zone repeat."""
_FIRST_CANONICAL_YEAR: Final = 1970
_EVERY_DAY_OF_MONTH: Final = (1 << 32) - 2
_EVERY_WEEKDAY: Final = (1 << 7) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """`calendar` is the canonical document of the same instants, or None; `sentence` tells people so, or why there is none."""

    calendar: dict[str, Any] | None
    sentence: str


def translate(calendar: Calendar, *, since: datetime) -> Translation:
    """Look for the canonical calendar that selects the instants of this one.

    Where no change of the clock makes a difference it is the same at every instant. Where only changes before `since` do, it
    is the same from the last of those on, which its `start_at` says: what they did concerns nobody any more. Else there is
    none, and the sentence names the next change that makes a difference. Raises `ValueError` for a naive `since`.
    """
    if since.tzinfo is None:
        raise ValueError("A translation is asked for from an aware datetime on, such as datetime(…, tzinfo=UTC).")
    wall = calendar.wall
    if wall is None or calendar.at_clock_change is AtClockChange.FOLLOW:
        return Translation(calendar=_document(calendar, calendar.first), sentence=EQUAL)
    assert all(rule.year == EVERY_YEAR for rule in calendar.rules), "a cron names no years, so its dates repeat"
    start = min(max((since - EPOCH) // timedelta(seconds=1), calendar.first), calendar.last)
    last = min(calendar.last, max(start, wall.zone.settled_from) + _CYCLE)
    coming = next(_differing(wall, start, last), None)
    if coming is not None:
        return Translation(calendar=None, sentence=f"{_DIFFERS} {_told(calendar, coming)}")
    passed = list(_differing(wall, calendar.first, start))
    if not passed:
        return Translation(calendar=_document(calendar, calendar.first), sentence=EQUAL)
    over = passed[-1].at + max(passed[-1].before - passed[-1].after, 1)
    if over > calendar.last:
        return Translation(calendar=None, sentence=f"{_DIFFERS} {_told(calendar, passed[-1])}")
    return Translation(calendar=_document(calendar, over), sentence=_EQUAL_FROM)


def ranges(selected: int) -> list[dict[str, int]]:
    """Write the values of a bit mask as a canonical document does: ordered and disjoint ranges, as few as are plain to read."""
    values = bits(selected)
    found = []
    while values:
        step = values[1] - values[0] if len(values) > 1 else 1
        length = 1
        while length < len(values) and values[length] - values[length - 1] == step:
            length += 1
        if length == 2 and step > 1:  # two values are no pattern: the second may begin one
            length = 1
        taken, values = values[:length], values[length:]
        found.append({"start": taken[0], "end": taken[-1], "step": step if length > 1 else 1})
    return found


def _differing(wall: WallClock, first: int, last: int) -> Iterator[Change]:
    """Walk over the changes whose instants from `first` to `last` are selected by one of the two alone."""
    for change in wall.zone.changes(first - GREATEST_SHIFT, last):
        shift = change.after - change.before
        if 0 < shift <= GREATEST_SHIFT:
            # What lies in the gap moves to its end. That makes no difference where its end is selected by itself.
            resumes = change.at + change.after
            skipped = wall.count_local(change.at + change.before, resumes)
            if change.at >= first and skipped and not wall.count_local(resumes, resumes + 1):
                yield change
        elif -GREATEST_SHIFT <= shift < 0:
            # A calendar selects the repeated times once more.
            start, end = max(change.at, first), min(change.at - shift, last + 1)
            if start < end and wall.count_local(start + change.after, end + change.after):
                yield change


def _told(calendar: Calendar, change: Change) -> str:
    at = EPOCH + timedelta(seconds=change.at)
    notes = clock_changes(calendar, at, at)
    if not notes:
        # A bound of the calendar may lie inside a repeated hour, behind the change itself.
        return f"the times that the change of the clock at {at:%Y-%m-%dT%H:%M:%SZ} repeats, it would select twice."
    them = "it" if notes[0].local_times == 1 else "them"
    would = f"skip {them}" if change.after > change.before else f"run {them} twice"
    return f"{notes[0].sentence}; a canonical calendar would {would}."


def _document(calendar: Calendar, first: int) -> dict[str, Any]:
    bounds = {"start_at": _instant(first), "end_at": _instant(calendar.last)}
    if first == calendar.last and not calendar.rules:
        rules, intervals = [_rule_of(EPOCH + timedelta(seconds=first))], []
    else:
        rules = [_rule(rule) for each in calendar.rules for rule in _united(each)]
        intervals = [_interval(each) for each in calendar.intervals]
    return {"timezone": calendar.timezone, "calendars": rules, "intervals": intervals, **bounds}


def _united(rule: Rule) -> list[Rule]:
    """The rules that together are one: a canonical rule knows no "either", and a date that each of two selects is one date."""
    if not rule.either_day:
        return [rule]
    fields = {name: getattr(rule, name) for name in ("second", "minute", "hour", "month", "year")}
    days, weekdays = rule.day_of_month, rule.day_of_week
    if days == _EVERY_DAY_OF_MONTH or weekdays == _EVERY_WEEKDAY:
        return [Rule(**fields, day_of_month=_EVERY_DAY_OF_MONTH, day_of_week=_EVERY_WEEKDAY)]
    return [
        Rule(**fields, day_of_month=days, day_of_week=_EVERY_WEEKDAY),
        Rule(**fields, day_of_month=_EVERY_DAY_OF_MONTH, day_of_week=weekdays),
    ]


def _rule(rule: Rule) -> dict[str, Any]:
    fields = ("second", "minute", "hour", "day_of_month", "month", "day_of_week")
    years = {} if rule.year == EVERY_YEAR else {"year": ranges(rule.year)}
    return {**{name: ranges(getattr(rule, name)) for name in fields}, **years}


def _rule_of(instant: datetime) -> dict[str, Any]:
    """The rule of one instant, in UTC, for a calendar whose bounds are that instant."""
    weekday = instant.isoweekday() % 7
    fields = {
        "second": instant.second,
        "minute": instant.minute,
        "hour": instant.hour,
        "day_of_month": instant.day,
        "month": instant.month,
        "day_of_week": weekday,
        **({"year": instant.year} if instant.year >= _FIRST_CANONICAL_YEAR else {}),
    }
    return {name: [{"start": value, "end": value, "step": 1}] for name, value in fields.items()}


def _interval(interval: Interval) -> dict[str, int]:
    return {"every_seconds": interval.every_seconds, "offset_seconds": interval.offset_seconds}


def _instant(second: int) -> str:
    assert FIRST_SECOND <= second <= LAST_SECOND
    return f"{(EPOCH + timedelta(seconds=second)).isoformat().removesuffix('+00:00')}Z"
