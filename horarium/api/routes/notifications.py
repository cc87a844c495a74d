"""Who is told of what happens: endpoints, heartbeats, and what was not heard. For operators, reads included."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from horarium.api import notification_examples as examples
from horarium.api import notification_models as models
from horarium.api import queries
from horarium.api.bodies import idempotency_key, read_document
from horarium.api.openapi import SEEN, operation
from horarium.api.routes.paths import PREFIX
from horarium.api.service import Call, Operating
from horarium.control import notifications
from horarium.control.notification_requests import AddRequest, AgainRequest, HeartbeatRequest, NameRequest
from horarium.control.principals import require_human

router = APIRouter(prefix=f"{PREFIX}/notifications", tags=["Notifications"])

Nothing = Annotated[queries.Nothing, Query()]


def _act(act: str, body: type[Any], body_example: object, /, **parts: object) -> dict[str, Any]:
    return operation(
        models.NotificationReceipt,
        examples.receipt(act, **parts),
        status=201,
        why="It is recorded. What is sent goes out within seconds; the receipt says not that anybody heard it.",
        refuses=(*SEEN, 409),
        body=body,
        body_example=body_example,
        keyed=True,
    )


@router.get("", **operation(models.Endpoints, examples.ENDPOINTS))
async def list_endpoints(call: Operating, _query: Nothing) -> JSONResponse:
    """List the endpoints and heartbeats of the environment: what each is told, what waits for it, and what was given up."""
    return JSONResponse(await call.service.read(notifications.endpoints_document, call.scope))


@router.get("/dead", **operation(models.DeadLetters, examples.DEAD))
async def list_dead_letters(call: Operating, query: Annotated[queries.EventsQuery, Query()]) -> JSONResponse:
    """List what was given up, oldest first: after a day without a good answer, or because the endpoint is gone."""
    found = await call.service.read(notifications.dead_letters, call.scope, after=query.after, limit=query.limit + 1)
    dead = found[: query.limit]
    return JSONResponse({"dead": dead, "next_cursor": dead[-1]["id"] if len(found) > query.limit else None})


@router.post("/add", **_act("notify_add", AddRequest, examples.ADD, changed=False, **examples.ENDPOINT))
async def add_endpoint(call: Operating, request: Request, _query: Nothing) -> JSONResponse:
    """Declare an endpoint, or change the one of that name; a human session only.

    It is told of what happens from then on. One that had stopped, because it said that it is gone, is told again.
    """
    return await _carry_out(call, request, notifications.add)


@router.post(
    "/heartbeat",
    **_act("notify_heartbeat", HeartbeatRequest, examples.HEARTBEAT, changed=False, **examples.HEARTBEAT_ENDPOINT),
)
async def set_heartbeat(call: Operating, request: Request, _query: Nothing) -> JSONResponse:
    """Declare the heartbeat of a schedule, or change it; a human session only.

    It is told each success by the calendar, so that a watcher outside notices silence, also when all of this is gone.
    """
    return await _carry_out(call, request, notifications.heartbeat)


@router.post("/remove", **_act("notify_remove", NameRequest, examples.NAME, **examples.NAME))
async def remove_endpoint(call: Operating, request: Request, _query: Nothing) -> JSONResponse:
    """Tell an endpoint nothing any more, what waits for it included; a human session only."""
    return await _carry_out(call, request, notifications.remove)


@router.post(
    "/test", **_act("notify_test", NameRequest, examples.NAME, **examples.NAME, message_id=examples.MESSAGE_ID)
)
async def try_endpoint(call: Operating, request: Request, _query: Nothing) -> JSONResponse:
    """Send a signed test to an endpoint; a human session only. Whether it was heard, the list of endpoints shows."""
    return await _carry_out(call, request, notifications.try_out)


@router.post(
    "/again",
    **_act(
        "notify_again", AgainRequest, examples.AGAIN, **examples.NAME, **examples.AGAIN, message_id=examples.MESSAGE_ID
    ),
)
async def send_again(call: Operating, request: Request, _query: Nothing) -> JSONResponse:
    """Send a dead letter again, under the id that it had; a human session only."""
    return await _carry_out(call, request, notifications.again)


async def _carry_out(call: Call, request: Request, act: Any) -> JSONResponse:
    require_human(call.principal)
    key, service = idempotency_key(request), call.service
    document = await read_document(request, service.limits)
    receipt = await service.write(
        act, call.principal, call.scope, document, key, now=service.now(), required_scope=service.operator_scope
    )
    return JSONResponse(receipt.document, status_code=201)
