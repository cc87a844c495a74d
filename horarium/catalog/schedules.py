"""Queries on schedules, their versions, activations and audit events."""

import json
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Any

from sqlalchemy import Connection, Row, RowMapping, insert, select, update

from horarium.catalog.tables import activations, audit_events, environments, schedules, versions
from horarium.catalog.upsert import make_sure
from horarium.errors import Fault, InvalidSchedule, NotFound
from horarium.schedule.configuration import StoredConfiguration, read_stored
from horarium.schedule.identity import ActivationKey, ScheduleKey, Scope
from horarium.schedule.ledger import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An environment as stored. `runtime_profile` is None where nothing may run yet.

    In a `development` environment whoever is of the organization may act, and what nobody declared is looked for in the folder
    of contents. With `live_needs_approval`, live runs need an approval of their exact version.
    """

    scope: Scope
    mode: str
    authority_epoch: int
    reset_generation: int
    runtime_profile: str | None
    development: bool = False
    live_needs_approval: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A schedule's own row. `row` is the key of its other rows; `generation` is 0 before the first activation."""

    row: int
    key: ScheduleKey
    contract: str
    head_revision: int
    generation: int
    created_at: datetime
    retired_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """An immutable version. `text` is the canonical JSON that the digest is taken over."""

    revision: int
    resource_id: str
    digest: str
    text: str
    published_at: datetime
    published_by: str

    @property
    def configuration(self) -> StoredConfiguration:
        """The configuration as a value, kept in memory for the versions that were used last.

        Raises `InvalidSchedule` where the stored row is damaged, and so does its `calendar` where this release cannot
        evaluate it: both are this schedule's trouble and must not become another's.
        """
        return _READ.get(self)

    @property
    def fault(self) -> str | None:
        """Why this release cannot run the version, as a sentence; None where it can."""
        try:
            _ = self.configuration.calendar
        except InvalidSchedule as error:
            return f"Revision {self.revision} cannot be used: {error.faults[0]}"
        return None

    @property
    def is_damaged(self) -> bool:
        """Whether the stored row cannot be read at all."""
        try:
            _ = self.configuration
        except InvalidSchedule:
            return True
        return False

    @property
    def document(self) -> Mapping[str, Any]:
        """The configuration as it was submitted; `InvalidSchedule` where the stored row is damaged."""
        return _document(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """One generation. `ended_at` is set once nothing of it will be decided any more; always for a paused one."""

    row: int
    generation: int
    revision: int
    enabled: bool
    changed_at: datetime
    changed_by: str
    activated_at: datetime
    accounted_through: datetime
    attended_until: datetime | None
    waiting: bool
    catchup_started: int
    ended_at: datetime | None
    ended_as: str | None
    ended_reason: str | None
    environment_epoch: int | None
    reset_generation: int | None
    allowance: int | None
    declared_until: datetime | None

    @property
    def is_live(self) -> bool:
        """Whether it still fires."""
        return self.enabled and self.ended_at is None


def ensure_environment(connection: Connection, scope: Scope, *, mode: str, runtime_profile: str) -> None:
    """Create a development environment if it is not there; an existing one is left as it is."""
    make_sure(
        connection,
        environments,
        {"org_id": scope.org_id, "environment_id": scope.environment_id},
        {
            "mode": mode,
            "authority_epoch": 1,
            "reset_generation": 1,
            "runtime_profile": runtime_profile,
            "development": mode == "simulation",
        },
    )


def create_environment(connection: Connection, environment: Environment) -> bool:
    """Store an environment that is not there yet, and say whether it was. One that is there is left as it is."""
    scope = environment.scope
    return make_sure(
        connection,
        environments,
        {"org_id": scope.org_id, "environment_id": scope.environment_id},
        {
            "mode": environment.mode,
            "authority_epoch": environment.authority_epoch,
            "reset_generation": environment.reset_generation,
            "runtime_profile": environment.runtime_profile,
            "development": environment.development,
            "live_needs_approval": environment.live_needs_approval,
        },
    )


def change_environment(connection: Connection, scope: Scope, **values: Any) -> None:
    """Set columns of an environment. The caller holds its lock."""
    here = (environments.c.org_id == scope.org_id, environments.c.environment_id == scope.environment_id)
    connection.execute(update(environments).where(*here).values(**values))


def find_environment(connection: Connection, scope: Scope, *, lock: bool = False) -> Environment | None:
    """The environment, or None. With `lock`, nobody else who locks it goes on until the transaction ends."""
    query = select(environments).where(
        environments.c.org_id == scope.org_id, environments.c.environment_id == scope.environment_id
    )
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        return None
    return Environment(
        scope=scope,
        mode=row.mode,
        authority_epoch=row.authority_epoch,
        reset_generation=row.reset_generation,
        runtime_profile=row.runtime_profile,
        development=row.development,
        live_needs_approval=row.live_needs_approval,
    )


def require_environment(connection: Connection, scope: Scope, *, lock: bool = False) -> Environment:
    """The environment, locked if asked for; `NotFound` where there is none."""
    environment = find_environment(connection, scope, lock=lock)
    if environment is None:
        raise environment_not_found(scope)
    return environment


def environment_not_found(scope: Scope) -> NotFound:
    """The answer about an environment that is not there, or that the caller may not see."""
    return NotFound(
        "environment_not_found",
        f"There is no environment {scope.environment_id!r} in organization {scope.org_id!r}.",
        next_step="`horarium dev` and `horarium setup` create the one that they serve, and `horarium authority apply` any.",
    )


def find_schedule(connection: Connection, key: ScheduleKey, *, lock: bool = False) -> Schedule | None:
    """The schedule, or None. With `lock`, nobody else changes anything about it until the transaction ends."""
    query = select(schedules).where(
        schedules.c.org_id == key.org_id,
        schedules.c.environment_id == key.environment_id,
        schedules.c.schedule_id == key.schedule_id,
    )
    row = connection.execute(query.with_for_update() if lock else query).mappings().one_or_none()
    return None if row is None else _schedule(row)


def require_schedule(connection: Connection, key: ScheduleKey, *, lock: bool = False) -> Schedule:
    """The schedule; `NotFound` where there is none."""
    schedule = find_schedule(connection, key, lock=lock)
    if schedule is None:
        raise NotFound(
            "schedule_not_found",
            f"There is no schedule {key.schedule_id} in {key.org_id}/{key.environment_id}.",
            next_step="`horarium list` shows those that are there.",
        )
    return schedule


def list_schedules(
    connection: Connection, scope: Scope, *, after: str | None, limit: int, include_retired: bool
) -> Sequence[Schedule]:
    """A page of an environment's schedules, ordered by UUID, beginning behind `after`."""
    query = (
        select(schedules)
        .where(schedules.c.org_id == scope.org_id, schedules.c.environment_id == scope.environment_id)
        .order_by(schedules.c.schedule_id)
        .limit(limit)
    )
    if after is not None:
        query = query.where(schedules.c.schedule_id > after)
    if not include_retired:
        query = query.where(schedules.c.retired_at.is_(None))
    return [_schedule(row) for row in connection.execute(query).mappings()]


def insert_schedule(connection: Connection, key: ScheduleKey, *, contract: str, now: datetime) -> Schedule:
    """A new schedule without a version, locked; or, where somebody else was faster, the one that is there by now."""
    make_sure(
        connection,
        schedules,
        {"org_id": key.org_id, "environment_id": key.environment_id, "schedule_id": key.schedule_id},
        {
            "contract": contract,
            "head_revision": 0,
            "generation": 0,
            "created_at": now,
            "unobserved": False,
        },
    )
    return require_schedule(connection, key, lock=True)


def insert_version(connection: Connection, schedule: Schedule, version: Version) -> None:
    """Store a version and make it the head."""
    connection.execute(
        insert(versions).values(
            schedule=schedule.row,
            revision=version.revision,
            resource_id=version.resource_id,
            digest=version.digest,
            configuration=version.text,
            published_at=version.published_at,
            published_by=version.published_by,
        )
    )
    connection.execute(update(schedules).where(schedules.c.id == schedule.row).values(head_revision=version.revision))


def find_version(connection: Connection, schedule: Schedule, revision: int) -> Version | None:
    """One version of a schedule, or None."""
    row = connection.execute(
        select(versions).where(versions.c.schedule == schedule.row, versions.c.revision == revision)
    ).one_or_none()
    return None if row is None else version_of_row(row)


def find_versions(connection: Connection, wanted: Collection[tuple[int, int]]) -> dict[tuple[int, int], Version]:
    """Versions by the row of their schedule and their revision, those of them that are there."""
    of, revisions = ({each[part] for each in wanted} for part in (0, 1))
    # Asked for in pairs, SQLite would read the table through.
    query = select(versions).where(versions.c.schedule.in_(of), versions.c.revision.in_(revisions))
    found = {(row.schedule, row.revision): row for row in connection.execute(query)}
    return {each: version_of_row(found[each]) for each in wanted if each in found}


def require_version(connection: Connection, schedule: Schedule, revision: int) -> Version:
    """One version; `NotFound` where there is no such revision."""
    version = find_version(connection, schedule, revision)
    if version is None:
        raise NotFound(
            "version_not_found",
            f"Schedule {schedule.key.schedule_id} has no revision {revision}; its newest is {schedule.head_revision}.",
        )
    return version


def find_activation(connection: Connection, schedule: Schedule, generation: int) -> Activation | None:
    """One generation of a schedule, or None."""
    row = (
        connection.execute(
            select(activations).where(activations.c.schedule == schedule.row, activations.c.generation == generation)
        )
        .mappings()
        .one_or_none()
    )
    return None if row is None else activation_of_row(row)


def list_activations(connection: Connection, schedule: Schedule) -> Sequence[Activation]:
    """All generations of a schedule, oldest first."""
    query = select(activations).where(activations.c.schedule == schedule.row).order_by(activations.c.generation)
    return [activation_of_row(row) for row in connection.execute(query).mappings()]


def insert_activation(
    connection: Connection,
    schedule: Schedule,
    *,
    revision: int,
    by: str,
    now: datetime,
    since: datetime,
    ended_as: Reason | None = None,
) -> Activation:
    """The next generation; it becomes the schedule's current one. One with `ended_as` never fires.

    The epoch and the reset generation of the environment are kept: it fires only as long as they stay.
    """
    enabled = ended_as is None
    environment = require_environment(connection, schedule.key.scope)
    generation = schedule.generation + 1
    connection.execute(
        insert(activations).values(
            schedule=schedule.row,
            generation=generation,
            revision=revision,
            enabled=enabled,
            changed_at=now,
            changed_by=by,
            activated_at=since,
            accounted_through=since,
            waiting=False,
            catchup_started=0,
            allowance=0,
            declared_until=since,
            environment_epoch=environment.authority_epoch,
            reset_generation=environment.reset_generation,
            workflow_closed=not enabled,
            ended_at=None if enabled else since,
            ended_as=ended_as,
        )
    )
    connection.execute(
        update(schedules).where(schedules.c.id == schedule.row).values(generation=generation, unobserved=True)
    )
    activation = find_activation(connection, schedule, generation)
    assert activation is not None
    return activation


def change_activation(connection: Connection, activation: Activation, **values: Any) -> None:
    """Set columns of one activation; one that ends is the controller's to look at. The caller holds the schedule's lock."""
    connection.execute(update(activations).where(activations.c.id == activation.row).values(**values))
    if "ended_at" in values:
        of = select(activations.c.schedule).where(activations.c.id == activation.row).scalar_subquery()
        connection.execute(update(schedules).where(schedules.c.id == of).values(unobserved=True))


def retire_schedule(connection: Connection, schedule: Schedule, *, now: datetime) -> None:
    """Mark the schedule as retired, for good."""
    connection.execute(update(schedules).where(schedules.c.id == schedule.row).values(retired_at=now))


def find_live(connection: Connection, key: ActivationKey, *, lock: bool = False) -> tuple[Schedule, Activation] | None:
    """The schedule and the activation, if that generation exists."""
    schedule = find_schedule(connection, key.schedule, lock=lock)
    if schedule is None:
        return None
    activation = find_activation(connection, schedule, key.generation)
    return None if activation is None else (schedule, activation)


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


class _Read:
    """The configurations that were used last.

    Known by digest and by the hash of their text, so that the texts themselves, of up to 256 KiB each, are not kept.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: OrderedDict[tuple[str, int], StoredConfiguration] = OrderedDict()
        self._lock = Lock()

    def get(self, version: Version) -> StoredConfiguration:
        key = (version.digest, hash(version.text))
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found
        read = read_stored(_document(version.text))
        with self._lock:
            self._kept[key] = read
            while len(self._kept) > self._limit:
                self._kept.popitem(last=False)
        return read


_READ = _Read(limit=1_024)


def _document(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InvalidSchedule([Fault("", "unreadable", f"The stored configuration is no JSON: {error}.")]) from error
    if not isinstance(document, dict):
        raise InvalidSchedule([Fault("", "unreadable", "The stored configuration is no object.")])
    return document


def version_of_row(row: Row[Any]) -> Version:
    """A version as the row of its table."""
    return Version(
        revision=row.revision,
        resource_id=row.resource_id,
        digest=row.digest,
        text=row.configuration,
        published_at=row.published_at,
        published_by=row.published_by,
    )


def _schedule(row: RowMapping) -> Schedule:
    return Schedule(
        row=row["id"],
        key=ScheduleKey(org_id=row["org_id"], environment_id=row["environment_id"], schedule_id=row["schedule_id"]),
        contract=row["contract"],
        head_revision=row["head_revision"],
        generation=row["generation"],
        created_at=row["created_at"],
        retired_at=row["retired_at"],
    )


def activation_of_row(row: RowMapping) -> Activation:
    """One generation as the row of its table."""
    return Activation(
        row=row["id"],
        generation=row["generation"],
        revision=row["revision"],
        enabled=row["enabled"],
        changed_at=row["changed_at"],
        changed_by=row["changed_by"],
        activated_at=row["activated_at"],
        accounted_through=row["accounted_through"],
        attended_until=row["attended_until"],
        waiting=row["waiting"],
        catchup_started=row["catchup_started"],
        ended_at=row["ended_at"],
        ended_as=row["ended_as"],
        ended_reason=row["ended_reason"],
        environment_epoch=row["environment_epoch"],
        reset_generation=row["reset_generation"],
        allowance=row["allowance"],
        declared_until=row["declared_until"],
    )
