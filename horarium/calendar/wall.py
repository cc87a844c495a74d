"""When the wall clock of a zone shows what a rule selects.

UTC is cut into spans of constant offset. Inside one the wall clock runs evenly, so local seconds and UTC seconds differ
by one number and a search over dates and times of day is exact. A time inside a gap lies in no span; a
repeated time lies in two. Nothing is ever searched second by second, and a search that finds nothing near jumps to
the next date that a rule selects.
"""

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from horarium.calendar.dates import FIRST_DAY, LAST_DAY, Dates
from horarium.calendar.rules import FIRST_YEAR, Rule, lowest_bit
from horarium.calendar.times import Times, UnitedTimes, unite
from horarium.calendar.zones import ALWAYS, DAY, MEAN_YEAR, Span, Zone, year_of

# Cron's limit. A larger jump corrects the clock: what it skips never was, and what it repeats counts again.
GREATEST_SHIFT: Final = 3 * 3600
_KINDS_SEEN: Final = 40
_FAILURES = 8  # of a search, before it asks how far it makes sense to go on
_MANY = 24  # times a day
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MIDNIGHT = FIRST_DAY * DAY  # that of UTC; a local one before it is no datetime
_MAX_PATTERNS = 64  # about 1.5 KB each


class Day(NamedTuple):
    """What was found last: a selected local day, with its midnight, in UTC seconds.

    From `start` to before `end`, which is right after its last selected second or earlier, exactly the seconds
    `midnight + time` are selected for the `times` of the day. Bit `n`
    of `later` is set where the day `n` days later is the next selected one, or a later one of the month, with the
    same times; this holds while that day ends at or before the UTC second `until`.
    """

    start: int
    end: int
    midnight: int
    times: Times | UnitedTimes
    later: int = 0
    until: int = 0


class Dense(NamedTuple):
    """The same as a `Day` with many times, made for questions that come one after the other.

    It holds from the time `start` to before `end`, which are seconds after `midnight`, for instants of that time alone.
    """

    midnight: datetime
    start: int
    end: int
    times: Times | UnitedTimes
    gaps: tuple[int, ...]


