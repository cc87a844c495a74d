"""Schedules: published by a key or a person, read by both, and enabled, paused, retired and run by a person only."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from sqlalchemy import Connection

from horarium.api import examples, models, queries
from horarium.api.bodies import READ_IN_LOOP, idempotency_key, read_document, uuid_in_path
from horarium.api.errands import tell_temporal
from horarium.api.openapi import SEEN, operation
from horarium.api.routes.paths import PREFIX, ResourceId, ScheduleId, schedule_in_path
from horarium.api.service import Authorized, Call
from horarium.authority.asking import asked_outside
from horarium.control import operations, pages, records
from horarium.control.attempts import attempt
from horarium.control.principals import require_human
from horarium.control.receipts import Receipt
from horarium.control.requests import ActivateRequest, PublishRequest, RetireRequest, TriggerRequest, read_publication

router = APIRouter(prefix=PREFIX, tags=["Schedules"])

Nothing = Annotated[queries.Nothing, Query()]
_CHANGES = (*SEEN, 409)
_STORED = "The change is stored. The receipt proves this operation; it is not the present state."
_ABOUT = {"schedule_id": examples.SCHEDULE, "resource_id": examples.RESOURCE, "reference": examples.REFERENCE}


def _receipt(operation_: str, **parts: object) -> dict[str, Any]:
    return examples.receipt(operation_, **_ABOUT, **parts, warnings=[])


@router.post(
    "/schedules",
    **operation(
        models.Receipt,
        _receipt("publish"),
        status=201,
        why=_STORED,
        refuses=_CHANGES,
        body=PublishRequest,
        body_example=examples.PUBLISH,
        keyed=True,
    ),
)
async def publish_schedule(call: Authorized, request: Request, _query: Nothing) -> JSONResponse:
    """Publish an immutable version, with a key or a human session. It does not enable execution.

    A replacement does not silently replace an enabled version. `expected_revision` is 0 for the first version of a schedule
    id that you choose, else the head that was reviewed. Works while Temporal and the workers are down.
    """
    key, service = idempotency_key(request), call.service
    document = await read_document(request, service.limits)
    # Before the transaction, which others wait for; and in a thread, since a large one takes a tenth of a second.
    small = int(request.headers.get("content-length", READ_IN_LOOP + 1)) <= READ_IN_LOOP
    asked = (
        attempt(read_publication, document) if small else await asyncio.to_thread(attempt, read_publication, document)
    )
    receipt = await service.write(
        operations.publish,
        call.principal,
        call.scope,
        asked,
        key,
        now=service.now(),
        required_scope=service.required_scope,
    )
    return _answer(call, receipt)


@router.get("/schedules", **operation(models.Directory, examples.DIRECTORY))
async def list_schedules(call: Authorized, query: Annotated[queries.DirectoryQuery, Query()]) -> JSONResponse:
    """List the schedules of the environment by UUID, a page at a time.

    Continue with `next_cursor` as `after`. No preview of occurrences is implied by an entry.
    """
    return JSONResponse(
        await call.service.read(
            records.directory,
            call.scope,
            after=None if query.after is None else str(query.after),
            limit=query.limit,
            include_retired=query.include_retired,
            now=call.service.now(),
        )
    )


@router.get("/schedules/{schedule_id}", **operation(models.Record, examples.RECORD))
async def get_schedule(
    call: Authorized, schedule_id: ScheduleId, query: Annotated[queries.RecordQuery, Query()]
) -> JSONResponse:
    """Read a schedule at its publication head, or at one revision of it.

    `activation.version` may be older than the head. `runtime` is what the controller observed last: neither it nor
    `execution_ready` is proof of a successful run. No preview of occurrences is implied by these fields.
    """
    key = schedule_in_path(call, schedule_id)
    return JSONResponse(await call.service.read(records.record, key, revision=query.revision, now=call.service.now()))


@router.get("/schedule-versions/{resource_id}", **operation(models.Record, examples.RECORD))
async def get_schedule_version(call: Authorized, resource_id: ResourceId, _query: Nothing) -> JSONResponse:
    """Read one exact, immutable version by its own id, with the schedule's present activation and runtime state."""
    found = uuid_in_path(resource_id, what="version")
    return JSONResponse(await call.service.read(pages.version, call.scope, found, now=call.service.now()))


