"""How much of what was to be told was given up: of an environment, and about one schedule. Bounded, whatever is down."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, Select, func, select

from horarium.catalog.deliveries import DEAD
from horarium.catalog.endpoints import of_environment
from horarium.catalog.notification_tables import deliveries, endpoints, notifications
from horarium.catalog.schedules import Schedule
from horarium.schedule.identity import Scope

MOST: Final = 1_000
"""Dead letters that are counted at the most, so that a page costs the same while an endpoint is down for days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unheard:
    """What was given up: how much of it, up to `MOST`, and when the newest of that was."""

    count: int
    newest_at: datetime | None


def unheard(connection: Connection, scope: Scope) -> Unheard:
    """What was given up of everything that an environment was to be told."""
    return _told(connection, _dead(scope))


def unheard_about(connection: Connection, schedule: Schedule) -> Unheard:
    """What was given up about one schedule, among `MOST` dead letters of its environment."""
    among = _dead(schedule.key.scope).subquery()
    query = (
        select(among.c.ended_at)
        .select_from(among.join(notifications, among.c.notification == notifications.c.id))
        .where(notifications.c.schedule == schedule.row)
    )
    return _told(connection, query)


def _dead(scope: Scope) -> Select[tuple[datetime | None, int]]:
    return (
        select(deliveries.c.ended_at, deliveries.c.notification)
        .select_from(deliveries.join(endpoints, deliveries.c.endpoint == endpoints.c.id))
        .where(*of_environment(scope), deliveries.c.state == DEAD)
        .limit(MOST)
    )


def _told(
    connection: Connection, query: Select[tuple[datetime | None, int]] | Select[tuple[datetime | None]]
) -> Unheard:
    found = query.subquery()
    row = connection.execute(select(func.count(), func.max(found.c.ended_at))).one()
    return Unheard(count=row[0], newest_at=row[1])
