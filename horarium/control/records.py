"""What is stored of schedules, as plain documents for people and programs: records, the directory, ledger and events.

All values are ready for JSON: instants are texts in UTC that end in `Z`. One call is one transaction, so a document never
shows two moments.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from horarium.catalog import ledger
from horarium.catalog.audit_events import list_events
from horarium.catalog.environments import Environment, require_environment
from horarium.catalog.presence import Observation, execution_ready, observations
from horarium.catalog.schedules import (
    Activation,
    Schedule,
    find_activation,
    list_schedules,
    require_schedule,
    require_version,
)
from horarium.catalog.standings import Standing, standings
from horarium.catalog.versions import Version
from horarium.control.archived import archived
from horarium.control.events import reference
from horarium.errors import InvalidSchedule, Refused
from horarium.schedule.identity import ScheduleKey, Scope, instant_text, schedule_key
from horarium.schedule.ledger import Disposition, Reason

MAX_PAGE = 50
"""Schedules on one page of the directory (the canonical contract)."""
UNREADABLE = "(unreadable)"
"""The name of a schedule whose stored configuration is damaged."""


def record(connection: Connection, key: ScheduleKey, *, revision: int | None = None, now: datetime) -> dict[str, Any]:
    """A schedule at its head, or at one exact revision, with its activation and the runtime state observed last.

    `problem` says what keeps this release from using a version that is shown or enabled, where something does. Raises
    `NotFound` for an environment, schedule or revision that is not there.
    """
    environment = require_environment(connection, key.scope)
    (standing,) = standings(connection, [require_schedule(connection, key)])
    version = standing.head if revision is None else require_version(connection, standing.schedule, revision)
    seen = observations(connection, [standing.schedule]).get(standing.schedule.row)
    shown = _entry(environment, standing, version, seen, ready=execution_ready(connection, now=now))
    return {**shown, "configuration": _configuration(version)}


def head_of(connection: Connection, schedule: Schedule) -> dict[str, Any]:
    """The newest version of a schedule and whether it fires: what a receipt says of a contract without publication."""
    version = require_version(connection, schedule, schedule.head_revision)
    current = find_activation(connection, schedule, schedule.generation)
    return {
        "schedule_id": schedule.key.schedule_id,
        "resource_id": version.resource_id,
        "reference": reference(schedule, version),
        "generation": schedule.generation,
        "enabled": current is not None and current.is_live,
    }


def require_limit(limit: int, most: int, what: str) -> None:
    """Raise `Refused` with `invalid_limit` for a page of fewer than one or of more than `most`; `what` are on it, as a word."""
    if not 1 <= limit <= most:
        raise Refused(
            "invalid_limit",
            f"A page has 1 to {most:,} {what}, not {limit}.",
            next_step="Continue with the next_cursor of the page before.",
        )


def directory(
    connection: Connection,
    scope: Scope,
    *,
    after: str | None = None,
    limit: int = 25,
    include_retired: bool = False,
    now: datetime,
) -> dict[str, Any]:
    """A page of an environment's schedules by UUID: `{"schedules": […], "next_cursor": UUID or None}`.

    An entry is the record of the head with its `name` and `next_due` in place of the configuration. One whose version cannot
    be used has a `problem` and no `next_due`, and hides no other. Raises `Refused` for a limit outside of 1 to 50 and for a
    cursor that is no UUID.
    """
    require_limit(limit, MAX_PAGE, "schedules")
    behind = None if after is None else schedule_key(scope, after).schedule_id
    environment = require_environment(connection, scope)
    found = list_schedules(connection, scope, after=behind, limit=limit + 1, include_retired=include_retired)
    page = found[:limit]
    listed = directory_entries(connection, environment, standings(connection, page), now=now)
    more = len(found) > limit
    return {"schedules": listed, "next_cursor": page[-1].key.schedule_id if more else None}


def directory_entries(
    connection: Connection, environment: Environment, of: Sequence[Standing], *, now: datetime
) -> list[dict[str, Any]]:
    """The entries of a directory, in as many queries for fifty schedules as for one."""
    seen = observations(connection, [each.schedule for each in of])
    ready = execution_ready(connection, now=now)
    listed = []
    for standing in of:
        head = standing.head
        entry = _entry(environment, standing, head, seen.get(standing.schedule.row), ready=ready)
        due = next_due(standing, now=now)
        name = UNREADABLE if head.is_damaged else head.configuration.name
        listed.append({"name": name, **entry, "next_due": None if due is None else instant_text(due)})
    return listed


def occurrences(
    connection: Connection,
    key: ScheduleKey,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    dispositions: Sequence[Disposition] = (),
    generation: int | None = None,
    touched_since: datetime | None = None,
    limit: int | None = None,
    newest_first: bool = False,
) -> list[dict[str, Any]]:
    """A schedule's ledger: one document for each due instant, span of them, or manual run.

    `since` and `until` are nominal times; a span counts where any of it lies between them. `touched_since` leaves what is
    open or was closed from then on. `lateness_ms` is how long after its nominal time the agent began.
    """
    schedule = require_schedule(connection, key)
    found = ledger.list_entries(
        connection,
        schedule,
        generation=generation,
        since=since,
        until=until,
        dispositions=dispositions,
        touched_since=touched_since,
        newest_first=newest_first,
        limit=limit,
    )
    return [occurrence_document(entry, run) for entry, run in found]


def events(connection: Connection, key: ScheduleKey, *, after: int = 0, limit: int = 1_000) -> list[dict[str, Any]]:
    """A schedule's audit events, oldest first, beginning behind the event with the id `after`."""
    schedule = require_schedule(connection, key)
    return [
        {
            "id": row["id"],
            "at": instant_text(row["at"]),
            "kind": row["kind"],
            "actor": row["actor"],
            "generation": row["generation"],
            "revision": row["revision"],
            "details": row["details"],
        }
        for row in list_events(connection, schedule, after=after, limit=limit)
    ]


