"""What a document will do, before anything is published: its instants, and what changes of the clock do to them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

from horarium.calendar import Calendar, clock_changes, parse_timing, tzdata_version
from horarium.calendar.cron import POSITION_NAMES, parse_cron
from horarium.calendar.faults import Faults, shown
from horarium.calendar.translation import EQUAL, translate
from horarium.errors import Fault, InvalidSchedule, Refused
from horarium.schedule.configuration import CONTRACT as SCHEDULES
from horarium.schedule.configuration import parse_configuration
from horarium.schedule.identity import instant_text
from horarium.schedule.profiles import CONTRACT as CRON_PROFILES
from horarium.schedule.profiles import parse_profile
from horarium.schedule.timing import CALENDAR
from horarium.schedule.v0 import CONTRACT as V0
from horarium.schedule.v0 import parse_v0

MAX_LISTED = 100_000
"""Instants that one preview lists at the most."""
MAX_WINDOW = timedelta(days=36_525)
"""Of 100 years. To count a dense calendar whose rules overlap takes some tenths of a millisecond for each day."""
MAX_NOTES = 1_000
"""Sentences that one preview gives at the most."""
_TIMINGS = frozenset({CALENDAR, "cron", "instant"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What a document says of time.

    `contract` is the one whose document it is, None for a timing by itself. `timing` is as a version stores it, and `calendar`
    the same ready to evaluate.
    """

    contract: str | None
    timing: Mapping[str, Any]
    calendar: Calendar


def read_spec(document: object) -> Spec:
    """Read a document that a person may preview, or raise `InvalidSchedule` with every fault.

    That is a document of any contract: a configuration, a schedule of scheduler v0, a profile with its `config`. Or a timing
    by itself: a canonical calendar; a cron, as its five positions with their zone, as scheduler v0's `expr` with or without
    a `timezone`, or as one text, in UTC; or what a version stores, an object with `calendar`, `cron` or `instant`
    alone. Which of them is meant is told by the names in it.
    """
    if isinstance(document, str):
        return _text(document, "UTC", at="", zone_at="")
    names = set(document) if isinstance(document, dict) else set()
    for telling, read in _KINDS:
        if telling(names):
            return read(document)
    configuration = parse_configuration(document)
    return Spec(contract=SCHEDULES, timing=configuration.timing, calendar=configuration.calendar)


def calendar_of(document: object) -> Calendar:
    """The calendar in a document that a person may preview. Raises as `read_spec` does."""
    return read_spec(document).calendar


def about(spec: Spec, *, since: datetime) -> dict[str, Any]:
    """Whose document it is, and the `translation` of its timing from `since` on: see `horarium.calendar.translation`."""
    if CALENDAR in spec.timing:
        translation = {"calendar": spec.timing[CALENDAR], "sentence": EQUAL}
    else:
        found = translate(spec.calendar, since=since)
        translation = {"calendar": found.calendar, "sentence": found.sentence}
    return {"contract": spec.contract, "translation": translation}


def _timing(document: Any) -> Spec:
    return Spec(contract=None, timing=document, calendar=parse_timing(document))


def _bare(kind: str) -> Callable[[Any], Spec]:
    """Read a timing whose document stands without its name around it."""

    def read(document: Any) -> Spec:
        timing = {kind: document}
        try:
            return Spec(contract=None, timing=timing, calendar=parse_timing(timing))
        except InvalidSchedule as refused:
            before = f"/{kind}"
            raise InvalidSchedule(
                [Fault(each.pointer.removeprefix(before), each.code, each.sentence) for each in refused.faults]
            ) from None

    return read


def _expression(document: Any) -> Spec:
    faults = Faults()
    faults.check_members(document, "", ("expr", "timezone"))
    try:
        spec = _text(document["expr"], document.get("timezone", "UTC"), at="/expr", zone_at="/timezone")
    except InvalidSchedule as refused:
        raise InvalidSchedule([*faults.found, *refused.faults]) from None
    faults.raise_if_any()
    return spec


