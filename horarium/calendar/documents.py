"""The canonical calendar document: rules over local fields and intervals, checked in full before anything is built."""

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

from horarium.calendar.calendars import Calendar
from horarium.calendar.faults import Faults, shown
from horarium.calendar.instants import ANY_END, ANY_START, read_bounds
from horarium.calendar.rules import EVERY_YEAR, Interval, Rule
from horarium.calendar.zone_names import check_timezone

MAX_RULES: Final = 32
MAX_RANGES: Final = 64
MAX_OVERLAPS_TOLD: Final = 3
"""Overlaps of one field that are told one by one: what is wrong with the order of many ranges is one thing to correct."""
MAX_EVERY_SECONDS: Final = 316_224_000
MAX_STEP: Final = 2**53 - 1
"""The largest integer that canonical JSON (RFC 8785) can carry. A step past the end of its range selects the start."""

_MEMBERS = ("timezone", "calendars", "intervals", "start_at", "end_at")
_RANGE = ("start", "end", "step")
_RANGE_MEMBERS = frozenset(_RANGE)
_INTERVAL = ("every_seconds", "offset_seconds")


_T = TypeVar("_T")


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    optional: bool = False


_FIELDS = (
    _Field("second", 0, 59),
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day_of_month", 1, 31),
    _Field("month", 1, 12),
    _Field("day_of_week", 0, 6),
    _Field("year", 1970, 9999, optional=True),
)
_FIELD_NAMES = tuple(field.name for field in _FIELDS)


def parse_calendar(document: object, *, at: str = "") -> Calendar:
    """Check a canonical calendar document and build its calendar.

    The document is an object with exactly `timezone`, `calendars`, `intervals`, `start_at` and `end_at`, as decoded
    from JSON. `at` is the JSON pointer of the document in a larger one; the pointers of all faults begin with it.
    Raises `InvalidSchedule` with every fault. A rule that can never match is no fault: ask `Calendar.is_empty`.
    """
    faults = Faults()
    if not isinstance(document, dict):
        faults.add(at, "not_an_object", f"Expected a calendar object with {_listed(_MEMBERS)}, not {shown(document)}.")
        faults.raise_if_any()
    assert isinstance(document, dict), "a fault was noted"
    timezone = check_timezone(document.get("timezone"), at, faults, present="timezone" in document)
    rules, intervals = _parse_rules(document, at, faults)
    for name in ("start_at", "end_at"):
        if name not in document:
            sentence = f"{name!r} is required: a UTC time such as 2027-01-31T07:30:00Z."
            faults.add(f"{at}/{name}", "missing_field", sentence)
    first, last = read_bounds(document.get("start_at", ANY_START), document.get("end_at", ANY_END), at, faults)
    faults.check_members(document, at, _MEMBERS)
    faults.raise_if_any()
    return Calendar(timezone=timezone, rules=rules, intervals=intervals, first=first, last=last)


def _parse_rules(
    document: dict[object, object], at: str, faults: Faults
) -> tuple[tuple[Rule, ...], tuple[Interval, ...]]:
    lists = {name: _read_list(document, name, at, faults) for name in ("calendars", "intervals")}
    known = [entries for entries in lists.values() if entries is not None]
    count = sum(len(entries) for entries in known)
    if count > MAX_RULES:
        sentence = f"'calendars' and 'intervals' hold {count} rules together; at most {MAX_RULES} are allowed."
        faults.add(at, "too_many_rules", sentence)
    if count == 0 and len(known) == len(lists):
        faults.add(at, "no_rules", "'calendars' and 'intervals' are both empty; at least one rule is needed.")
    calendars, intervals = lists["calendars"] or [], lists["intervals"] or []
    rules = _parse_each(calendars[:MAX_RULES], f"{at}/calendars", faults, _parse_rule)
    return rules, _parse_each(intervals[:MAX_RULES], f"{at}/intervals", faults, _parse_interval)


