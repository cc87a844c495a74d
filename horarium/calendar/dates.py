"""Which local dates a rule selects. Days are counted from 1970-01-01.

Everything follows from two facts: a month is known by its length and the weekday of its first day, and a year by
its length and the weekday of 1 January. So a rule that selects no date in any of the 14 kinds of year selects none in
the 400 years after which the Gregorian calendar repeats, and none ever; nobody has to search.
"""

from collections.abc import Iterator
from datetime import date
from functools import lru_cache
from typing import Final

from horarium.calendar.rules import EVERY_YEAR, FIRST_YEAR, LAST_YEAR, Rule, bits, lowest_bit
from horarium.calendar.zones import EPOCH_ORDINAL

FIRST_DAY: Final = date.min.toordinal() - EPOCH_ORDINAL
LAST_DAY: Final = date.max.toordinal() - EPOCH_ORDINAL

_LENGTHS = (
    (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31),
    (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31),
)
# Bits 1 to the length of the month: [leap][month].
_DAYS = tuple(tuple((1 << length + 1) - 2 for length in lengths) for lengths in _LENGTHS)
_CYCLE = 400


class Dates:
    """The dates of one rule, prepared for search."""

    __slots__ = ("_by_first_weekday", "_every_year", "_months", "_months_after", "_years")

    def __init__(self, rule: Rule) -> None:
        self._by_first_weekday = _days_by_first_weekday(rule.day_of_month, rule.day_of_week, either=rule.either_day)
        self._months = rule.month
        self._months_after = _months_after(rule.month)
        self._years = rule.year & _years_with_a_date(self._by_first_weekday, rule.month)
        self._every_year = self._years == EVERY_YEAR

    def next(self, day: int) -> int | None:
        """Give the first selected day that is not before this one, or None after 9999-12-31."""
        if day > LAST_DAY:
            return None
        today = date.fromordinal(max(day, FIRST_DAY) + EPOCH_ORDINAL)
        year, month = today.year, today.month
        if self._every_year or self._years >> year & 1:
            if self._months >> month & 1:
                day_of_month = today.day
                ordinal = today.toordinal()
                rest = self._selected(year, month, ordinal - day_of_month + 1) >> day_of_month
                if rest:
                    return ordinal - EPOCH_ORDINAL + (rest & -rest).bit_length() - 1
            found = self._first_in_year(year, month)
            if found is not None:
                return found
        later = self._years >> year + 1
        if not later:
            return None
        found = self._first_in_year(year + 1 + lowest_bit(later), 0)
        assert found is not None, "a year that can hold a date of the rule holds one"
        return found

    def later_in_month(self, day: int) -> int:
        """Give the selected days after a selected one in its month: bit `n` for the day `n` days later."""
        today = date.fromordinal(day + EPOCH_ORDINAL)
        selected = self._selected(today.year, today.month, day - today.day + 1 + EPOCH_ORDINAL)
        return selected >> today.day & ~1

    def months(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Walk over the months with a selected day from `first` to `last`: the day before the month, and a mask of days."""
        day = self.next(first)
        while day is not None and day <= last:
            today = date.fromordinal(day + EPOCH_ORDINAL)
            start = day - today.day
            selected = self._selected(today.year, today.month, start + 1 + EPOCH_ORDINAL) >> today.day << today.day
            if last - start <= 31:
                selected &= (1 << last - start + 1) - 1
            yield start, selected
            day = self.next(start + 1 + _LENGTHS[_leap(today.year)][today.month])

    def _selected(self, year: int, month: int, ordinal_of_first: int) -> int:
        return self._by_first_weekday[ordinal_of_first % 7] & _DAYS[_leap(year)][month]

    def _first_in_year(self, year: int, after_month: int) -> int | None:
        for month in self._months_after[after_month]:
            ordinal = date(year, month, 1).toordinal()
            selected = self._selected(year, month, ordinal)
            if selected:
                return ordinal - EPOCH_ORDINAL + lowest_bit(selected) - 1
        return None


def _leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


# What follows is asked again and again for a few masks: most of many calendars are of every day or of weekdays.
@lru_cache(maxsize=4_096)
def _months_after(months: int) -> tuple[tuple[int, ...], ...]:
    """Give the selected months behind each month, and behind none."""
    return tuple(tuple(month for month in range(after + 1, 13) if months >> month & 1) for after in range(13))


@lru_cache(maxsize=512)
def _days_by_first_weekday(days: int, weekdays: int, *, either: bool) -> tuple[int, ...]:
    """Give the selected days of a month of 31 days, for each weekday that its first day can be."""
    found = []
    for first in range(7):
        by_weekday = 0
        for weekday in bits(weekdays):
            for day in range(1 + (weekday - first) % 7, 32, 7):
                by_weekday |= 1 << day
        found.append(days | by_weekday if either else days & by_weekday)
    return tuple(found)


@lru_cache(maxsize=512)
def _years_with_a_date(by_first_weekday: tuple[int, ...], months: int) -> int:
    """Give the years, as a mask, in which some date of these months and days exists."""
    found = 0
    for (leap, weekday), years in _years_by_kind().items():
        before = 0
        for month in range(1, 13):
            if months >> month & 1 and by_first_weekday[(weekday + before) % 7] & _DAYS[leap][month]:
                found |= years
                break
            before += _LENGTHS[leap][month]
    return found


@lru_cache(maxsize=1)
def _years_by_kind() -> dict[tuple[bool, int], int]:
    """Give the years of each of the 14 kinds, which are (leap year, weekday of 1 January)."""
    kinds: dict[tuple[bool, int], int] = {}
    for year in range(FIRST_YEAR, FIRST_YEAR + _CYCLE):
        kind = (_leap(year), date(year, 1, 1).toordinal() % 7)
        kinds[kind] = kinds.get(kind, 0) | 1 << year
    cycles = range(0, LAST_YEAR + 1, _CYCLE)
    return {kind: sum(years << shift for shift in cycles) & EVERY_YEAR for kind, years in kinds.items()}
