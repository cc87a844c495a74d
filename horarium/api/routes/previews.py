"""`POST schedule-previews`: what a calendar would do. Nothing is stored, and nothing is enabled."""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from horarium.api import examples, models, queries, requests
from horarium.api.bodies import read_document, read_instant
from horarium.api.openapi import operation
from horarium.api.routes.paths import PREFIX
from horarium.api.service import Authorized
from horarium.calendar.faults import Faults, shown
from horarium.catalog.environments import require_environment
from horarium.control.preview import Spec, about, preview, read_spec
from horarium.errors import InvalidSchedule
from horarium.schedule.identity import instant_text

router = APIRouter(prefix=PREFIX, tags=["Schedules"])

LONGEST = timedelta(days=5 * 366)
"""To count a dense calendar over five years takes up to a second of a processor."""
A_MONTH = timedelta(days=30)
_FIELDS = ("spec", "from", "until", "limit")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    spec: Spec
    start: datetime
    until: datetime | None
    limit: int


@router.post(
    "/schedule-previews",
    **operation(models.Preview, examples.PREVIEW, body=requests.PreviewRequest, body_example=examples.PREVIEW_REQUEST),
)
async def preview_schedule(
    call: Authorized, request: Request, _query: Annotated[queries.Nothing, Query()]
) -> JSONResponse:
    """Compute when a document of any contract, or a timing alone, would be due, and what changes of the clock do to it.

    `spec` is a configuration, a schedule of scheduler v0, a profile with its `config`, a canonical calendar, or the five
    positions of a cron with their zone. `translation` shows the canonical calendar of the same instants, or says which change
    of the clock makes the difference. Nothing is stored and no key is needed. `runs_per_30_days` counts the instants of the
    30 days from the start. A preview says nothing of whether a run would be admitted.
    """
    document = await read_document(request, call.service.limits)
    await call.service.read(require_environment, call.scope)
    # In a thread: the arithmetic of a dense calendar takes up to a second.
    async with call.service.long_work.of((call.principal.org_id, call.principal.name)):
        return JSONResponse(await asyncio.to_thread(_previewed, document, call.service.now()))


def _previewed(document: Any, now: datetime) -> dict[str, Any]:
    asked = _asked(document, now)
    calendar = asked.spec.calendar
    shown_instants = preview(calendar, start=asked.start, until=asked.until, limit=asked.limit)
    try:
        month = asked.start + A_MONTH
    except OverflowError:
        month = datetime.max.replace(tzinfo=asked.start.tzinfo)
    counted = {"runs_per_30_days": calendar.count(asked.start, month)}
    return {**shown_instants, **counted, **about(asked.spec, since=asked.start)}


def _asked(document: Any, now: datetime) -> _Asked:
    faults = Faults()
    if not isinstance(document, dict):
        faults.add("", "not_an_object", f"A preview is an object; found {shown(document)}.")
        faults.raise_if_any()
    faults.check_members(document, "", _FIELDS)
    spec = None
    if "spec" in document:
        try:
            spec = read_spec(document["spec"])
        except InvalidSchedule as error:
            for fault in error.faults:
                faults.add(f"/spec{fault.pointer}", fault.code, fault.sentence)
    else:
        faults.add("/spec", "missing_field", "The field spec is required: what is to be previewed.")
    start = read_instant(document["from"], "/from", faults) if "from" in document else now.replace(microsecond=0)
    until = read_instant(document["until"], "/until", faults) if "until" in document else None
    limit = document.get("limit", 100)
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= requests.MAX_PREVIEWED:
        sentence = f"limit is an integer from 1 to {requests.MAX_PREVIEWED:,}; found {shown(limit)}."
        faults.add("/limit", "out_of_range", sentence)
    if start is not None and until is not None and not timedelta(0) <= until - start <= LONGEST:
        sentence = f"A preview ends at or after its start {instant_text(start)}, and at most {LONGEST.days} days later."
        faults.add("/until", "out_of_range", sentence)
    faults.raise_if_any()
    assert spec is not None
    assert start is not None
    return _Asked(spec=spec, start=start, until=until, limit=limit)
