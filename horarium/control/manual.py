"""A run that a person asks for now. It obeys admission and overlap as every other run does.

It is decided under the lock of its schedule, under which a step's commit counts the slots again. So overlap has one decider.
The entry is staged here and started after the commit: by the caller, or else by the schedule's next step or the controller.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from horarium.catalog import ledger, ledger_changes
from horarium.catalog.schedules import Schedule
from horarium.catalog.versions import Version
from horarium.control import events, v0_events
from horarium.control.activation import Reviewed, present, require_execution, reviewed_version
from horarium.errors import Conflict
from horarium.schedule.identity import ActivationKey, RunKey, ScheduleKey
from horarium.schedule.policy import Policy
from horarium.schedule.profiles import CONTRACT as CRON_PROFILES


@dataclass(frozen=True, slots=True, kw_only=True)
class Triggered:
    """A manual run that holds its slot and waits to be started."""

    run: RunKey
    version: Version


def trigger(
    connection: Connection,
    key: ScheduleKey,
    reviewed: Reviewed,
    *,
    receipt_id: str,
    allow_overlap: bool,
    by: str,
    now: datetime,
    start_event: str | None = None,
    event_data: dict[str, Any] | None = None,
) -> Triggered:
    """Stage a run of the version that is enabled, for the present second; started by another event where one is named.

    Admission decides on it at once, and its end says nothing for `pause_on_failure`. Raises `Conflict` with `not_enabled`
    where nothing is enabled, with `overlap` where the schedule's runs hold every slot (unless `allow_overlap`), or where
    something else was reviewed; `Unavailable` while a runtime worker is missing.
    """
    environment, schedule, current = present(connection, key, reviewed)
    if current is None or not current.is_live:
        stands = "was never enabled" if current is None else f"is {current.ended_as}, not enabled"
        raise Conflict(
            "not_enabled",
            f"Schedule {key.schedule_id} {stands}; only an enabled version can be run.",
            next_step="Save the profile with a cron, then try again."
            if schedule.contract == CRON_PROFILES
            else "Enable the version that shall run, then try again.",
        )
    version = reviewed_version(connection, schedule, reviewed, default=current.revision, must_be=current.revision)
    require_execution(connection, environment, "A manual run", now=now)
    if not allow_overlap:
        _require_slot(connection, schedule, version.configuration.policy)
    activation = ActivationKey(schedule=key, generation=current.generation)
    run = RunKey(activation=activation, nominal_time=now.replace(microsecond=0), trigger=f"manual:{receipt_id}")
    ledger_changes.stage(
        connection, schedule, run, now=now, triggered_by=by, start_event=start_event, event_data=event_data
    )
    standing = events.activated(connection, schedule, current)
    events.tell(
        connection,
        schedule,
        "triggered",
        by=by,
        now=now,
        before=standing,
        after=standing,
        receipt_id=receipt_id,
        more={
            "run_id": run.run_id,
            "overlap": "allow" if allow_overlap else version.configuration.policy.overlap.value,
            **({} if start_event is None else {"start_event": start_event}),
        },
    )
    v0_events.tell_triggered(connection, schedule, run, by=by, now=now)
    return Triggered(run=run, version=version)


def _require_slot(connection: Connection, schedule: Schedule, policy: Policy) -> None:
    taken = ledger.count_holding(connection, schedule)
    if policy.slots is not None and taken >= policy.slots:
        raise Conflict(
            "overlap",
            f"Runs that are staged or active hold {taken} of {policy.slots} slots of schedule {schedule.key.schedule_id}.",
            next_step="Wait until one ends, or ask again with overlap allowed.",
        )
