"""Starting a run of a cron profile by hand (seed 004), by any start event that its class declares."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from horarium.catalog.environments import Environment
from horarium.catalog.profiles import StoredProfile, find_profile
from horarium.catalog.schedules import Schedule, find_activation, find_schedule, require_schedule, require_version
from horarium.control import manual
from horarium.control.activation import Reviewed
from horarium.control.agent_classes import reported
from horarium.control.events import reference
from horarium.control.principals import WRITE_SCOPE, Principal, authorize
from horarium.control.profile_bindings import described
from horarium.control.profile_requests import require_json, require_name, require_profile
from horarium.control.profile_schedules import schedule_is_retired
from horarium.control.receipts import Receipt, perform
from horarium.errors import Conflict, NotFound, Refused
from horarium.schedule.identity import ScheduleKey, Scope, instant_text, schedule_key
from horarium.schedule.profiles import CRON_START_EVENT, parse_event, thread_id


def trigger(  # noqa: PLR0917 - the order of every operation: who, where, which, what, and the key
    connection: Connection,
    principal: Principal,
    scope: Scope,
    agent_class: str,
    agent_id: str,
    start_event: str,
    document: object,
    key: str,
    *,
    now: datetime,
    required_scope: str = WRITE_SCOPE,
) -> Receipt:
    """Start a run of a profile now, by a person, by any start event that its class declares.

    Unlike a run by the calendar it has a user, and is admitted on what that person may do and read. The receipt says that the
    run is staged; admission has yet to decide on it. Every run is one of a schedule. Raises `NotFound` with
    `start_event_not_found`, `Refused` with `agent_class_not_schedulable` where the class can have none, `Conflict` with
    `not_enabled` where the profile does not fire, and `InvalidSchedule` for an event of more than 64 KiB and for fields that
    do not fit what the class reports of them, each at its place.
    """
    authorize(principal, scope, required_scope, human=True)
    require_name(scope, agent_class, agent_id)
    require_json(document)

    def act(_environment: Environment, receipt_id: str) -> dict[str, Any]:
        found = find_profile(connection, scope, agent_class, agent_id)
        enabled = None if found is None else _enabled(connection, found)
        class_ = _described(connection, scope, agent_class, agent_id, enabled, now=now)
        _require_event(class_, start_event)
        event = parse_event(document, start_event, class_["event_schemas"].get(start_event))
        by_calendars = start_event == CRON_START_EVENT
        profile = require_profile(connection, scope, agent_class, agent_id)
        _require_schedulable(class_)
        if enabled is None:
            raise _not_enabled(connection, profile)
        staged = manual.trigger(
            connection,
            enabled.key,
            Reviewed(),
            receipt_id=receipt_id,
            allow_overlap=True,
            by=principal.name,
            now=now,
            start_event=None if by_calendars else start_event,
            event_data=None if by_calendars else event,
        )
        schedule = require_schedule(connection, staged.run.activation.schedule)
        return {
            "agent_class": agent_class,
            "agent_id": agent_id,
            "schedule_id": profile.schedule_id,
            "resource_id": staged.version.resource_id,
            "reference": reference(schedule, staged.version),
            "generation": staged.run.activation.generation,
            "thread_id": thread_id(agent_class, agent_id),
            "start_event": start_event,
            "run_id": staged.run.run_id,
            "workflow_id": staged.run.workflow_id,
            "trigger": staged.run.trigger,
            "nominal_time": instant_text(staged.run.nominal_time),
            "warnings": [],
        }

    body = {"agent_class": agent_class, "agent_id": agent_id, "start_event": start_event, "document": document}
    return perform(
        connection, scope, principal, key, operation="profile_trigger", body=body, expected=None, now=now, act=act
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Enabled:
    """The schedule behind a profile that fires, and the agent version that its runs go to; None where that cannot be read."""

    key: ScheduleKey
    agent_version: str | None


def _enabled(connection: Connection, profile: StoredProfile) -> _Enabled | None:
    schedule = _schedule_of(connection, profile)
    current = None if schedule is None else find_activation(connection, schedule, schedule.generation)
    if schedule is None or current is None or not current.is_live:
        return None
    version = require_version(connection, schedule, current.revision)
    agent_version = None if version.is_damaged else version.configuration.run.agent_version
    return _Enabled(key=schedule.key, agent_version=agent_version)


def _schedule_of(connection: Connection, profile: StoredProfile) -> Schedule | None:
    return find_schedule(connection, schedule_key(profile.scope, profile.schedule_id), lock=True)


def _described(
    connection: Connection, scope: Scope, agent_class: str, agent_id: str, enabled: _Enabled | None, *, now: datetime
) -> dict[str, Any]:
    """What the class reports, by the version that would run: what is bound now may be another one than what was enabled."""
    if enabled is None or enabled.agent_version is None:
        return described(connection, scope, agent_class, agent_id, now=now)
    return reported(connection, scope, agent_class, now=now, agent_version=enabled.agent_version)


def _require_event(class_: Mapping[str, Any], start_event: str) -> None:
    declared = class_["start_events"]
    # The calendar's event is taken by whoever can be scheduled, also by a class that handles only one derived from it.
    if start_event not in declared and not (start_event == CRON_START_EVENT and class_["is_schedulable"]):
        raise NotFound(
            "start_event_not_found",
            f"Agent class {class_['agent_class']} declares no start event {start_event[:80]!r}.",
            next_step=f"It declares {', '.join(declared)}.",
        )


def _require_schedulable(class_: Mapping[str, Any]) -> None:
    if not class_["is_schedulable"]:
        raise Refused(
            "agent_class_not_schedulable",
            f"Horarium starts runs of schedules, and agent class {class_['agent_class']} handles no {CRON_START_EVENT}, so its "
            "profiles have none.",
            next_step=f"Have the class handle {CRON_START_EVENT}, then save the profile with a cron.",
        )


def _not_enabled(connection: Connection, profile: StoredProfile) -> Conflict:
    called = f"Profile {profile.agent_class}/{profile.agent_id}"
    schedule = _schedule_of(connection, profile)
    if schedule is not None and schedule.retired_at is not None:
        return schedule_is_retired(schedule, schedule.retired_at)
    return Conflict(
        "not_enabled",
        f"{called} does not fire, and only what fires is run by hand too.",
        next_step="Save it with a cron, then try again.",
    )
