"""Who is told of what happens to schedules: what operators declare, what a message says, and what was not heard.

A change of an endpoint is an operator's act with a receipt, by a person's own session. What all of them raise: `NotFound` for
another organization's environment, `Forbidden`, and `InvalidSchedule` with every fault of the request.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection

from horarium.authority.declared import Destination
from horarium.catalog import deliveries, endpoints, notifications
from horarium.catalog.declarations import record_act
from horarium.catalog.deliveries import DEAD, WAITING, Dead, Notification
from horarium.catalog.endpoints import Endpoint
from horarium.catalog.environments import Environment, require_environment
from horarium.catalog.schedules import find_schedule, require_schedule
from horarium.control.expectations import overdue_of
from horarium.control.notification_requests import AddRequest, AgainRequest, HeartbeatRequest, NameRequest
from horarium.control.operator_acts import let, perform_act
from horarium.control.principals import OPERATOR_SCOPE, Principal
from horarium.control.receipts import Receipt
from horarium.errors import Conflict, NotFound
from horarium.schedule.identity import ScheduleKey, Scope, instant_text, schedule_key
from horarium.schedule.notifications import Kind, kinds_text, message

MAX_ENDPOINTS: Final = 50
"""Of an environment. Heartbeats are beside them: one for each schedule."""
HEARTBEAT: Final = "heartbeat:"
"""Before the id of its schedule, what a heartbeat is called. No name that a person gives has a colon."""


def add(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    request: object,
    key: str,
    *,
    now: datetime,
    required_scope: str = OPERATOR_SCOPE,
) -> Receipt:
    """Declare an endpoint, or change the one of that name. `Conflict` with `too_many_endpoints` beyond fifty."""
    asked = let(AddRequest, principal, scope, request, required_scope)

    def act(_environment: Environment, receipt_id: str) -> dict[str, Any]:
        wanted = asked.value()
        if wanted.schedule_id is not None:
            require_schedule(connection, schedule_key(scope, wanted.schedule_id))
        is_new = endpoints.find_endpoint(connection, scope, wanted.name) is None
        if is_new and endpoints.count_webhooks(connection, scope) >= MAX_ENDPOINTS:
            raise Conflict(
                "too_many_endpoints",
                f"There are {MAX_ENDPOINTS} endpoints in {scope.org_id}/{scope.environment_id}, which is the most.",
                next_step="Remove one that nobody needs, or let one receiver pass on to others.",
            )
        kinds = [Kind(each) for each in wanted.on]
        return _put(connection, principal, scope, wanted.name, wanted, kinds=kinds, receipt_id=receipt_id, now=now)

    return perform_act(connection, principal, scope, request, key, operation="notify_add", now=now, act=act)


def heartbeat(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    request: object,
    key: str,
    *,
    now: datetime,
    required_scope: str = OPERATOR_SCOPE,
) -> Receipt:
    """Declare the heartbeat of a schedule, or change it. `NotFound` for a schedule that is not there."""
    asked = let(HeartbeatRequest, principal, scope, request, required_scope)

    def act(_environment: Environment, receipt_id: str) -> dict[str, Any]:
        wanted = asked.value()
        require_schedule(connection, schedule_key(scope, wanted.schedule_id), lock=True)
        name = f"{HEARTBEAT}{wanted.schedule_id}"
        return _put(connection, principal, scope, name, wanted, kinds=[Kind.HEARTBEAT], receipt_id=receipt_id, now=now)

    return perform_act(connection, principal, scope, request, key, operation="notify_heartbeat", now=now, act=act)


def remove(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    request: object,
    key: str,
    *,
    now: datetime,
    required_scope: str = OPERATOR_SCOPE,
) -> Receipt:
    """Tell an endpoint nothing any more, what waits for it included. `NotFound` where there is none of that name."""
    asked = let(NameRequest, principal, scope, request, required_scope)

    def act(_environment: Environment, receipt_id: str) -> dict[str, Any]:
        endpoint = _require(connection, scope, asked.value().name)
        if endpoint.is_heartbeat and endpoint.schedule_id is not None:
            find_schedule(connection, schedule_key(scope, endpoint.schedule_id), lock=True)
        endpoints.remove_endpoint(connection, scope, endpoint)
        details = {"from": _stored(endpoint), "to": None, "receipt_id": receipt_id}
        record_act(connection, scope, "endpoint_removed", actor=principal.name, now=now, details=details)
        return {"name": endpoint.name}

    return perform_act(connection, principal, scope, request, key, operation="notify_remove", now=now, act=act)


def try_out(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    request: object,
    key: str,
    *,
    now: datetime,
    required_scope: str = OPERATOR_SCOPE,
) -> Receipt:
    """Send a test to an endpoint. `Conflict` with `endpoint_stopped` where it has said that it is gone."""
    asked = let(NameRequest, principal, scope, request, required_scope)

    def act(_environment: Environment, _receipt_id: str) -> dict[str, Any]:
        endpoint = _told(_require(connection, scope, asked.value().name))
        message_id = notifications.tell_test(connection, scope, endpoint, by=principal.name, now=now)
        return {"name": endpoint.name, "message_id": message_id}

    return perform_act(connection, principal, scope, request, key, operation="notify_test", now=now, act=act)


def again(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    request: object,
    key: str,
    *,
    now: datetime,
    required_scope: str = OPERATOR_SCOPE,
) -> Receipt:
    """Send a dead letter again, under the id that it had. `NotFound` where there is none of that number."""
    asked = let(AgainRequest, principal, scope, request, required_scope)

    def act(_environment: Environment, _receipt_id: str) -> dict[str, Any]:
        found = deliveries.find_dead(connection, scope, asked.value().id)
        if found is None:
            raise NotFound(
                "dead_letter_not_found",
                f"There is no dead letter {asked.value().id} in {scope.org_id}/{scope.environment_id}.",
                next_step="`horarium notify dead` shows those that are there.",
            )
        dead, endpoint = found
        _told(endpoint)
        deliveries.send_again(connection, dead.row, now=now)
        return {"name": endpoint.name, "id": dead.row, "message_id": dead.notification.message_id}

    return perform_act(connection, principal, scope, request, key, operation="notify_again", now=now, act=act)


def endpoints_document(connection: Connection, scope: Scope) -> dict[str, Any]:
    """All endpoints of an environment: what each is told, what waits for it, and what was given up."""
    require_environment(connection, scope)
    found = endpoints.list_endpoints(connection, scope)
    waiting, errors = deliveries.counts(connection, scope), deliveries.last_errors(connection, scope)
    beating = [each.schedule_id for each in found if each.is_heartbeat and each.schedule_id is not None]
    silent = notifications.silences(connection, scope, beating)
    return {"endpoints": [_shown(each, waiting.get(each.row, {}), errors.get(each.row), silent) for each in found]}


def dead_letters(connection: Connection, scope: Scope, *, after: int, limit: int) -> list[dict[str, Any]]:
    """A page of what was given up, oldest first, beginning behind the one with the id `after`."""
    require_environment(connection, scope)
    return [_letter(each) for each in deliveries.list_dead(connection, scope, after=after, limit=limit)]


def body_of(told: Notification) -> bytes:
    """What is posted: the same bytes at every attempt."""
    return json.dumps(_message(told), ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


def destination_of(endpoint: Endpoint) -> Destination:
    """An endpoint as an address that the gateway's own checks know."""
    return Destination.model_validate(
        {"url": endpoint.url, "secret": endpoint.secret, "private": endpoint.private}, strict=True
    )