class WallClock:
    """The UTC seconds from `first` to `last` at which the wall clock matches some rules, of which there is at least one.

    With `once` a selected local time happens once on each of its dates: inside a gap it moves to the first second after
    the gap, and when it is repeated only the first counts. Without, the clock is followed as it is.

    The remembered day and span make the next question fast. They are replaced whole, so threads may share an instance.
    """

    __slots__ = (
        "_dates",
        "_exhausted_from",
        "_first",
        "_last",
        "_once",
        "_patterns",
        "_rules",
        "_span",
        "day",
        "dense",
        "zone",
    )

    def __init__(self, zone: Zone, rules: tuple[Rule, ...], *, once: bool, first: int, last: int) -> None:
        self.zone = zone
        self._rules = rules
        self._dates = tuple(Dates(rule) for rule in rules)
        self._once = once
        self._first = first
        self._last = last
        self._patterns: dict[int, Times | UnitedTimes] = {}
        self._span = zone.span(0)
        self.day = Day(0, 0, 0, unite(rules[:1]))
        self.dense: Dense | None = None
        self._exhausted_from = ALWAYS

    def next(self, second: int) -> int | None:
        """Give the first selected UTC second that is not before this one; None if there is none up to the last."""
        start, end, midnight, times, later, until = self.day
        if start <= second:
            if second < end:
                result = midnight + times.next(second - midnight)
                if result < end:
                    return result
            if later:
                ahead = lowest_bit(later)
                midnight += ahead * DAY
                result = midnight + times.first
                if second <= result and midnight + DAY <= until:
                    end = midnight + times.last + 1
                    self.day = Day(midnight, end, midnight, times, later >> ahead & ~1, until)
                    if self.dense is not None:
                        self.dense = _dense(self.day)
                    return result
        if second >= self._exhausted_from:
            return None
        searched = self._search(second)
        if searched is None:
            self._exhausted_from = min(self._exhausted_from, second)
        return searched

    def count(self, first: int, last: int) -> int:
        """Count the selected UTC seconds from `first` to `last`, both included, by days and months."""
        total = 0
        last = min(last, self._last)
        second = first
        while second <= last:
            span = self.zone.span(second)
            start = max(second, self._resumes(span))
            if second == span.start and self._moved_to_start(span):
                total += 1
                start = second + 1
            end = min(span.end, last + 1)
            if start < end:
                total += self._count_local(start + span.offset, end + span.offset)
            second = span.end
        return total

    def mark(self, marks: bytearray, first: int) -> None:
        """Set byte `n` of an empty map to 1 for every selected UTC second `first + n`."""
        last = min(first + len(marks) - 1, self._last)
        second = first
        while second <= last:
            span = self.zone.span(second)
            if second == span.start and self._moved_to_start(span):
                marks[second - first] = 1
            end = min(span.end, last + 1)
            start = max(second, self._resumes(span))
            while start < end and (found := self._find_local(start + span.offset)) is not None:
                local, day, times = found
                start = local - span.offset
                stop = min(end, (day + 1) * DAY - span.offset)
                if start < stop:
                    time = local - day * DAY
                    marks[start - first : stop - first] = times.marks()[time : time + stop - start]
                start = stop
            second = span.end

    def next_local(self, local: int) -> int | None:
        """Give the first selected local second (since 1970-01-01T00:00 on the wall) that is not before this one."""
        found = self._find_local(local)
        return None if found is None else found[0]

    def count_local(self, start: int, end: int) -> int:
        """Count the selected local seconds from `start` up to, not including, `end`."""
        return self._count_local(start, end)

    def _search(self, second: int) -> int | None:
        zone = self.zone
        span = self._span
        horizon = self._last
        failures = 0
        while second <= horizon:
            if not span.start <= second < span.end:
                span = zone.span(second)
            self._span = span
            if second == span.start and self._moved_to_start(span):
                return second
            start = max(second, self._resumes(span))
            found = self._find_local(start + span.offset) if start < span.end else None
            if found is not None:
                local, day, times = found
                result = local - span.offset
                if result < span.end:
                    if result > self._last:
                        return None
                    midnight = day * DAY - span.offset
                    # The first second of a span may stand for the gap before it, so it is never remembered.
                    begin = max(midnight, self._resumes(span), span.start + 1, self._first)
                    until = min(span.end, self._last + 1)
                    later = self._dates[0].later_in_month(day) if len(self._dates) == 1 else 0
                    self.day = Day(begin, min(midnight + times.last + 1, until), midnight, times, later, until)
                    self.dense = _dense(self.day) if times.total >= _MANY else None
                    return result
            failures += 1
            if failures == _FAILURES:
                horizon = self._horizon(second)
            second = span.end
            ahead = self._find_local(second + zone.least_offset)
            if ahead is None:
                return None
            second = max(second, ahead[0] - zone.greatest_offset)
        return None

    def _horizon(self, second: int) -> int:
        """Give the last second worth searching, for rules whose dates all seem to fall into gaps.

        Once the zone is settled, what a year holds follows from its kind, and any 40 years in a row hold all 14 kinds. Only
        rules that pick years with holes between them have to be searched to their end.
        """
        year = max(year_of(second) - 1, FIRST_YEAR)
        start = max(year, year_of(self.zone.settled_from) + 1)
        for rule in self._rules:
            years = rule.year >> year
            if not years:
                continue
            wait = lowest_bit(years)
            if (years >> wait) & (years >> wait) + 1:
                return self._last
            start = max(start, year + wait)
        return min(self._last, (start + _KINDS_SEEN + 2 - 1970) * MEAN_YEAR)

    def _resumes(self, span: Span) -> int:
        """Give the second from which a span counts: behind the repeated times, where a time happens once."""
        shift = span.offset - span.before
        return span.start - shift if self._once and -GREATEST_SHIFT <= shift < 0 else span.start

    def _moved_to_start(self, span: Span) -> bool:
        """Tell if a time inside the gap before this span moved to its first second."""
        if not self._once or not 0 < span.offset - span.before <= GREATEST_SHIFT:
            return False
        found = self._find_local(span.start + span.before)
        return found is not None and found[0] < span.start + span.offset

    def _find_local(self, local: int) -> tuple[int, int, Times | UnitedTimes] | None:
        day, second = divmod(local, DAY)
        if day < FIRST_DAY:
            day, second = FIRST_DAY, 0
        found = self._next_day(day)
        if found is None:
            return None
        next_day, times = found
        if next_day == day:
            time = times.next(second)
            if time >= 0:
                return day * DAY + time, day, times
            found = self._next_day(day + 1)
            if found is None:
                return None
            next_day, times = found
        return next_day * DAY + times.first, next_day, times

    def _next_day(self, day: int) -> tuple[int, Times | UnitedTimes] | None:
        best: int | None = None
        active = 0
        for index, dates in enumerate(self._dates):
            found = dates.next(day)
            if found is None or (best is not None and found > best):
                continue
            active = active | 1 << index if found == best else 1 << index
            best = found
        if best is None:
            return None
        times = self._patterns.get(active)
        if times is None:
            times = unite(rule for index, rule in enumerate(self._rules) if active >> index & 1)
            if len(self._patterns) >= _MAX_PATTERNS:
                self._patterns.clear()
            self._patterns[active] = times
        return best, times

    def _count_local(self, start: int, end: int) -> int:
        first, from_second = divmod(max(start, FIRST_DAY * DAY), DAY)
        last, to_second = divmod(min(end, (LAST_DAY + 1) * DAY), DAY)
        if first == last:
            return self._count_day(first, from_second, to_second)
        whole = self._count_days(first + 1, last - 1)
        return self._count_day(first, from_second, DAY) + whole + self._count_day(last, 0, to_second)

    def _count_day(self, day: int, start: int, end: int) -> int:
        found = self._next_day(day) if start < end else None
        return found[1].count(start, end) if found is not None and found[0] == day else 0

    def _count_days(self, first: int, last: int) -> int:
        if len(self._dates) == 1:
            days = sum(selected.bit_count() for _, selected in self._dates[0].months(first, last))
            return days and days * unite(self._rules).total
        total = 0
        found = self._next_day(first)
        while found is not None and found[0] <= last:
            day, times = found
            total += times.total
            found = self._next_day(day + 1)
        return total


def _dense(day: Day) -> Dense | None:
    midnight = day.midnight
    if midnight < _FIRST_MIDNIGHT:
        return None
    opened = _EPOCH + timedelta(seconds=midnight)
    return Dense(opened, day.start - midnight, day.end - midnight, day.times, day.times.gaps)