@router.post(
    "/schedules/{schedule_id}/activation",
    **operation(
        models.Receipt,
        _receipt("enable", generation=1, enabled=True, ended_generation=None),
        status=201,
        why=_STORED,
        refuses=_CHANGES,
        body=ActivateRequest,
        body_example=examples.SET_ACTIVATION,
        keyed=True,
    ),
)
async def set_activation(call: Authorized, schedule_id: ScheduleId, request: Request, _query: Nothing) -> JSONResponse:
    """Enable an exact version, or pause the one that is enabled; a human session only.

    Name the version that was reviewed, the activation's generation (0 where there is none) and both numbers of the
    environment. An enabled version can differ from the head: look at `activation.version` before pausing it. Enabling needs
    `execution_ready` and is refused with 503 until then; what else speaks against it is told all at once. Nothing of the past
    fires. Do not enable automatically after a recovered publication.
    """
    return await _change(call, schedule_id, request, operations.set_activation, name="set_activation", asks=True)


@router.post(
    "/schedules/{schedule_id}/retirement",
    **operation(
        models.Receipt,
        _receipt("retire", generation=2, enabled=False, ended_generation=1),
        status=201,
        why=_STORED,
        refuses=_CHANGES,
        body=RetireRequest,
        body_example=examples.RETIRE,
        keyed=True,
    ),
)
async def retire_schedule(call: Authorized, schedule_id: ScheduleId, request: Request, _query: Nothing) -> JSONResponse:
    """Retire a schedule's identity for good; a human session only.

    Its versions, receipts and ledger stay. Publishing another version cannot revive it.
    """
    return await _change(call, schedule_id, request, operations.retire, name="retire")


@router.post(
    "/schedules/{schedule_id}/runs",
    **operation(
        models.Receipt,
        _receipt(
            "trigger",
            generation=1,
            run_id=examples.RUN,
            trigger=f"manual:{examples.RECEIPT}",
            nominal_time="2027-01-31T09:00:00Z",
        ),
        status=201,
        why="The run is staged. Whether it may start is decided by admission.",
        refuses=_CHANGES,
        body=TriggerRequest,
        body_example=examples.TRIGGER,
        keyed=True,
    ),
)
async def trigger_run(call: Authorized, schedule_id: ScheduleId, request: Request, _query: Nothing) -> JSONResponse:
    """Run the enabled version now; a human session only. It obeys admission and overlap like any other run."""
    return await _change(call, schedule_id, request, operations.trigger, name="trigger")


async def _change(
    call: Call, schedule_id: str, request: Request, change: Any, *, name: str, asks: bool = False
) -> JSONResponse:
    """Carry out a change by a person; with `asks`, one that enables, and has to know about contents and the ceilings."""
    require_human(call.principal)
    key, service = idempotency_key(request), call.service
    found = schedule_in_path(call, schedule_id).schedule_id
    document = await read_document(request, service.limits)

    def perform(connection: Connection, /, **known: Any) -> Receipt:
        receipt: Receipt = change(
            connection,
            call.principal,
            call.scope,
            document,
            key,
            now=service.now(),
            schedule_id=found,
            required_scope=service.required_scope,
            **known,
        )
        return receipt

    perform.__name__ = name
    if not asks:
        return _answer(call, await service.write(perform))
    return _answer(
        call,
        await asked_outside(
            service.authority, lambda content: service.write(perform, content=content, ceilings=service.ceilings)
        ),
    )


def _answer(call: Call, receipt: Receipt) -> JSONResponse:
    """The receipt; and what Temporal is told meanwhile, after the commit."""
    tell_temporal(call.service, call.scope, receipt)
    return JSONResponse(receipt.document, status_code=201)
