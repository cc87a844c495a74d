"""Ended activations whose workflow may still run."""

from collections.abc import Sequence

from sqlalchemy import Connection, select, update

from horarium.catalog.scoped import about_environment, key_of_generation
from horarium.catalog.tables import activations, schedules
from horarium.schedule.identity import ActivationKey, Scope


def lingering(connection: Connection, scope: Scope) -> Sequence[tuple[int, ActivationKey, str]]:
    """Ended activations whose workflow was not seen closed yet: `(activation row, key, ended as)`."""
    query = (
        select(
            activations.c.id,
            activations.c.generation,
            activations.c.ended_as,
            schedules.c.org_id,
            schedules.c.environment_id,
            schedules.c.schedule_id,
        )
        .select_from(activations.join(schedules, activations.c.schedule == schedules.c.id))
        .where(*about_environment(scope), activations.c.ended_at.is_not(None), activations.c.workflow_closed.is_(False))
    )
    return [
        (row.id, key_of_generation(row.org_id, row.environment_id, row.schedule_id, row.generation), row.ended_as)
        for row in connection.execute(query)
    ]


def mark_closed(connection: Connection, activation_rows: Sequence[int]) -> None:
    """The workflows of ended activations are closed, or never were."""
    closed = update(activations).where(activations.c.id.in_(activation_rows)).values(workflow_closed=True)
    connection.execute(closed)
