"""What differs between two configurations of a schedule, field by field and in words, for a person who decides on one."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from horarium.calendar.faults import pointer
from horarium.calendar.words import in_words
from horarium.errors import InvalidSchedule
from horarium.schedule.timing import CALENDAR, TIMING, evaluated, stored_timing

MOST: Final = 100
"""Differences that are told; what is beyond is counted in a last one."""
_LONGEST: Final = 300
"""Characters of a value."""
NOT_SAID: Final = "not said"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One field that differs. `old` and `new` are in words, None where the field is not there at all.

    `pointer` is the place in the document, and `what` the name that people know it by.
    """

    pointer: str
    what: str
    old: str | None
    new: str | None


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    """What differs between two stored documents of any contract; nothing where they are equal.

    The time is told as a whole, by its words; where two calendars have the same words, by the fields that differ. A field that
    is not known here is told by its place, so that none is passed over.
    """
    found = [*_of_name(old, new), *_of_timing(old, new)]
    for part, fields in _FIELDS.items():
        found += _of_part(part, fields, _object(old.get(part)), _object(new.get(part)))
    known = {"name", CALENDAR, TIMING, *_FIELDS}
    rest = [{name: value for name, value in of.items() if name not in known} for of in (old, new)]
    found += _by_place("", *rest)
    if len(found) <= MOST:
        return found
    more = f"{len(found) - MOST:,} more fields differ"
    return [*found[:MOST], Difference(pointer="", what=more, old=None, new=None)]


def _of_name(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    before, after = old.get("name"), new.get("name")
    if before != after:
        yield _difference("/name", "Name", _plain(before), _plain(after))


def _of_timing(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    before, after = (_timing(of) for of in (old, new))
    if before == after:
        return
    told_before, told_after = (timing_in_words(of) for of in (before, after))
    if told_before is not None and told_after is not None and told_before != told_after:
        yield _difference(f"/{_place(new)}", "When", told_before, told_after)
        return
    # A calendar stands in its document under the name that it has as a timing; others stand one level deeper.
    yield from _by_place("" if _place(new) == CALENDAR else f"/{TIMING}", before, after)


def timing_in_words(timing: Mapping[str, Any]) -> str | None:
    """A stored timing in words, a cron with its text; None where this release cannot evaluate it."""
    calendar = evaluated(timing)
    if isinstance(calendar, InvalidSchedule):
        return None
    text = cron_text(timing)
    told = (
        "; ".join(in_words(calendar).parts)
        if calendar.rules and len(calendar.rules) > 1
        else in_words(calendar).sentence
    )
    return told if text is None else f"{told} (cron {text})"


def cron_text(timing: Mapping[str, Any]) -> str | None:
    """The five positions of a cron as one text; None for a timing that is none."""
    cron = timing.get("cron")
    if not isinstance(cron, Mapping):
        return None
    return " ".join(str(cron.get(name, "?")) for name in ("minute", "hour", "day_of_month", "month", "day_of_week"))


def _timing(document: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return _object(stored_timing(document))
    except KeyError:
        return {}


def _place(document: Mapping[str, Any]) -> str:
    return TIMING if TIMING in document else CALENDAR


_Show = Callable[[Any], str]


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    return _cut(json.dumps(value, ensure_ascii=False, sort_keys=True))


def _window(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        return _plain(value)
    length = timedelta(seconds=value)
    minutes, seconds = divmod(value, 60)
    if value >= 60 and seconds == 0 and minutes < 60:
        return f"{minutes} min"
    return f"{value // 3_600} h" if value % 3_600 == 0 and value else f"{length} h" if value >= 3_600 else f"{value} s"


def _listed(value: Any) -> str:
    if not isinstance(value, list):
        return _plain(value)
    return _cut(", ".join(_plain(each) for each in value)) if value else "none"


_OVERLAPS: Final = {
    "skip": "skip it",
    "buffer_one": "let one wait",
    "buffer_all": "let all wait",
    "allow": "start it beside the others",
}


def _overlap(value: Any) -> str:
    return _OVERLAPS.get(value, _plain(value)) if isinstance(value, str) else _plain(value)


_FIELDS: Final[Mapping[str, tuple[tuple[str, str, _Show, str | None], ...]]] = {
    "policy": (
        ("overlap", "When a run is due while others run", _overlap, None),
        ("max_concurrent_runs", "Runs at once", _plain, "1"),
        ("catchup_window_seconds", "How late a run may still start", _window, None),
        ("pause_on_failure", "Review after a failed run", _plain, None),
        ("defer_once", "One late run for all that were missed", _plain, "no"),
    ),
    "run": (
        ("agent_version", "Agent", _plain, None),
        ("input", "Input", _plain, None),
        ("output_target", "Output", _plain, None),
        ("grants", "Grants", _listed, None),
        ("budget_id", "Budget", _plain, None),
        ("usage_class", "Usage class", _plain, None),
    ),
}
"""Of each part: the field, what people call it, how its value is told, and what its absence means."""


def _of_part(
    part: str,
    fields: tuple[tuple[str, str, _Show, str | None], ...],
    old: Mapping[str, Any],
    new: Mapping[str, Any],
) -> Iterator[Difference]:
    for name, what, show, absent in fields:
        if (name in old, old.get(name)) != (name in new, new.get(name)):
            told = [_said(of, name, show, absent) for of in (old, new)]
            yield _difference(pointer(f"/{part}", name), what, *told)
    known = {name for name, *_ in fields}
    rest = [{name: value for name, value in of.items() if name not in known} for of in (old, new)]
    yield from _by_place(f"/{part}", *rest)


def _said(of: Mapping[str, Any], name: str, show: _Show, absent: str | None) -> str | None:
    if name in of:
        return show(of[name])
    return None if absent is None else f"{NOT_SAID}, so {absent}"


def settings(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a stored document asks for beside its name and its time: what people call each field, and its value in words."""
    told = []
    for part, fields in _FIELDS.items():
        of = _object(document.get(part))
        told += [(what, show(of[name])) for name, what, show, _ in fields if name in of]
    return told


def _by_place(at: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    """Every value that differs, by its place."""
    before, after = dict(_leaves(at, old)), dict(_leaves(at, new))
    for place in sorted(before.keys() | after.keys()):
        pair = (before.get(place), after.get(place))
        if pair[0] != pair[1]:
            yield _difference(place, place.removeprefix("/"), *pair)


def _leaves(at: str, value: Any) -> Iterator[tuple[str, str]]:
    """The places of a value that hold no other places, each with its JSON: `1`, `true` and `"1"` are three values."""
    waiting: list[tuple[str, Any]] = [(at, value)]
    while waiting:
        place, each = waiting.pop()
        if isinstance(each, Mapping) and each:
            waiting += [(pointer(place, name), inside) for name, inside in each.items()]
        elif isinstance(each, list) and each:
            waiting += [(pointer(place, str(index)), inside) for index, inside in enumerate(each)]
        elif place != at:
            yield place, json.dumps(each, ensure_ascii=False)


def _difference(place: str, what: str, old: str | None, new: str | None) -> Difference:
    return Difference(
        pointer=place,
        what=what,
        old=None if old is None else _cut(old),
        new=None if new is None else _cut(new),
    )


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
