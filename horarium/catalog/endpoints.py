"""Where operators want to be told, and of what. Whoever changes an endpoint holds the lock of its environment."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, RowMapping, delete, func, insert, or_, select, update

from horarium.catalog.notification_tables import endpoints
from horarium.catalog.tables import environments, schedules
from horarium.schedule.identity import Scope
from horarium.schedule.notifications import Kind, kinds_of_text, kinds_text

MAX_ERROR: Final = 500
"""Characters that are kept of why something was not delivered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where somebody wants to be told. `schedule_id` is None where it is about all schedules of the environment.

    `secret` is the name of an environment variable. A stopped one has said that it is gone, and is told nothing more.
    """

    row: int
    name: str
    url: str
    secret: str
    private: bool
    kinds: frozenset[Kind]
    schedule_id: str | None
    declared_at: datetime
    declared_by: str
    stopped_at: datetime | None
    stopped_because: str | None
    delivered_at: datetime | None

    @property
    def is_heartbeat(self) -> bool:
        """Whether it is the heartbeat of its schedule."""
        return Kind.HEARTBEAT in self.kinds


def listened_for(connection: Connection, scope: Scope) -> frozenset[Kind]:
    """What anybody wants to be told of in an environment."""
    text = connection.execute(
        select(environments.c.notifies).where(
            environments.c.org_id == scope.org_id, environments.c.environment_id == scope.environment_id
        )
    ).scalar_one_or_none()
    return kinds_of_text(text or "")


def list_endpoints(connection: Connection, scope: Scope) -> Sequence[Endpoint]:
    """All endpoints of an environment, by name."""
    query = select(endpoints).where(*of_environment(scope)).order_by(endpoints.c.name)
    return [endpoint_of_row(row) for row in connection.execute(query).mappings()]


def endpoints_told(connection: Connection, scope: Scope, *, named: Collection[int]) -> Sequence[Endpoint]:
    """Those of an environment that are told something: all but the heartbeats, and of these the ones named by their rows.

    There may be a heartbeat for each schedule, and of them few are told at a time.
    """
    query = select(endpoints).where(
        *of_environment(scope),
        endpoints.c.stopped_at.is_(None),
        or_(endpoints.c.kinds != Kind.HEARTBEAT.value, endpoints.c.id.in_(named)),
    )
    return [endpoint_of_row(row) for row in connection.execute(query).mappings()]


def find_endpoint(connection: Connection, scope: Scope, name: str) -> Endpoint | None:
    """An endpoint by its name, or None."""
    row = (
        connection.execute(select(endpoints).where(*of_environment(scope), endpoints.c.name == name))
        .mappings()
        .one_or_none()
    )
    return None if row is None else endpoint_of_row(row)


def count_webhooks(connection: Connection, scope: Scope) -> int:
    """How many endpoints there are that are no heartbeats."""
    query = (
        select(func.count())
        .select_from(endpoints)
        .where(*of_environment(scope), endpoints.c.kinds != Kind.HEARTBEAT.value)
    )
    return connection.execute(query).scalar_one()


def put_endpoint(
    connection: Connection,
    scope: Scope,
    name: str,
    *,
    url: str,
    secret: str,
    private: bool,
    kinds: Collection[Kind],
    schedule_id: str | None,
    by: str,
    now: datetime,
) -> Endpoint:
    """Declare an endpoint, or change the one of that name; one that had stopped is told again from now on."""
    values = {
        "url": url,
        "secret": secret,
        "private": private,
        "kinds": kinds_text(kinds),
        "schedule_id": schedule_id,
        "declared_by": by,
        "stopped_at": None,
        "stopped_because": None,
        "held_until": None,
    }
    before = find_endpoint(connection, scope, name)
    if before is None:
        place = {"org_id": scope.org_id, "environment_id": scope.environment_id, "name": name}
        connection.execute(insert(endpoints).values(**place, **values, declared_at=now))
    else:
        # What happened before the change is still told to one that was there all the time.
        since = now if before.stopped_at is not None else before.declared_at
        connection.execute(update(endpoints).where(endpoints.c.id == before.row).values(**values, declared_at=since))
    _reckon(connection, scope)
    endpoint = find_endpoint(connection, scope, name)
    assert endpoint is not None, "it was written just now"
    if endpoint.is_heartbeat:
        _set_heartbeat(connection, scope, endpoint)
    return endpoint


def remove_endpoint(connection: Connection, scope: Scope, endpoint: Endpoint) -> None:
    """Tell an endpoint nothing any more. What waits for it goes with it."""
    _clear_heartbeat(connection, endpoint.row)
    connection.execute(delete(endpoints).where(endpoints.c.id == endpoint.row))
    _reckon(connection, scope)


def stop_endpoint(connection: Connection, scope: Scope, endpoint: Endpoint, *, because: str, now: datetime) -> bool:
    """It has said that it is gone: what waits for it is given up, and nothing more is told to it.

    False where it was removed since, or another address was declared, which has said nothing.
    """
    lock = select(environments.c.org_id).where(
        environments.c.org_id == scope.org_id, environments.c.environment_id == scope.environment_id
    )
    connection.execute(lock.with_for_update())
    stopped = connection.execute(
        update(endpoints)
        .where(*is_as(endpoint))
        .values(stopped_at=now, stopped_because=because[:MAX_ERROR])
        .returning(endpoints.c.id)
    ).first()
    if stopped is None:
        return False
    _clear_heartbeat(connection, endpoint.row)
    _reckon(connection, scope)
    return True


def is_as(endpoint: Endpoint) -> tuple[ColumnElement[bool], ...]:
    """That an endpoint is still at the address at which it was read, for a query."""
    return endpoints.c.id == endpoint.row, endpoints.c.url == endpoint.url


def _set_heartbeat(connection: Connection, scope: Scope, endpoint: Endpoint) -> None:
    connection.execute(
        update(schedules)
        .where(
            schedules.c.org_id == scope.org_id,
            schedules.c.environment_id == scope.environment_id,
            schedules.c.schedule_id == endpoint.schedule_id,
        )
        .values(heartbeat=endpoint.row)
    )


def _clear_heartbeat(connection: Connection, row: int) -> None:
    of = select(schedules.c.id).where(
        *(schedules.c[name] == endpoints.c[name] for name in ("org_id", "environment_id", "schedule_id")),
        endpoints.c.id == row,
        schedules.c.heartbeat == row,
    )
    connection.execute(update(schedules).where(schedules.c.id.in_(of.scalar_subquery())).values(heartbeat=None))


def _reckon(connection: Connection, scope: Scope) -> None:
    """Keep with the environment what its endpoints want, so that an occurrence need not ask."""
    wanted = (
        connection.execute(
            select(endpoints.c.kinds).where(*of_environment(scope), endpoints.c.stopped_at.is_(None)).distinct()
        )
        .scalars()
        .all()
    )
    text = kinds_text(kind for each in wanted for kind in kinds_of_text(each))
    here = (environments.c.org_id == scope.org_id, environments.c.environment_id == scope.environment_id)
    connection.execute(update(environments).where(*here).values(notifies=text or None))


def of_environment(scope: Scope) -> tuple[Any, ...]:
    """That an endpoint is one of that environment, for a query."""
    return endpoints.c.org_id == scope.org_id, endpoints.c.environment_id == scope.environment_id


def endpoint_of_row(row: RowMapping) -> Endpoint:
    """An endpoint, from a row with the columns of `endpoints`."""
    return Endpoint(
        row=row["id"],
        name=row["name"],
        url=row["url"],
        secret=row["secret"],
        private=row["private"],
        kinds=kinds_of_text(row["kinds"]),
        schedule_id=row["schedule_id"],
        declared_at=row["declared_at"],
        declared_by=row["declared_by"],
        stopped_at=row["stopped_at"],
        stopped_because=row["stopped_because"],
        delivered_at=row["delivered_at"],
    )
