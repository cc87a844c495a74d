"""What is to be told, written down in the transaction in which it happens.

Where nobody wants to be told, nothing is asked and nothing is written: the schedule as it was read says so. Whoever writes
here for a schedule holds its lock.
"""

import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, insert, select, update

from horarium.catalog.endpoints import Endpoint, listened_for
from horarium.catalog.notification_tables import notifications
from horarium.catalog.schedules import Schedule
from horarium.catalog.tables import schedules
from horarium.schedule.identity import RunKey, ScheduleKey, Scope
from horarium.schedule.ledger import BY_CALENDAR, Disposition, Reason, Span
from horarium.schedule.notifications import TROUBLE, Kind, kind_of

_AT_ONCE: Final = 500
"""Schedules that one question names."""


def tell_ended(
    connection: Connection,
    schedule: Schedule,
    *,
    disposition: Disposition,
    reason: Reason | None,
    generation: int,
    span: Span,
    run: RunKey | None = None,
    now: datetime,
) -> None:
    """Write down that instants have got their answer, where anybody wants to be told of it."""
    kind = kind_of(disposition, reason)
    if kind is None:
        return
    about = {
        "generation": generation,
        "trigger": BY_CALENDAR if run is None else run.trigger,
        "first_at": span.first,
        "last_at": span.last,
        "count": span.count,
        "disposition": disposition.value,
        "reason": reason,
        "run_id": None if run is None else run.run_id,
    }
    if kind is Kind.HEARTBEAT:
        _tell_success(connection, schedule, about, now=now)
        return
    _tell(connection, schedule, kind, about, now=now)


def tell_review(connection: Connection, schedule: Schedule, generation: int, *, because: str, now: datetime) -> None:
    """Write down that an activation ended because a person must look at it."""
    _tell(connection, schedule, Kind.REVIEW, {"generation": generation, "because": because}, now=now)


def tell_overdue(connection: Connection, schedule: Schedule, *, due_at: datetime, because: str, now: datetime) -> bool:
    """Write down that nothing has succeeded since an instant was due, once for each silence; False where that was done."""
    if schedule.silent_since is not None:
        return False
    _change(connection, schedule, silent_since=due_at)
    about = {"generation": schedule.generation, "first_at": due_at, "last_at": due_at, "count": 1, "because": because}
    _tell(connection, schedule, Kind.OVERDUE, about, now=now)
    return True


def tell_test(connection: Connection, scope: Scope, endpoint: Endpoint, *, by: str, now: datetime) -> str:
    """Write down that an endpoint is tried, and return the id of the message."""
    about = {"endpoint": endpoint.row, "because": f"A test, asked for by {by!r}."}
    return _add(connection, scope, None, Kind.TEST, about, now=now)


def silences(connection: Connection, scope: Scope, ids: Collection[str]) -> dict[str, datetime | None]:
    """Since when each of some schedules is silent, by its id; None where its successes come in time."""
    found: dict[str, datetime | None] = {}
    wanted = sorted(ids)
    for begin in range(0, len(wanted), _AT_ONCE):
        query = select(schedules.c.schedule_id, schedules.c.silent_since).where(
            schedules.c.org_id == scope.org_id,
            schedules.c.environment_id == scope.environment_id,
            schedules.c.schedule_id.in_(wanted[begin : begin + _AT_ONCE]),
        )
        found |= {row.schedule_id: row.silent_since for row in connection.execute(query)}
    return found


def untold(connection: Connection, scope: Scope, overdue: Collection[int]) -> Sequence[ScheduleKey]:
    """Those of some overdue schedules, by row, of whose silence nobody was told yet."""
    query = select(schedules).where(
        schedules.c.id.in_(list(overdue)),
        schedules.c.org_id == scope.org_id,
        schedules.c.environment_id == scope.environment_id,
        schedules.c.silent_since.is_(None),
    )
    return [
        ScheduleKey(org_id=row["org_id"], environment_id=row["environment_id"], schedule_id=row["schedule_id"])
        for row in connection.execute(query).mappings()
    ]


def _tell_success(connection: Connection, schedule: Schedule, about: Mapping[str, Any], *, now: datetime) -> None:
    scope = schedule.key.scope
    if schedule.heartbeat is not None and about["trigger"] == BY_CALENDAR:
        beat = {**about, "endpoint": schedule.heartbeat}
        _add(connection, scope, schedule, Kind.HEARTBEAT, beat, now=now)
    if not schedule.troubled and schedule.silent_since is None:
        return
    _change(connection, schedule, troubled=False, silent_since=None)
    if schedule.troubled and Kind.RECOVERED in _wanted(connection, schedule):
        _add(connection, scope, schedule, Kind.RECOVERED, about, now=now)


def _tell(connection: Connection, schedule: Schedule, kind: Kind, about: Mapping[str, Any], *, now: datetime) -> None:
    wanted = _wanted(connection, schedule)
    if kind in TROUBLE and wanted and not schedule.troubled:
        _change(connection, schedule, troubled=True)
    if kind in wanted:
        _add(connection, schedule.key.scope, schedule, kind, about, now=now)


def _wanted(connection: Connection, schedule: Schedule) -> frozenset[Kind]:
    return listened_for(connection, schedule.key.scope) if schedule.notifies is None else schedule.notifies


def _change(connection: Connection, schedule: Schedule, **values: Any) -> None:
    connection.execute(update(schedules).where(schedules.c.id == schedule.row).values(**values))


def _add(
    connection: Connection,
    scope: Scope,
    schedule: Schedule | None,
    kind: Kind,
    about: Mapping[str, Any],
    *,
    now: datetime,
) -> str:
    message_id = str(uuid.uuid4())
    connection.execute(
        insert(notifications).values(
            message_id=message_id,
            org_id=scope.org_id,
            environment_id=scope.environment_id,
            schedule=None if schedule is None else schedule.row,
            kind=kind.value,
            at=now,
            spread=False,
            **about,
        )
    )
    return message_id
