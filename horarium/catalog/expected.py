"""When each live schedule is to be looked at next, for a success that is overdue.

Written when a schedule is enabled and by whoever looks, and by no occurrence: it is the earliest time at which a success could
be overdue, by what was known at the last look. A success since then only moves that, and is found by the next look.
"""

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, exists, select, update

from horarium.catalog.notification_tables import expected
from horarium.catalog.tables import activations
from horarium.catalog.upsert import upsert
from horarium.schedule.identity import Scope


def expect(connection: Connection, schedule: int, scope: Scope, *, at: datetime) -> None:
    """Have a schedule that was just enabled, by its row, looked at once `at` is over."""
    upsert(
        connection,
        expected,
        {"schedule": schedule},
        {"org_id": scope.org_id, "environment_id": scope.environment_id, "look_at": at},
    )


def to_look_at(
    connection: Connection, scope: Scope, *, now: datetime, latest: datetime, limit: int
) -> dict[int, datetime]:
    """Schedules of an environment that are to be looked at, by their rows, with since when; longest first.

    So are those that are not until after `latest`: whoever wrote that had a clock that was ahead.
    """
    found: dict[int, datetime] = {}
    # Each by itself: SQLite takes both together for a reason to read what lies between.
    for since in (expected.c.look_at <= now, expected.c.look_at > latest):
        query = (
            select(expected.c.schedule, expected.c.look_at)
            .where(expected.c.org_id == scope.org_id, expected.c.environment_id == scope.environment_id, since)
            .order_by(expected.c.look_at)
            .limit(limit - len(found))
        )
        found |= {row.schedule: row.look_at for row in connection.execute(query)}
    return found


def look_again(connection: Connection, following: Mapping[int, tuple[datetime, datetime]]) -> None:
    """Have schedules, by their rows, looked at again: the time that was read, and the next. One that changed since is left."""
    if following:
        rows = [{"row": row, "read": read, "next": at} for row, (read, at) in sorted(following.items())]
        connection.execute(_LOOK_AGAIN, rows)


def expect_no_more(connection: Connection, schedules: Collection[int]) -> None:
    """Look no more at those of some schedules that are not live."""
    if schedules:
        live = exists().where(activations.c.schedule == expected.c.schedule, activations.c.ended_at.is_(None))
        connection.execute(delete(expected).where(expected.c.schedule.in_(sorted(schedules)), ~live))


_LOOK_AGAIN = (
    update(expected)
    .where(expected.c.schedule == bindparam("row"), expected.c.look_at == bindparam("read"))
    .values(look_at=bindparam("next"))
)
