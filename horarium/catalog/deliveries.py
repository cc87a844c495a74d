"""How far the telling of each notification has come: to whom it goes, who is at it, and what became of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    and_,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from horarium.catalog.endpoints import (
    MAX_ERROR,
    Endpoint,
    endpoint_of_row,
    endpoints_told,
    find_endpoint,
    is_as,
    of_environment,
    stop_endpoint,
)
from horarium.catalog.notification_tables import deliveries, endpoints, notifications
from horarium.catalog.tables import activations, environments, schedules, versions
from horarium.schedule.identity import Scope
from horarium.schedule.ledger import Disposition, Span
from horarium.schedule.notifications import PUT_OFF_AT_MOST, Kind

WAITING: Final = "waiting"
DELIVERED: Final = "delivered"
DEAD: Final = "dead"
"""The states of a delivery. A dead one was given up, and waits for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """One thing that happened, as stored. `span` is None of what is about no instant."""

    message_id: str
    kind: Kind
    at: datetime
    org_id: str
    environment_id: str
    schedule_id: str | None
    generation: int | None
    trigger: str | None
    span: Span | None
    disposition: Disposition | None
    reason: str | None
    run_id: str | None
    because: str | None
    configuration: str | None
    """The text of the version that its generation enabled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A delivery that is ours to try until its `next_at`, and its endpoint as it was declared when it was taken up.

    `attempts` counts this one, and tells it from a later one.
    """

    row: int
    endpoint: Endpoint
    attempts: int
    since: datetime
    notification: Notification


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead:
    """A delivery that was given up."""

    row: int
    endpoint: str
    attempts: int
    ended_at: datetime
    last_status: int | None
    last_error: str | None
    notification: Notification


@dataclass(frozen=True, slots=True, kw_only=True)
class Todo:
    """What a notifier has to do: whether anything is to be spread, and the endpoints for which something is due."""

    unspread: bool = False
    due: tuple[Endpoint, ...] = ()


def todo(connection: Connection, scope: Scope, *, now: datetime, limit: int) -> Todo:
    """What is to be done now, at most `limit` endpoints of it, heartbeats last. Where nobody listens it asks once.

    What was written down while somebody still listened is to be spread then too, to nobody, or it would wait for ever.
    """
    query = select(environments.c.notifies, exists().where(*_is_unspread(scope)).label("unspread")).where(
        environments.c.org_id == scope.org_id, environments.c.environment_id == scope.environment_id
    )
    row = connection.execute(query).one_or_none()
    if row is None or not row.notifies:
        return Todo(unspread=row is not None and row.unspread)
    waiting = (deliveries.c.endpoint == endpoints.c.id, deliveries.c.state == WAITING)
    # One for each, since an index leads to either.
    waits = or_(*(exists().where(*waiting, come) for come in _has_come(deliveries.c.next_at, now)))
    due = (
        select(endpoints)
        .where(*of_environment(scope), endpoints.c.stopped_at.is_(None), _may_be_told(now), waits)
        .order_by(endpoints.c.kinds == Kind.HEARTBEAT.value, endpoints.c.id)
        .limit(limit)
    )
    return Todo(unspread=row.unspread, due=tuple(endpoint_of_row(row) for row in connection.execute(due).mappings()))


def spread(connection: Connection, scope: Scope, *, now: datetime, limit: int) -> int:
    """Decide for some notifications to whom they go, and return how many they were.

    An endpoint is told of what happened since it was declared. A heartbeat that waits is replaced by a newer one: it would
    say the same, and less of it.
    """
    query = _unspread(scope, limit=limit).with_for_update(of=notifications, skip_locked=True)
    found = connection.execute(query).mappings().all()
    if not found:
        return 0
    live = endpoints_told(connection, scope, named={row["endpoint"] for row in found} - {None})
    by_row = {each.row: each for each in live}
    everybody = [each for each in live if not each.is_heartbeat]
    newest_beats = {row["endpoint"]: row["id"] for row in found if row["kind"] == Kind.HEARTBEAT.value}
    added = []
    for row in found:
        if row["endpoint"] is not None:
            one = by_row.get(row["endpoint"])
            told = [one] if one is not None and newest_beats.get(one.row, row["id"]) == row["id"] else []
        else:
            told = [each for each in everybody if _wants(each, row)]
        added += [_delivery(row["id"], each.row, now=now) for each in told]
    if added:
        connection.execute(insert(deliveries), added)
    if newest_beats:
        connection.execute(delete(deliveries).where(deliveries.c.endpoint.in_(list(newest_beats)), *_is_replaced()))
    done = notifications.c.id.in_([row["id"] for row in found])
    connection.execute(update(notifications).where(done).values(spread=True))
    return len(found)


