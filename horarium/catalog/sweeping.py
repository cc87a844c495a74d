"""The controller's questions: what has to be looked at, over all schedules of an environment."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, and_, case, func, or_, select, tuple_, update

from horarium.catalog.tables import activations, entries, environments, runs, runtime, schedules
from horarium.schedule.identity import ActivationKey, RunKey, ScheduleKey, Scope
from horarium.schedule.ledger import BY_CALENDAR, HOLDING, Disposition


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A schedule's current activation, and what was last observed of it: `(generation, state, reason)`.

    `unobserved` says that each tick looks at it, until something settled is observed.
    """

    row: int
    key: ActivationKey
    enabled: bool
    ended_as: str | None
    ended_reason: str | None
    revision: int
    accounted_through: datetime
    attended_until: datetime | None
    waiting: bool
    unobserved: bool
    observed: tuple[int, str, str | None] | None

    @property
    def is_live(self) -> bool:
        """Whether its workflow should be running."""
        return self.enabled and self.ended_as is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsettled:
    """A run that holds a slot, with what decides how to go on if its workflow is gone. `place` is where it is listed."""

    key: RunKey
    workflow_id: str
    disposition: Disposition
    window_from: datetime
    place: tuple[int, datetime, int]


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
            schedules.c.unobserved,
            activations.c.generation,
            activations.c.enabled,
            activations.c.ended_as,
            activations.c.ended_reason,
            activations.c.revision,
            activations.c.accounted_through,
            activations.c.attended_until,
            activations.c.waiting,
            runtime.c.generation.label("observed_generation"),
            runtime.c.state,
            runtime.c.reason,
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
            revision=row.revision,
            accounted_through=row.accounted_through,
            attended_until=row.attended_until,
            waiting=row.waiting,
            unobserved=row.unobserved,
            observed=None if row.state is None else (row.observed_generation, row.state, row.reason),
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
        (row.id, _activation_key(row.org_id, row.environment_id, row.schedule_id, row.generation))
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
    return (*_behind(scope), activations.c.ended_at.is_(None), activations.c.enabled.is_(True), moved)


def mark_closed(connection: Connection, activation_rows: Sequence[int]) -> None:
    """The workflows of ended activations are closed, or never were."""
    closed = update(activations).where(activations.c.id.in_(activation_rows)).values(workflow_closed=True)
    connection.execute(closed)


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
            *_behind(scope),
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
                activation=_activation_key(row.org_id, row.environment_id, row.schedule_id, row.generation),
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
            *_in(scope),
            entries.c.closed_at.is_(None),
            entries.c.disposition == Disposition.STAGED,
            entries.c.trigger != BY_CALENDAR,
            entries.c.first_at >= since,
        )
        .order_by(entries.c.first_at, entries.c.id)
    )
    return [
        RunKey(
            activation=_activation_key(row.org_id, row.environment_id, row.schedule_id, row.generation),
            nominal_time=row.first_at,
            trigger=row.trigger,
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
