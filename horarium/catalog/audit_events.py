"""Queries on audit events: appended, and never changed."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select

from horarium.catalog.schedules import Schedule
from horarium.catalog.tables import audit_events


def record_event(
    connection: Connection,
    schedule: Schedule,
    kind: str,
    *,
    at: datetime,
    actor: str,
    generation: int | None = None,
    revision: int | None = None,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Append to the schedule's audit events."""
    connection.execute(
        insert(audit_events).values(
            schedule=schedule.row,
            kind=kind,
            at=at,
            actor=actor,
            generation=generation,
            revision=revision,
            details=dict(details or {}),
        )
    )


def list_events(connection: Connection, schedule: Schedule, *, after: int, limit: int) -> Sequence[RowMapping]:
    """A page of audit events, oldest first, beginning behind the event `after`."""
    query = (
        select(audit_events)
        .where(audit_events.c.schedule == schedule.row, audit_events.c.id > after)
        .order_by(audit_events.c.id)
        .limit(limit)
    )
    return connection.execute(query).mappings().all()