def tell_if_overdue(connection: Connection, key: ScheduleKey, *, now: datetime) -> bool:
    """Tell that a success of a schedule is overdue, if it still is and that was not told; False where nothing was told."""
    schedule = find_schedule(connection, key, lock=True)
    overdue = None if schedule is None else overdue_of(connection, schedule.row, now=now)
    if schedule is None or overdue is None:
        return False
    because = (
        f"Nothing has succeeded since {instant_text(overdue.due_at)} was due, and the latest time for it was "
        f"{instant_text(overdue.expected_by)}."
    )
    return notifications.tell_overdue(connection, schedule, due_at=overdue.due_at, because=because, now=now)


def _put(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    name: str,
    wanted: AddRequest | HeartbeatRequest,
    *,
    kinds: list[Kind],
    receipt_id: str,
    now: datetime,
) -> dict[str, Any]:
    before = endpoints.find_endpoint(connection, scope, name)
    endpoint = endpoints.put_endpoint(
        connection,
        scope,
        name,
        url=wanted.url,
        secret=wanted.secret,
        private=wanted.private,
        kinds=kinds,
        schedule_id=wanted.schedule_id,
        by=principal.name,
        now=now,
    )
    told = _stored(endpoint)
    details = {"from": None if before is None else _stored(before), "to": told, "receipt_id": receipt_id}
    record_act(connection, scope, "endpoint_declared", actor=principal.name, now=now, details=details)
    return {"changed": before is not None, **told}