def _parse_each(
    entries: list[object], at: str, faults: Faults, parse: Callable[[object, str, Faults], tuple[Hashable, _T] | None]
) -> tuple[_T, ...]:
    """Parse every entry, and refuse one whose canonical JSON, for which its key stands, was there before."""
    parsed: list[_T] = []
    places: dict[Hashable, int] = {}
    for index, entry in enumerate(entries):
        here = f"{at}/{index}"
        result = parse(entry, here, faults)
        if result is None:
            continue
        key, value = result
        if key in places:
            faults.add(here, "duplicate_rule", f"This is the same as entry {places[key]}. Leave one of them out.")
        places.setdefault(key, index)
        parsed.append(value)
    return tuple(parsed)


def _parse_rule(entry: object, at: str, faults: Faults) -> tuple[Hashable, Rule] | None:
    before = len(faults)
    if not isinstance(entry, dict):
        sentence = f"Expected a rule object with {_listed(_FIELD_NAMES[:-1])}, not {shown(entry)}."
        faults.add(at, "not_an_object", sentence)
        return None
    masks: dict[str, int] = {}
    key: list[object] = []
    for field in _FIELDS:
        if field.name not in entry and field.optional:
            key.append(None)
            continue
        mask, ranges = _parse_field(field, entry, at, faults)
        masks[field.name] = mask
        key.append(ranges)
    faults.check_members(entry, at, _FIELD_NAMES)
    if len(faults) > before:
        return None
    masks.setdefault("year", EVERY_YEAR)
    return tuple(key), Rule(either_day=False, **masks)


def _parse_field(
    field: _Field, rule: dict[object, object], at: str, faults: Faults
) -> tuple[int, tuple[tuple[int, int, int], ...]]:
    plain = _plain_field(field, rule.get(field.name))
    if plain is not None:
        return plain
    entries = _read_list(rule, field.name, at, faults)
    here = f"{at}/{field.name}"
    if entries is None:
        return 0, ()
    if not entries:
        every = f'[{{"start": {field.low}, "end": {field.high}, "step": 1}}]'
        sentence = f"{field.name!r} selects nothing. Write {every} for every value."
        faults.add(here, "no_ranges", sentence)
    if len(entries) > MAX_RANGES:
        faults.add(
            here, "too_many_ranges", f"'{field.name}' has {len(entries)} ranges; at most {MAX_RANGES} are allowed."
        )
    mask = 0
    overlaps = 0
    end_before: int | None = None
    ranges: list[tuple[int, int, int]] = []
    for index, entry in enumerate(entries[:MAX_RANGES]):
        place = f"{here}/{index}"
        parsed = _parse_range(field, entry, place, faults)
        if parsed is None:
            continue
        start, end, step = parsed
        if end_before is not None and start <= end_before:
            sentence = (
                f"The range {start}-{end} begins at or before {end_before}, where an earlier one ends. "
                "Put the ranges in order, without an overlap."
            )
            overlaps += 1
            if overlaps <= MAX_OVERLAPS_TOLD:
                faults.add(place, "ranges_overlap", sentence)
        end_before = end if end_before is None else max(end, end_before)
        ranges.append(parsed)
        mask |= _mask(start, end, step)
    if overlaps > MAX_OVERLAPS_TOLD:
        more = overlaps - MAX_OVERLAPS_TOLD
        sentence = (
            f"{more} more {'range begins' if more == 1 else 'ranges begin'} where an earlier one ends, or before."
        )
        faults.add(here, "ranges_overlap", sentence)
    return mask, tuple(ranges)


