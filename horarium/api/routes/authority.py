"""What operators declare and do: the file of an environment, kill switches, a new epoch, a reset, collections, approvals.

All of it needs a scope of its own, reads included.
"""

import asyncio
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from horarium.api import examples, models, queries
from horarium.api.bodies import idempotency_key, read_document
from horarium.api.openapi import SEEN, operation
from horarium.api.routes.paths import PREFIX
from horarium.api.service import Call, Operating
from horarium.authority.file import AuthorityFile, read_declarations
from horarium.control import administration, declaring, overview
from horarium.control.administration import (
    ApproveRequest,
    ChangeRequest,
    CollectRequest,
    LiftRequest,
    StopRequest,
)
from horarium.control.archived import archived
from horarium.control.attempts import attempt
from horarium.control.principals import require_human
from horarium.control.sweeping import review_all_enabled_before

router = APIRouter(prefix=f"{PREFIX}/authority", tags=["Authority"])

Nothing = Annotated[queries.Nothing, Query()]
_CHANGES = (*SEEN, 409)
_DONE = "The act is recorded. The receipt proves it; it is not the present state."


def _act(name: str, body: type[Any], body_example: object, **parts: object) -> dict[str, Any]:
    return operation(
        models.AuthorityReceipt,
        examples.receipt(name, **parts),
        status=201,
        why=_DONE,
        refuses=_CHANGES,
        body=body,
        body_example=body_example,
        keyed=True,
    )


@router.get("", **operation(models.AuthorityOverview, examples.AUTHORITY))
async def get_authority(call: Operating, _query: Nothing) -> JSONResponse:
    """Read what is declared, what was counted of money, which kill switches are on, and who did what last.

    No secret is among it. A declaration's `version` is the number of the act that made it so.
    """
    found = await call.service.read(overview.overview, call.scope)
    # In a thread: tens of thousands of declarations take a good part of a second to write down.
    return await asyncio.to_thread(JSONResponse, found)


@router.put(
    "",
    **operation(
        models.Applied,
        examples.receipt("apply", changes=examples.CHANGES),
        why="The environment is what the file says. `changes` tells every difference, or what it would be in a dry run.",
        refuses=_CHANGES,
        body=AuthorityFile,
        body_example=examples.AUTHORITY_FILE,
        keyed=True,
    ),
)
async def apply_authority(
    call: Operating, request: Request, query: Annotated[queries.ApplyQuery, Query()]
) -> JSONResponse:
    """Make the environment what a file says, with a key or a human session; one that is not there is created.

    A kind that the file does not name is left alone. A kind that it names is complete: what does not stand there is
    withdrawn. Epoch, reset generation, kill switches and counters are never touched. With `dry_run` nothing changes, and the
    answer tells what would; the key is not used up then.
    """
    key, service = idempotency_key(request), call.service
    document = await read_document(request, replace(service.limits, body=service.limits.declarations))
    declared = await asyncio.to_thread(attempt, read_declarations, document)
    if query.dry_run:
        return JSONResponse(
            await service.read(
                declaring.preview_of, call.principal, call.scope, declared, required_scope=service.operator_scope
            )
        )
    receipt = await service.write(
        declaring.apply,
        call.principal,
        call.scope,
        declared,
        key,
        now=service.now(),
        required_scope=service.operator_scope,
    )
    return JSONResponse(receipt.document)


@router.get("/events", **operation(models.Acts, examples.ACTS))
async def list_authority_events(call: Operating, query: Annotated[queries.EventsQuery, Query()]) -> JSONResponse:
    """List what operators did in the environment and its organization, oldest first: one event for each act."""
    found = await call.service.read(overview.acts, call.scope, after=query.after, limit=query.limit + 1)
    events = found[: query.limit]
    archives = [] if query.after else await call.service.read(archived, call.scope)
    cursor = events[-1]["id"] if len(found) > query.limit else None
    return JSONResponse({"events": events, "next_cursor": cursor, "archived": archives})


@router.post("/stop", **_act("stop", StopRequest, examples.STOP, changed=True, **examples.STOPPED))
async def stop_everything(call: Operating, request: Request, _query: Nothing) -> JSONResponse:
    """Put the kill switch of the environment on, or that of the organization; a human session only.

    From that second no run starts, staged, buffered and manual ones included. Runs that have started go on. It names no
    state that was reviewed, so nothing that somebody else did can refuse it; what is on already stays as it is.
    """
    return await _carry_out(call, request, administration.stop)


@router.post("/lift", **_act("lift", LiftRequest, examples.LIFT, changed=True, everywhere=False))
async def lift_stop(call: Operating, request: Request, _query: Nothing) -> JSONResponse:
    """Take a kill switch off; a human session only. Nothing is caught up: what was due meanwhile was refused."""
    return await _carry_out(call, request, administration.lift)


@router.post(
    "/epoch",
    **_act(
        "advance_epoch",
        ChangeRequest,
        examples.CHANGE_ENVIRONMENT,
        **{"from": 1},
        to=2,
        to_review=3,
        environment_epoch=2,
    ),
)
async def advance_epoch(call: Operating, request: Request, _query: Nothing) -> JSONResponse:
    """Begin a new authority epoch; a human session only.

    What was enabled before is refused from now on, and goes to review in the seconds after. Enabling it anew is a person's
    decision, schedule by schedule.
    """
    return await _renew(call, request, administration.advance_epoch)


@router.post(
    "/reset",
    **_act("reset", ChangeRequest, examples.CHANGE_ENVIRONMENT, **{"from": 1}, to=2, to_review=3, reset_generation=2),
)
async def reset_environment(call: Operating, request: Request, _query: Nothing) -> JSONResponse:
    """Reset the environment: begin a new reset generation; a human session only.

    As a new epoch, and an uncertain request about a schedule from before is not recovered any more.
    """
    return await _renew(call, request, administration.reset)


@router.post(
    "/collections",
    **_act("collect", CollectRequest, examples.COLLECT, **{**examples.COLLECT, "owed": 1_250}),
)
async def collect_payment(call: Operating, request: Request, _query: Nothing) -> JSONResponse:
    """Record that a payment of what a wallet owes was collected; a human session only. Never more than it owes."""
    return await _carry_out(call, request, administration.collect)


@router.post(
    "/approvals",
    **_act(
        "approve",
        ApproveRequest,
        examples.APPROVE,
        changed=True,
        schedule_id=examples.SCHEDULE,
        resource_id=examples.RESOURCE,
        reference=examples.REFERENCE,
        by="ada@acme.example",
        expires_at="2027-06-30T00:00:00Z",
    ),
)
async def approve_version(call: Operating, request: Request, _query: Nothing) -> JSONResponse:
    """Approve one exact version for live runs until some time; a human session only. A new version needs a new approval."""
    return await _carry_out(call, request, administration.approve)


async def _renew(call: Call, request: Request, act: Any) -> JSONResponse:
    answer = await _carry_out(call, request, act)
    service = call.service
    service.meanwhile("review", review_all_enabled_before(service.catalog, call.scope, now=service.now))
    return answer


async def _carry_out(call: Call, request: Request, act: Any) -> JSONResponse:
    require_human(call.principal)
    key, service = idempotency_key(request), call.service
    document = await read_document(request, service.limits)
    receipt = await service.write(
        act,
        call.principal,
        call.scope,
        document,
        key,
        now=service.now(),
        required_scope=service.operator_scope,
    )
    return JSONResponse(receipt.document, status_code=201)
