"""The controller's questions: what has to be looked at, over all schedules of an environment."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, and_, case, select, update

from horarium.catalog.tables import activations, entries, runs, runtime, schedules
from horarium.schedule.identity import ActivationKey, RunKey, ScheduleKey, Scope
from horarium.schedule.ledger import HOLDING, Disposition


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A schedule's current activation, and what was last observed of it."""

    row: int
    key: ActivationKey
    enabled: bool
    ended_as: str | None
    ended_reason: str | None
    observed: str | None

    @property
    def is_live(self) -> bool:
        """Whether its workflow should be running."""
        return self.enabled and self.ended_as is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsettled:
    """A run that holds a slot, with what decides how to go on if its workflow is gone."""

    key: RunKey
    workflow_id: str
    disposition: Disposition
    window_from: datetime


def watched(connection: Connection, scope: Scope, *, all_live: bool) -> Sequence[Watched]:
    """Current activations to look at: those not observed as they should be, and with `all_live` every live one too."""
    found = _watched(connection, *_in(scope), schedules.c.unobserved.is_(True))
    if all_live:
        # Two questions, since no index answers an "or" of the two.
        found |= _watched(connection, *_behind(scope), activations.c.ended_at.is_(None))
    return [found[row] for row in sorted(found)]


def _watched(connection: Connection, *which: ColumnElement[bool]) -> dict[int, Watched]:
    query = (
        select(
            schedules.c.id,
            schedules.c.org_id,
            schedules.c.environment_id,
            schedules.c.schedule_id,
            activations.c.generation,
            activations.c.enabled,
            activations.c.ended_as,
            activations.c.ended_reason,
            runtime.c.state,
        )
        .select_from(
            schedules.join(
                activations,
                and_(activations.c.schedule == schedules.c.id, activations.c.generation == schedules.c.generation),
            ).outerjoin(runtime, runtime.c.schedule == schedules.c.id)
        )
        .where(*which)
    )
    return {
        row.id: Watched(
            row=row.id,
            key=_activation_key(row.org_id, row.environment_id, row.schedule_id, row.generation),
            enabled=row.enabled,
            ended_as=row.ended_as,
            ended_reason=row.ended_reason,
            observed=row.state,
        )
        for row in connection.execute(query)
    }


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
        .where(*_behind(scope), activations.c.ended_at.is_not(None), activations.c.workflow_closed.is_(False))
    )
    return [
        (row.id, _activation_key(row.org_id, row.environment_id, row.schedule_id, row.generation), row.ended_as)
        for row in connection.execute(query)
    ]


def mark_closed(connection: Connection, activation_row: int) -> None:
    """The workflow of an ended activation is closed, or never was."""
    connection.execute(update(activations).where(activations.c.id == activation_row).values(workflow_closed=True))


def unsettled_runs(connection: Connection, scope: Scope, *, before: datetime, limit: int) -> Sequence[Unsettled]:
    """Runs without an answer that took their slot, and whose nominal time passed, before an instant.

    First those that nobody has decided on, then the others, each oldest first: however many runs are long, one that was
    never started is seen.
    """
    undecided = case((entries.c.disposition == Disposition.STAGED, 0), else_=1)
    query = (
        select(
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
            *_behind(scope),
            entries.c.closed_at.is_(None),
            entries.c.disposition.in_(sorted(HOLDING)),
            entries.c.first_at < before,
            entries.c.held_since < before,
        )
        .order_by(undecided, entries.c.first_at)
        .limit(limit)
    )
    return [
        Unsettled(
            key=RunKey(
                activation=_activation_key(row.org_id, row.environment_id, row.schedule_id, row.generation),
                nominal_time=row.first_at,
                trigger=row.trigger,
            ),
            workflow_id=row.workflow_id,
            disposition=Disposition(row.disposition),
            window_from=row.window_from,
        )
        for row in connection.execute(query)
    ]


def _in(scope: Scope) -> tuple[ColumnElement[bool], ...]:
    return (schedules.c.org_id == scope.org_id, schedules.c.environment_id == scope.environment_id)


def _behind(scope: Scope) -> tuple[ColumnElement[bool], ...]:
    """As `_in`, but no way into an index: the question shall begin at the few rows that it is about, and not visit every
    schedule of the environment."""
    return (
        schedules.c.org_id.concat("") == scope.org_id,
        schedules.c.environment_id.concat("") == scope.environment_id,
    )


def _activation_key(org_id: str, environment_id: str, schedule_id: str, generation: int) -> ActivationKey:
    schedule = ScheduleKey(org_id=org_id, environment_id=environment_id, schedule_id=schedule_id)
    return ActivationKey(schedule=schedule, generation=generation)
