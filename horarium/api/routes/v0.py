"""Scheduler v0 (seed 002): its schedules as their contract writes them, made and changed by a person, read by a key too.

The paths name no environment: it stands in the query, and so may the organization; left out, it is that of the token. Every
other route knows these schedules as well, under the same ids: their ledger, their runs, and the receipts of their changes.
"""

import asyncio
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from sqlalchemy import Connection

from horarium.api import models, queries, v0_examples, v0_models, v0_queries
from horarium.api.bodies import READ_IN_LOOP, idempotency_key, read_document
from horarium.api.openapi import SEEN, operation
from horarium.api.routes.paths import ScheduleId, schedule_in_path
from horarium.api.service import AuthorizedByQuery, Call
from horarium.authority.asking import asked_outside
from horarium.calendar.faults import Faults, pointer, shown
from horarium.control import v0
from horarium.control.attempts import attempt
from horarium.control.operations import activation_to_nudge
from horarium.control.principals import require_human
from horarium.control.receipts import Receipt
from horarium.control.records import archived_events
from horarium.schedule.v0 import parse_v0

router = APIRouter(prefix="/v0/schedules", tags=["Scheduler v0"])

Here = Annotated[queries.InEnvironment, Query()]
_CHANGES: Final = (*SEEN, 409)
_STORED: Final = "The change is stored. The receipt proves this operation; it is not the present state."
_SIGNALS: Final = {"v0_update": "pause", "v0_pause": "pause", "v0_resume": "pause", "v0_disable": "retire"}
"""What the workflow of an activation is told that such an operation ended."""