def _stored(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "name": endpoint.name,
        "url": endpoint.url,
        "secret": endpoint.secret,
        "private": endpoint.private,
        "on": kinds_text(endpoint.kinds).split(),
        "schedule_id": endpoint.schedule_id,
    }


def _shown(
    endpoint: Endpoint, waiting: Mapping[str, int], error: str | None, silent: Mapping[str, datetime | None]
) -> dict[str, Any]:
    since = None if endpoint.schedule_id is None else silent.get(endpoint.schedule_id)
    return {
        **_stored(endpoint),
        "declared_at": instant_text(endpoint.declared_at),
        "declared_by": endpoint.declared_by,
        "stopped_at": _instant(endpoint.stopped_at),
        "stopped_because": endpoint.stopped_because,
        "delivered_at": _instant(endpoint.delivered_at),
        "waiting": waiting.get(WAITING, 0),
        "dead": waiting.get(DEAD, 0),
        "last_error": error,
        "silent_since": _instant(since),
    }


def _letter(dead: Dead) -> dict[str, Any]:
    return {
        "id": dead.row,
        "endpoint": dead.endpoint,
        "message_id": dead.notification.message_id,
        "message": _message(dead.notification),
        "attempts": dead.attempts,
        "given_up_at": instant_text(dead.ended_at),
        "last_status": dead.last_status,
        "last_error": dead.last_error,
    }


def _message(told: Notification) -> dict[str, Any]:
    return message(
        told.kind,
        at=told.at,
        scope=Scope(org_id=told.org_id, environment_id=told.environment_id),
        schedule_id=told.schedule_id,
        name=_name_in(told.configuration),
        generation=told.generation,
        trigger=told.trigger,
        span=told.span,
        disposition=told.disposition,
        reason=told.reason,
        run_id=told.run_id,
        because=told.because,
    )


def _name_in(configuration: str | None) -> str | None:
    """What people call a schedule. A damaged version hinders no notification."""
    try:
        document = None if configuration is None else json.loads(configuration)
    except ValueError:
        return None
    name = document.get("name") if isinstance(document, dict) else None
    return name if isinstance(name, str) else None


def _instant(at: datetime | None) -> str | None:
    return None if at is None else instant_text(at)


def _require(connection: Connection, scope: Scope, name: str) -> Endpoint:
    # PostgreSQL takes no NUL in a text, also where it is only asked for.
    endpoint = endpoints.find_endpoint(connection, scope, name) if name.isprintable() else None
    if endpoint is None:
        raise NotFound(
            "endpoint_not_found",
            f"There is no endpoint {name[:80]!r} in {scope.org_id}/{scope.environment_id}.",
            next_step="`horarium notify list` shows those that are there.",
        )
    return endpoint


def _told(endpoint: Endpoint) -> Endpoint:
    if endpoint.stopped_at is not None:
        raise Conflict(
            "endpoint_stopped",
            f"Endpoint {endpoint.name!r} is told nothing since {instant_text(endpoint.stopped_at)}: "
            f"{endpoint.stopped_because}",
            next_step="Declare it again, under the same name, once it is there.",
        )
    return endpoint
