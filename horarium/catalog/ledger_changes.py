"""Changes of the ledger and of its runs. Whoever makes one holds the schedule's lock."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from horarium.catalog import notifications, tallies
from horarium.catalog.ledger import Entry, Run, entry_of_row
from horarium.catalog.schedules import Schedule
from horarium.catalog.tables import entries, runs
from horarium.schedule.identity import RunKey
from horarium.schedule.ledger import BY_CALENDAR, Disposition, Fate, Reason, Span


def stage(
    connection: Connection,
    schedule: Schedule,
    key: RunKey,
    *,
    now: datetime,
    waiting_entry: int | None = None,
    triggered_by: str | None = None,
    start_event: str | None = None,
    event_data: dict[str, Any] | None = None,
) -> None:
    """Give a slot to a run: a new entry, or one that was waiting until now.

    `triggered_by` is who asked for a manual run; `start_event` the class of the event that shall start it, where that is not
    the calendar's, with the event's own fields in `event_data`.
    """
    if waiting_entry is None:
        result = connection.execute(
            _ADD_ENTRY,
            {
                "schedule": schedule.row,
                "generation": key.activation.generation,
                "trigger": key.trigger,
                "first_at": key.nominal_time,
                "last_at": key.nominal_time,
                "count": 1,
                "disposition": Disposition.STAGED,
                "held_since": now,
            },
        )
        assert result.inserted_primary_key is not None
        entry = result.inserted_primary_key[0]
    else:
        entry = waiting_entry
        _change_entry(connection, entry, disposition=Disposition.STAGED, held_since=now)
    connection.execute(
        _ADD_RUN,
        {
            "run_id": key.run_id,
            "entry": entry,
            "workflow_id": key.workflow_id,
            "triggered_by": triggered_by,
            "buffered": waiting_entry is not None,
            # A buffered instant does not age while it waits; its window begins when its slot became free.
            "window_from": now if waiting_entry is not None else key.nominal_time,
            "start_event": start_event,
            "event_data": event_data,
        },
    )


def buffer(connection: Connection, schedule: Schedule, *, generation: int, instants: Sequence[datetime]) -> None:
    """Let instants wait for a slot."""
    if instants:
        connection.execute(
            insert(entries),
            [
                {
                    "schedule": schedule.row,
                    "generation": generation,
                    "trigger": BY_CALENDAR,
                    "first_at": instant,
                    "last_at": instant,
                    "count": 1,
                    "disposition": Disposition.BUFFERED,
                }
                for instant in instants
            ],
        )


def write_fate(connection: Connection, schedule: Schedule, *, generation: int, fate: Fate, now: datetime) -> None:
    """Enter instants that ended without a run; they join the entry just before them where both share one fate.

    Whatever else happened before the span is entered first, or the span might join one beyond it.
    """
    just_before = (
        select(entries)
        .where(
            entries.c.schedule == schedule.row,
            entries.c.generation == generation,
            entries.c.trigger == BY_CALENDAR,
            entries.c.last_at < fate.span.first,
        )
        .order_by(entries.c.last_at.desc())
        .limit(1)
    )
    row = connection.execute(just_before).mappings().one_or_none()
    previous = None if row is None else entry_of_row(row)
    tallies.count_ended(
        connection,
        disposition=fate.disposition,
        reason=fate.reason,
        contract=schedule.contract,
        gateway=None,
        count=fate.span.count,
    )
    notifications.tell_ended(
        connection,
        schedule,
        disposition=fate.disposition,
        reason=fate.reason,
        generation=generation,
        span=fate.span,
        now=now,
    )
    # An entry that held a slot has a run, which is about one instant only.
    if (
        previous is not None
        and previous.held_since is None
        and (previous.disposition, previous.reason) == (fate.disposition, fate.reason)
    ):
        connection.execute(
            update(entries)
            .where(entries.c.id == previous.row)
            .values(last_at=fate.span.last, count=previous.count + fate.span.count, closed_at=now)
        )
        return
    connection.execute(
        insert(entries).values(
            schedule=schedule.row,
            generation=generation,
            trigger=BY_CALENDAR,
            first_at=fate.span.first,
            last_at=fate.span.last,
            count=fate.span.count,
            disposition=fate.disposition,
            reason=fate.reason,
            closed_at=now,
        )
    )


def set_disposition(connection: Connection, entry: Entry, disposition: Disposition) -> None:
    """Move an open entry on."""
    assert disposition.is_open
    _change_entry(connection, entry.row, disposition=disposition)


def close(
    connection: Connection,
    schedule: Schedule,
    entry: Entry,
    disposition: Disposition,
    reason: Reason | None,
    *,
    gateway: str | None = None,
    now: datetime,
) -> None:
    """Give an open entry its one answer. `gateway` is what its run went by, if it was on its way."""
    assert entry.closed_at is None, entry
    assert not disposition.is_open, disposition
    _change_entry(connection, entry.row, disposition=disposition, reason=reason, closed_at=now)
    tallies.count_ended(
        connection,
        disposition=disposition,
        reason=reason,
        contract=schedule.contract,
        gateway=gateway,
        count=entry.count,
    )
    notifications.tell_ended(
        connection,
        schedule,
        disposition=disposition,
        reason=reason,
        generation=entry.generation,
        span=Span(first=entry.first_at, last=entry.last_at, count=entry.count),
        run=entry.run_key(schedule.key),
        now=now,
    )


def note_begun(connection: Connection, schedule: Schedule, entry: Entry, run: Run, *, at: datetime) -> None:
    """Its agent has begun a run: how late that is of an occurrence, for whoever watches. Call it once for each run."""
    if entry.trigger == BY_CALENDAR:
        tallies.time_begun(
            connection,
            nominal=entry.first_at,
            begun_at=at,
            contract=schedule.contract,
            gateway=run.gateway,
            buffered=run.buffered,
        )


def withdraw(connection: Connection, entry: Entry) -> None:
    """Take back an entry that is staged or waits, undecided; its instant is no longer due."""
    assert entry.disposition in {Disposition.STAGED, Disposition.BUFFERED}, entry
    connection.execute(delete(runs).where(runs.c.entry == entry.row))
    connection.execute(delete(entries).where(entries.c.id == entry.row))


def change_run(connection: Connection, run_id: str, **values: Any) -> None:
    """Set columns of one run."""
    connection.execute(_CHANGE_RUN, {"changed": run_id, **values})


def _change_entry(connection: Connection, entry: int, **values: Any) -> None:
    connection.execute(_CHANGE_ENTRY, {"changed": entry, **values})


# What an occurrence changes, made once (see `horarium.catalog.schedules.OF_A_GENERATION`).
_ADD_ENTRY, _ADD_RUN = insert(entries), insert(runs)
_CHANGE_ENTRY = update(entries).where(entries.c.id == bindparam("changed"))
_CHANGE_RUN = update(runs).where(runs.c.run_id == bindparam("changed"))
