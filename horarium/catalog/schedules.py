"""Queries on schedules, their versions, activations and audit events."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, RowMapping, and_, bindparam, insert, select, update

from horarium.catalog import declared_sums, expected
from horarium.catalog.environments import require_environment
from horarium.catalog.joined import taken_apart
from horarium.catalog.tables import activations, environments, schedules, versions
from horarium.catalog.upsert import make_sure
from horarium.catalog.versions import Version, version_of_row
from horarium.errors import NotFound
from horarium.schedule.identity import ActivationKey, ScheduleKey, Scope
from horarium.schedule.ledger import Reason
from horarium.schedule.notifications import Kind, kinds_of_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A schedule's own row. `row` is the key of its other rows; `generation` is 0 before the first activation.

    `heartbeat` is the row of the endpoint that its successes are told to. It is `troubled` from when something was told that a
    success recovers from, and `silent_since` the due instant from which on a success is overdue. `notifies` is what its
    environment wants to be told of, None where that was not read with it.
    """

    row: int
    key: ScheduleKey
    contract: str
    head_revision: int
    generation: int
    created_at: datetime
    retired_at: datetime | None
    heartbeat: int | None = None
    troubled: bool = False
    silent_since: datetime | None = None
    notifies: frozenset[Kind] | None = None


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
    runs_per_month: int | None = None

    @property
    def is_live(self) -> bool:
        """Whether it still fires."""
        return self.enabled and self.ended_at is None


def find_schedule(connection: Connection, key: ScheduleKey, *, lock: bool = False) -> Schedule | None:
    """The schedule, or None. With `lock`, nobody else changes anything about it until the transaction ends."""
    query = select(schedules).where(
        schedules.c.org_id == key.org_id,
        schedules.c.environment_id == key.environment_id,
        schedules.c.schedule_id == key.schedule_id,
    )
    row = connection.execute(query.with_for_update() if lock else query).mappings().one_or_none()
    return None if row is None else schedule_of_row(row)


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


def find_schedules(connection: Connection, scope: Scope, ids: Collection[str]) -> Sequence[Schedule]:
    """Those of some schedules of an environment that are there."""
    query = select(schedules).where(
        schedules.c.org_id == scope.org_id,
        schedules.c.environment_id == scope.environment_id,
        schedules.c.schedule_id.in_(ids),
    )
    return [schedule_of_row(row) for row in connection.execute(query).mappings()]


def list_schedules(
    connection: Connection,
    scope: Scope,
    *,
    after: str | None,
    limit: int,
    include_retired: bool,
    contract: str | None = None,
) -> Sequence[Schedule]:
    """A page of an environment's schedules, ordered by UUID, beginning behind `after`; of one contract where it is named."""
    query = (
        select(schedules)
        .where(schedules.c.org_id == scope.org_id, schedules.c.environment_id == scope.environment_id)
        .order_by(schedules.c.schedule_id)
        .limit(limit)
    )
    if after is not None:
        query = query.where(schedules.c.schedule_id > after)
    if contract is not None:
        query = query.where(schedules.c.contract == contract)
    if not include_retired:
        query = query.where(schedules.c.retired_at.is_(None))
    return [schedule_of_row(row) for row in connection.execute(query).mappings()]


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
    row = (
        connection.execute(select(versions).where(versions.c.schedule == schedule.row, versions.c.revision == revision))
        .mappings()
        .one_or_none()
    )
    return None if row is None else version_of_row(row)


def find_versions(connection: Connection, wanted: Collection[tuple[int, int]]) -> dict[tuple[int, int], Version]:
    """Versions by the row of their schedule and their revision, those of them that are there."""
    of, revisions = ({each[part] for each in wanted} for part in (0, 1))
    # Asked for in pairs, SQLite would read the table through.
    query = select(versions).where(versions.c.schedule.in_(of), versions.c.revision.in_(revisions))
    found = {(row["schedule"], row["revision"]): row for row in connection.execute(query).mappings()}
    return {each: version_of_row(found[each]) for each in wanted if each in found}


def require_version(connection: Connection, schedule: Schedule, revision: int) -> Version:
    """One version; `NotFound` where there is no such revision."""
    version = find_version(connection, schedule, revision)
    if version is None:
        raise version_not_found(schedule, revision)
    return version


def version_not_found(schedule: Schedule, revision: int) -> NotFound:
    """The answer about a revision that is not there."""
    return NotFound(
        "version_not_found",
        f"Schedule {schedule.key.schedule_id} has no revision {revision}; its newest is {schedule.head_revision}.",
    )


