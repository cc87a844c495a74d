"""The timing that a stored schedule version holds: a canonical calendar, a cron, or a single instant."""

from collections.abc import Callable
from typing import Final

from horarium.calendar.calendars import Calendar
from horarium.calendar.cron import POSITION_NAMES, parse_cron
from horarium.calendar.documents import parse_calendar
from horarium.calendar.faults import Faults, pointer, shown
from horarium.calendar.instants import parse_instant
from horarium.errors import InvalidSchedule

_CRON_MEMBERS = (*POSITION_NAMES, "timezone", "start_at", "end_at")


def parse_timing(document: object, *, at: str = "") -> Calendar:
    """Build the calendar of a stored timing: an object with exactly one of `calendar`, `cron` and `instant`.

    `calendar` is the canonical document, `cron` an object of five positions with `timezone` and optional `start_at` and
    `end_at`, `instant` a timestamp. Raises `InvalidSchedule` with all faults.
    """
    faults = Faults()
    expected = " or ".join(repr(name) for name in _PARSERS)
    if not isinstance(document, dict):
        faults.add(at, "not_an_object", f"Expected an object with {expected}, not {shown(document)}.")
        faults.raise_if_any()
    assert isinstance(document, dict), "a fault was noted"
    faults.check_members(document, at, tuple(_PARSERS))
    given = [name for name in _PARSERS if name in document]
    if len(given) != 1:
        faults.add(at, "not_one_timing", f"Exactly one of {expected} is needed, not {len(given)} of them.")
    calendars: list[Calendar] = []
    for name in given:
        try:
            calendars.append(_PARSERS[name](document[name], pointer(at, name)))
        except InvalidSchedule as refused:
            faults.extend(refused)
    faults.raise_if_any()
    return calendars[0]


def _parse_canonical(document: object, at: str) -> Calendar:
    return parse_calendar(document, at=at)


def _parse_stored_cron(document: object, at: str) -> Calendar:
    faults = Faults()
    if not isinstance(document, dict):
        faults.add(
            at, "not_an_object", f"Expected an object with the five positions and a zone, not {shown(document)}."
        )
        faults.raise_if_any()
    assert isinstance(document, dict), "a fault was noted"
    faults.check_members(document, at, _CRON_MEMBERS)
    if "timezone" not in document:
        faults.add(pointer(at, "timezone"), "missing_field", "'timezone' is required: an exact IANA name.")
    positions = {name: document[name] for name in POSITION_NAMES if name in document}
    bounds = {name: document.get(name) for name in ("start_at", "end_at")}
    try:
        calendar = parse_cron(positions, document.get("timezone", "UTC"), **bounds, at=at)
    except InvalidSchedule as refused:
        faults.extend(refused)
        faults.raise_if_any()
        raise
    faults.raise_if_any()
    return calendar


def _parse_one_instant(document: object, at: str) -> Calendar:
    return parse_instant(document, at=at)


_PARSERS: Final[dict[str, Callable[[object, str], Calendar]]] = {
    "calendar": _parse_canonical,
    "cron": _parse_stored_cron,
    "instant": _parse_one_instant,
}
