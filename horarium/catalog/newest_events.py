"""The newest audit events of one schedule, for people: what happened last comes first."""

from collections.abc import Sequence

from sqlalchemy import Connection, RowMapping, select

from horarium.catalog.schedules import Schedule
from horarium.catalog.tables import audit_events


def newest_events(
    connection: Connection, schedule: Schedule, *, limit: int, before: int | None = None, after: int | None = None
) -> Sequence[RowMapping]:
    """At most `limit` audit events, newest first: those before the event `before` and behind the event `after`."""
    query = (
        select(audit_events)
        .where(audit_events.c.schedule == schedule.row)
        .order_by(audit_events.c.id.desc())
        .limit(limit)
    )
    if before is not None:
        query = query.where(audit_events.c.id < before)
    if after is not None:
        query = query.where(audit_events.c.id > after)
    return connection.execute(query).mappings().all()
