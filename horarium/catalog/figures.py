"""Figures of a whole installation, for whoever watches it: few questions, each of which an index leads to its answer.

They are asked every few seconds, whoever else works. What they cost grows with what is open, waits for review, or polls, and
not with how many schedules or ledger entries there are.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Select, case, func, literal_column, select

from horarium.catalog.notification_tables import deliveries, notifications
from horarium.catalog.presence import HEARTBEAT_LIFETIME, ROLES, longest_ago
from horarium.catalog.tables import activations, agents, entries, runs, runtime, schedules, versions, workers
from horarium.catalog.versions import Version, version_of_row
from horarium.schedule.ledger import BY_CALENDAR, HOLDING, OPEN, Disposition

LAPSED_WITHIN = timedelta(days=1)
"""How long an agent whose runner fell silent is told of. Longer, and it is taken to have been given up."""

MOST_DEAD = 10_000
"""Dead letters that are counted. With more, the number is of no other use than this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What stands in the catalog now, over all environments.

    `open_runs` are the runs that hold a slot, by disposition, and `buffered` the instants that wait for one. `in_review` counts
    the activations that a person has to look at; `oldest_review` is since when the oldest of them waits. `swept_at` is when the
    round of looks began that has come to every schedule of its environment, of the environment where that is longest ago; one
    in which nothing is enabled is forgotten after a while.
    `workers` are those with a fresh heartbeat, by role; `agents` the versions whose runner vouches for them (`present`), or did
    until less than a day ago and never said that it leaves (`lapsed`). `dead_letters` are notifications that were given up, as
    far as they are counted, and `untold_since` is since when the oldest waits that was not, to be sent or to be sent again.
    """

    open_runs: Mapping[str, int]
    buffered: int
    in_review: int
    oldest_review: datetime | None
    swept_at: datetime | None
    workers: Mapping[str, int]
    agents: Mapping[str, int]
    dead_letters: int
    untold_since: datetime | None


def read_figures(connection: Connection, *, now: datetime) -> Figures:
    """Read all of it, at one moment."""
    is_open = select(entries.c.disposition, func.count()).where(entries.c.closed_at.is_(None))
    counts = {row[0]: row[1] for row in connection.execute(is_open.group_by(entries.c.disposition))}
    in_review, oldest = connection.execute(_IN_REVIEW).one()
    seen_at, lease = workers.c.seen_at, agents.c.lease_until
    fresh = (seen_at > now - HEARTBEAT_LIFETIME, seen_at <= now + HEARTBEAT_LIFETIME)
    polling = select(workers.c.role, func.count()).where(*fresh).group_by(workers.c.role)
    roles = {row[0]: row[1] for row in connection.execute(polling)}
    standing = case((lease > now, "present"), else_="lapsed").label("standing")
    ready = (agents.c.lifecycle == "ready", lease > now - LAPSED_WITHIN)
    vouched = select(standing, func.count()).where(*ready).group_by(standing)
    standings = {row[0]: row[1] for row in connection.execute(vouched)}
    return Figures(
        open_runs={each.value: counts.get(each.value, 0) for each in sorted(HOLDING)},
        buffered=counts.get(Disposition.BUFFERED.value, 0),
        in_review=in_review,
        oldest_review=oldest,
        swept_at=longest_ago(connection, now=now),
        workers={role: roles.get(role, 0) for role in ROLES},
        agents={name: standings.get(name, 0) for name in ("present", "lapsed")},
        dead_letters=connection.execute(_DEAD).scalar_one(),
        untold_since=min((at for at in connection.execute(_UNTOLD).one() if at is not None), default=None),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Expecting:
    """A live activation, and the first instant that was due since its schedule last succeeded, or since it was enabled.

    `due_at` is None where nothing was. It may be still to come.
    """

    schedule: int
    activation: int
    due_at: datetime | None


def expecting_page(connection: Connection, *, after: int, limit: int) -> Sequence[Expecting]:
    """A page of the live activations, by the row of their schedule, beginning behind `after`."""
    page = _live().where(activations.c.schedule > after).order_by(activations.c.schedule).limit(limit)
    return _expecting(connection, page)


def expecting_of(connection: Connection, rows: Collection[int]) -> Sequence[Expecting]:
    """The live activations of some schedules, by their rows."""
    return _expecting(connection, _live().where(activations.c.schedule.in_(rows)))


def _live() -> Select[Any]:
    return select(
        activations.c.schedule,
        activations.c.id.label("activation"),
        activations.c.activated_at,
        activations.c.look_by,
        _SUCCEEDED_AT.label("succeeded_at"),
    ).where(activations.c.ended_at.is_(None))


def _expecting(connection: Connection, live: Select[Any]) -> Sequence[Expecting]:
    page = live.subquery()
    mine = entries.alias()
    since = case((page.c.succeeded_at > page.c.activated_at, page.c.succeeded_at), else_=page.c.activated_at)
    entered = (
        select(func.min(mine.c.first_at))
        .where(mine.c.schedule == page.c.schedule, mine.c.first_at > since, mine.c.trigger == BY_CALENDAR)
        .correlate(page)
        .scalar_subquery()
    )
    # What nobody has accounted for yet; it may be from before the success, and goes on after it then.
    unaccounted = case((page.c.look_by > since, page.c.look_by), (page.c.look_by.is_not(None), since))
    due_at = func.coalesce(entered, unaccounted).label("due_at")
    query = select(page.c.schedule, page.c.activation, due_at).order_by(page.c.schedule)
    return [
        Expecting(schedule=row.schedule, activation=row.activation, due_at=row.due_at)
        for row in connection.execute(query)
    ]


def versions_of_activations(connection: Connection, rows: Collection[int]) -> Mapping[int, Version]:
    """The versions that some activations enabled, by the activation's row."""
    query = (
        select(activations.c.id.label("activation"), versions)
        .select_from(
            activations.join(
                versions,
                (versions.c.schedule == activations.c.schedule) & (versions.c.revision == activations.c.revision),
            )
        )
        .where(activations.c.id.in_(rows))
    )
    return {row["activation"]: version_of_row(row) for row in connection.execute(query).mappings()}