def _changes(example: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What a route is told that changes a schedule by its path alone, unless `more` names a body."""
    body: dict[str, Any] = {"body": v0_models.V0NoDocument, "body_example": {}, "body_required": False}
    return operation(models.Receipt, example, status=201, why=_STORED, refuses=_CHANGES, keyed=True, **{**body, **more})


@router.post(
    "",
    **_changes(
        v0_examples.changed("v0_create", generation=1, enabled=True, ended=None),
        body=v0_models.V0ScheduleDocument,
        body_example=v0_examples.CRON,
        body_required=True,
    ),
)
async def create_v0_schedule(call: AuthorizedByQuery, request: Request, _query: Here) -> JSONResponse:
    """Create a schedule and enable it; a human session only. The receipt's `schedule_id` is its name from now on.

    What runs is what an operator's binding says of the target: without one it is refused with `binding_missing`. A one-shot
    whose instant has passed is accepted, entered as missed, and never runs: `enabled` is false then, and a warning says so.
    Where live runs need an approval, the refusal names the digest to approve, and the same document can be sent again. A
    schedule triggers an intent only: every run is admitted by itself when it is due.
    """
    return await _store(call, request, v0.create)


@router.get("", **operation(v0_models.V0Directory, v0_examples.DIRECTORY))
async def list_v0_schedules(
    call: AuthorizedByQuery, query: Annotated[v0_queries.V0DirectoryQuery, Query()]
) -> JSONResponse:
    """List the schedules of this contract by UUID, a page at a time, the disabled ones too.

    Continue with `next_cursor` as `after`.
    """
    found = await call.service.read(
        v0.directory,
        call.principal,
        call.scope,
        after=None if query.after is None else str(query.after),
        limit=query.limit,
        required_scope=call.service.required_scope,
    )
    return JSONResponse(found)


@router.get("/{schedule_id}", **operation(v0_models.V0Schedule, v0_examples.SHOWN))
async def get_v0_schedule(call: AuthorizedByQuery, schedule_id: ScheduleId, _query: Here) -> JSONResponse:
    """Read a schedule: its newest document as it came, and whether it fires.

    A schedule that was made by another contract is not found here.
    """
    found = schedule_in_path(call, schedule_id).schedule_id
    return JSONResponse(
        await call.service.read(v0.show, call.principal, call.scope, found, required_scope=call.service.required_scope)
    )


@router.put(
    "/{schedule_id}",
    **_changes(
        v0_examples.changed("v0_update", generation=2, enabled=True, ended=1),
        body=v0_models.V0ScheduleDocument,
        body_example=v0_examples.ONE_SHOT,
        body_required=True,
    ),
)
async def update_v0_schedule(
    call: AuthorizedByQuery, schedule_id: ScheduleId, request: Request, _query: Here
) -> JSONResponse:
    """Replace what a schedule does, as a new version; a human session only.

    An enabled schedule, and a one-shot that has nothing left to run, goes on with it. A paused one stays paused.
    """
    return await _store(call, request, v0.update, schedule_id=schedule_in_path(call, schedule_id).schedule_id)


@router.post("/{schedule_id}/pause", **_changes(v0_examples.changed("v0_pause", generation=2, enabled=False, ended=1)))
async def pause_v0_schedule(
    call: AuthorizedByQuery, schedule_id: ScheduleId, request: Request, _query: Here
) -> JSONResponse:
    """Stop firing; a human session only. What falls due meanwhile is never caught up."""
    return await _move(call, schedule_id, request, v0.pause)


@router.post("/{schedule_id}/resume", **_changes(v0_examples.changed("v0_resume", generation=3, enabled=True, ended=2)))
async def resume_v0_schedule(
    call: AuthorizedByQuery, schedule_id: ScheduleId, request: Request, _query: Here
) -> JSONResponse:
    """Fire again, as the newest version says; a human session only. Nothing of the past fires."""
    return await _move(call, schedule_id, request, v0.resume, asks=True)


@router.post(
    "/{schedule_id}/disable", **_changes(v0_examples.changed("v0_disable", generation=4, enabled=False, ended=3))
)
async def disable_v0_schedule(
    call: AuthorizedByQuery, schedule_id: ScheduleId, request: Request, _query: Here
) -> JSONResponse:
    """End a schedule for good; a human session only. Its versions, its ledger and its events stay."""
    return await _move(call, schedule_id, request, v0.disable)


@router.get("/{schedule_id}/events", **operation(models.Events, v0_examples.EVENTS))
async def list_v0_events(
    call: AuthorizedByQuery, schedule_id: ScheduleId, query: Annotated[v0_queries.V0EventsQuery, Query()]
) -> JSONResponse:
    """List what happened to a schedule: the eight events of its contract, beside those that every schedule has.

    `SCHEDULE_CREATED`, `SCHEDULE_UPDATED`, `SCHEDULE_PAUSED`, `SCHEDULE_RESUMED` and `SCHEDULE_DISABLED` name the version and
    the receipt of the change; `SCHEDULE_TRIGGERED` and `MISFIRED_DEFERRED` the run and its nominal time; `MISFIRED_SKIPPED`
    a span of instants with its count, and why. A run is triggered when it is due and uses its slot, once, and admission may
    still refuse it; what was withdrawn or missed before is not told so. An instant is deferred when it begins to wait, or
    when it starts late.
    """
    found = await call.service.read(
        v0.events,
        call.principal,
        call.scope,
        schedule_in_path(call, schedule_id).schedule_id,
        after=query.after,
        limit=query.limit + 1,
        required_scope=call.service.required_scope,
    )
    events = found[: query.limit]
    archived = [] if query.after else await call.service.read(archived_events, schedule_in_path(call, schedule_id))
    cursor = events[-1]["id"] if len(found) > query.limit else None
    return JSONResponse({"events": events, "next_cursor": cursor, "archived": archived})


async def _store(call: Call, request: Request, change: Any, **about: str) -> JSONResponse:
    """Carry out a change that brings a document."""
    require_human(call.principal)
    key = idempotency_key(request)
    document = await read_document(request, call.service.limits)
    # Before the transaction, which others wait for; and in a thread, since to look through a large one takes a while.
    small = int(request.headers.get("content-length", READ_IN_LOOP + 1)) <= READ_IN_LOOP
    asked = attempt(parse_v0, document) if small else await asyncio.to_thread(attempt, parse_v0, document)
    return await _perform(call, change, asked, key, asks=True, **about)


async def _move(call: Call, schedule_id: str, request: Request, change: Any, *, asks: bool = False) -> JSONResponse:
    """Carry out a change that the path says all of."""
    require_human(call.principal)
    key, found = idempotency_key(request), schedule_in_path(call, schedule_id).schedule_id
    await _refuse_document(call, request)
    return await _perform(call, change, found, key, asks=asks)


async def _refuse_document(call: Call, request: Request) -> None:
    """Let no body pass, and `{}`; `InvalidSchedule` with all that stands in another one."""
    if "transfer-encoding" not in request.headers and request.headers.get("content-length", "0") == "0":
        return
    document, faults = await read_document(request, call.service.limits), Faults()
    if not isinstance(document, dict):
        faults.add(
            "",
            "not_an_object",
            f"The path says all that is needed, so the body is none or {{}}; found {shown(document)}.",
        )
        document = {}
    for name in document:
        faults.add(
            pointer("", name), "unknown_field", f"{shown(name)} is not a field here: the path says all that is needed."
        )
    faults.raise_if_any()


async def _perform(call: Call, change: Any, what: Any, key: str, *, asks: bool, **about: str) -> JSONResponse:
    """Carry out a change, and tell the workflow of what it ended; with `asks`, one that enables, and
    has to know about contents and the ceilings.
    """
    service = call.service

    def perform(connection: Connection, /, **known: Any) -> Receipt:
        receipt: Receipt = change(
            connection,
            call.principal,
            call.scope,
            what,
            key,
            now=service.now(),
            required_scope=service.required_scope,
            **about,
            **known,
        )
        return receipt

    perform.__name__ = f"v0_{change.__name__}"
    if asks:
        receipt = await asked_outside(
            service.authority, lambda content: service.write(perform, content=content, ceilings=service.ceilings)
        )
    else:
        receipt = await service.write(perform)
    ended = activation_to_nudge(call.scope, receipt)
    if ended is not None:
        signal = _SIGNALS[receipt.document["operation"]]
        service.afterwards("nudge", lambda hands: hands.nudge(ended, signal))
    return JSONResponse(receipt.document, status_code=201)