def find_activation(connection: Connection, schedule: Schedule, generation: int) -> Activation | None:
    """One generation of a schedule, or None."""
    place = {"schedule": schedule.row, "generation": generation}
    row = connection.execute(_ACTIVATION, place).mappings().one_or_none()
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
    runs_per_month: int | None = None,
    look_by: datetime | None = None,
) -> Activation:
    """The next generation; it becomes the schedule's current one. One with `ended_as` never fires.

    `runs_per_month` is what it declares, as counted now, and `look_by` its first due instant; None for one that never fires.
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
            runs_per_month=runs_per_month,
            look_by=look_by,
            environment_epoch=environment.authority_epoch,
            reset_generation=environment.reset_generation,
            workflow_closed=not enabled,
            ended_at=None if enabled else since,
            ended_as=ended_as,
        )
    )
    connection.execute(
        # What was expected of the one before is expected no more.
        update(schedules)
        .where(schedules.c.id == schedule.row)
        .values(generation=generation, unobserved=True, silent_since=None)
    )
    if enabled:
        declared_sums.add(connection, now, runs_per_month or 0)
        expected.expect(connection, schedule.row, schedule.key.scope, at=since)
    activation = find_activation(connection, schedule, generation)
    assert activation is not None
    return activation


def change_activation(connection: Connection, activation: Activation, **values: Any) -> None:
    """Set columns of one activation; one that ends is the controller's to look at. The caller holds the schedule's lock."""
    ends = values.get("ended_at") is not None
    if ends or values.get("runs_per_month") is not None:
        counted = 0 if ends else values["runs_per_month"]
        declared_sums.change(connection, activation.row, activation.changed_at, to=counted)
    connection.execute(_CHANGE_ACTIVATION, {"changed": activation.row, **values})
    if "ended_at" in values:
        of = select(activations.c.schedule).where(activations.c.id == activation.row).scalar_subquery()
        silence = {"silent_since": None} if ends else {}
        connection.execute(update(schedules).where(schedules.c.id == of).values(unobserved=True, **silence))


def retire_schedule(connection: Connection, schedule: Schedule, *, now: datetime) -> None:
    """Mark the schedule as retired, for good."""
    connection.execute(update(schedules).where(schedules.c.id == schedule.row).values(retired_at=now))


def lock_schedule(connection: Connection, key: ScheduleKey) -> None:
    """Let nobody else change anything about a schedule until the transaction ends; nothing where there is none.

    In a statement of its own: one that waits for a lock reads what it joins as it was before the wait. SQLite has one writer.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_LOCK, _place(key))


def find_live(connection: Connection, key: ActivationKey, *, lock: bool = False) -> tuple[Schedule, Activation] | None:
    """The schedule and the activation, if that generation exists."""
    if lock:
        lock_schedule(connection, key.schedule)
    row = connection.execute(_LIVE, place_of(key)).one_or_none()
    if row is None:
        return None
    schedule, activation = taken_apart(row[:-1], _LIVE_TABLES)
    return schedule_of_row(schedule, notifies=row.notifies or ""), activation_of_row(activation)


def place_of(key: ActivationKey) -> dict[str, str | int]:
    """Which generation is meant, for a statement of `OF_A_GENERATION`."""
    return {**_place(key.schedule), "generation": key.generation}


def _place(key: ScheduleKey) -> dict[str, str | int]:
    return {"org_id": key.org_id, "environment_id": key.environment_id, "schedule_id": key.schedule_id}


_OF_A_SCHEDULE: Final = tuple(
    schedules.c[name] == bindparam(name) for name in ("org_id", "environment_id", "schedule_id")
)
OF_A_GENERATION: Final = (*_OF_A_SCHEDULE, activations.c.generation == bindparam("generation"))
"""Whatever is asked at each occurrence is made once: to make a statement takes as long as to carry it out."""
_ACTIVATION = select(activations).where(
    activations.c.schedule == bindparam("schedule"), activations.c.generation == bindparam("generation")
)
_CHANGE_ACTIVATION = update(activations).where(activations.c.id == bindparam("changed"))
_LOCK = select(schedules.c.id).where(*_OF_A_SCHEDULE).with_for_update()
_LIVE_TABLES = (schedules, activations)
_LIVE = (
    select(*_LIVE_TABLES, environments.c.notifies)
    .select_from(
        schedules.join(activations, activations.c.schedule == schedules.c.id).outerjoin(
            environments,
            and_(
                environments.c.org_id == schedules.c.org_id, environments.c.environment_id == schedules.c.environment_id
            ),
        )
    )
    .where(*OF_A_GENERATION)
)


def schedule_of_row(row: RowMapping | Mapping[str, Any], *, notifies: str | None = None) -> Schedule:
    """A schedule as its own row, and what its environment notifies of as stored there, where that was read with it."""
    return Schedule(
        row=row["id"],
        key=ScheduleKey(org_id=row["org_id"], environment_id=row["environment_id"], schedule_id=row["schedule_id"]),
        contract=row["contract"],
        head_revision=row["head_revision"],
        generation=row["generation"],
        created_at=row["created_at"],
        retired_at=row["retired_at"],
        heartbeat=row["heartbeat"],
        troubled=row["troubled"],
        silent_since=row["silent_since"],
        notifies=None if notifies is None else kinds_of_text(notifies),
    )


def activation_of_row(row: RowMapping | Mapping[str, Any]) -> Activation:
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
        runs_per_month=row["runs_per_month"],
    )