def claim(connection: Connection, endpoint: int, *, now: datetime, lease: timedelta, limit: int) -> Sequence[Claimed]:
    """Take up some of what is due for an endpoint, oldest first. Nobody else takes it up until the lease is over.

    The attempt is counted here: one whose process dies in the middle has been one.
    """
    declared = select(endpoints).where(endpoints.c.id == endpoint, endpoints.c.stopped_at.is_(None), _may_be_told(now))
    found = connection.execute(declared).mappings().one_or_none()
    if found is None:
        return []
    due = (
        select(deliveries.c.id)
        .where(deliveries.c.endpoint == endpoint, deliveries.c.state == WAITING)
        .where(or_(*_has_come(deliveries.c.next_at, now)))
        .order_by(deliveries.c.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    rows = connection.execute(due).scalars().all()
    if not rows:
        return []
    connection.execute(
        update(deliveries)
        .where(deliveries.c.id.in_(rows))
        .values(next_at=now + lease, attempts=deliveries.c.attempts + 1)
    )
    query = _told().where(deliveries.c.id.in_(rows)).order_by(deliveries.c.id)
    return [
        Claimed(
            row=row["delivery"],
            endpoint=endpoint_of_row(found),
            attempts=row["attempts"],
            since=row["since"],
            notification=_notification(row),
        )
        for row in connection.execute(query).mappings()
    ]


def mark_delivered(connection: Connection, endpoint: int, claimed: Claimed, *, status: int, now: datetime) -> None:
    """It was heard. Nothing happens where somebody else has taken it up since."""
    # The endpoint first, as whoever stops or removes it does: else two could wait for one another.
    connection.execute(select(endpoints.c.id).where(endpoints.c.id == endpoint).with_for_update())
    done = connection.execute(
        update(deliveries)
        .where(*_still(claimed))
        .values(state=DELIVERED, ended_at=now, last_status=status, last_error=None)
        .returning(deliveries.c.id)
    ).first()
    if done is not None:
        connection.execute(update(endpoints).where(endpoints.c.id == endpoint).values(delivered_at=now))


def mark_failed(
    connection: Connection,
    claimed: Claimed,
    *,
    status: int | None,
    error: str,
    next_at: datetime | None,
    hold_until: datetime | None = None,
    now: datetime,
) -> None:
    """It was not heard: try again at `next_at`, or give up where that is None.

    With `hold_until` the endpoint is told nothing else before that, either, unless another address was declared since.
    """
    if hold_until is not None:
        connection.execute(update(endpoints).where(*is_as(claimed.endpoint)).values(held_until=hold_until))
    told = {"last_status": status, "last_error": error[:MAX_ERROR]}
    ends = {"state": DEAD, "ended_at": now} if next_at is None else {"next_at": next_at}
    connection.execute(update(deliveries).where(*_still(claimed)).values(**told, **ends))


def mark_gone(
    connection: Connection, scope: Scope, endpoint: Endpoint, *, status: int, because: str, now: datetime
) -> bool:
    """An endpoint has said that it is gone: it is stopped, and what waits for it is given up.

    False where it was removed since, or another address was declared: then nothing happens.
    """
    if not stop_endpoint(connection, scope, endpoint, because=because, now=now):
        return False
    connection.execute(
        update(deliveries)
        .where(deliveries.c.endpoint == endpoint.row, deliveries.c.state == WAITING)
        .values(state=DEAD, ended_at=now, last_status=status, last_error=because[:MAX_ERROR])
    )
    return True


def list_dead(connection: Connection, scope: Scope, *, after: int, limit: int) -> Sequence[Dead]:
    """A page of the deliveries of an environment that were given up, by their row, behind `after`."""
    query = (
        _told()
        .add_columns(endpoints.c.name.label("endpoint_name"))
        .join_from(deliveries, endpoints, deliveries.c.endpoint == endpoints.c.id)
        .where(*of_environment(scope), deliveries.c.state == DEAD, deliveries.c.id > after)
        .order_by(deliveries.c.id)
        .limit(limit)
    )
    return [_dead(row) for row in connection.execute(query).mappings()]


def find_dead(connection: Connection, scope: Scope, row: int) -> tuple[Dead, Endpoint] | None:
    """A delivery of an environment that was given up, with its endpoint; None where there is none."""
    found = list_dead(connection, scope, after=row - 1, limit=1)
    if not found or found[0].row != row:
        return None
    endpoint = find_endpoint(connection, scope, found[0].endpoint)
    assert endpoint is not None, "deliveries go with their endpoint"
    return found[0], endpoint


def send_again(connection: Connection, row: int, *, now: datetime) -> None:
    """Try a dead delivery from the beginning, as the same message."""
    connection.execute(
        update(deliveries)
        .where(deliveries.c.id == row, deliveries.c.state == DEAD)
        .values(state=WAITING, attempts=0, since=now, next_at=now, ended_at=None)
    )


def counts(connection: Connection, scope: Scope) -> dict[int, dict[str, int]]:
    """How many deliveries of each endpoint wait and are dead, by its row."""
    query = (
        select(deliveries.c.endpoint, deliveries.c.state, func.count())
        .select_from(deliveries.join(endpoints, deliveries.c.endpoint == endpoints.c.id))
        .where(*of_environment(scope), deliveries.c.state.in_([WAITING, DEAD]))
        .group_by(deliveries.c.endpoint, deliveries.c.state)
    )
    found: dict[int, dict[str, int]] = {}
    for endpoint, state, count in connection.execute(query):
        found.setdefault(endpoint, {})[state] = count
    return found


def last_errors(connection: Connection, scope: Scope) -> dict[int, str]:
    """Why the newest of what each endpoint has not heard was not heard, by the row of the endpoint."""
    mine = deliveries.alias()
    newest = (
        select(func.max(mine.c.id))
        .where(mine.c.endpoint == endpoints.c.id, mine.c.state.in_([WAITING, DEAD]), mine.c.last_error.is_not(None))
        .correlate(endpoints)
        .scalar_subquery()
    )
    query = (
        select(endpoints.c.id, deliveries.c.last_error)
        .select_from(endpoints.join(deliveries, deliveries.c.id == newest))
        .where(*of_environment(scope))
    )
    return {row.id: row.last_error for row in connection.execute(query)}


def prune(connection: Connection, *, delivered_before: datetime, dead_before: datetime, limit: int) -> int:
    """Forget deliveries that ended long ago, and notifications that nobody waits for; returns how many rows those were."""
    old = select(deliveries.c.id).where(
        or_(
            and_(deliveries.c.state == DELIVERED, deliveries.c.ended_at < delivered_before),
            and_(deliveries.c.state == DEAD, deliveries.c.ended_at < dead_before),
        )
    )
    gone = connection.execute(old.limit(limit)).scalars().all()
    if gone:
        connection.execute(delete(deliveries).where(deliveries.c.id.in_(gone)))
    awaited = exists().where(deliveries.c.notification == notifications.c.id)
    done = select(notifications.c.id).where(
        notifications.c.at < delivered_before, notifications.c.spread.is_(True), ~awaited
    )
    told = connection.execute(done.limit(limit)).scalars().all()
    if told:
        connection.execute(delete(notifications).where(notifications.c.id.in_(told)))
    return len(gone) + len(told)


def _may_be_told(now: datetime) -> ColumnElement[bool]:
    return or_(endpoints.c.held_until.is_(None), *_has_come(endpoints.c.held_until, now))


def _has_come(instant: Column[datetime], now: datetime) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """That an instant until which something is put off has come, or was written down by a clock that ran ahead."""
    return instant <= now, instant > now + PUT_OFF_AT_MOST


def _is_unspread(scope: Scope) -> tuple[ColumnElement[bool], ...]:
    return (
        notifications.c.org_id == scope.org_id,
        notifications.c.environment_id == scope.environment_id,
        notifications.c.spread.is_(False),
    )


def _unspread(scope: Scope, *, limit: int) -> Select[Any]:
    return (
        select(notifications, schedules.c.schedule_id)
        .select_from(notifications.outerjoin(schedules, notifications.c.schedule == schedules.c.id))
        .where(*_is_unspread(scope))
        .order_by(notifications.c.id)
        .limit(limit)
    )


def _is_replaced() -> tuple[ColumnElement[bool], ...]:
    """Of a heartbeat that waits, that the endpoint has a newer one: another notifier may have come to that before."""
    newer, beats = deliveries.alias(), notifications.alias()
    is_beat = exists().where(beats.c.id == deliveries.c.notification, beats.c.kind == Kind.HEARTBEAT.value)
    there_is_newer = (
        select(newer.c.id)
        .select_from(newer.join(notifications, newer.c.notification == notifications.c.id))
        .where(
            newer.c.endpoint == deliveries.c.endpoint,
            newer.c.notification > deliveries.c.notification,
            notifications.c.kind == Kind.HEARTBEAT.value,
        )
        .correlate(deliveries)
    )
    return deliveries.c.state == WAITING, is_beat, there_is_newer.exists()


def _wants(endpoint: Endpoint, row: RowMapping) -> bool:
    return (
        row["kind"] in endpoint.kinds
        and endpoint.schedule_id in {None, row["schedule_id"]}
        and endpoint.declared_at <= row["at"]
    )


def _delivery(notification: int, endpoint: int, *, now: datetime) -> dict[str, Any]:
    told = {"notification": notification, "endpoint": endpoint}
    return {**told, "state": WAITING, "since": now, "next_at": now, "attempts": 0}


def _still(claimed: Claimed) -> tuple[Any, ...]:
    return (
        deliveries.c.id == claimed.row,
        deliveries.c.attempts == claimed.attempts,
        deliveries.c.state == WAITING,
    )


def _told() -> Select[Any]:
    """Deliveries with what they are of, and with the version that it is about."""
    columns = [each for each in notifications.c if each.name not in {"id", "schedule"}]
    return select(
        deliveries.c.id.label("delivery"),
        *(each for each in deliveries.c if each.name not in {"id", "notification", "endpoint"}),
        *(each.label(f"told_{each.name}") for each in columns),
        schedules.c.schedule_id,
        versions.c.configuration,
    ).select_from(
        deliveries.join(notifications, deliveries.c.notification == notifications.c.id)
        .outerjoin(schedules, notifications.c.schedule == schedules.c.id)
        .outerjoin(
            activations,
            and_(
                activations.c.schedule == notifications.c.schedule,
                activations.c.generation == notifications.c.generation,
            ),
        )
        .outerjoin(
            versions,
            and_(versions.c.schedule == activations.c.schedule, versions.c.revision == activations.c.revision),
        )
    )


def _notification(row: RowMapping) -> Notification:
    schedule_id, disposition, first_at = row["schedule_id"], row["told_disposition"], row["told_first_at"]
    return Notification(
        message_id=row["told_message_id"],
        kind=Kind(row["told_kind"]),
        at=row["told_at"],
        org_id=row["told_org_id"],
        environment_id=row["told_environment_id"],
        schedule_id=schedule_id,
        generation=row["told_generation"],
        trigger=row["told_trigger"],
        span=None if first_at is None else Span(first=first_at, last=row["told_last_at"], count=row["told_count"]),
        disposition=None if disposition is None else Disposition(disposition),
        reason=row["told_reason"],
        run_id=row["told_run_id"],
        because=row["told_because"],
        configuration=row["configuration"],
    )


def _dead(row: RowMapping) -> Dead:
    return Dead(
        row=row["delivery"],
        endpoint=row["endpoint_name"],
        attempts=row["attempts"],
        ended_at=row["ended_at"],
        last_status=row["last_status"],
        last_error=row["last_error"],
        notification=_notification(row),
    )
