"""Scheduler v0's events (seed 002): metadata in the audit stream, beside ours and in the same transaction.

They are told of schedules of that contract only, whoever changed them and by whichever way.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from horarium.catalog.audit_events import record_event
from horarium.catalog.ledger import Entry, Run
from horarium.catalog.schedules import Schedule
from horarium.catalog.versions import Version
from horarium.schedule.facts import LATE
from horarium.schedule.identity import ActivationKey, RunKey, instant_text
from horarium.schedule.ledger import BY_CALENDAR, Disposition, Fate, Reason, Span
from horarium.schedule.plan import Plan
from horarium.schedule.v0 import CONTRACT, ScheduleEvent

MISFIRES = frozenset({Disposition.MISSED, Disposition.SKIPPED})
"""How an instant ends that the contract calls skipped."""


def of_change(kind: str, before: Mapping[str, Any] | None) -> ScheduleEvent | None:
    """What a change of ours is in the words of the contract; None where it has no word for it.

    `before` is where the schedule stood. To enable what was just created, or is enabled, is no event of its own.
    """
    match kind:
        case "published":
            return ScheduleEvent.CREATED if before is None else ScheduleEvent.UPDATED
        case "enabled":
            # A spent one-shot that is updated is told as resumed too: it had stopped firing, and fires again from now on.
            return ScheduleEvent.RESUMED if before is not None and before["state"] != "enabled" else None
        case "paused":
            return ScheduleEvent.PAUSED
        case "retired":
            return ScheduleEvent.DISABLED
        case _:
            return None


def tell_step(
    connection: Connection, schedule: Schedule, activation: ActivationKey, plan: Plan, *, by: str, now: datetime
) -> None:
    """Tell of what a step did: which instants wait, and which spans misfired.

    Of the runs that it staged nothing is told yet: one may still be withdrawn, or missed (`tell_decided`).
    """
    for instant in plan.waits:
        run = RunKey(activation=activation, nominal_time=instant)
        _tell_run(connection, schedule, ScheduleEvent.DEFERRED, run, by=by, now=now)
    for fate in plan.fates:
        if fate.disposition in MISFIRES:
            tell_skipped(connection, schedule, activation.generation, fate, by=by, now=now)


def tell_decided(
    connection: Connection,
    schedule: Schedule,
    version: Version,
    entry: Entry,
    run: Run,
    *,
    key: RunKey,
    by: str,
    now: datetime,
) -> None:
    """Tell that a run by the calendar uses its slot, in the transaction that admits or refuses it: a trigger is an intent.

    One that is late under `defer_once` is told as deferred before, unless it was when it began to wait. Of a run by hand
    nothing is told: that was triggered when it was asked for.
    """
    if entry.trigger != BY_CALENDAR:
        return
    defers = not version.is_damaged and version.configuration.policy.defer_once
    if defers and not run.buffered and now - entry.first_at > LATE:
        _tell_run(connection, schedule, ScheduleEvent.DEFERRED, key, by=by, now=now)
    _tell_run(connection, schedule, ScheduleEvent.TRIGGERED, key, by=by, now=now)


def tell_triggered(connection: Connection, schedule: Schedule, run: RunKey, *, by: str, now: datetime) -> None:
    """Tell that a run by hand took a slot."""
    _tell_run(connection, schedule, ScheduleEvent.TRIGGERED, run, by=by, now=now)


def tell_skipped(
    connection: Connection, schedule: Schedule, generation: int, fate: Fate, *, by: str, now: datetime
) -> None:
    """Tell that instants were missed or skipped. The counts of all these events add up to those of the ledger."""
    details = {
        "first_at": instant_text(fate.span.first),
        "last_at": instant_text(fate.span.last),
        "count": fate.span.count,
        "disposition": fate.disposition.value,
        "reason": fate.reason.value,
    }
    _record(connection, schedule, ScheduleEvent.SKIPPED, generation, details, by=by, now=now)


def tell_missed(
    connection: Connection,
    schedule: Schedule,
    run: RunKey,
    reason: Reason | None,
    *,
    disposition: Disposition = Disposition.MISSED,
    by: str,
    now: datetime,
) -> None:
    """Tell that a run which had its slot came too late to its admission, or that another run answers for it."""
    instant = run.nominal_time
    span = Span(first=instant, last=instant, count=1)
    fate = Fate(span=span, disposition=disposition, reason=reason or Reason.OUTSIDE_WINDOW)
    tell_skipped(connection, schedule, run.activation.generation, fate, by=by, now=now)


def tell_change(
    connection: Connection,
    schedule: Schedule,
    kind: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any],
    *,
    receipt_id: str | None,
    by: str,
    now: datetime,
) -> None:
    """Tell a change of ours in the words of the contract, where it has one."""
    told = of_change(kind, before)
    if told is None or schedule.contract != CONTRACT:
        return
    reference = after["reference"]
    details = {"reference": reference, **({} if receipt_id is None else {"receipt_id": receipt_id})}
    record_event(
        connection,
        schedule,
        told.value,
        at=now,
        actor=by,
        generation=after.get("generation"),
        revision=reference["revision"],
        details=details,
    )


def _tell_run(
    connection: Connection, schedule: Schedule, kind: ScheduleEvent, run: RunKey, *, by: str, now: datetime
) -> None:
    details = {"nominal_time": instant_text(run.nominal_time), "run_id": run.run_id, "trigger": run.trigger}
    _record(connection, schedule, kind, run.activation.generation, details, by=by, now=now)


def _record(
    connection: Connection,
    schedule: Schedule,
    kind: ScheduleEvent,
    generation: int,
    details: Mapping[str, Any],
    *,
    by: str,
    now: datetime,
) -> None:
    if schedule.contract == CONTRACT:
        record_event(connection, schedule, kind.value, at=now, actor=by, generation=generation, details=details)
