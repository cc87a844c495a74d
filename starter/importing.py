"""What a native Temporal schedule is in our words, and what of it has no equal here.

Places are those of `temporal schedule describe -o json`, below its `schedule`. A cron string is not to be seen any more: the
server has made calendars of it when it was sent, with both day fields to be matched, and those are what it runs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.enums.v1 import ScheduleOverlapPolicy
from temporalio.api.schedule.v1 import (
    IntervalSpec,
    Schedule,
    ScheduleAction,
    SchedulePolicies,
    ScheduleSpec,
    ScheduleState,
    StructuredCalendarSpec,
)

from horarium.calendar.calendars import EPOCH, FIRST_SECOND, LAST_SECOND, Calendar
from horarium.calendar.faults import Faults, shown
from horarium.calendar.instants import ANY_END, ANY_START
from horarium.calendar.translation import ranges
from horarium.errors import InvalidSchedule
from horarium.schedule.configuration import Configuration, parse_configuration
from horarium.schedule.policy import MAX_CATCHUP_WINDOW, MIN_CATCHUP_WINDOW, Overlap

UNFILLED: Final = "FILL IN: "
"""How a text begins that a person has to replace. No reference may hold a blank, so that `validate` refuses each of them."""
TO_FILL_IN: Final[Mapping[str, str]] = {
    "agent_version": f"{UNFILLED}the exact agent version, name@version",
    "input": f"{UNFILLED}the reference of its input",
    "output_target": f"{UNFILLED}the reference of its output target",
}
_FILLED: Final = dict.fromkeys(TO_FILL_IN, "filled-in")
_FIELDS: Final = {
    "second": "second",
    "minute": "minute",
    "hour": "hour",
    "day_of_month": "dayOfMonth",
    "month": "month",
    "day_of_week": "dayOfWeek",
    "year": "year",
}
"""Our fields, and how Temporal's JSON calls them."""
_TOLD_BEFORE: Final = frozenset({"no_rules", "not_a_timestamp"})
"""Codes of our own contract for what was told where it stands: that there is no rule, or that a bound is none."""
_LARGEST_VALUE: Final = 9_999
_NANOSECONDS: Final = 1_000_000_000
_DAY: Final = 86_400
_EVERY_DAY_OF_MONTH: Final = [{"start": 1, "end": 31, "step": 1}]
_EVERY_WEEKDAY: Final = [{"start": 0, "end": 6, "step": 1}]
_OVERLAPS: Final = {
    # What nobody set is what the server takes for it.
    ScheduleOverlapPolicy.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED: Overlap.SKIP,
    ScheduleOverlapPolicy.SCHEDULE_OVERLAP_POLICY_SKIP: Overlap.SKIP,
    ScheduleOverlapPolicy.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE: Overlap.BUFFER_ONE,
    ScheduleOverlapPolicy.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL: Overlap.BUFFER_ALL,
    ScheduleOverlapPolicy.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL: Overlap.ALLOW,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What a native schedule cannot say, or what a person wants instead. None leaves it to the schedule, or to be filled in.

    `run` holds the parts of the run request that were named.
    """

    name: str | None = None
    catchup_window: timedelta | None = None
    run: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A canonical configuration, and sentences on what a person has to know of it."""

    configuration: dict[str, Any]
    notes: tuple[str, ...]


def imported(schedule_id: str, native: Schedule, choices: Choices, *, since: datetime) -> Imported:
    """The configuration that says what a native schedule says, and overlaps and catches up as it does.

    Both are due when their rules say. The server does not keep to that around a change of the clock (DESIGN.md, section 4), so
    a note tells of the next one after `since`.

    Raises `InvalidSchedule` with everything that has no equal, each at its place. What a native schedule starts means nothing
    here: what runs comes from `choices`, or is left to be filled in.
    """
    faults = Faults()
    _check_spec(native.spec, faults)
    _check_state(native.state, faults)
    calendar, origins = _calendar(native.spec, faults)
    policy = _policy(native.policies, choices, faults)
    run = {"grants": [], "budget_id": None, "usage_class": "test_simulation", **choices.run}
    name = schedule_id if choices.name is None else choices.name
    document = {"name": name, "calendar": calendar, "policy": policy, "run": {**TO_FILL_IN, **run}}
    # Whether all the rest is what a configuration may hold, is asked as if what is left to a person were there.
    read = _check_rest({**document, "run": {**_FILLED, **run}}, origins, faults)
    faults.raise_if_any()
    assert read is not None, "without a fault there is a configuration"
    notes = (*_notes(schedule_id, native, document), *_clock_notes(read.calendar, since))
    return Imported(configuration=document, notes=notes)


def _check_spec(spec: ScheduleSpec, faults: Faults) -> None:
    if spec.HasField("jitter") and spec.jitter.ToNanoseconds():
        sentence = f"A jitter of {_seconds(spec.jitter)} delays each start by chance; a run here starts on its second."
        faults.add("/spec/jitter", "jitter", f"{sentence} Take it out there, then import again.")
    for name, found in (
        ("excludeStructuredCalendar", spec.exclude_structured_calendar),
        ("excludeCalendar", spec.exclude_calendar),
    ):
        for index in range(len(found)):
            sentence = (
                "Times that are left out have no equal: a calendar here is a union. Write rules for what is left."
            )
            faults.add(f"/spec/{name}/{index}", "exclusion", sentence)
    for name, unread in (("cronString", spec.cron_string), ("calendar", spec.calendar)):
        for index in range(len(unread)):
            sentence = "The server answers with text that it has not made a calendar of, so what it runs is not known."
            faults.add(f"/spec/{name}/{index}", "unexpanded", sentence)
    if spec.timezone_data:
        sentence = "The schedule brings zone data of its own; here a zone is a name of the pinned zone data."
        faults.add("/spec/timezoneData", "zone_data", sentence)


def _check_state(state: ScheduleState, faults: Faults) -> None:
    if state.limited_actions:
        sentence = f"It ends after {state.remaining_actions} more actions; here one ends at `end_at`, or is paused by a person."
        faults.add("/state/limitedActions", "limited_actions", sentence)


def _calendar(spec: ScheduleSpec, faults: Faults) -> tuple[dict[str, Any], dict[str, list[int]]]:
    """The canonical document, and for each of its rules which of the native ones it is."""
    rules = _each_once(spec.structured_calendar, lambda index, each: _rule(each, index, faults))
    intervals = _each_once(spec.interval, lambda index, each: _interval(each, index, faults))
    document = {
        "timezone": spec.timezone_name or "UTC",
        "calendars": [rule for _, rule in rules],
        "intervals": [interval for _, interval in intervals],
        "start_at": _bound(spec.start_time, "/spec/startTime", faults) if spec.HasField("start_time") else ANY_START,
        "end_at": _bound(spec.end_time, "/spec/endTime", faults) if spec.HasField("end_time") else ANY_END,
    }
    if not spec.structured_calendar and not spec.interval:
        faults.add("/spec", "no_rules", "It is never due by itself: it has neither calendars nor intervals.")
    return document, {"calendars": [at for at, _ in rules], "intervals": [at for at, _ in intervals]}


def _each_once(found: Sequence[Any], read: Callable[[int, Any], Any]) -> list[tuple[int, Any]]:
    """What each becomes, with its place; what became the same as an earlier one adds no instant."""
    kept: list[tuple[int, Any]] = []
    for index, each in enumerate(found):
        made = read(index, each)
        if made is not None and all(made != other for _, other in kept):
            kept.append((index, made))
    return kept


def _rule(native: StructuredCalendarSpec, index: int, faults: Faults) -> dict[str, Any] | None:
    rule = {}
    for name, theirs in _FIELDS.items():
        found = getattr(native, name)
        if name == "year" and not found:
            continue
        if not found:
            at = f"/spec/structuredCalendar/{index}/{theirs}"
            faults.add(at, "no_ranges", f"{theirs} has no range, so this calendar never matches. Take it out.")
            return None
        mask = 0
        for each in found:
            if min(each.start, each.end, each.step) < 0:
                at = f"/spec/structuredCalendar/{index}/{theirs}"
                sentence = f"{each.start} to {each.end} by {each.step} is no range: nothing in it is less than zero."
                faults.add(at, "out_of_range", sentence)
                return None
            end, step = max(each.start, each.end), max(each.step, 1)
            # Nothing beyond our own bounds is let through below; here a number must only not fill the memory.
            start, end = (min(value, _LARGEST_VALUE + 1) for value in (each.start, end))
            mask |= sum(1 << value for value in range(start, end + 1, step))
        rule[name] = ranges(mask)
    return rule


def _interval(native: IntervalSpec, index: int, faults: Faults) -> dict[str, int] | None:
    found = {}
    for name, theirs, duration in (
        ("every_seconds", "interval", native.interval),
        ("offset_seconds", "phase", native.phase),
    ):
        if duration.nanos:
            at = f"/spec/interval/{index}/{theirs}"
            faults.add(
                at, "not_whole_seconds", f"{_seconds(duration)} are no whole seconds, of which instants here are."
            )
            return None
        found[name] = duration.seconds
    return found


def _bound(native: Timestamp, at: str, faults: Faults) -> str | None:
    """A bound without its fraction. The server compares whole seconds, too: it runs the second that the start has cut.

    None with a fault for what lies outside of the years that have a date.
    """
    seconds = native.seconds + native.nanos // _NANOSECONDS
    if not FIRST_SECOND <= seconds <= LAST_SECOND:
        sentence = f"{seconds} s after 1970 lies outside of the years 1 to 9999. Set another one there, or none."
        faults.add(at, "out_of_range", sentence)
        return None
    return f"{(EPOCH + timedelta(seconds=seconds)).isoformat().removesuffix('+00:00')}Z"


def _policy(native: SchedulePolicies, choices: Choices, faults: Faults) -> dict[str, Any]:
    overlap = _OVERLAPS.get(native.overlap_policy)
    if overlap is None:
        known = native.overlap_policy in ScheduleOverlapPolicy.values()
        name = ScheduleOverlapPolicy.Name(native.overlap_policy) if known else f"Policy {native.overlap_policy}"
        name = name.removeprefix("SCHEDULE_OVERLAP_POLICY_")
        sentence = (
            f"{name} ends a run that was admitted, for the next one; nothing here does. Choose another one there."
        )
        faults.add("/policies/overlapPolicy", "overlap", sentence)
    least, most = (int(each.total_seconds()) for each in (MIN_CATCHUP_WINDOW, MAX_CATCHUP_WINDOW))
    if choices.catchup_window is not None:
        window = int(choices.catchup_window.total_seconds())
    else:
        window = native.catchup_window.seconds
        if native.catchup_window.nanos or not least <= window <= most:
            sentence = (
                f"A catch-up window of {_seconds(native.catchup_window)} has no equal; here it is {least} to {most:,} "
                "whole seconds. Choose one with --catchup-window."
            )
            faults.add("/policies/catchupWindow", "catchup_window", sentence)
            window = least
    return {
        "overlap": (overlap or Overlap.SKIP).value,
        "catchup_window_seconds": window,
        "pause_on_failure": native.pause_on_failure,
    }


def _check_rest(document: dict[str, Any], origins: Mapping[str, list[int]], faults: Faults) -> Configuration | None:
    """Note what our own contract refuses of the rest, at the places of the native schedule; None where it refuses any."""
    try:
        return parse_configuration(document)
    except InvalidSchedule as refused:
        told = set()
        for fault in refused.faults:
            place = _place(fault.pointer, origins)
            # Of no rule: or the fault of the only one was told.
            if fault.code not in _TOLD_BEFORE and (place, fault.code) not in told:
                faults.add(place, fault.code, fault.sentence)
                told.add((place, fault.code))
        return None


def _place(ours: str, origins: Mapping[str, list[int]]) -> str:
    match ours.split("/")[1:]:
        case ["calendar", "timezone"]:
            return "/spec/timezoneName"
        case ["calendar", "start_at"]:
            return "/spec/startTime"
        case ["calendar", "end_at"]:
            return "/spec/endTime"
        case ["calendar", "calendars", index, *rest]:
            field = f"/{_FIELDS[rest[0]]}" if rest and rest[0] in _FIELDS else ""
            return f"/spec/structuredCalendar/{origins['calendars'][int(index)]}{field}"
        case ["calendar", "intervals", index, *_]:
            return f"/spec/interval/{origins['intervals'][int(index)]}"
        case ["calendar", *_]:
            return "/spec"
        case _:
            return ours


def _notes(schedule_id: str, native: Schedule, document: Mapping[str, Any]) -> Iterator[str]:
    yield _what_ran(native.action)
    unfilled = [f"/run/{name}" for name, text in TO_FILL_IN.items() if document["run"][name] == text]
    if unfilled:
        yield f"Fill in {', '.join(unfilled)}: until then `horarium validate` refuses it."
    if native.state.paused:
        yield "It is paused there. Nothing is enabled by importing, either."
    else:
        yield f"It goes on there. Pause {shown(schedule_id)} before its successor is enabled, else both fire."
    if native.state.notes:
        yield f"Its note there: {native.state.notes}"
    for index, rule in enumerate(document["calendar"]["calendars"]):
        if rule["day_of_month"] != _EVERY_DAY_OF_MONTH and rule["day_of_week"] != _EVERY_WEEKDAY:
            yield (
                f"/calendar/calendars/{index} selects dates by day of month and day of week at once, as the server does. Where "
                "it was a crontab line before, either of them was enough."
            )
    if native.policies.keep_original_workflow_id:
        yield "It keeps one workflow id for all its runs; here each run has one of its own."


def _clock_notes(calendar: Calendar, since: datetime) -> Iterator[str]:
    """That the server may run something else around the next change of the clock, where one lies ahead of its rules."""
    if calendar.wall is None:
        return
    start = max((since - EPOCH) // timedelta(seconds=1), calendar.first)
    change = next(calendar.wall.zone.changes(start, calendar.last), None) if start <= calendar.last else None
    if change is not None:
        day = (EPOCH + timedelta(seconds=change.at)).date()
        yield (
            f"The clock of {calendar.timezone} changes next on {day} UTC. Around a change the server may lose runs, or start "
            "some that are not due; here they are due as the calendar says, and `horarium preview` shows when."
        )


def _what_ran(action: ScheduleAction) -> str:
    workflow = action.start_workflow
    if not workflow.workflow_type.name:
        return "What it starts there is not carried over."
    limits = [
        name
        for name in ("workflow_execution_timeout", "workflow_run_timeout", "workflow_task_timeout", "retry_policy")
        if workflow.HasField(name)
    ]
    rest = f" Its {', '.join(limits)} are not carried over: an agent declares its own time limit." if limits else ""
    queue = workflow.task_queue.name
    name = shown(workflow.workflow_type.name)
    return f"It starts workflow {name} on task queue {shown(queue)}; here an agent runs instead.{rest}"


def _seconds(duration: Duration) -> str:
    """Seconds as people read them, whole days told beside them."""
    nanoseconds = duration.ToNanoseconds()
    whole, rest = divmod(abs(nanoseconds), _NANOSECONDS)
    days = f" s ({whole // _DAY:,} days)" if whole > _DAY and not whole % _DAY and not rest else " s"
    fraction = f".{rest:09}".rstrip("0") if rest else ""
    return f"{'-' if nanoseconds < 0 else ''}{whole:,}{fraction}{days}"
