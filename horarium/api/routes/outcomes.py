"""The outcome of a run, reported by an agent behind the gateway `http` in a message that it signs."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import JSONResponse
from fastapi.security import APIKeyHeader

from horarium.api import examples, models, queries
from horarium.api.bodies import as_document, read_body, uuid_in_path
from horarium.api.hands import Hands
from horarium.api.limits import peer
from horarium.api.openapi import SEEN, operation
from horarium.api.routes.paths import PREFIX
from horarium.api.service import scope_in_path, service_of
from horarium.authority import signing
from horarium.control import outcomes
from horarium.control.outcomes import OutcomeReport, Reported, read_outcome
from horarium.errors import Forbidden

router = APIRouter(prefix=PREFIX, tags=["Runs"])

OUTCOME_REPORTED: Final = "outcome_reported"
"""The signal to the run's workflow."""
RUN_CLOSED: Final = "run_closed"
_Signature = APIKeyHeader(
    name=signing.SIGNATURE,
    auto_error=False,
    scheme_name="signature",
    description="`v1,` and the base64 of HMAC-SHA256 over `{webhook-id}.{webhook-timestamp}.{body}`, with the secret of the "
    "destination that the run was sent to (Standard Webhooks). The id is the run's id, and the time at most 5 minutes away.",
)


def _signed(described: dict[str, Any]) -> dict[str, Any]:
    """Say that an operation takes the headers of a signed message."""
    described["openapi_extra"]["parameters"] = [
        {
            "name": signing.ID,
            "in": "header",
            "required": True,
            "description": "The run's id, as in the path.",
            "schema": {"type": "string", "format": "uuid"},
            "example": examples.RUN,
        },
        {
            "name": signing.TIMESTAMP,
            "in": "header",
            "required": True,
            "description": "When the message was signed, in seconds since 1970.",
            "schema": {"type": "string", "pattern": "^[0-9]{1,12}$"},
            "example": "1801463470",
        },
    ]
    return described


@router.post(
    "/runs/{run_id}/outcome",
    **_signed(
        operation(
            models.OutcomeTaken,
            examples.OUTCOME_TAKEN,
            why="The outcome counts, or was reported in the same words before.",
            refuses=(*(each for each in SEEN if each not in {401, 403}), 409),
            body=OutcomeReport,
            body_example=examples.OUTCOME,
        )
    ),
)
async def report_outcome(
    request: Request,
    _signature: Annotated[str | None, Depends(_Signature)],
    org_id: Annotated[str, Path(description="The organization.", examples=["acme"])],
    environment_id: Annotated[str, Path(description="The environment in it.", examples=["production"])],
    run_id: Annotated[
        str, Path(description="The run's id.", examples=[examples.RUN], json_schema_extra={"format": "uuid"})
    ],
    _query: Annotated[queries.Nothing, Query()],
) -> JSONResponse:
    """Report how a run ended; for its agent, at the address that came with the run.

    It needs no token: the message is signed with the secret of the destination. The first outcome counts, and settles the run
    with what it cost. The same one again is answered as before with `replayed: true`. Another one is 409 `outcome_conflict`,
    and one after the run's time limit or its end 409 `run_ended`; neither changes anything. A wrong signature is 404, as is a
    run that was not sent there.
    """
    service = service_of(request)
    address = peer(request.client.host if request.client else None)
    service.peers.take(address)
    scope, found = scope_in_path(org_id, environment_id), uuid_in_path(run_id, what="run")
    body = await read_body(request, service.limits)
    destination = await service.read(outcomes.destination_of, scope, found)
    if destination is None:
        raise outcomes.no_such_run(found)
    try:
        signed_id = signing.verify(request.headers, body, signing.keys_named(destination.secret), now=service.now())
    except Forbidden as error:
        raise outcomes.no_such_run(found) from error
    if signed_id != found:
        # A message about another run of the same destination: neither method nor path is signed.
        raise outcomes.no_such_run(found)
    service.peers.give_back(address)
    service.principals.take((org_id, f"run {found}"))
    request.state.principal = f"{org_id}/run {found}"
    said = read_outcome(await as_document(body))
    reported = await service.write(outcomes.report, scope, found, said, now=service.now())
    service.afterwards("outcome", lambda hands: _tell(hands, reported))
    if reported.late is not None:
        raise outcomes.run_ended(found, reported.disposition, reported.reason)
    return JSONResponse(
        {
            "run_id": found,
            "disposition": reported.disposition,
            "reason": reported.reason,
            "replayed": reported.replayed,
        }
    )


async def _tell(hands: Hands, reported: Reported) -> None:
    await hands.tell_run(reported.key, OUTCOME_REPORTED)
    if reported.nudge is not None:
        await hands.nudge(reported.nudge, RUN_CLOSED)
