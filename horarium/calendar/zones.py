"""Time zones: which names there are, and the offset from UTC at any second.

The only source is the `tzdata` package. Its files are read directly, so neither the host's zone files nor `TZ`,
`PYTHONTZPATH`, or what another library did to `zoneinfo` can change an instant.
"""

from bisect import bisect_right
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from typing import Final, NamedTuple

from horarium.calendar.tzif import ZoneFile, day_of_year, read_tzif

DAY: Final = 86_400
MEAN_YEAR: Final = 31_556_952
EPOCH_ORDINAL: Final = 719_163  # `date(1970, 1, 1).toordinal()`
ALWAYS: Final = 1 << 62  # later than every instant; its negative is earlier

_PACKAGE = "tzdata"
# A placeholder of the zone database that says "not set up".
_NOT_A_ZONE = frozenset({"Factory"})


class Span(NamedTuple):
    """A time of one offset: UTC seconds `start <= second < end`. `before` is the offset until then."""

    start: int
    end: int
    offset: int
    before: int


class Change(NamedTuple):
    """The clock jumps at this UTC second from the offset `before` to the offset `after`."""

    at: int
    before: int
    after: int


class Zone:
    """The offsets of one zone for all years. All numbers are seconds."""

    def __init__(self, name: str, data: ZoneFile) -> None:
        self.name = name
        self._changes = data.changes
        self._offsets = data.offsets
        self._yearly = data.yearly
        self._settled = data.settled
        self._kinds: dict[tuple[bool, int], tuple[tuple[int, int], ...]] = {}
        every = (*data.offsets, *(change.offset for change in data.yearly))
        self.least_offset = min(every)
        self.greatest_offset = max(every)

    @property
    def settled_from(self) -> int:
        """From this second on every year repeats one rule, so the clock has a period of 400 years."""
        return self._settled

    def span(self, second: int) -> Span:
        """Give the time of constant offset that holds this UTC second."""
        index = bisect_right(self._changes, second)
        start = self._changes[index - 1] if index else -ALWAYS
        offset = self._offsets[index]
        before = self._offsets[index - 1] if index else offset
        if index < len(self._changes):
            return Span(start, self._changes[index], offset, before)
        if not self._yearly:
            return Span(start, ALWAYS, offset, before)
        for at, after in self._changes_around(max(second, self._settled)):
            if at <= self._settled or after == offset:
                continue
            if at > second:
                return Span(start, at, offset, before)
            start, before, offset = at, offset, after
        raise AssertionError("three years of a yearly rule hold a later change")

    def changes(self, first: int, last: int) -> Iterator[Change]:
        """Walk over the changes of offset from `first` to `last`, both included."""
        span = self.span(first)
        if span.start == first:
            yield Change(first, span.before, span.offset)
        while span.end <= last:
            span = self.span(span.end)
            yield Change(span.start, span.before, span.offset)

    def _changes_around(self, second: int) -> Iterator[tuple[int, int]]:
        year = year_of(second)
        for each in (year - 1, year, year + 1):
            start = _day_of_year_start(each)
            for at, offset in self._changes_of_kind(each, start):
                yield start * DAY + at, offset

    def _changes_of_kind(self, year: int, start: int) -> tuple[tuple[int, int], ...]:
        # There are 14 kinds of year, so this stays small; two threads at worst do the same work twice.
        kind = (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0), (start + EPOCH_ORDINAL) % 7)
        found = self._kinds.get(kind)
        if found is None:
            leap, weekday = kind
            found = tuple(
                sorted(
                    (
                        day_of_year(each.day, leap=leap, weekday_of_january_first=weekday) * DAY + each.second,
                        each.offset,
                    )
                    for each in self._yearly
                )
            )
            self._kinds[kind] = found
        return found


def tzdata_version() -> str:
    """Name the release of the zone data in use, as IANA does: `2026a`."""
    return str(import_module(_PACKAGE).IANA_VERSION)


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Give the exact names that a schedule may use: those of the zone data, links included."""
    lines = files(_PACKAGE).joinpath("zones").read_text(encoding="ascii").split("\n")
    return frozenset(lines) - _NOT_A_ZONE - {""}


@lru_cache(maxsize=1024)  # more than there are zones
def zone(name: str) -> Zone:
    """Load a zone. The name must be one of `zone_names()`; a document's name is checked where the document is."""
    assert name in zone_names(), f"{name!r} is no zone name: it was not validated"
    data = files(_PACKAGE).joinpath("zoneinfo", *name.split("/")).read_bytes()
    return Zone(name, read_tzif(data))


def local_time(instant: datetime, name: str) -> datetime:
    """Show an aware instant on the wall clock of a zone, by the pinned data. The result carries a fixed offset."""
    if instant.tzinfo is None:
        raise ValueError(f"{instant!r} has no offset; give an aware datetime, such as datetime(…, tzinfo=UTC).")
    offset = zone(name).span(int(instant.timestamp() // 1)).offset
    return instant.astimezone(timezone(timedelta(seconds=offset)))


def year_of(second: int) -> int:
    """Give the year that holds this second, or near new year perhaps the one beside it."""
    return second // MEAN_YEAR + 1970


def _day_of_year_start(year: int) -> int:
    past = year - 1
    return past * 365 + past // 4 - past // 100 + past // 400 + 1 - EPOCH_ORDINAL
