"""What is read of a whole environment, as plain documents: itself, its ledger, its runs, and versions by their own ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, case, func, select

from horarium.catalog import pages
from horarium.catalog.environments import require_environment
from horarium.catalog.pages import Line, Position, Wanted
from horarium.catalog.presence import execution_ready
from horarium.catalog.schedules import require_schedule
from horarium.catalog.tables import activations, environments, runtime, schedules
from horarium.control.archived import archived, or_archived
from horarium.control.records import occurrence_document, record
from horarium.errors import NotFound
from horarium.schedule.identity import ScheduleKey, Scope
from horarium.schedule.ledger import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerPage:
    """Lines of the ledger as documents, and the position to continue behind; None on the last page.

    `archived` are the archives that may hold what would stand before the oldest of them, told on the page that has that end.
    """

    documents: list[dict[str, Any]]
    last: Position | None
    archived: list[dict[str, Any]]


def environment(connection: Connection, scope: Scope, *, now: datetime) -> dict[str, Any]:
    """An environment, with the two numbers that every mutation must name. Raises `NotFound`."""
    found = require_environment(connection, scope)
    return {
        "org_id": scope.org_id,
        "environment_id": scope.environment_id,
        "mode": found.mode,
        "authority_epoch": found.authority_epoch,
        "reset_generation": found.reset_generation,
        "runtime_profile": found.runtime_profile,
        "execution_ready": execution_ready(connection, now=now),
    }


def version(connection: Connection, scope: Scope, resource_id: str, *, now: datetime) -> dict[str, Any]:
    """The record of a schedule at the version with this id. Raises `NotFound`."""
    require_environment(connection, scope)
    found = pages.find_resource(connection, scope, resource_id)
    if found is None:
        raise NotFound(
            "version_not_found",
            f"No version in {scope.org_id}/{scope.environment_id} has the id {resource_id}.",
            next_step="The receipt of a publication names it as resource_id.",
        )
    schedule_id, revision = found
    key = ScheduleKey(org_id=scope.org_id, environment_id=scope.environment_id, schedule_id=schedule_id)
    return record(connection, key, revision=revision, now=now)


def schedule_ledger(
    connection: Connection, key: ScheduleKey, wanted: Wanted, *, after: Position | None, limit: int
) -> LedgerPage:
    """A page of one schedule's ledger. Raises `NotFound`."""
    require_environment(connection, key.scope)
    schedule = require_schedule(connection, key)
    lines = pages.page(connection, key.scope, replace(wanted, schedule_row=schedule.row), after=after, limit=limit + 1)
    documents = [occurrence_document(line.entry, line.run) for line in lines]
    beginning = _oldest_end(
        connection, key.scope, wanted, is_here=_is_oldest(wanted, lines, after, limit), began=schedule.created_at
    )
    return _cut(lines, limit, documents, beginning)


def ledger(connection: Connection, scope: Scope, wanted: Wanted, *, after: Position | None, limit: int) -> LedgerPage:
    """A page of an environment's ledger; each line names its schedule. Raises `NotFound`."""
    require_environment(connection, scope)
    # One more than asked for tells whether there is another page.
    lines = pages.page(connection, scope, wanted, after=after, limit=limit + 1)
    beginning = _oldest_end(connection, scope, wanted, is_here=_is_oldest(wanted, lines, after, limit), began=None)
    return _cut(lines, limit, [line_document(line) for line in lines], beginning)


def run(connection: Connection, scope: Scope, run_id: str) -> Line:
    """The ledger's line of one run. Raises `NotFound`."""
    require_environment(connection, scope)
    line = pages.find_line(connection, scope, run_id)
    if line is None:
        raise NotFound(
            "run_not_found",
            f"No run in {scope.org_id}/{scope.environment_id} has the id {run_id}.",
            next_step="The ledger of its schedule shows the runs that there are." + or_archived(connection, scope),
        )
    return line


def run_document(connection: Connection, scope: Scope, run_id: str) -> dict[str, Any]:
    """One run as a document. Raises `NotFound`."""
    return line_document(run(connection, scope, run_id))


def line_document(line: Line) -> dict[str, Any]:
    """A line of the ledger with the schedule that it belongs to."""
    return {"schedule_id": line.schedule_id, **occurrence_document(line.entry, line.run)}


def count_by_state(connection: Connection) -> Mapping[str, int]:
    """How many schedules that are not retired stand in which runtime state, over all environments.

    The rules are those of a record, in one query.
    """
    observed = runtime.c.generation == schedules.c.generation
    state = case(
        (environments.c.runtime_profile.is_(None), "unconfigured"),
        (schedules.c.generation == 0, "paused"),
        (activations.c.enabled & (activations.c.ended_as == Reason.REVIEW), "review"),
        (observed, runtime.c.state),
        (activations.c.enabled, "pending"),
        else_="stopping",
    ).label("state")
    query = (
        select(state, func.count().label("schedules"))
        .select_from(
            schedules.join(
                environments,
                (environments.c.org_id == schedules.c.org_id)
                & (environments.c.environment_id == schedules.c.environment_id),
            )
            .outerjoin(
                activations,
                (activations.c.schedule == schedules.c.id) & (activations.c.generation == schedules.c.generation),
            )
            .outerjoin(runtime, runtime.c.schedule == schedules.c.id)
        )
        .where(schedules.c.retired_at.is_(None))
        .group_by(state)
    )
    return {row.state: row.schedules for row in connection.execute(query)}


def _cut(
    lines: Sequence[Line], limit: int, documents: list[dict[str, Any]], beginning: list[dict[str, Any]]
) -> LedgerPage:
    last = lines[limit - 1].position if len(lines) > limit else None
    return LedgerPage(documents=documents[:limit], last=last, archived=beginning)


def _is_oldest(wanted: Wanted, lines: Sequence[Line], after: Position | None, limit: int) -> bool:
    """Whether a page has the oldest line that was asked for."""
    return len(lines) <= limit if wanted.newest_first else after is None


def _oldest_end(
    connection: Connection, scope: Scope, wanted: Wanted, *, is_here: bool, began: datetime | None
) -> list[dict[str, Any]]:
    """What was archived before the oldest line that was asked for, where that is on this page."""
    if not is_here:
        return []
    since = max((each for each in (began, wanted.since, wanted.touched_since) if each is not None), default=None)
    return archived(connection, scope, since=since, until=wanted.until)
