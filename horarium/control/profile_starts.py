"""Starting a run of a cron profile by hand (seed 004), by any start event that its class declares."""

from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from horarium.catalog.environments import Environment
from horarium.catalog.profiles import StoredProfile
from horarium.catalog.schedules import require_schedule
from horarium.control import manual
from horarium.control.activation import Reviewed
from horarium.control.agent_classes import reported
from horarium.control.events import reference
from horarium.control.principals import WRITE_SCOPE, Principal, authorize
from horarium.control.profile_requests import require_json, require_name, require_profile
from horarium.control.receipts import Receipt, perform
from horarium.errors import Conflict, NotFound
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
    run is staged; admission has yet to decide on it. Raises `NotFound` with `start_event_not_found`, `Conflict` with
    `not_enabled` where the profile does not fire, and `InvalidSchedule` for an event of more than 64 KiB.
    """
    authorize(principal, scope, required_scope, human=True)
    require_name(scope, agent_class, agent_id)
    require_json(document)

    def act(_environment: Environment, receipt_id: str) -> dict[str, Any]:
        _require_event(connection, scope, agent_class, start_event, now=now)
        event = parse_event(document, start_event)
        by_calendars = start_event == CRON_START_EVENT
        profile = require_profile(connection, scope, agent_class, agent_id)
        staged = manual.trigger(
            connection,
            _schedule_of(profile),
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


def _require_event(connection: Connection, scope: Scope, agent_class: str, start_event: str, *, now: datetime) -> None:
    declared = reported(connection, scope, agent_class, now=now)["start_events"]
    if start_event not in declared:
        raise NotFound(
            "start_event_not_found",
            f"Agent class {agent_class} declares no start event {start_event[:80]!r}.",
            next_step=f"It declares {', '.join(declared)}.",
        )


def _schedule_of(profile: StoredProfile) -> ScheduleKey:
    if profile.schedule_id is None:
        raise Conflict(
            "not_enabled",
            f"Profile {profile.agent_class}/{profile.agent_id} has never had a cron, so nothing stands behind it that can run.",
            next_step="Save it with a cron, then try again.",
        )
    return schedule_key(profile.scope, profile.schedule_id)
