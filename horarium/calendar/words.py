"""A calendar in words: `weekdays at 07:30 Europe/Zurich`.

What is told follows from the fields that are evaluated, whichever contract they were written in, and never from the text of a
document. Where a pattern has no usual name, the words list what the rule selects: longer, and never wrong.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Final

from horarium.calendar.calendars import EPOCH, FIRST_SECOND, LAST_SECOND, Calendar
from horarium.calendar.dates import FIRST_DAY, LAST_DAY
from horarium.calendar.rules import LAST_YEAR, Interval, Rule, bits, lowest_bit
from horarium.calendar.translation import ranges
from horarium.calendar.zones import DAY, EPOCH_ORDINAL, zone

MOST_PARTS: Final = 4
"""Rules that one sentence tells; the parts hold all of them."""
_MOST_TIMES: Final = 6
_MOST_NAMED: Final = 4
"""Times of a day that are told one by one though they lie at equal distances."""
_MOST_VALUES: Final = 12
_HOUR: Final = 3_600
_MINUTE: Final = 60

_WEEKDAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_FROM_MONDAY: Final = (1, 2, 3, 4, 5, 6, 0)
_MONTHS: Final = (
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
_LENGTHS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_EVERY_SECOND: Final = (1 << 60) - 1
_EVERY_HOUR: Final = (1 << 24) - 1
_EVERY_DAY: Final = (1 << 32) - 2
_EVERY_MONTH: Final = (1 << 13) - 2
_EVERY_WEEKDAY: Final = (1 << 7) - 1
_MONDAY_TO_FRIDAY: Final = 0b0111110
_WEEKEND: Final = 0b1000001
_WEEKS: Final = {0x7F << first: name for first, name in ((1, "first"), (8, "second"), (15, "third"), (22, "fourth"))}
"""The days of a month among which each weekday is once: the first, the second …"""
_FIFTH: Final = 0b111 << 29
_SINCE_1970: Final = (1 << LAST_YEAR + 1) - (1 << 1970)
"""A canonical calendar cannot name an earlier year, and nothing is due before."""
_THURSDAY: Final = 4  # 1970-01-01 was one


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A calendar in words. `sentence` is the whole, without a capital and a full stop; `parts` has every rule by itself."""

    sentence: str
    parts: tuple[str, ...]


@lru_cache(maxsize=1_024)
def in_words(calendar: Calendar) -> Words:
    """Tell a calendar in words. Its bounds are told in UTC, since that is how they are written."""
    if calendar.first == calendar.last and not calendar.is_empty:
        once = f"once, on {_moment(calendar.first)}"
        return Words(sentence=once, parts=(once,))
    parts = [f"{each}{_in_zone(each, calendar.timezone)}" for each in _told(calendar.rules, _years(calendar))]
    parts += [_interval(each) for each in calendar.intervals]
    shown = parts[:MOST_PARTS]
    if len(parts) > MOST_PARTS:
        shown.append(f"and {_counted(len(parts) - MOST_PARTS, 'more rule')}")
    sentence = f"{'; '.join(shown)}{_bounds(calendar)}"
    if calendar.is_empty:
        sentence = f"never: {sentence}"
    return Words(sentence=sentence, parts=tuple(parts))


def _in_zone(told: str, zone: str) -> str:
    if told in {"every second", "every minute"}:
        return ""
    # After a time of the day it reads as that time's own; after anything else it is of the whole.
    return f" {zone}" if told[-2:].isdecimal() and " at " in told else f", {zone}"


def _bounds(calendar: Calendar) -> str:
    since = "" if calendar.first == FIRST_SECOND else f", from {_moment(calendar.first)}"
    until = "" if calendar.last == LAST_SECOND else f", until {_moment(calendar.last)}"
    return f"{since}{until}"


def _years(calendar: Calendar) -> int:
    """The years on the calendar's wall between its bounds: a rule needs to say nothing of the others."""
    first, last = (
        (second + zone(calendar.timezone).span(second).offset) // DAY for second in (calendar.first, calendar.last)
    )
    since, until = (date.fromordinal(min(max(day, FIRST_DAY), LAST_DAY) + EPOCH_ORDINAL).year for day in (first, last))
    return (1 << until + 1) - (1 << since) & _SINCE_1970


