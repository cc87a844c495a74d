"""Queries on cron profiles. Whoever writes here holds the environment's lock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from horarium.catalog.stored_json import stored_object
from horarium.catalog.tables import profiles, schedules, versions
from horarium.errors import InvalidSchedule
from horarium.schedule.canonical import canonical_json
from horarium.schedule.identity import Scope
from horarium.schedule.profiles import can_name, profile_schedule_id

_READ = (profiles, profiles.c.deleted_at.is_not(None).label("is_deleted"))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProfile:
    """A profile's own row. `text` is its configuration as stored. A time is None where a damaged row holds none."""

    row: int
    scope: Scope
    agent_class: str
    agent_id: str
    tenant_id: str | None
    text: str = field(repr=False)
    created_at: datetime | None
    changed_at: datetime | None
    changed_by: str
    is_deleted: bool

    @property
    def schedule_id(self) -> str:
        """The id of the schedule behind it, which is there once it has had a cron. It follows from the name, so that no damaged
        row keeps it from being stopped.
        """
        return profile_schedule_id(self.scope, self.agent_class, self.agent_id)

    @property
    def config(self) -> dict[str, Any]:
        """The configuration; `InvalidSchedule` where the stored row is damaged."""
        return stored_object(self.text, what="The stored config", at="/config")


def find_profile(connection: Connection, scope: Scope, agent_class: str, agent_id: str) -> StoredProfile | None:
    """The row of a profile, deleted or not; None where it never was saved."""
    if not can_name(agent_class, agent_id):
        return None
    query = select(*_READ).where(*_here(scope), *_named(agent_class, agent_id))
    row = connection.execute(query).one_or_none()
    return None if row is None else _profile(row)


def profile_of_schedule(connection: Connection, scope: Scope, schedule_id: str) -> StoredProfile | None:
    """The profile that a schedule stands behind, deleted or not, or None."""
    query = select(*_READ).where(*_here(scope), profiles.c.schedule_id == schedule_id)
    found = (_profile(row) for row in connection.execute(query).all())
    named = next((each for each in found if each.schedule_id == schedule_id), None)
    # Where a hand has damaged the row's reference, the versions still know whose they are.
    return named or _profile_of_version(connection, scope, schedule_id)


def list_profiles(
    connection: Connection, scope: Scope, agent_class: str, *, after: str | None, limit: int
) -> Sequence[StoredProfile]:
    """A page of the profiles of a class that are not deleted, by their ids, beginning behind `after`."""
    if not agent_class.isidentifier():
        return []
    query = (
        select(*_READ)
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
        select(*_READ)
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
    before = find_profile(connection, scope, agent_class, agent_id)
    if before is not None:
        # Of a damaged row it is not known any more when it was made.
        made = {"created_at": now} if before.created_at is None else {}
        connection.execute(update(profiles).where(profiles.c.id == before.row).values(**values, **made))
    else:
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


def _profile_of_version(connection: Connection, scope: Scope, schedule_id: str) -> StoredProfile | None:
    query = (
        select(versions.c.configuration)
        .join(schedules, schedules.c.id == versions.c.schedule)
        .where(schedules.c.org_id == scope.org_id, schedules.c.environment_id == scope.environment_id)
        .where(schedules.c.schedule_id == schedule_id)
        .order_by(versions.c.revision.desc())
        .limit(1)
    )
    text = connection.execute(query).scalar_one_or_none()
    found = None if text is None else find_profile(connection, scope, *_whose(text))
    return found if found is not None and found.schedule_id == schedule_id else None


def _whose(text: str) -> tuple[str, str]:
    """The class and the profile that a stored version names; no names at all where it is damaged."""
    try:
        source = stored_object(text, what="The stored configuration").get("source")
    except InvalidSchedule:
        return "", ""
    named = source if isinstance(source, dict) else {}
    return str(named.get("agent_class", "")), str(named.get("agent_id", ""))


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
        created_at=row.created_at,
        changed_at=row.changed_at,
        changed_by=row.changed_by,
        is_deleted=row.is_deleted,
    )
