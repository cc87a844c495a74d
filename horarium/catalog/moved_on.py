"""Environments that moved on, by a new epoch or a reset, and the live activations that they left behind."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select

from horarium.catalog.scoped import about_environment, key_of_generation
from horarium.catalog.tables import activations, environments, schedules
from horarium.schedule.identity import ActivationKey, Scope


def state_of_environment(connection: Connection, scope: Scope) -> tuple[int, int] | None:
    """The epoch and the reset generation of an environment; None where it is not there."""
    query = select(environments.c.authority_epoch, environments.c.reset_generation).where(
        environments.c.org_id == scope.org_id, environments.c.environment_id == scope.environment_id
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else (row.authority_epoch, row.reset_generation)


def enabled_before(
    connection: Connection, scope: Scope, *, limit: int, after: int = 0
) -> Sequence[tuple[int, ActivationKey]]:
    """Live activations that were enabled in an earlier state of their environment: `(schedule row, key)`, a page of them.

    They fire no more: each occurrence is refused. The next page begins behind the row `after`.
    """
    query = (
        select(
            schedules.c.id,
            schedules.c.org_id,
            schedules.c.environment_id,
            schedules.c.schedule_id,
            activations.c.generation,
        )
        .select_from(_WITH_ENVIRONMENTS)
        .where(*_enabled_before(scope), schedules.c.id > after)
        .order_by(schedules.c.id)
        .limit(limit)
    )
    return [
        (row.id, key_of_generation(row.org_id, row.environment_id, row.schedule_id, row.generation))
        for row in connection.execute(query)
    ]


def count_enabled_before(connection: Connection, scope: Scope) -> int:
    """How many `enabled_before` lists in all."""
    query = select(func.count()).select_from(_WITH_ENVIRONMENTS).where(*_enabled_before(scope))
    return connection.execute(query).scalar_one()


_WITH_ENVIRONMENTS = activations.join(schedules, activations.c.schedule == schedules.c.id).join(
    environments,
    and_(
        environments.c.org_id == schedules.c.org_id,
        environments.c.environment_id == schedules.c.environment_id,
    ),
)


def _enabled_before(scope: Scope) -> tuple[ColumnElement[bool], ...]:
    moved = or_(
        activations.c.environment_epoch != environments.c.authority_epoch,
        activations.c.reset_generation != environments.c.reset_generation,
    )
    return (*about_environment(scope), activations.c.ended_at.is_(None), activations.c.enabled.is_(True), moved)