def _told(rules: tuple[Rule, ...], years: int) -> Iterator[str]:
    """Each rule in words; those of the same times together, where their dates together have a name in these years."""
    groups: dict[tuple[int, int, int], list[Rule]] = {}
    for rule in rules:
        groups.setdefault((rule.second, rule.minute, rule.hour), []).append(rule)
    for times, group in groups.items():
        named = _named_dates(group, years)
        for dates in [named] if named is not None else [_dates(rule) for rule in group]:
            yield _joined(_times(*times), dates)


# Dates: how they stand before a time of the day, and behind a repetition.


@dataclass(frozen=True, slots=True)
class _Dates:
    before: str
    behind: str


def _joined(times: str, dates: _Dates) -> str:
    if times.startswith("at ") and " of " not in times:
        return f"{dates.before} {times}"
    return f"{times} {dates.behind}".strip()


def _on(text: str) -> _Dates:
    return _Dates(f"on {text}", f"on {text}")


def _dates(rule: Rule) -> _Dates:
    every_day, every_weekday = rule.day_of_month == _EVERY_DAY, rule.day_of_week == _EVERY_WEEKDAY
    years = "" if rule.year & _SINCE_1970 == _SINCE_1970 else f" in {_values(rule.year, str)}"
    if (every_day and every_weekday) or (rule.either_day and (every_day or every_weekday)):
        months = _in_months(rule.month)
        return _Dates(f"every day{months}{years}", f"{months}{years}".strip())
    if rule.either_day:
        days, weekdays = _values(rule.day_of_month, _ordinal), _weekdays(rule.day_of_week)
        if rule.month == _EVERY_MONTH:
            return _on(f"the {days} of each month and on {weekdays}{years}")
        return _on(f"the {days} and on {weekdays}{_in_months(rule.month)}{years}")
    if every_day:
        weekdays = f"{_weekdays(rule.day_of_week)}{_in_months(rule.month)}{years}"
        return _Dates(weekdays, f"on {weekdays}")
    if every_weekday:
        return _on(f"{_days(rule.day_of_month, rule.month)}{_of_year(rule) or years}")
    return _on(f"{_days_and_weekdays(rule)}{years}")


def _of_year(rule: Rule) -> str:
    """The year right behind a single date."""
    single = all(mask.bit_count() == 1 for mask in (rule.day_of_month, rule.month, rule.year))
    return f" {lowest_bit(rule.year)}" if single else ""


def _days(days: int, months: int) -> str:
    if days.bit_count() == 1 and months.bit_count() <= 3:
        return _all_of([f"{lowest_bit(days)} {_MONTHS[month - 1]}" for month in bits(months)])
    return f"the {_values(days, _ordinal)} {_of_months(months)}"


def _days_and_weekdays(rule: Rule) -> str:
    weekdays = bits(rule.day_of_week)
    if len(weekdays) == 1:
        weekday = _WEEKDAYS[weekdays[0]]
        weeks = [name for days, name in _WEEKS.items() if rule.day_of_month & days == days]
        if weeks and sum(days for days, name in _WEEKS.items() if name in weeks) == rule.day_of_month:
            return f"the {_all_of(weeks)} {weekday} {_of_months(rule.month)}"
        if rule.day_of_month == _FIFTH and rule.month == _EVERY_MONTH:
            return f"the fifth {weekday} of each month that has one"
    days = _values(rule.day_of_month, _ordinal)
    return f"{_weekdays(rule.day_of_week)} that fall on the {days} {_of_months(rule.month)}"


def _weekdays(mask: int) -> str:
    if mask == _MONDAY_TO_FRIDAY:
        return "weekdays"
    if mask == _WEEKEND:
        return "weekends"
    left_out = [each for each in _FROM_MONDAY if not mask >> each & 1]
    if len(left_out) == 1:
        return f"all days except {_WEEKDAYS[left_out[0]]}s"
    return _all_of([f"{_WEEKDAYS[each]}s" for each in _FROM_MONDAY if mask >> each & 1])


