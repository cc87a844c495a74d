"""The controller's questions about runs without an answer, over all schedules of an environment."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, case, select, tuple_

from horarium.catalog.scoped import about_environment, key_of_generation
from horarium.catalog.tables import entries, runs, schedules
from horarium.schedule.identity import RunKey, Scope
from horarium.schedule.ledger import BY_CALENDAR, HOLDING, Disposition


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsettled:
    """A run that holds a slot, with what decides how to go on if its workflow is gone. `place` is where it is listed."""

    key: RunKey
    workflow_id: str
    disposition: Disposition
    window_from: datetime
    place: tuple[int, datetime, int]


def unsettled_runs(
    connection: Connection,
    scope: Scope,
    *,
    before: datetime,
    limit: int,
    after: tuple[int, datetime, int] | None = None,
) -> Sequence[Unsettled]:
    """A page of the runs without an answer that took their slot, and whose nominal time passed, before an instant.

    First those that nobody has decided on, then the others, each oldest first; the next page begins behind the place `after`.
    """
    undecided = case((entries.c.disposition == Disposition.STAGED, 0), else_=1)
    behind = [] if after is None else [tuple_(undecided, entries.c.first_at, entries.c.id) > after]
    query = (
        select(
            undecided.label("decided"),
            entries.c.id,
            entries.c.generation,
            entries.c.first_at,
            entries.c.trigger,
            entries.c.disposition,
            runs.c.workflow_id,
            runs.c.window_from,
            schedules.c.org_id,
            schedules.c.environment_id,
            schedules.c.schedule_id,
        )
        .select_from(
            entries.join(runs, runs.c.entry == entries.c.id).join(schedules, entries.c.schedule == schedules.c.id)
        )
        .where(
            *about_environment(scope),
            entries.c.closed_at.is_(None),
            entries.c.disposition.in_(sorted(HOLDING)),
            entries.c.first_at < before,
            entries.c.held_since < before,
            *behind,
        )
        .order_by(undecided, entries.c.first_at, entries.c.id)
        .limit(limit)
    )
    return [
        Unsettled(
            key=RunKey(
                activation=key_of_generation(row.org_id, row.environment_id, row.schedule_id, row.generation),
                nominal_time=row.first_at,
                trigger=row.trigger,
            ),
            workflow_id=row.workflow_id,
            disposition=Disposition(row.disposition),
            window_from=row.window_from,
            place=(row.decided, row.first_at, row.id),
        )
        for row in connection.execute(query)
    ]


def staged_by_hand(connection: Connection, scope: Scope, *, since: datetime) -> Sequence[RunKey]:
    """The runs that people asked for since then and nobody has decided on, oldest first."""
    query = (
        select(
            entries.c.generation,
            entries.c.first_at,
            entries.c.trigger,
            schedules.c.org_id,
            schedules.c.environment_id,
            schedules.c.schedule_id,
        )
        .select_from(entries.join(schedules, entries.c.schedule == schedules.c.id))
        .where(
            *about_environment(scope),
            entries.c.closed_at.is_(None),
            entries.c.disposition == Disposition.STAGED,
            entries.c.trigger != BY_CALENDAR,
            entries.c.first_at >= since,
        )
        .order_by(entries.c.first_at, entries.c.id)
    )
    return [
        RunKey(
            activation=key_of_generation(row.org_id, row.environment_id, row.schedule_id, row.generation),
            nominal_time=row.first_at,
            trigger=row.trigger,
        )
        for row in connection.execute(query)
    ]
