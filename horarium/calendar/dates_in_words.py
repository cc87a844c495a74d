"""The dates of a rule in words: `weekdays`, `the last Friday of each month`, or what its fields list."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from horarium.calendar.rules import LAST_YEAR, Rule, bits, lowest_bit
from horarium.calendar.spelling import MONTHS, WEEKDAYS, all_of, listed, ordinal

_FROM_MONDAY: Final = (1, 2, 3, 4, 5, 6, 0)
_LENGTHS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_EVERY_DAY: Final = (1 << 32) - 2
_EVERY_MONTH: Final = (1 << 13) - 2
_EVERY_WEEKDAY: Final = (1 << 7) - 1
_MONDAY_TO_FRIDAY: Final = 0b0111110
_WEEKEND: Final = 0b1000001
_WEEKS: Final = {0x7F << first: name for first, name in ((1, "first"), (8, "second"), (15, "third"), (22, "fourth"))}
"""The days of a month among which each weekday is once: the first, the second …"""
_FIFTH: Final = 0b111 << 29
SINCE_1970: Final = (1 << LAST_YEAR + 1) - (1 << 1970)
"""A canonical calendar cannot name an earlier year, and nothing is due before."""


@dataclass(frozen=True, slots=True)
class Dates:
    """Dates in words: how they stand before a time of the day, and behind a repetition."""

    before: str
    behind: str


def _on(text: str) -> Dates:
    return Dates(f"on {text}", f"on {text}")


def dates_of(rule: Rule) -> Dates:
    """The dates of one rule, whatever its times are."""
    every_day, every_weekday = rule.day_of_month == _EVERY_DAY, rule.day_of_week == _EVERY_WEEKDAY
    years = "" if rule.year & SINCE_1970 == SINCE_1970 else f" in {listed(rule.year, str)}"
    if (every_day and every_weekday) or (rule.either_day and (every_day or every_weekday)):
        months = _in_months(rule.month)
        return Dates(f"every day{months}{years}", f"{months}{years}".strip())
    if rule.either_day:
        days, weekdays = listed(rule.day_of_month, ordinal), _weekdays(rule.day_of_week)
        if rule.month == _EVERY_MONTH:
            return _on(f"the {days} of each month and on {weekdays}{years}")
        return _on(f"the {days} and on {weekdays}{_in_months(rule.month)}{years}")
    if every_day:
        weekdays = f"{_weekdays(rule.day_of_week)}{_in_months(rule.month)}{years}"
        return Dates(weekdays, f"on {weekdays}")
    if every_weekday:
        return _on(f"{_days(rule.day_of_month, rule.month)}{_of_year(rule) or years}")
    return _on(f"{_days_and_weekdays(rule)}{years}")


def _of_year(rule: Rule) -> str:
    """The year right behind a single date."""
    single = all(mask.bit_count() == 1 for mask in (rule.day_of_month, rule.month, rule.year))
    return f" {lowest_bit(rule.year)}" if single else ""


def _days(days: int, months: int) -> str:
    if days.bit_count() == 1 and months.bit_count() <= 3:
        return all_of([f"{lowest_bit(days)} {MONTHS[month - 1]}" for month in bits(months)])
    return f"the {listed(days, ordinal)} {_of_months(months)}"


def _days_and_weekdays(rule: Rule) -> str:
    weekdays = bits(rule.day_of_week)
    if len(weekdays) == 1:
        weekday = WEEKDAYS[weekdays[0]]
        weeks = [name for days, name in _WEEKS.items() if rule.day_of_month & days == days]
        if weeks and sum(days for days, name in _WEEKS.items() if name in weeks) == rule.day_of_month:
            return f"the {all_of(weeks)} {weekday} {_of_months(rule.month)}"
        if rule.day_of_month == _FIFTH and rule.month == _EVERY_MONTH:
            return f"the fifth {weekday} of each month that has one"
    days = listed(rule.day_of_month, ordinal)
    return f"{_weekdays(rule.day_of_week)} that fall on the {days} {_of_months(rule.month)}"


def _weekdays(mask: int) -> str:
    if mask == _MONDAY_TO_FRIDAY:
        return "weekdays"
    if mask == _WEEKEND:
        return "weekends"
    left_out = [each for each in _FROM_MONDAY if not mask >> each & 1]
    if len(left_out) == 1:
        return f"all days except {WEEKDAYS[left_out[0]]}s"
    return all_of([f"{WEEKDAYS[each]}s" for each in _FROM_MONDAY if mask >> each & 1])


def _in_months(months: int) -> str:
    return "" if months == _EVERY_MONTH else f" in {_month_names(months)}"


def _of_months(months: int) -> str:
    return "of each month" if months == _EVERY_MONTH else f"of {_month_names(months)}"


def _month_names(months: int) -> str:
    left_out = [month for month in range(1, 13) if not months >> month & 1]
    if len(left_out) <= 2:
        return f"each month except {all_of([MONTHS[month - 1] for month in left_out])}"
    return listed(months, lambda month: MONTHS[month - 1])


# Dates that have a name, though one rule alone can seldom say it: months end on different days.


def named_dates(group: list[Rule], years: int) -> Dates | None:
    """The name of what the rules select together in these years, where that has one: the last Friday of each month, say."""
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
    *((f"last {name}", _last(1 << number)) for number, name in enumerate(WEEKDAYS)),
    ("first weekday (Monday to Friday)", _first_working),
    ("last weekday (Monday to Friday)", _last(_MONDAY_TO_FRIDAY)),
)


@lru_cache(maxsize=32)
def _selected(select: _Select) -> _Table:
    return tuple(1 << select(_length(month, kind), kind % 7) for month in range(1, 13) for kind in range(14))