def _in_months(months: int) -> str:
    return "" if months == _EVERY_MONTH else f" in {_month_names(months)}"


def _of_months(months: int) -> str:
    return "of each month" if months == _EVERY_MONTH else f"of {_month_names(months)}"


def _month_names(months: int) -> str:
    left_out = [month for month in range(1, 13) if not months >> month & 1]
    if len(left_out) <= 2:
        return f"each month except {_all_of([_MONTHS[month - 1] for month in left_out])}"
    return _values(months, lambda month: _MONTHS[month - 1])


# Dates that have a name, though one rule alone can seldom say it: months end on different days.


def _named_dates(group: list[Rule], years: int) -> _Dates | None:
    """The name of what the rules select together, where that has one: the last Friday of each month, say."""
    table = _table(tuple(group), years)
    if table is None:
        return None
    months = sum(1 << month for month in range(1, 13) if any(table[_place(month, k)] for k in range(14)))
    if not months:
        return None
    for name, select in _NAMED:
        wanted = _selected(select)
        if all(
            table[place] == (wanted[place] if months >> month & 1 else 0)
            for month in range(1, 13)
            for place in (_place(month, kind) for kind in range(14))
        ):
            return _on(f"the {name} {_of_months(months)}")
    return None


_Table = tuple[int, ...]
"""The selected days of every month that there can be: 12, in common and in leap years, by the weekday of the first day."""


def _place(month: int, kind: int) -> int:
    return (month - 1) * 14 + kind


def _length(month: int, kind: int) -> int:
    return _LENGTHS[month - 1] + (month == 2 and kind >= 7)


@lru_cache(maxsize=256)
def _table(group: tuple[Rule, ...], years: int) -> _Table | None:
    """What rules select together, by kinds of month; None where it differs between years of one kind."""
    table = [0] * (12 * 14)
    for rule in group:
        leaps = _kinds_of_year(rule.year, years)
        if leaps is None:
            return None
        for month in bits(rule.month):
            for leap in leaps:
                for first in range(7):
                    kind = leap * 7 + first
                    table[_place(month, kind)] |= _days_of(rule, _length(month, kind), first)
    return tuple(table)


def _days_of(rule: Rule, length: int, first: int) -> int:
    by_weekday = sum(1 << day for day in range(1, length + 1) if rule.day_of_week >> (first + day - 1) % 7 & 1)
    days = rule.day_of_month | by_weekday if rule.either_day else rule.day_of_month & by_weekday
    return days & (1 << length + 1) - 2


@lru_cache(maxsize=1)
def _leap_years() -> int:
    return sum(1 << year for year in range(1970, LAST_YEAR + 1) if year % 4 == 0 and (year % 100 or year % 400 == 0))


def _kinds_of_year(selected: int, years: int) -> tuple[int, ...] | None:
    """Whether all common years are selected (0), all leap years (1), or all; None where it is only some of either."""
    leap = years & _leap_years()
    kinds = []
    for kind, of in ((0, years & ~leap), (1, leap)):
        if selected & of not in {0, of}:
            return None
        if selected & of:
            kinds.append(kind)
    return tuple(kinds)


_Select = Callable[[int, int], int]
"""A day of a month, by the month's length and the weekday of its first day."""


def _last(weekdays: int) -> _Select:
    def select(length: int, first: int) -> int:
        return max(day for day in range(1, length + 1) if weekdays >> (first + day - 1) % 7 & 1)

    return select


def _first_working(_length: int, first: int) -> int:
    return min(day for day in range(1, 8) if _MONDAY_TO_FRIDAY >> (first + day - 1) % 7 & 1)


def _last_day(length: int, _first: int) -> int:
    return length


_NAMED: Final[tuple[tuple[str, _Select], ...]] = (
    ("last day", _last_day),
    *((f"last {name}", _last(1 << number)) for number, name in enumerate(_WEEKDAYS)),
    ("first weekday (Monday to Friday)", _first_working),
    ("last weekday (Monday to Friday)", _last(_MONDAY_TO_FRIDAY)),
)


@lru_cache(maxsize=32)
def _selected(select: _Select) -> _Table:
    return tuple(1 << select(_length(month, kind), kind % 7) for month in range(1, 13) for kind in range(14))


