"""Queries on the threads of cron profiles and on what happened in them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Text, cast, delete, insert, select

from horarium.catalog.stored_json import stored_object
from horarium.catalog.tables import thread_events, threads
from horarium.catalog.upsert import make_sure
from horarium.errors import InvalidSchedule
from horarium.schedule.identity import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredThread:
    """A thread's own row. Its age is told by `created_at`: the id encodes none. Its tenant is its profile's, not kept here.

    `created_at` is None where the row is damaged.
    """

    thread_id: str
    agent_class: str
    agent_id: str
    created_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadEvent:
    """What happened in a thread. Of a damaged row `at` is None, or `data` says under `unreadable` why it cannot be read."""

    id: int
    kind: str
    at: datetime | None
    run_id: str | None
    data: dict[str, Any]


def make_thread(
    connection: Connection,
    scope: Scope,
    thread_id: str,
    *,
    agent_class: str,
    agent_id: str,
    now: datetime,
) -> bool:
    """Make a thread where there is none, and say whether it was made. Of two that make it at once, one does."""
    key = {"org_id": scope.org_id, "environment_id": scope.environment_id, "thread_id": thread_id}
    values = {"agent_class": agent_class, "agent_id": agent_id, "created_at": now}
    return make_sure(connection, threads, key, values)


def find_thread(connection: Connection, scope: Scope, thread_id: str) -> StoredThread | None:
    """A thread, or None before anything has happened in it."""
    query = select(threads).where(
        threads.c.org_id == scope.org_id,
        threads.c.environment_id == scope.environment_id,
        threads.c.thread_id == thread_id,
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    return StoredThread(
        thread_id=row.thread_id,
        agent_class=row.agent_class,
        agent_id=row.agent_id,
        created_at=row.created_at,
    )


def record_thread_event(
    connection: Connection,
    scope: Scope,
    thread_id: str,
    kind: str,
    *,
    at: datetime,
    run_id: str | None,
    data: Mapping[str, Any],
) -> None:
    """Append to a thread."""
    connection.execute(
        insert(thread_events).values(
            org_id=scope.org_id,
            environment_id=scope.environment_id,
            thread_id=thread_id,
            kind=kind,
            at=at,
            run_id=run_id,
            data=dict(data),
        )
    )


def list_thread_events(
    connection: Connection, scope: Scope, thread_id: str, *, after: int, limit: int
) -> Sequence[ThreadEvent]:
    """A page of what happened in a thread, oldest first, beginning behind the event `after`."""
    columns = (thread_events.c[name] for name in ("id", "kind", "at", "run_id"))
    query = (
        select(*columns, cast(thread_events.c.data, Text).label("told"))
        .where(*_of(scope), thread_events.c.thread_id == thread_id, thread_events.c.id > after)
        .order_by(thread_events.c.id)
        .limit(limit)
    )
    return [
        ThreadEvent(id=row.id, kind=row.kind, at=row.at, run_id=row.run_id, data=_data(row.told))
        for row in connection.execute(query)
    ]


def prune_thread_events(
    connection: Connection, scope: Scope, thread_ids: Collection[str], *, before: datetime, limit: int
) -> int:
    """Delete events of some threads that are older than `before`, at most `limit`; returns how many were."""
    old = (
        select(thread_events.c.id)
        .where(*_of(scope), thread_events.c.thread_id.in_(thread_ids), thread_events.c.at < before)
        .limit(limit)
    )
    found = connection.execute(old).scalars().all()
    if found:
        connection.execute(delete(thread_events).where(thread_events.c.id.in_(found)))
    return len(found)


def _data(text: str) -> dict[str, Any]:
    try:
        return stored_object(text, what="What is stored of it")
    except InvalidSchedule as error:
        return {"unreadable": error.faults[0].sentence}


def _of(scope: Scope) -> tuple[Any, ...]:
    return (thread_events.c.org_id == scope.org_id, thread_events.c.environment_id == scope.environment_id)
