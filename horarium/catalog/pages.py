"""Pages of a ledger, in the order of nominal times: of one schedule, or of a whole environment."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from sqlalchemy import ColumnElement, Connection, Select, UnaryExpression, and_, literal_column, or_, select
from sqlalchemy.sql import operators

from horarium.catalog.ledger import Entry, Run, entry_of_row, run_of_row
from horarium.catalog.tables import entries, runs, schedules, versions
from horarium.schedule.identity import Scope
from horarium.schedule.ledger import Disposition

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A place in the ledger: the entry that begins at `first_at` and has the key `row`."""

    first_at: datetime
    row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which entries a page is of. `since` and `until` are nominal times; a span counts where any of it lies between them.

    `touched_since` leaves those that are open, and those that were closed or extended at that instant or later.
    """

    schedule_row: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    dispositions: tuple[Disposition, ...] = ()
    generation: int | None = None
    touched_since: datetime | None = None
    with_run: bool = False
    newest_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One entry on a page, with the schedule that it belongs to and its run where it has one."""

    schedule_id: str
    entry: Entry
    run: Run | None

    @property
    def position(self) -> Position:
        return Position(first_at=self.entry.first_at, row=self.entry.row)


def page(connection: Connection, scope: Scope, wanted: Wanted, *, after: Position | None, limit: int) -> Sequence[Line]:
    """At most `limit` entries behind a position, ordered by (first_at, row).

    Entries that begin before `since` and reach into it are spans, and few. They are asked for apart, so that the index
    on `first_at` leads straight to the rest.
    """
    query = _query(connection, scope, wanted, after)
    if wanted.since is None:
        return _lines(connection, query.limit(limit))
    inside = query.where(entries.c.first_at >= wanted.since)
    # Written out, not bound: only so the planner sees that the index of spans holds them.
    is_span = entries.c.count > literal_column("1")
    # All earlier entries are in the index of first_at, so it is neither to be searched nor to be gone along.
    began = _unindexed(connection, entries.c.first_at)
    reaching = query.where(is_span, entries.c.last_at >= wanted.since, began < wanted.since).order_by(None)
    order = (began.desc(), entries.c.id.desc()) if wanted.newest_first else (began, entries.c.id)
    reaching = reaching.order_by(*order)
    parts: tuple[Select[tuple[object, ...]], ...] = (inside, reaching) if wanted.newest_first else (reaching, inside)
    if not wanted.newest_first and after is not None and after.first_at >= wanted.since:
        parts = (inside,)  # those that reach in are all before the position
    found: list[Line] = []
    for part in parts:
        if len(found) < limit:
            found += _lines(connection, part.limit(limit - len(found)))
    return found


def find_line(connection: Connection, scope: Scope, run_id: str) -> Line | None:
    """The ledger's line of one run, or None."""
    # By its run, which the key of runs leads to: not in the order of the ledger.
    query = _query(connection, scope, Wanted(with_run=True), None).order_by(None)
    found = _lines(connection, query.where(runs.c.run_id == run_id))
    return found[0] if found else None


def find_resource(connection: Connection, scope: Scope, resource_id: str) -> tuple[str, int] | None:
    """The schedule id and the revision of a version by its own id, or None."""
    query = (
        select(schedules.c.schedule_id, versions.c.revision)
        .select_from(versions.join(schedules, versions.c.schedule == schedules.c.id))
        .where(
            schedules.c.org_id == scope.org_id,
            schedules.c.environment_id == scope.environment_id,
            versions.c.resource_id == resource_id,
        )
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else (row.schedule_id, row.revision)


def _query(connection: Connection, scope: Scope, wanted: Wanted, after: Position | None) -> Select[tuple[object, ...]]:
    whose: ColumnElement[int] = entries.c.schedule
    org_id: ColumnElement[str] = schedules.c.org_id
    if wanted.schedule_row is None:
        # SQLite would go from schedule to schedule, and sort the whole ledger before its first line.
        whose, org_id = _unindexed(connection, whose), _unindexed(connection, org_id)
    joined = entries.join(schedules, whose == schedules.c.id)
    joined = joined.join(runs, runs.c.entry == entries.c.id, isouter=not wanted.with_run)
    query = (
        select(
            schedules.c.schedule_id.label("of_schedule"),
            *entries.c,
            *(column.label(f"run_{column.name}") for column in runs.c),
        )
        .select_from(joined)
        .where(org_id == scope.org_id, schedules.c.environment_id == scope.environment_id)
    )
    if wanted.newest_first:
        query = query.order_by(entries.c.first_at.desc(), entries.c.id.desc())
    else:
        query = query.order_by(entries.c.first_at, entries.c.id)
    if wanted.schedule_row is not None:
        query = query.where(entries.c.schedule == wanted.schedule_row)
    if wanted.until is not None:
        query = query.where(entries.c.first_at <= wanted.until)
    if wanted.generation is not None:
        query = query.where(entries.c.generation == wanted.generation)
    if wanted.dispositions:
        query = query.where(entries.c.disposition.in_(list(wanted.dispositions)))
    if wanted.touched_since is not None:
        query = query.where(or_(entries.c.closed_at.is_(None), entries.c.closed_at >= wanted.touched_since))
    return query if after is None else query.where(_behind(after, newest_first=wanted.newest_first))


def _unindexed(connection: Connection, column: ColumnElement[T]) -> ColumnElement[T]:
    """A column that SQLite finds no index for, so that it takes another. PostgreSQL weighs them by what it counted."""
    if connection.dialect.name != "sqlite":
        return column
    return UnaryExpression(column, operator=operators.custom_op("+"), type_=column.type)


def _behind(after: Position, *, newest_first: bool) -> ColumnElement[bool]:
    # Not a comparison of tuples: this form lets SQLite use the index on first_at.
    at, row = entries.c.first_at, entries.c.id
    if newest_first:
        return and_(at <= after.first_at, or_(at < after.first_at, row < after.row))
    return and_(at >= after.first_at, or_(at > after.first_at, row > after.row))


def _lines(connection: Connection, query: Select[tuple[object, ...]]) -> list[Line]:
    return [
        Line(
            schedule_id=row["of_schedule"],
            entry=entry_of_row(row),
            run=run_of_row(row, prefix="run_") if row["run_run_id"] else None,
        )
        for row in connection.execute(query).mappings()
    ]
