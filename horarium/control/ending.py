"""The closing step of an activation: nothing of it stays open but the runs that were admitted."""

from datetime import datetime

from sqlalchemy import Connection

from horarium.catalog import ledger, ledger_changes
from horarium.catalog.audit_events import record_event
from horarium.catalog.schedules import Activation, Schedule, change_activation, require_version
from horarium.catalog.versions import Version
from horarium.control import profile_logs, threads
from horarium.errors import InvalidSchedule
from horarium.schedule.facts import span_between
from horarium.schedule.identity import instant_text
from horarium.schedule.ledger import BY_CALENDAR, Disposition, Fate, Reason


def end_activation(
    connection: Connection,
    schedule: Schedule,
    activation: Activation,
    *,
    reason: Reason,
    because: str | None,
    now: datetime,
) -> datetime:
    """End a live activation, and return the instant that it accounts through.

    It accounts through the later of now and the latest nominal time already decided (another process's clock may be ahead).
    What is staged or waits after that is withdrawn, since it is not due any more; what is due and undecided is dropped with
    the reason, and so is a manual run, whose receipt was given. Admitted runs go on. The caller holds the schedule's lock.

    It ends without its calendar too, should that be beyond use (a zone that the zone data have no more). Then what is due and
    not entered cannot be counted: the mark stays where it was, and an audit event says so.
    """
    decided = ledger.latest_decided(connection, schedule, activation.generation)
    ended_at = max(now, activation.activated_at, *([decided] if decided else []))
    for entry in ledger.open_entries(connection, schedule):
        if entry.generation != activation.generation:
            continue
        if entry.disposition not in {Disposition.STAGED, Disposition.BUFFERED}:
            continue
        if entry.first_at > ended_at and entry.trigger == BY_CALENDAR:
            ledger_changes.withdraw(connection, entry)
        else:
            ledger_changes.close(connection, schedule, entry, Disposition.DROPPED, reason, now=now)
            profile_logs.tell_one(connection, schedule, entry.first_at, Disposition.DROPPED, reason)
            threads.tell_dropped(connection, schedule, entry.run_key(schedule.key), reason=reason, now=now)
    version = require_version(connection, schedule, activation.revision)
    accounted_through = ended_at
    try:
        undecided = span_between(version.configuration.calendar, activation.accounted_through, ended_at)
    except InvalidSchedule as error:
        accounted_through = min(activation.accounted_through, ended_at)
        _tell_uncounted(connection, schedule, activation, version, error, ended_at=ended_at, now=now)
    else:
        if undecided is not None:
            fate = Fate(span=undecided, disposition=Disposition.DROPPED, reason=reason)
            ledger_changes.write_fate(connection, schedule, generation=activation.generation, fate=fate, now=now)
            profile_logs.tell_fates(connection, schedule, [fate])
    change_activation(
        connection,
        activation,
        ended_at=ended_at,
        ended_as=reason.value,
        ended_reason=because,
        accounted_through=accounted_through,
        waiting=False,
    )
    return ended_at


def _tell_uncounted(
    connection: Connection,
    schedule: Schedule,
    activation: Activation,
    version: Version,
    error: InvalidSchedule,
    *,
    ended_at: datetime,
    now: datetime,
) -> None:
    after, until = instant_text(activation.accounted_through), instant_text(ended_at)
    record_event(
        connection,
        schedule,
        "uncounted",
        at=now,
        actor="system:schedule",
        generation=activation.generation,
        revision=version.revision,
        details={
            "because": f"What was due after {after} and until {until} is in no entry, since the calendar cannot be "
            f"evaluated: {error.faults[0]}",
            "after": after,
            "until": until,
        },
    )
