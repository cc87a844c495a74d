"""Who is told of what happens to schedules: what operators declare, what a message says, and what was not heard.

A change of an endpoint is an operator's act with a receipt, by a person's own session. What all of them raise: `NotFound` for
another organization's environment, `Forbidden`, and `InvalidSchedule` with every fault of the request.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, HttpUrl, ValidationInfo
from pydantic_core import PydanticCustomError
from sqlalchemy import Connection

from horarium.authority.declared import Destination
from horarium.authority.signing import purpose_of
from horarium.calendar.faults import shown
from horarium.catalog import deliveries, endpoints, notifications
from horarium.catalog.declarations import record_act
from horarium.catalog.deliveries import DEAD, WAITING, Dead, Notification
from horarium.catalog.endpoints import Endpoint
from horarium.catalog.environments import Environment, require_environment
from horarium.catalog.schedules import find_schedule, require_schedule
from horarium.control.attempts import Attempt, attempt
from horarium.control.expectations import overdue_of
from horarium.control.principals import OPERATOR_SCOPE, Principal, authorize
from horarium.control.receipts import Receipt, perform
from horarium.control.requests import ScheduleId, read_request
from horarium.errors import Conflict, NotFound
from horarium.schedule.identity import NAME, ScheduleKey, Scope, instant_text, schedule_key
from horarium.schedule.notifications import ASKED_FOR, Kind, kinds_text, message

MAX_ENDPOINTS: Final = 50
"""Of an environment. Heartbeats are beside them: one for each schedule."""
MAX_URL: Final = 2_000
HEARTBEAT: Final = "heartbeat:"
"""Before the id of its schedule, what a heartbeat is called. No name that a person gives has a colon."""
_SECRET: Final = re.compile(r"HORARIUM_SECRET_[A-Z0-9_]{1,80}")
_ADDRESS: Final = r"^[Hh][Tt][Tt][Pp][Ss]?://[!-~]+$"
"""For the description: how every address begins. `_url` knows more."""
R = TypeVar("R", bound=BaseModel)


def _name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise PydanticCustomError(
            "invalid_name",
            "This is a name of 1 to 64 letters, digits, '_', '.' or '-', beginning and ending with a letter or digit; "
            "found {found}.",
            {"found": shown(text)},
        )
    return text


def _url(text: str, info: ValidationInfo) -> str:
    """An address without anything in it that might be a secret of another kind. It is not repeated, since it may hold one."""
    try:
        parts = urlsplit(text)
        port = parts.port
        # What is not understood when it is sent is refused here.
        HttpUrl(text)
    except ValueError:
        parts, port = urlsplit(""), None
    plain = text.isascii() and text.isprintable() and " " not in text and len(text) <= MAX_URL and port != 0
    if not plain or parts.scheme not in {"http", "https"} or not parts.hostname:
        raise PydanticCustomError("not_an_address", "This is an address such as https://pager.example/horarium.")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise PydanticCustomError("not_plain", "This is an address without user, password, query or fragment.")
    if parts.scheme != "https" and info.data.get("private") is False:
        raise PydanticCustomError(
            "not_https",
            "An address is reached over https://. For one in your own network, say that it is private (--private).",
        )
    return text


def _secret(text: str) -> str:
    if not _SECRET.fullmatch(text):
        # It may be the secret itself.
        raise PydanticCustomError(
            "not_a_variable",
            "This is the name of an environment variable that begins with HORARIUM_SECRET_, in capitals, and holds the secret.",
        )
    other = purpose_of(text)
    if other is not None:
        raise PydanticCustomError(
            "of_another_purpose",
            "This variable is the one that {other} names, and is not used for anything else. Name another one.",
            {"other": other},
        )
    return text


def _kinds(words: list[str]) -> list[str]:
    known = [each.value for each in ASKED_FOR]
    unknown = [each for each in words if each not in known]
    if unknown or not words or len(set(words)) != len(words):
        raise PydanticCustomError(
            "unknown_kinds",
            "These are one or more of {known}, each once; found {found}.",
            {"known": ", ".join(known), "found": shown((unknown or words or [""])[0])},
        )
    return words


class _Act(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class _Address(_Act):
    # Before the address, whose check asks for it.
    private: bool = Field(default=False, description="Whether the address may be one of a private network.")
    url: Annotated[str, AfterValidator(_url)] = Field(
        description="Where signed messages are posted to: https://, unless `private`, and without user, password, query or "
        "fragment.",
        json_schema_extra={"pattern": _ADDRESS, "maxLength": MAX_URL},
    )
    secret: Annotated[str, AfterValidator(_secret)] = Field(
        description="The name of the environment variable of the controller that holds the shared secret. No secret.",
        json_schema_extra={"pattern": f"^{_SECRET.pattern}$"},
    )


class AddRequest(_Address):
    """An endpoint that shall be told. One of that name is changed; one that had stopped is told again."""

    name: Annotated[str, AfterValidator(_name)] = Field(
        description="How people call it, in the environment.", json_schema_extra={"pattern": f"^{NAME.pattern}$"}
    )
    on: Annotated[list[str], AfterValidator(_kinds)] = Field(
        description=f"What it is told of: {', '.join(each.value for each in ASKED_FOR)}.",
        max_length=len(ASKED_FOR),
        json_schema_extra={
            "items": {"type": "string", "enum": [each.value for each in ASKED_FOR]},
            "minItems": 1,
            "uniqueItems": True,
        },
    )
    schedule_id: ScheduleId | None = Field(default=None, description="Of this schedule only; without it, of all.")


class HeartbeatRequest(_Address):
    """The heartbeat of a schedule: it is told each success by the calendar, so that somebody outside notices silence."""

    schedule_id: ScheduleId


class NameRequest(_Act):
    """An endpoint by its name. That of a heartbeat is `heartbeat:` and the id of its schedule."""

    name: Annotated[str, Field(min_length=1, max_length=100)]


class AgainRequest(_Act):
    """A dead letter that shall be sent again."""

    id: Annotated[int, Field(ge=1, le=2**53 - 1, description="As the list of dead letters shows it.")]


Did = Callable[[Environment, str], Mapping[str, Any]]


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
    asked = _let(AddRequest, principal, scope, request, required_scope)

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

    return _perform(connection, principal, scope, request, key, operation="notify_add", now=now, act=act)


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
    asked = _let(HeartbeatRequest, principal, scope, request, required_scope)

    def act(_environment: Environment, receipt_id: str) -> dict[str, Any]:
        wanted = asked.value()
        require_schedule(connection, schedule_key(scope, wanted.schedule_id), lock=True)
        name = f"{HEARTBEAT}{wanted.schedule_id}"
        return _put(connection, principal, scope, name, wanted, kinds=[Kind.HEARTBEAT], receipt_id=receipt_id, now=now)

    return _perform(connection, principal, scope, request, key, operation="notify_heartbeat", now=now, act=act)


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
    asked = _let(NameRequest, principal, scope, request, required_scope)

    def act(_environment: Environment, receipt_id: str) -> dict[str, Any]:
        endpoint = _require(connection, scope, asked.value().name)
        if endpoint.is_heartbeat and endpoint.schedule_id is not None:
            find_schedule(connection, schedule_key(scope, endpoint.schedule_id), lock=True)
        endpoints.remove_endpoint(connection, scope, endpoint)
        details = {"from": _stored(endpoint), "to": None, "receipt_id": receipt_id}
        record_act(connection, scope, "endpoint_removed", actor=principal.name, now=now, details=details)
        return {"name": endpoint.name}

    return _perform(connection, principal, scope, request, key, operation="notify_remove", now=now, act=act)


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
    asked = _let(NameRequest, principal, scope, request, required_scope)

    def act(_environment: Environment, _receipt_id: str) -> dict[str, Any]:
        endpoint = _told(_require(connection, scope, asked.value().name))
        message_id = notifications.tell_test(connection, scope, endpoint, by=principal.name, now=now)
        return {"name": endpoint.name, "message_id": message_id}

    return _perform(connection, principal, scope, request, key, operation="notify_test", now=now, act=act)


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
    asked = _let(AgainRequest, principal, scope, request, required_scope)

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

    return _perform(connection, principal, scope, request, key, operation="notify_again", now=now, act=act)


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


def _let(kind: type[R], principal: Principal, scope: Scope, request: object, required_scope: str) -> Attempt[R]:
    """Let a person through, and read what is asked for."""
    authorize(principal, scope, required_scope, human=True)
    return attempt(partial(read_request, kind), request)


def _perform(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    request: object,
    key: str,
    *,
    operation: str,
    now: datetime,
    act: Did,
) -> Receipt:
    return perform(
        connection,
        scope,
        principal,
        key,
        operation=operation,
        body=request,
        expected=None,
        now=now,
        act=lambda environment, receipt_id: {**act(environment, receipt_id), "warnings": []},
        outlives_resets=True,
    )
