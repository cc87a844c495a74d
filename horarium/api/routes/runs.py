"""Runs: the environment's list, one by its id, and the request to end one."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse

from horarium.api import examples, models, queries
from horarium.api.bodies import idempotency_key, read_document, uuid_in_path
from horarium.api.openapi import SEEN, operation
from horarium.api.routes.ledger import ledger_page
from horarium.api.routes.paths import PREFIX
from horarium.api.service import Authorized
from horarium.control import pages
from horarium.control.cancellation import CancelRequest, cancel
from horarium.control.principals import require_human
from horarium.errors import Unavailable
from horarium.schedule.identity import schedule_key
from horarium.schedule.ledger import Disposition

router = APIRouter(prefix=PREFIX, tags=["Runs"])

RunId = Annotated[str, Path(description="The run's id.", examples=[examples.RUN], json_schema_extra={"format": "uuid"})]


@router.get("/runs", **operation(models.Runs, examples.RUNS, refuses=(400, *SEEN)))
async def list_runs(call: Authorized, query: Annotated[queries.LedgerQuery, Query()]) -> JSONResponse:
    """List the runs of the environment, by nominal time: those instants that were given a slot."""
    return await ledger_page(call, "runs", query, with_run=True)


@router.get("/runs/{run_id}", **operation(models.Run, examples.RUN_DOCUMENT))
async def get_run(call: Authorized, run_id: RunId, _query: Annotated[queries.Nothing, Query()]) -> JSONResponse:
    """Read one run: when it was due, whether it was admitted, when its agent began, and how it ended."""
    found = uuid_in_path(run_id, what="run")
    return JSONResponse(await call.service.read(pages.run_document, call.scope, found))


@router.post(
    "/runs/{run_id}/cancel",
    **operation(
        models.Receipt,
        examples.receipt("cancel_run", schedule_id=examples.SCHEDULE, run_id=examples.RUN),
        status=202,
        why="The request is recorded and the run was told. It ends once its agent has stopped.",
        refuses=(*SEEN, 409),
        body=CancelRequest,
        body_example=examples.CANCEL,
        keyed=True,
    ),
)
async def cancel_run(
    call: Authorized, run_id: RunId, request: Request, _query: Annotated[queries.Nothing, Query()]
) -> JSONResponse:
    """Ask a run to end; a human session only.

    The request is recorded first, then the run is told. While Temporal does not answer that is 503: the record stays, and
    the same body with the same key tells the run again.
    """
    require_human(call.principal)
    found, key, service = uuid_in_path(run_id, what="run"), idempotency_key(request), call.service
    document = await read_document(request, service.limits)
    if service.hands is None:
        raise _not_reached()
    receipt = await service.write(
        cancel,
        call.principal,
        call.scope,
        document,
        key,
        run_id=found,
        now=service.now(),
        required_scope=service.required_scope,
    )
    line = await service.read(pages.run, call.scope, found)
    run = line.entry.run_key(schedule_key(call.scope, line.schedule_id))
    try:
        told = await service.hands.cancel_run(run)
        if not told and line.entry.disposition is Disposition.STAGED:
            # Staged and not started yet: it would start later and know nothing of this.
            await service.hands.start_run(run)
            await service.hands.cancel_run(run)
    except Unavailable as error:
        raise _not_reached() from error
    return JSONResponse(receipt.document, status_code=202)


def _not_reached() -> Unavailable:
    return Unavailable(
        "execution_unavailable",
        "The run could not be told to end, since Temporal does not answer.",
        next_step="Send the same body with the same key again; it tells the run again and records nothing twice.",
    )
