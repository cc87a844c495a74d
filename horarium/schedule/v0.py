"""Scheduler v0 (seed 002): the document as its contract writes it, and what it compiles to.

One schedule has a type with its spec, a stable target and a policy. A compiled schedule runs on the same plan as any other; the
rules of DESIGN.md, section 6, are in `stored_document`.
"""

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar

from horarium.calendar import Calendar, parse_calendar, parse_cron, parse_instant
from horarium.calendar.calendars import FIRST_SECOND
from horarium.calendar.cron import POSITION_NAMES
from horarium.calendar.faults import Faults, pointer, shown
from horarium.calendar.instants import ANY_END, ANY_START
from horarium.errors import Fault, InvalidSchedule
from horarium.schedule.document import json_faults
from horarium.schedule.policy import MAX_CATCHUP_WINDOW, MAX_CONCURRENT_RUNS, MIN_CATCHUP_WINDOW, Overlap
from horarium.schedule.timing import CALENDAR, TIMING

CONTRACT: Final = "v0"
"""How a schedule's row and a stored document name this contract."""
SESSION: Final = "session_id"
"""What must not be part of a schedule's identity: sessions end, schedules stay."""

# Never a slash, which parts the two identities in the name of a binding: else one name would read as several pairs.
_IDENTITY = re.compile(r"[A-Za-z0-9._@:-]{1,200}")
_IDENTITY_IN_WORDS: Final = "1 to 200 letters, digits or any of . _ @ : -"
_Kind = TypeVar("_Kind", bound=StrEnum)


class ScheduleType(StrEnum):
    """What kind of spec a schedule has."""

    ONE_SHOT = "one-shot"
    """`{run_at}`: a single instant."""
    INTERVAL = "interval"
    """`{every_seconds, offset_seconds = 0}`: from the Unix epoch on, in UTC."""
    CRON = "cron"
    """`{expr, timezone = "UTC"}`: five positions."""


class Misfire(StrEnum):
    """What becomes of an instant that was missed, or fell due while runs held every slot."""

    SKIP = "skip"
    """It is gone."""
    DEFER_ONCE = "defer_once"
    """The earliest of them runs late, once, and answers for the others. Not of a one-shot."""


class ScheduleEvent(StrEnum):
    """The metadata events of the contract, in the audit stream of its schedules."""

    CREATED = "SCHEDULE_CREATED"
    UPDATED = "SCHEDULE_UPDATED"
    TRIGGERED = "SCHEDULE_TRIGGERED"
    """A run takes a slot. That is an intent: admission decides on it afterwards."""
    SKIPPED = "MISFIRED_SKIPPED"
    """Instants were missed or skipped: one event for a span, with its count."""
    DEFERRED = "MISFIRED_DEFERRED"
    """An instant waits, to run late."""
    PAUSED = "SCHEDULE_PAUSED"
    RESUMED = "SCHEDULE_RESUMED"
    DISABLED = "SCHEDULE_DISABLED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Who runs: an agent in a workspace. It is the stable identity of the schedule, and never a session."""

    workspace_id: str
    agent_id: str

    @property
    def binding(self) -> str:
        """The name of the binding that supplies the run request (DESIGN.md, section 8)."""
        return f"{CONTRACT}:{self.workspace_id}/{self.agent_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class V0Schedule:
    """One schedule of the contract, as values.

    `timing` is as a version stores it, and `calendar` the same ready to evaluate. `source` is the document as it came, without
    defaults.
    """

    type: ScheduleType
    timing: Mapping[str, Any]
    calendar: Calendar
    target: Target
    misfire: Misfire
    max_concurrent_runs: int
    source: Mapping[str, Any]


