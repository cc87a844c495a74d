"""Queries on cron profiles. Whoever writes here holds the environment's lock."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from horarium.catalog.tables import profiles
from horarium.errors import Fault, InvalidSchedule
from horarium.schedule.canonical import canonical_json
from horarium.schedule.identity import Scope
from horarium.schedule.profiles import can_name


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProfile:
    """A profile's own row. `text` is its configuration as stored; `schedule_id` None until it has had a cron."""

    row: int
    scope: Scope
    agent_class: str
    agent_id: str
    tenant_id: str | None
    text: str = field(repr=False)
    schedule_id: str | None
    created_at: datetime
    changed_at: datetime
    changed_by: str
    deleted_at: datetime | None

    @property
    def config(self) -> dict[str, Any]:
        """The configuration; `InvalidSchedule` where the stored row is damaged."""
        try:
            config = json.loads(self.text)
        except (ValueError, TypeError, RecursionError) as error:
            raise InvalidSchedule(
                [Fault("/config", "unreadable", f"The stored config is no JSON: {error}.")]
            ) from error
        if not isinstance(config, dict):
            raise InvalidSchedule([Fault("/config", "unreadable", "The stored config is no object.")])
        return config


def find_profile(connection: Connection, scope: Scope, agent_class: str, agent_id: str) -> StoredProfile | None:
    """The row of a profile, deleted or not; None where it never was saved."""
    if not can_name(agent_class, agent_id):
        return None
    query = select(profiles).where(*_here(scope), *_named(agent_class, agent_id))
    row = connection.execute(query).one_or_none()
    return None if row is None else _profile(row)


def profile_of_schedule(connection: Connection, scope: Scope, schedule_id: str) -> StoredProfile | None:
    """The profile that a schedule stands behind, deleted or not, or None."""
    query = select(profiles).where(*_here(scope), profiles.c.schedule_id == schedule_id)
    row = connection.execute(query).first()
    return None if row is None else _profile(row)


def list_profiles(
    connection: Connection, scope: Scope, agent_class: str, *, after: str | None, limit: int
) -> Sequence[StoredProfile]:
    """A page of the profiles of a class that are not deleted, by their ids, beginning behind `after`."""
    if not agent_class.isidentifier():
        return []
    query = (
        select(profiles)
        .where(*_here(scope), profiles.c.agent_class == agent_class, profiles.c.deleted_at.is_(None))
        .order_by(profiles.c.agent_id)
        .limit(limit)
    )
    if after is not None:
        query = query.where(profiles.c.agent_id > after)
    return [_profile(row) for row in connection.execute(query)]


def live_profiles(connection: Connection, scope: Scope | None, *, after: int, limit: int) -> Sequence[StoredProfile]:
    """A page of the profiles of an environment, or of all, that are not deleted, by row.

    None of them is deleted before the end of the transaction. One that somebody else is changing is left out.
    """
    query = (
        select(profiles)
        .where(profiles.c.id > after, profiles.c.deleted_at.is_(None), *(() if scope is None else _here(scope)))
        .order_by(profiles.c.id)
        .limit(limit)
        .with_for_update(read=True, skip_locked=True)
    )
    return [_profile(row) for row in connection.execute(query)]


def save_profile(
    connection: Connection,
    scope: Scope,
    agent_class: str,
    agent_id: str,
    *,
    tenant_id: str | None,
    config: Mapping[str, Any],
    schedule_id: str | None,
    by: str,
    now: datetime,
) -> None:
    """Make a profile what it says: a new one, one that is there, or one that was deleted and is there again."""
    values = {
        "tenant_id": tenant_id,
        "config": canonical_json(config).decode(),
        "schedule_id": schedule_id,
        "changed_at": now,
        "changed_by": by,
        "deleted_at": None,
    }
    changed = connection.execute(update(profiles).where(*_here(scope), *_named(agent_class, agent_id)).values(**values))
    if changed.rowcount == 0:
        connection.execute(
            insert(profiles).values(
                org_id=scope.org_id,
                environment_id=scope.environment_id,
                agent_class=agent_class,
                agent_id=agent_id,
                created_at=now,
                **values,
            )
        )


def change_config(
    connection: Connection, profile: StoredProfile, config: Mapping[str, Any], *, by: str, now: datetime
) -> None:
    """Replace the configuration of a profile, and nothing else of it."""
    values = {"config": canonical_json(config).decode(), "changed_at": now, "changed_by": by}
    connection.execute(update(profiles).where(profiles.c.id == profile.row).values(**values))


def delete_profile(connection: Connection, profile: StoredProfile, *, by: str, now: datetime) -> None:
    """Mark a profile as deleted. Its row stays, and so does whatever names it."""
    connection.execute(
        update(profiles).where(profiles.c.id == profile.row).values(deleted_at=now, changed_at=now, changed_by=by)
    )


def _here(scope: Scope) -> tuple[Any, ...]:
    return (profiles.c.org_id == scope.org_id, profiles.c.environment_id == scope.environment_id)


def _named(agent_class: str, agent_id: str) -> tuple[Any, ...]:
    return (profiles.c.agent_class == agent_class, profiles.c.agent_id == agent_id)


def _profile(row: Row[Any]) -> StoredProfile:
    return StoredProfile(
        row=row.id,
        scope=Scope(org_id=row.org_id, environment_id=row.environment_id),
        agent_class=row.agent_class,
        agent_id=row.agent_id,
        tenant_id=row.tenant_id,
        text=row.config,
        schedule_id=row.schedule_id,
        created_at=row.created_at,
        changed_at=row.changed_at,
        changed_by=row.changed_by,
        deleted_at=row.deleted_at,
    )
