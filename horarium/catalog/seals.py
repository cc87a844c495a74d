"""Queries on seals, and on the audit events that they cover."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, Text, and_, cast, func, insert, select, update

from horarium.catalog.tables import audit_events, schedules, seals
from horarium.schedule.identity import Scope, instant_text

EVENTS_AT_ONCE = 2_000
"""Events that one seal covers at the most, which takes some 150 ms; whatever else wants to write waits as long."""
_UPDATED_AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """A seal as stored: the `number`th of its environment, made in `minute`, over `count` events and the seal before it."""

    number: int
    minute: datetime
    count: int
    first_event: int
    last_event: int
    digest: str
    previous: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedEvent:
    """An audit event as a seal sees it. `seal` is None while none covers it."""

    id: int
    at: datetime
    seal: int | None
    document: dict[str, Any]


def last_seal(connection: Connection, scope: Scope) -> Seal | None:
    """The newest seal of an environment, or None."""
    row = connection.execute(_seals(scope).order_by(seals.c.number.desc()).limit(1)).one_or_none()
    return None if row is None else _seal(row)


def find_seal(connection: Connection, scope: Scope, number: int) -> Seal | None:
    """One seal of an environment, or None."""
    row = connection.execute(_seals(scope).where(seals.c.number == number)).one_or_none()
    return None if row is None else _seal(row)


def list_seals(connection: Connection, scope: Scope) -> Iterator[Seal]:
    """All seals of an environment, oldest first."""
    return (_seal(row) for row in connection.execute(_seals(scope).order_by(seals.c.number)))


def unsealed_events(connection: Connection, scope: Scope, *, limit: int = EVENTS_AT_ONCE) -> list[SealedEvent]:
    """The oldest events of an environment that no seal covers."""
    query = _events(scope).where(audit_events.c.seal.is_(None)).order_by(audit_events.c.id).limit(limit)
    return [_event(row) for row in connection.execute(query)]


def count_unsealed(connection: Connection, scope: Scope) -> int:
    """How many events of an environment no seal covers."""
    query = (
        select(func.count())
        .select_from(audit_events.join(schedules, audit_events.c.schedule == schedules.c.id))
        .where(audit_events.c.seal.is_(None), *_behind(scope))
    )
    return connection.execute(query).scalar_one()


def sealed_events(connection: Connection, scope: Scope) -> Iterator[SealedEvent]:
    """All events of an environment that a seal covers, by its number and then by their ids."""
    query = _events(scope).where(audit_events.c.seal.is_not(None)).order_by(audit_events.c.seal, audit_events.c.id)
    return (_event(row) for row in connection.execute(query))


def events_under(connection: Connection, scope: Scope, seal: Seal) -> list[SealedEvent]:
    """The events that stand under one seal, by their ids."""
    query = _events(scope).where(
        audit_events.c.seal == seal.number, audit_events.c.id.between(seal.first_event, seal.last_event)
    )
    return [_event(row) for row in connection.execute(query.order_by(audit_events.c.id))]


def insert_seal(connection: Connection, scope: Scope, seal: Seal, events: list[SealedEvent]) -> None:
    """Store a seal and mark its events. The caller holds the environment's lock."""
    connection.execute(
        insert(seals).values(
            org_id=scope.org_id,
            environment_id=scope.environment_id,
            number=seal.number,
            minute=seal.minute,
            count=seal.count,
            first_event=seal.first_event,
            last_event=seal.last_event,
            digest=seal.digest,
            previous=seal.previous,
        )
    )
    ids = [event.id for event in events]
    for start in range(0, len(ids), _UPDATED_AT_ONCE):
        some = ids[start : start + _UPDATED_AT_ONCE]
        connection.execute(update(audit_events).where(audit_events.c.id.in_(some)).values(seal=seal.number))


def _seals(scope: Scope) -> Select[Any]:
    return select(seals).where(and_(seals.c.org_id == scope.org_id, seals.c.environment_id == scope.environment_id))


def _events(scope: Scope) -> Select[Any]:
    return (
        select(
            audit_events.c.id,
            schedules.c.schedule_id,
            audit_events.c.kind,
            audit_events.c.at,
            audit_events.c.actor,
            audit_events.c.generation,
            audit_events.c.revision,
            # As text: what somebody wrote over it need not be JSON, and has to be found all the same.
            cast(audit_events.c.details, Text).label("details"),
            audit_events.c.seal,
        )
        .select_from(audit_events.join(schedules, audit_events.c.schedule == schedules.c.id))
        .where(*_behind(scope))
    )


def _behind(scope: Scope) -> tuple[ColumnElement[bool], ...]:
    """The environment of an event, but no way into an index: the question begins at the events, and visits no schedule else."""
    return (
        schedules.c.org_id.concat("") == scope.org_id,
        schedules.c.environment_id.concat("") == scope.environment_id,
    )


def _seal(row: Row[Any]) -> Seal:
    return Seal(
        number=row.number,
        minute=row.minute,
        count=row._mapping["count"],  # noqa: SLF001 - a row's own `count` is a method
        first_event=row.first_event,
        last_event=row.last_event,
        digest=row.digest,
        previous=row.previous,
    )


def _event(row: Row[Any]) -> SealedEvent:
    try:
        details = json.loads(row.details)
    except ValueError:
        details = row.details
    document = {
        "id": row.id,
        "schedule_id": row.schedule_id,
        "at": instant_text(row.at),
        "kind": row.kind,
        "actor": row.actor,
        "generation": row.generation,
        "revision": row.revision,
        "details": details,
    }
    return SealedEvent(id=row.id, at=row.at, seal=row.seal, document=document)