# Times of the day.


@lru_cache(maxsize=512)
def _times(seconds: int, minutes: int, hours: int) -> str:
    """The times of a day: those themselves, a repetition, or what the fields say."""
    count = seconds.bit_count() * minutes.bit_count() * hours.bit_count()
    evenly = _evenly(seconds, minutes, hours) if count > 1 else None
    if evenly is not None and count >= _MOST_NAMED:
        first, last, step = evenly
        if last + step - DAY == first:
            if first == 0:
                return f"every {_duration(step)}"
            if step == _HOUR:
                return f"every hour at {_past_hour(first)}"
        if count > _MOST_NAMED:
            return f"every {_duration(step)} from {_time(first)} to {_time(last)}"
    if count <= _MOST_TIMES:
        return f"at {_all_of([_time(each) for each in _each_time(seconds, minutes, hours)])}"
    if seconds == 1:
        return f"{_within(minutes, 'minute')} of {_hours(hours)}"
    inside = "" if minutes == _EVERY_SECOND and hours == _EVERY_HOUR else f" of {_hours(hours)}"
    which = "every minute" if minutes == _EVERY_SECOND else f"the minutes {_values(minutes, str)}"
    return f"{_within(seconds, 'second')} of {which}{inside}"


def _each_time(seconds: int, minutes: int, hours: int) -> Iterator[int]:
    return (
        hour * _HOUR + minute * _MINUTE + second
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
    return f"at the {unit}s {_values(values, str)}"


def _hours(hours: int) -> str:
    if hours == _EVERY_HOUR:
        return "every hour"
    return f"the hour{'s' if hours.bit_count() > 1 else ''} {_values(hours, '{:02d}'.format)}"


# Intervals count in UTC, whatever the zone.


def _interval(interval: Interval) -> str:
    every, offset = interval.every_seconds, interval.offset_seconds
    repeated = f"every {_duration(every)}"
    if every <= _MINUTE and _MINUTE % every == 0 and offset == 0:
        return repeated
    if every % DAY == 0:
        day, time = divmod(offset, DAY)
        if every == DAY:
            return f"every day at {_time(time)} UTC"
        if every == 7 * DAY:
            return f"{_WEEKDAYS[(day + _THURSDAY) % 7]}s at {_time(time)} UTC"
        return f"{repeated} at {_time(time)} UTC, counted from {_date(offset)}"
    if DAY % every == 0:
        return (
            f"{repeated}, UTC"
            if offset == 0
            else f"{repeated} from {_time(offset)} to {_time(DAY - every + offset)} UTC"
        )
    return f"{repeated}, counted from {_moment(offset)}"


# Small words.


def _duration(seconds: int) -> str:
    """How long, as it stands behind `every`: `second`, `15 minutes`, `1 hour 30 minutes`."""
    for size, unit in ((DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute"), (1, "second")):
        if seconds == size:
            return unit
        if seconds % size == 0 and (seconds < 100 * size or size == DAY):
            return _counted(seconds // size, unit)
    parts, rest = [], seconds
    for size, unit in ((DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute"), (1, "second")):
        count, rest = divmod(rest, size)
        if count:
            parts.append(_counted(count, unit))
    return " ".join(parts)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _time(second: int) -> str:
    hour, rest = divmod(second, _HOUR)
    minute, rest = divmod(rest, _MINUTE)
    return f"{hour:02d}:{minute:02d}" + (f":{rest:02d}" if rest else "")


def _past_hour(second: int) -> str:
    minute, rest = divmod(second, _MINUTE)
    return f":{minute:02d}" + (f":{rest:02d}" if rest else "")


def _moment(second: int) -> str:
    return f"{_date(second)} at {_time(second % DAY)} UTC"


def _date(second: int) -> str:
    day: datetime = EPOCH + timedelta(seconds=second)
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def _ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _values(mask: int, show: Callable[[int], str]) -> str:
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
    return _all_of(told)


def _all_of(words: Iterable[str]) -> str:
    """Join words as a sentence does: `a, b and c`."""
    *before, last = words
    return f"{', '.join(before)} and {last}" if before else last
