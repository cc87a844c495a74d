"""A run's input, for the agent that does it: opened by the run's own token, and asked about anew at each read."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from horarium.api import examples, queries
from horarium.api.bodies import uuid_in_path
from horarium.api.limits import peer
from horarium.api.openapi import SEEN, refusals
from horarium.api.routes.paths import PREFIX
from horarium.api.service import scope_in_path, service_of
from horarium.api.tokens import unauthenticated
from horarium.control.reading import read_input

router = APIRouter(prefix=PREFIX, tags=["Runs"])

MEDIA_TYPE = "application/octet-stream"
"""Of every input: what is in it is between whoever wrote it and the agent."""
_LONGEST_TOKEN = 200
_RunBearer = HTTPBearer(
    auto_error=False,
    scheme_name="run_token",
    description="The token that an agent is given with its run. It opens this run alone, and dies with it.",
)


@router.get(
    "/runs/{run_id}/input",
    response_class=Response,
    responses={
        200: {
            "description": "The input, as it is now. It is not to be kept: each read is asked about anew.",
            "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}, "example": "…"}},
        },
        **refusals((*SEEN, 409)),
    },
)
async def read_run_input(
    request: Request,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_RunBearer)],
    org_id: Annotated[str, Path(description="The organization.", examples=["acme"])],
    environment_id: Annotated[str, Path(description="The environment in it.", examples=["production"])],
    run_id: Annotated[
        str, Path(description="The run's id.", examples=[examples.RUN], json_schema_extra={"format": "uuid"})
    ],
    _query: Annotated[queries.Nothing, Query()],
) -> Response:
    """Read the input of a run that is with its agent, in the name of the person on whose word it runs.

    The token is the run's own, not a caller's. Each read asks the authority: 403 with the reason once the person has left or
    can read the input no longer, or it or the consent to it has expired, and the run's schedule records that. 404 once the
    run has ended. 503 while the authority does not answer; then ask again.
    """
    service = service_of(request)
    address = peer(request.client.host if request.client else None)
    service.peers.take(address)
    if credentials is None or len(request.headers.getlist("authorization")) > 1:
        raise unauthenticated()
    found = uuid_in_path(run_id, what="run")
    data = await read_input(
        service.catalog,
        service.authority,
        found,
        credentials.credentials[:_LONGEST_TOKEN],
        scope=scope_in_path(org_id, environment_id),
        now=service.now(),
    )
    # Many runs may be with agents at one address. Whoever shows the token of a run is limited as that run.
    service.peers.give_back(address)
    service.principals.take((org_id, f"run {found}"))
    request.state.principal = f"{org_id}/run {found}"
    return Response(data, media_type=MEDIA_TYPE)