def archived_events(connection: Connection, key: ScheduleKey) -> list[dict[str, Any]]:
    """The archives that may hold audit events of a schedule which stood before those that are here."""
    return archived(connection, key.scope, since=require_schedule(connection, key).created_at, events=True)


def _entry(
    environment: Environment, standing: Standing, version: Version, seen: Observation | None, *, ready: bool
) -> dict[str, Any]:
    schedule, activation, activated = standing.schedule, standing.activation, standing.activated
    faults = {version.fault, None if activated is None else activated.fault} - {None}
    problem = {"problem": " ".join(sorted(str(fault) for fault in faults))} if faults else {}
    return {
        "schedule_id": schedule.key.schedule_id,
        "resource_id": version.resource_id,
        "reference": reference(schedule, version),
        "head": reference(schedule, standing.head),
        "retired": schedule.retired_at is not None,
        "published_at": instant_text(version.published_at),
        "published_by": version.published_by,
        "activation": _activation(standing),
        "runtime": _runtime(environment, activation, seen),
        "execution_ready": ready,
        **problem,
    }


def next_due(standing: Standing, *, now: datetime) -> datetime | None:
    """The next instant that a live activation will account for; None where nothing fires, or none can be found."""
    activation, version = standing.activation, standing.activated
    if activation is None or version is None or not activation.is_live or version.fault:
        return None
    return version.configuration.calendar.after(max(now, activation.activated_at))


def last_outcome(entry: ledger.Entry | None) -> dict[str, Any] | None:
    """What became of what a schedule answered for last: whoever sees only that it is enabled takes it for well. None before."""
    if entry is None:
        return None
    return {
        "disposition": entry.disposition.value,
        "reason": None if entry.reason is None else entry.reason.value,
        "nominal_time": instant_text(entry.last_at),
    }


def _configuration(version: Version) -> Mapping[str, Any]:
    """As it was submitted; nothing of what is no document any more, for which the record has its `problem`."""
    try:
        return version.document
    except InvalidSchedule:
        return {}


def _activation(standing: Standing) -> dict[str, Any] | None:
    activation, version = standing.activation, standing.activated
    if activation is None or version is None:
        return None
    return {
        "version": reference(standing.schedule, version),
        "generation": activation.generation,
        "enabled": activation.enabled,
        "changed_at": instant_text(activation.changed_at),
        "changed_by": activation.changed_by,
    }


def _runtime(environment: Environment, activation: Activation | None, seen: Observation | None) -> dict[str, Any]:
    """The runtime state (DESIGN.md, section 7). What was observed of another generation says nothing about this one."""
    generation = 0 if activation is None else activation.generation
    current = seen if seen is not None and seen.generation == generation else None
    state, reason = _state(environment, activation, current)
    runtime = {"state": state, "generation": generation}
    if current is not None:
        runtime["observed_at"] = instant_text(current.observed_at)
    if reason is not None:
        runtime["reason"] = reason
    return runtime


def _state(
    environment: Environment, activation: Activation | None, current: Observation | None
) -> tuple[str, str | None]:
    if environment.runtime_profile is None:
        return "unconfigured", None
    if activation is None:
        return "paused", None
    if activation.enabled and activation.ended_as == Reason.REVIEW:
        # Known from the catalog alone, and worth knowing before the controller comes by.
        return "review", activation.ended_reason
    if current is not None:
        return current.state, current.reason
    return ("pending" if activation.enabled else "stopping"), None


def occurrence_document(entry: ledger.Entry, run: ledger.Run | None) -> dict[str, Any]:
    """A line of the ledger for people and programs: what was due, where it stands and why, and its run."""
    evidence = None if run is None else run.evidence
    sentence = (evidence or {}).get("sentence") or (None if entry.reason is None else entry.reason.sentence)
    begun = None if run is None else run.begun_at
    return {
        "first_at": instant_text(entry.first_at),
        "last_at": instant_text(entry.last_at),
        "count": entry.count,
        "disposition": entry.disposition.value,
        "reason": None if entry.reason is None else entry.reason.value,
        "sentence": sentence,
        "generation": entry.generation,
        "trigger": entry.trigger,
        "triggered_by": None if run is None else run.triggered_by,
        "run_id": None if run is None else run.run_id,
        "workflow_id": None if run is None else run.workflow_id,
        "agent_version": None if run is None else run.agent_version,
        "begun_at": None if begun is None else instant_text(begun),
        "lateness_ms": None if begun is None else (begun - entry.first_at) // timedelta(milliseconds=1),
        "ended_at": None if run is None or run.ended_at is None else instant_text(run.ended_at),
        "summary": None if run is None else run.summary,
        "outputs": None if run is None else run.outputs,
        "cost": None if run is None else run.cost,
        "evidence": evidence,
    }