def _text(expression: object, timezone: object, *, at: str, zone_at: str) -> Spec:
    """Read five positions that stand in one text, at `at`."""
    if not isinstance(expression, str):
        sentence = f"Expected five cron positions as one text, such as '30 7 * * 1-5', not {shown(expression)}."
        raise InvalidSchedule([Fault(at, "not_a_cron", sentence)])
    try:
        calendar = parse_cron(expression, timezone)
    except InvalidSchedule as refused:
        # A position is no field of its own here.
        places = [(zone_at if each.pointer == "/timezone" else at, each) for each in refused.faults]
        raise InvalidSchedule([Fault(place, each.code, each.sentence) for place, each in places]) from None
    positions = dict(zip(POSITION_NAMES, expression.split(), strict=True))
    return Spec(contract=None, timing={"cron": {**positions, "timezone": timezone}}, calendar=calendar)


def _v0(document: Any) -> Spec:
    schedule = parse_v0(document)
    return Spec(contract=V0, timing=schedule.timing, calendar=schedule.calendar)


def _profile(document: Any) -> Spec:
    profile = parse_profile(document)
    if profile.cron is None or profile.calendar is None:
        sentence = "This profile has no cron, so it is never due and there is nothing to preview."
        raise InvalidSchedule([Fault("/config/cron", "no_cron", sentence)])
    return Spec(contract=CRON_PROFILES, timing={"cron": profile.cron}, calendar=profile.calendar)


_KINDS: Final[tuple[tuple[Callable[[set[Any]], bool], Callable[[Any], Spec]], ...]] = (
    (lambda names: bool(names) and names <= _TIMINGS, _timing),
    (lambda names: bool(names & {"calendars", "intervals"}), _bare(CALENDAR)),
    (lambda names: bool(names & {"type", "spec", "target"}), _v0),
    (lambda names: "config" in names, _profile),
    (lambda names: "expr" in names, _expression),
    (lambda names: bool(names & set(POSITION_NAMES)), _bare("cron")),
)
"""How the names in a document tell what it is, and what reads it. Anything else is a configuration."""


def preview(
    calendar: Calendar, *, start: datetime, until: datetime | None = None, limit: int = MAX_LISTED
) -> dict[str, Any]:
    """The due instants from `start` to `until`, both included; without `until`, the first `limit` of them.

    `occurrences` holds at most `limit`, and `count` is how many there are even where the list was cut, which `truncated`
    tells. `notes` are sentences for a person: `warnings`, and what the changes of the clock in that time skip, move or repeat.
    `tzdata` is the release of the zone data. Nothing is stored, and no past instant will ever be run.

    Raises `Refused` where `until` lies before `start` or more than 100 years behind it.
    """
    assert 0 <= limit <= MAX_LISTED
    if until is not None and not timedelta(0) <= until - start <= MAX_WINDOW:
        raise Refused(
            "invalid_window",
            f"A preview ends at or after its start and at most 100 years later; found {instant_text(start)} to "
            f"{instant_text(until)}.",
            next_step="Name another end, or a number of instants.",
        )
    listed = list(islice(calendar.between(start, until or datetime.max.replace(tzinfo=start.tzinfo)), limit))
    count = len(listed) if until is None else calendar.count(start, until)
    end = until or (listed[-1] if listed else start)
    warnings = _warnings(calendar, start, until, count)
    return {
        "occurrences": [instant_text(instant) for instant in listed],
        "count": count,
        "notes": [*warnings, *_clock_notes(calendar, start, end)],
        "warnings": warnings,
        "truncated": count > len(listed),
        "timezone": calendar.timezone,
        "tzdata": tzdata_version(),
    }


def _warnings(calendar: Calendar, start: datetime, until: datetime | None, count: int) -> list[str]:
    if calendar.is_empty:
        return ["The calendar can never select an instant within its bounds."]
    if count:
        return []
    following = calendar.after(start) if until is None else calendar.after(until)
    if following is None:
        return ["The calendar selects no instant from then on: its last one has passed."]
    return [f"The calendar selects no instant in that time. The next one is {instant_text(following)}."]


def _clock_notes(calendar: Calendar, start: datetime, end: datetime) -> list[str]:
    sentences = [f"{note.sentence}." for note in clock_changes(calendar, start, end)]
    if len(sentences) <= MAX_NOTES:
        return sentences
    return [*sentences[:MAX_NOTES], f"{len(sentences) - MAX_NOTES} more notes on changes of the clock are not shown."]