def time_limits(connection: Connection, rows: Collection[int]) -> Mapping[int, timedelta]:
    """How long the last run that succeeded might have taken, by the schedule's row; nothing of one that never did."""
    query = (
        select(schedules.c.id, runs.c.evidence)
        .select_from(schedules.join(entries, entries.c.id == _LAST_SUCCESS).join(runs, runs.c.entry == entries.c.id))
        .where(schedules.c.id.in_(rows))
    )
    found = {row.id: _limit_in(row.evidence) for row in connection.execute(query)}
    return {row: limit for row, limit in found.items() if limit is not None}


def _limit_in(evidence: Any) -> timedelta | None:
    way = evidence.get("dispatch") if isinstance(evidence, dict) else None
    seconds = way.get("max_run_seconds") if isinstance(way, dict) else None
    return timedelta(seconds=seconds) if isinstance(seconds, int) and not isinstance(seconds, bool) else None


# Written out, since a parameter would hide from the planner which index is meant.
_SUCCEEDED = entries.c.disposition == literal_column("'succeeded'")
_SUCCEEDED_AT = (
    select(entries.c.closed_at)
    .where(entries.c.schedule == activations.c.schedule, _SUCCEEDED)
    .order_by(entries.c.first_at.desc())
    .limit(1)
    .correlate(activations)
    .scalar_subquery()
)
_newest = entries.alias()
_LAST_SUCCESS = (
    select(_newest.c.id)
    .where(_newest.c.schedule == schedules.c.id, _newest.c.disposition == literal_column("'succeeded'"))
    .order_by(_newest.c.first_at.desc())
    .limit(1)
    .correlate(schedules)
    .scalar_subquery()
)
_IN_REVIEW = (
    select(func.count(), func.min(activations.c.ended_at))
    .select_from(
        runtime.join(
            schedules, (schedules.c.id == runtime.c.schedule) & (schedules.c.generation == runtime.c.generation)
        ).join(
            activations,
            (activations.c.schedule == runtime.c.schedule) & (activations.c.generation == runtime.c.generation),
        )
    )
    .where(runtime.c.state == literal_column("'review'"), schedules.c.retired_at.is_(None))
)
_DEAD = select(func.count()).select_from(
    select(deliveries.c.id).where(deliveries.c.state == literal_column("'dead'")).limit(MOST_DEAD).subquery()
)
_UNTOLD = select(
    select(func.min(deliveries.c.since)).where(deliveries.c.state == literal_column("'waiting'")).scalar_subquery(),
    select(func.min(notifications.c.at)).where(notifications.c.spread.is_(False)).scalar_subquery(),
)
assert set(OPEN) == {*HOLDING, Disposition.BUFFERED}
