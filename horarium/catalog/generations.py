"""A generation of a schedule with everything that decides on it, in one question: each step, admission and claim begins so."""

from dataclasses import dataclass

from sqlalchemy import Connection, and_, select

from horarium.catalog.environments import Environment, environment_not_found, environment_of_row
from horarium.catalog.joined import taken_apart
from horarium.catalog.schedules import (
    OF_A_GENERATION,
    Activation,
    Schedule,
    activation_of_row,
    lock_schedule,
    place_of,
    schedule_of_row,
    version_not_found,
)
from horarium.catalog.tables import activations, environments, schedules, versions
from horarium.catalog.versions import Version, version_of_row
from horarium.schedule.identity import ActivationKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A schedule and one activation of it, with the version that this is of, and the environment as it is now."""

    schedule: Schedule
    activation: Activation
    version: Version
    environment: Environment


def find_generation(connection: Connection, key: ActivationKey, *, lock: bool = False) -> Generation | None:
    """That generation, or None. With `lock`, nobody else changes anything about its schedule until the transaction ends."""
    if lock:
        lock_schedule(connection, key.schedule)
    row = connection.execute(_WHOLE, place_of(key)).one_or_none()
    if row is None:
        return None
    parts = taken_apart(row, _TABLES)
    schedule = schedule_of_row(parts[0], notifies=parts[3]["notifies"] or "")
    activation = activation_of_row(parts[1])
    if parts[2]["id"] is None:
        raise version_not_found(schedule, activation.revision)
    if parts[3]["org_id"] is None:
        raise environment_not_found(key.schedule.scope)
    return Generation(
        schedule=schedule,
        activation=activation,
        version=version_of_row(parts[2]),
        environment=environment_of_row(parts[3]),
    )


_TABLES = (schedules, activations, versions, environments)
_VERSION = and_(versions.c.schedule == schedules.c.id, versions.c.revision == activations.c.revision)
_ENVIRONMENT = and_(
    environments.c.org_id == schedules.c.org_id, environments.c.environment_id == schedules.c.environment_id
)
_WHOLE = (
    select(*_TABLES)
    .select_from(
        schedules.join(activations, activations.c.schedule == schedules.c.id)
        .outerjoin(versions, _VERSION)
        .outerjoin(environments, _ENVIRONMENT)
    )
    .where(*OF_A_GENERATION)
)
