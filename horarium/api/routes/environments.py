"""`GET .`: the environment itself, which is read before every change."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from horarium.api import examples, models, queries
from horarium.api.openapi import operation
from horarium.api.routes.paths import PREFIX
from horarium.api.service import Authorized
from horarium.control import pages

router = APIRouter(prefix=PREFIX, tags=["Environment"])


@router.get("", **operation(models.Environment, examples.ENVIRONMENT))
async def get_environment(call: Authorized, _query: Annotated[queries.Nothing, Query()]) -> JSONResponse:
    """Read the environment before a change.

    Every mutation names its `authority_epoch` and `reset_generation` as preconditions. `execution_ready` tells whether both
    runtime workers are there: enabling is refused while they are not. It is no proof that an installed worker has ever
    completed a scheduled run.
    """
    return JSONResponse(await call.service.read(pages.environment, call.scope, now=call.service.now()))