def parse_v0(document: object) -> V0Schedule:
    """Check a schedule of the contract, and return it as values.

    Raises `InvalidSchedule` with all faults at once, each with a JSON pointer: unknown and missing fields, `session_id`
    wherever it stands, a spec of another type (`type_spec_mismatch`), and `defer_once` of a one-shot. An instant that has
    passed is accepted. `policy` and its parts may be left out, and mean `skip` and 1 then.
    """
    if found := json_faults(document):
        raise InvalidSchedule(found)
    faults = Faults()
    fields = _object(document, "", ("type", "spec", "target"), ("policy",), faults)
    kind = _choice(fields["type"], "/type", ScheduleType, faults) if "type" in fields else None
    timing = _timing(kind, fields["spec"], faults) if kind is not None and "spec" in fields else None
    target = _target(fields["target"], faults) if "target" in fields else None
    misfire, runs = _policy(kind, fields.get("policy", {}), faults)
    faults.raise_if_any()
    assert kind is not None, "without a fault there is a type"
    assert timing is not None, "without a fault there is a timing"
    assert target is not None, "without a fault there is a target"
    assert isinstance(document, dict)
    stored, calendar = timing
    return V0Schedule(
        type=kind,
        timing=stored,
        calendar=calendar,
        target=target,
        misfire=misfire,
        max_concurrent_runs=runs,
        source=copy.deepcopy(document),
    )


def stored_document(schedule: V0Schedule, run: Mapping[str, Any]) -> dict[str, Any]:
    """What a version stores of a schedule, with the run request of its binding.

    `skip` becomes overlap `skip` with the narrowest window, so that what is later than 10 seconds is missed. `defer_once`
    becomes `buffer_one` with the widest, and `defer_once` beside it. A failed run pauses nothing: its recovery is not the
    scheduler's. The same schedule and binding give the same document, so its digest can be approved before it is stored.
    """
    defers = schedule.misfire is Misfire.DEFER_ONCE
    window = MAX_CATCHUP_WINDOW if defers else MIN_CATCHUP_WINDOW
    overlap = Overlap.BUFFER_ONE if defers else Overlap.SKIP
    target = schedule.target
    return {
        "name": f"{target.agent_id} in {target.workspace_id} ({schedule.type})"[:200],
        "contract": CONTRACT,
        TIMING: copy.deepcopy(dict(schedule.timing)),
        "policy": {
            "overlap": overlap.value,
            "catchup_window_seconds": int(window.total_seconds()),
            "pause_on_failure": False,
            "max_concurrent_runs": schedule.max_concurrent_runs,
            **({"defer_once": True} if defers else {}),
        },
        "run": copy.deepcopy(dict(run)),
        "source": copy.deepcopy(dict(schedule.source)),
    }