def _plain_field(field: _Field, value: object) -> tuple[int, tuple[tuple[int, int, int], ...]] | None:
    """What `_parse_field` gives for a field without a fault, in a fifth of the time; None for one of which it has to tell."""
    if type(value) is not list or not 0 < len(value) <= MAX_RANGES:
        return None
    mask, end_before = 0, field.low - 1
    ranges: list[tuple[int, int, int]] = []
    for entry in value:
        if type(entry) is not dict or entry.keys() != _RANGE_MEMBERS:
            return None
        start, end, step = entry["start"], entry["end"], entry["step"]
        if not type(start) is type(end) is type(step) is int:
            return None
        if not (end_before < start <= end <= field.high and 1 <= step <= MAX_STEP):
            return None
        end_before = end
        ranges.append((start, end, step))
        mask |= _mask(start, end, step)
    return mask, tuple(ranges)


@lru_cache(maxsize=4_096)
def _mask(start: int, end: int, step: int) -> int:
    return sum(1 << value for value in range(start, end + 1, step))


def _parse_range(field: _Field, entry: object, at: str, faults: Faults) -> tuple[int, int, int] | None:
    if not isinstance(entry, dict):
        faults.add(at, "not_an_object", f"Expected a range object with {_listed(_RANGE)}, not {shown(entry)}.")
        return None
    before = len(faults)
    start = _read_integer(entry, "start", (field.low, field.high), at, faults)
    end = _read_integer(entry, "end", (field.low, field.high), at, faults)
    step = _read_integer(entry, "step", (1, MAX_STEP), at, faults)
    if start is not None and end is not None and start > end:
        sentence = (
            f"The range begins at {start} and ends before it at {end}. Write two ranges where it should wrap around."
        )
        faults.add(at, "range_reversed", sentence)
    faults.check_members(entry, at, _RANGE)
    if len(faults) > before or start is None or end is None or step is None:
        return None
    return start, end, step


def _parse_interval(entry: object, at: str, faults: Faults) -> tuple[Hashable, Interval] | None:
    if not isinstance(entry, dict):
        faults.add(at, "not_an_object", f"Expected an interval object with {_listed(_INTERVAL)}, not {shown(entry)}.")
        return None
    before = len(faults)
    every = _read_integer(entry, "every_seconds", (1, MAX_EVERY_SECONDS), at, faults)
    offset = _read_integer(entry, "offset_seconds", (0, MAX_EVERY_SECONDS - 1), at, faults)
    if every is not None and offset is not None and offset >= every:
        sentence = f"'offset_seconds' is {offset}; it must be less than 'every_seconds', which is {every}."
        faults.add(f"{at}/offset_seconds", "offset_too_large", sentence)
    faults.check_members(entry, at, _INTERVAL)
    if len(faults) > before or every is None or offset is None:
        return None
    return (every, offset), Interval(every_seconds=every, offset_seconds=offset)


def _read_list(owner: dict[object, object], name: str, at: str, faults: Faults) -> list[object] | None:
    here = f"{at}/{name}"
    if name not in owner:
        faults.add(here, "missing_field", f"{name!r} is required: an array.")
        return None
    value = owner[name]
    if value is None:
        advice = "Write [] for none." if name in _MEMBERS else "Write an array of ranges."
        faults.add(here, "null_array", f"{name!r} is null. {advice}")
        return None
    if not isinstance(value, list):
        faults.add(here, "not_an_array", f"{name!r} must be an array, not {shown(value)}.")
        return None
    return value


def _read_integer(
    owner: dict[object, object], name: str, bounds: tuple[int, int], at: str, faults: Faults
) -> int | None:
    low, high = bounds
    here = f"{at}/{name}"
    if name not in owner:
        faults.add(here, "missing_field", f"{name!r} is required: an integer from {low} to {high}.")
        return None
    value = owner[name]
    if isinstance(value, bool) or not isinstance(value, int):
        faults.add(here, "not_an_integer", f"{name!r} must be an integer from {low} to {high}, not {shown(value)}.")
        return None
    if not low <= value <= high:
        faults.add(here, "out_of_range", f"{name!r} must be from {low} to {high}, not {shown(value)}.")
        return None
    return value


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(repr(name) for name in names)
