"""What became of due instants, of one schedule and of the whole environment, and who changed what: audit events."""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse
from sqlalchemy import Connection

from horarium.api import examples, models, queries
from horarium.api.cursors import cursor_text, read_cursor
from horarium.api.openapi import SEEN, operation
from horarium.api.routes.paths import PREFIX, ScheduleId, schedule_in_path
from horarium.api.service import Authorized, Call
from horarium.catalog.environments import require_environment
from horarium.control import pages, records
from horarium.control.pages import LedgerPage
from horarium.schedule.identity import ScheduleKey

router = APIRouter(prefix=PREFIX, tags=["Ledger"])

_LISTS = (400, *SEEN)


@router.get(
    "/schedules/{schedule_id}/occurrences",
    **operation(models.Occurrences, examples.OCCURRENCES, refuses=_LISTS),
)
async def list_schedule_occurrences(
    call: Authorized, schedule_id: ScheduleId, query: Annotated[queries.ScheduleLedgerQuery, Query()]
) -> JSONResponse:
    """List what became of every due instant of a schedule, and why, by nominal time."""
    wanted = replace(query.wanted(), generation=query.generation, touched_since=query.touched_since)
    after = None if query.after is None else read_cursor(query.after)
    key = schedule_in_path(call, schedule_id)
    page = await call.service.read(pages.schedule_ledger, key, wanted, after=after, limit=query.limit)
    return _page("occurrences", page)


@router.get("/schedules/{schedule_id}/events", **operation(models.Events, examples.EVENTS))
async def list_events(
    call: Authorized, schedule_id: ScheduleId, query: Annotated[queries.EventsQuery, Query()]
) -> JSONResponse:
    """List who changed what about a schedule: one event for each accepted change and each transition."""
    key = schedule_in_path(call, schedule_id)
    found, archived = await call.service.read(_events, key, after=query.after, limit=query.limit + 1)
    events = found[: query.limit]
    cursor = events[-1]["id"] if len(found) > query.limit else None
    return JSONResponse({"events": events, "next_cursor": cursor, "archived": archived})


@router.get(
    "/occurrences", **operation(models.EnvironmentOccurrences, examples.ENVIRONMENT_OCCURRENCES, refuses=_LISTS)
)
async def list_occurrences(call: Authorized, query: Annotated[queries.LedgerQuery, Query()]) -> JSONResponse:
    """List what became of every due instant in the environment, by nominal time."""
    return await ledger_page(call, "occurrences", query)


async def ledger_page(call: Call, name: str, query: queries.LedgerQuery, *, with_run: bool = False) -> JSONResponse:
    """A page of the environment's ledger, its lines under `name`."""
    after = None if query.after is None else read_cursor(query.after)
    wanted = query.wanted(with_run=with_run)
    page = await call.service.read(pages.ledger, call.scope, wanted, after=after, limit=query.limit)
    return _page(name, page)


def _page(name: str, page: LedgerPage) -> JSONResponse:
    cursor = None if page.last is None else cursor_text(page.last)
    return JSONResponse({name: page.documents, "next_cursor": cursor, "archived": page.archived})


def _events(
    connection: Connection, key: ScheduleKey, *, after: int, limit: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    require_environment(connection, key.scope)
    found = records.events(connection, key, after=after, limit=limit)
    return found, [] if after else records.archived_events(connection, key)