_SPECS: Final[Mapping[ScheduleType, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    ScheduleType.ONE_SHOT: (("run_at",), ()),
    ScheduleType.INTERVAL: (("every_seconds",), ("offset_seconds",)),
    ScheduleType.CRON: (("expr",), ("timezone",)),
}
"""The fields that each type needs, and those that it may have."""


def _timing(kind: ScheduleType, spec: object, faults: Faults) -> tuple[dict[str, Any], Calendar] | None:
    before = len(faults)
    required, optional = _SPECS[kind]
    of_others = {name: other for other, names in _SPECS.items() if other is not kind for name in names[0] + names[1]}
    foreign = [name for name in of_others if isinstance(spec, dict) and name in spec]
    for name in foreign:
        sentence = (
            f"{name!r} belongs to the type {of_others[name].value!r}, and this schedule is of type {kind.value!r}."
        )
        faults.add(pointer("/spec", name), "type_spec_mismatch", f"{sentence} Correct one of the two.")
    own = {name: value for name, value in spec.items() if name not in foreign} if isinstance(spec, dict) else spec
    fields = _object(own, "/spec", required, optional, faults)
    if len(faults) > before:
        return None
    try:
        match kind:
            case ScheduleType.ONE_SHOT:
                return _instant(fields["run_at"])
            case ScheduleType.INTERVAL:
                return _interval(fields)
            case ScheduleType.CRON:
                return _cron(fields)
    except InvalidSchedule as refused:
        for fault in refused.faults:
            faults.add(_place(kind, fault), fault.code, fault.sentence)
        return None


def _instant(run_at: object) -> tuple[dict[str, Any], Calendar]:
    at = "/spec/run_at"
    calendar = parse_instant(run_at, at=at)
    if calendar.first == FIRST_SECOND:
        # What answers for an instant answers from the second before it.
        raise InvalidSchedule(
            [Fault(at, "out_of_range", f"{shown(run_at)} is the first second there is; name another.")]
        )
    return {"instant": run_at}, calendar


def _interval(fields: Mapping[str, Any]) -> tuple[dict[str, Any], Calendar]:
    rule = {"every_seconds": fields["every_seconds"], "offset_seconds": fields.get("offset_seconds", 0)}
    bounds = {"start_at": ANY_START, "end_at": ANY_END}
    calendar = {"timezone": "UTC", "calendars": [], "intervals": [rule], **bounds}
    return {CALENDAR: calendar}, parse_calendar(calendar)


def _cron(fields: Mapping[str, Any]) -> tuple[dict[str, Any], Calendar]:
    expression = fields["expr"]
    if not isinstance(expression, str):
        sentence = f"Expected five cron positions as one text, such as '30 7 * * 1-5', not {shown(expression)}."
        raise InvalidSchedule([Fault("/expr", "not_a_cron", sentence)])
    timezone = fields.get("timezone", "UTC")
    calendar = parse_cron(expression, timezone)
    positions = dict(zip(POSITION_NAMES, expression.split(), strict=True))
    return {"cron": {**positions, "timezone": timezone}}, calendar


def _place(kind: ScheduleType, fault: Fault) -> str:
    """Where a fault of a timing stands in the spec that it was made from."""
    last = fault.pointer.rpartition("/")[2]
    match kind:
        case ScheduleType.ONE_SHOT:
            return fault.pointer
        case ScheduleType.INTERVAL:
            return f"/spec/{last}"
        case ScheduleType.CRON:
            # A position is no field of its own here: it is part of one text.
            return "/spec/timezone" if last == "timezone" else "/spec/expr"


def _target(value: object, faults: Faults) -> Target | None:
    before = len(faults)
    fields = _object(value, "/target", ("workspace_id", "agent_id"), (), faults)
    for name, text in fields.items():
        if not isinstance(text, str) or not _IDENTITY.fullmatch(text):
            sentence = f"{name!r} is a stable identity: {_IDENTITY_IN_WORDS}; found {shown(text)}."
            faults.add(pointer("/target", name), "not_an_identity", sentence)
    return Target(**fields) if len(faults) == before else None


def _policy(kind: ScheduleType | None, value: object, faults: Faults) -> tuple[Misfire, int]:
    fields = _object(value, "/policy", (), ("misfire", "max_concurrent_runs"), faults)
    misfire, runs = Misfire.SKIP, fields.get("max_concurrent_runs", 1)
    if "misfire" in fields:
        misfire = _choice(fields["misfire"], "/policy/misfire", Misfire, faults) or misfire
    if misfire is Misfire.DEFER_ONCE and kind is ScheduleType.ONE_SHOT:
        sentence = 'A one-shot has the misfire policy "skip" only; "defer_once" is for interval and cron.'
        faults.add("/policy/misfire", "one_shot_skips", sentence)
    if not isinstance(runs, int) or isinstance(runs, bool) or not 1 <= runs <= MAX_CONCURRENT_RUNS:
        sentence = f"This is an integer from 1 to {MAX_CONCURRENT_RUNS:,}; found {shown(runs)}."
        faults.add("/policy/max_concurrent_runs", "out_of_range", sentence)
        return misfire, 1
    return misfire, runs


def _choice(value: object, at: str, kind: type[_Kind], faults: Faults) -> _Kind | None:
    if isinstance(value, str) and value in list(kind):
        return kind(value)
    choices = ", ".join(f'"{each}"' for each in kind)
    faults.add(at, "unknown_value", f"This is one of {choices}; found {shown(value)}.")
    return None


def _object(
    value: object, at: str, required: tuple[str, ...], optional: tuple[str, ...], faults: Faults
) -> dict[str, Any]:
    """The known members of an object; what is missing, unknown, or identifies a session, is noted."""
    names = (*required, *optional)
    if not isinstance(value, dict):
        faults.add(at, "not_an_object", f"This is an object with {', '.join(names)}; found {shown(value)}.")
        return {}
    for name in required:
        if name not in value:
            faults.add(pointer(at, name), "missing_field", f"The field {name} is required.")
    if SESSION in value:
        sentence = f"A schedule is never bound to a session: name workspace_id and agent_id, and leave {SESSION} out."
        faults.add(pointer(at, SESSION), "session_identity", sentence)
    faults.check_members(value, at, (*names, SESSION))
    return {name: value[name] for name in names if name in value}
