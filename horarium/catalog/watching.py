"""The controller's questions about activations: which have to be looked at, over all schedules of an environment."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, literal_column, select, tuple_, update

from horarium.catalog.scoped import in_environment, key_of_generation
from horarium.catalog.tables import activations, runtime, schedules
from horarium.schedule.identity import ActivationKey, Scope

VISITED_AT_ONCE = 2
"""Schedules that a page of live ones may visit for each that it may list: the others are paused, or ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A schedule's current activation, and what was last observed of it: `(generation, state, reason)`.

    `unobserved` says that each tick looks at it, until something settled is observed. `look_by` is when somebody has to have
    looked at it next; None where nothing obliges anybody, and where nobody has reckoned it. `enabled_under` is the epoch and
    the reset generation of its environment at enabling. `row` is its schedule's, and `activation` its own.
    """

    row: int
    activation: int
    key: ActivationKey
    enabled: bool
    ended_as: str | None
    ended_reason: str | None
    revision: int
    accounted_through: datetime
    attended_until: datetime | None
    look_by: datetime | None
    waiting: bool
    unobserved: bool
    enabled_under: tuple[int | None, int | None]
    observed: tuple[int, str, str | None] | None

    @property
    def is_live(self) -> bool:
        """Whether its workflow should be running."""
        return self.enabled and self.ended_as is None


def watched(connection: Connection, scope: Scope) -> Sequence[Watched]:
    """Current activations that are not known to be as they should be, by the row of their schedule."""
    found = connection.execute(_QUESTION.where(*in_environment(scope), schedules.c.unobserved.is_(True)))
    return sorted((_watched(row) for row in found), key=lambda each: each.row)


def live_page(
    connection: Connection, scope: Scope, *, after: str | None, limit: int
) -> tuple[Sequence[Watched], str | None]:
    """A page of the live activations of an environment, by the UUID of their schedule, beginning behind `after`.

    Second, behind what the next page begins; None where this was the last. As many schedules are visited as `VISITED_AT_ONCE`
    times the limit, so a page can be short, or empty, and not be the last.
    """
    # No id is before "", and with it the first page is asked for as each other one.
    behind = schedules.c.schedule_id > (after or "")
    visit = limit * VISITED_AT_ONCE
    query = _QUESTION_OF_ALL.where(*in_environment(scope), behind).order_by(schedules.c.schedule_id).limit(visit)
    visited = connection.execute(query).all()
    listed: list[Watched] = []
    for place, row in enumerate(visited, 1):
        # One that was never enabled has no activation.
        if row.activation is not None and (each := _watched(row)).is_live:
            listed.append(each)
        if len(listed) == limit:
            is_last = place == len(visited) < visit
            return listed, None if is_last else row.schedule_id
    return listed, None if len(visited) < visit else visited[-1].schedule_id


def late(
    connection: Connection, scope: Scope, *, before: datetime, after: tuple[datetime, int] | None, limit: int
) -> tuple[Sequence[Watched], tuple[datetime, int] | None]:
    """Live activations at which somebody has to have looked before an instant, oldest first; and the next page's place.

    A page is of so many of all environments, so it can be short and not be the last.
    """
    place = (activations.c.look_by, activations.c.id)
    behind = [] if after is None else [tuple_(*place) > after]
    query = (
        _QUESTION.where(activations.c.ended_at.is_(None), activations.c.look_by < before, *behind)
        .order_by(*place)
        .limit(limit)
    )
    found = connection.execute(query).all()
    following = (found[-1].look_by, found[-1].activation) if len(found) == limit else None
    return [_watched(row) for row in found if _is_in(row, scope)], following


def in_error(
    connection: Connection, scope: Scope, *, after: int | None, limit: int
) -> tuple[Sequence[Watched], int | None]:
    """Current activations last observed in error, by the row of their schedule; and behind which the next page begins.

    A page is of so many of all environments, so it can be short and not be the last.
    """
    behind = [] if after is None else [runtime.c.schedule > after]
    # Written out, since a parameter would hide from the planner that the index of errors is meant.
    failing = runtime.c.state == literal_column("'error'")
    query = _QUESTION_OF_OBSERVED.where(failing, *behind).order_by(runtime.c.schedule).limit(limit)
    found = connection.execute(query).all()
    following = found[-1].id if len(found) == limit else None
    return [_watched(row) for row in found if _is_in(row, scope)], following


def current(connection: Connection, scope: Scope, schedule_ids: Collection[str]) -> Sequence[Watched]:
    """The current activations of some schedules of an environment, those of them that have one."""
    query = _QUESTION.where(*in_environment(scope), schedules.c.schedule_id.in_(schedule_ids))
    return [_watched(row) for row in connection.execute(query)]


def note_look_by(connection: Connection, reckoned: Iterable[tuple[Watched, datetime]]) -> None:
    """Write down until when somebody has to have looked at activations that were enabled before that was stored.

    One at which somebody looked meanwhile is left as it is.
    """
    for each, look_by in reckoned:
        unmoved = (
            activations.c.id == each.activation,
            activations.c.look_by.is_(None),
            activations.c.accounted_through == each.accounted_through,
        )
        connection.execute(update(activations).where(*unmoved).values(look_by=look_by))


_COLUMNS: tuple[ColumnElement[Any], ...] = (
    schedules.c.id,
    schedules.c.org_id,
    schedules.c.environment_id,
    schedules.c.schedule_id,
    schedules.c.unobserved,
    activations.c.id.label("activation"),
    activations.c.generation,
    activations.c.enabled,
    activations.c.ended_as,
    activations.c.ended_reason,
    activations.c.revision,
    activations.c.accounted_through,
    activations.c.attended_until,
    activations.c.look_by,
    activations.c.waiting,
    activations.c.environment_epoch,
    activations.c.reset_generation,
    runtime.c.generation.label("observed_generation"),
    runtime.c.state,
    runtime.c.reason,
)
_CURRENT = and_(activations.c.schedule == schedules.c.id, activations.c.generation == schedules.c.generation)
_OBSERVED = runtime.c.schedule == schedules.c.id
_QUESTION = select(*_COLUMNS).select_from(schedules.join(activations, _CURRENT).outerjoin(runtime, _OBSERVED))
_QUESTION_OF_ALL = select(*_COLUMNS).select_from(
    schedules.outerjoin(activations, _CURRENT).outerjoin(runtime, _OBSERVED)
)
_QUESTION_OF_OBSERVED = select(*_COLUMNS).select_from(runtime.join(schedules, _OBSERVED).join(activations, _CURRENT))


def _watched(row: Row[Any]) -> Watched:
    return Watched(
        row=row.id,
        activation=row.activation,
        key=key_of_generation(row.org_id, row.environment_id, row.schedule_id, row.generation),
        enabled=row.enabled,
        ended_as=row.ended_as,
        ended_reason=row.ended_reason,
        revision=row.revision,
        accounted_through=row.accounted_through,
        attended_until=row.attended_until,
        look_by=row.look_by,
        waiting=row.waiting,
        unobserved=row.unobserved,
        enabled_under=(row.environment_epoch, row.reset_generation),
        observed=None if row.state is None else (row.observed_generation, row.state, row.reason),
    )


def _is_in(row: Row[Any], scope: Scope) -> bool:
    return (row.org_id, row.environment_id) == (scope.org_id, scope.environment_id)
