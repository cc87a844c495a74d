"""What operators do by command, each with a receipt and a record: stop and lift, a new epoch, a reset, collections, approvals.

Every one is one transaction by a person's own session. What all of them raise: `NotFound` for another organization's
environment, `Forbidden`, and `InvalidSchedule` with every fault of the request. Then nothing has changed.

The kill switch and what follows from money name no state of the environment that was reviewed: a stop must not fail because
somebody was quicker with something else.
"""

from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from horarium.authority.declared import MAX_AMOUNT, Approval, At, Reference, one_line, stored
from horarium.catalog import money
from horarium.catalog.declarations import (
    ORGANIZATION,
    declare,
    find_declarations,
    lift_stop,
    list_stops,
    lock_organization,
    record_act,
    set_stop,
)
from horarium.catalog.environments import Environment, change_environment
from horarium.catalog.moved_on import count_enabled_before
from horarium.catalog.schedules import require_schedule
from horarium.control.activation import Reviewed, reviewed_version
from horarium.control.events import reference
from horarium.control.operator_acts import let, perform_act
from horarium.control.principals import OPERATOR_SCOPE, Principal
from horarium.control.receipts import Preconditions, Receipt
from horarium.control.requests import Number, VersionReference
from horarium.errors import Conflict, Fault, InvalidSchedule
from horarium.schedule.identity import Scope, instant_text, schedule_key

MAX_REASON: Final = 1_000
"""Characters of a reason that an operator gives."""


Because = Annotated[str, AfterValidator(one_line), Field(min_length=1, max_length=MAX_REASON)]


class _Act(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class LiftRequest(_Act):
    """A kill switch that shall be off."""

    everywhere: bool = Field(default=False, description="true: that of the whole organization.")


class StopRequest(LiftRequest):
    """A kill switch that shall be on."""

    because: Because = Field(description="Why, in one line. Everybody whose run is refused reads it.")


class ChangeRequest(_Act):
    """A new epoch, or a reset, of the environment as it was reviewed."""

    because: Because = Field(description="Why, in one line.")
    expected_environment_epoch: Number = Field(description="The environment's `authority_epoch` as it was reviewed.")
    expected_reset_generation: Number = Field(description="The environment's `reset_generation` as it was reviewed.")


class CollectRequest(_Act):
    """A payment of what a wallet owes, which was collected outside of Horarium."""

    wallet: Reference
    amount: Annotated[int, Field(ge=1, le=MAX_AMOUNT, description="In minor units of the wallet's currency.")]


class ApproveRequest(_Act):
    """An approval of one exact version for live runs."""

    version: VersionReference
    expires_at: At = Field(description="Until when, RFC 3339 in UTC. In the future.")


def stop(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    request: object,
    key: str,
    *,
    now: datetime,
    required_scope: str = OPERATOR_SCOPE,
) -> Receipt:
    """Put a kill switch on: from the commit on no run starts, staged, buffered and manual ones included.

    What is on already stays as it is, and the receipt tells since when, by whom and why.
    """
    asked = let(StopRequest, principal, scope, request, required_scope)

    def act(_environment: Environment, receipt_id: str) -> dict[str, Any]:
        everywhere, because = asked.value().everywhere, asked.value().because
        _lock(connection, scope, everywhere=everywhere)
        before = _stop(connection, scope, everywhere=everywhere)
        if before is None:
            set_stop(connection, scope, everywhere=everywhere, by=principal.name, because=because, now=now)
            details = {"because": because, "receipt_id": receipt_id}
            record_act(
                connection,
                scope,
                "stopped",
                actor=principal.name,
                now=now,
                details=details,
                everywhere=everywhere,
            )
        on = before or _stop(connection, scope, everywhere=everywhere)
        assert on is not None
        return {"changed": before is None, **on}

    return perform_act(connection, principal, scope, request, key, operation="stop", now=now, act=act)


def lift(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    request: object,
    key: str,
    *,
    now: datetime,
    required_scope: str = OPERATOR_SCOPE,
) -> Receipt:
    """Take a kill switch off. Nothing is caught up: what fell due until now is refused. One that is not on stays so."""
    asked = let(LiftRequest, principal, scope, request, required_scope)

    def act(_environment: Environment, receipt_id: str) -> dict[str, Any]:
        everywhere = asked.value().everywhere
        _lock(connection, scope, everywhere=everywhere)
        before = _stop(connection, scope, everywhere=everywhere)
        if lift_stop(connection, scope, everywhere=everywhere, now=now):
            details = {"from": before, "receipt_id": receipt_id}
            record_act(
                connection,
                scope,
                "lifted",
                actor=principal.name,
                now=now,
                details=details,
                everywhere=everywhere,
            )
        return {"changed": before is not None, "everywhere": everywhere}

    return perform_act(connection, principal, scope, request, key, operation="lift", now=now, act=act)


def advance_epoch(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    request: object,
    key: str,
    *,
    now: datetime,
    required_scope: str = OPERATOR_SCOPE,
) -> Receipt:
    """Begin a new authority epoch: what was enabled before is refused from now on, and goes to review."""
    return _renew(
        connection, principal, scope, request, key, number="authority_epoch", now=now, required_scope=required_scope
    )


def reset(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    request: object,
    key: str,
    *,
    now: datetime,
    required_scope: str = OPERATOR_SCOPE,
) -> Receipt:
    """Begin a new reset generation: as a new epoch, and receipts of schedules from before are not given out any more."""
    return _renew(
        connection, principal, scope, request, key, number="reset_generation", now=now, required_scope=required_scope
    )


def collect(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    request: object,
    key: str,
    *,
    now: datetime,
    required_scope: str = OPERATOR_SCOPE,
) -> Receipt:
    """Take what was paid off what a wallet owes. `Conflict` with `owes_less` for more than that."""
    asked = let(CollectRequest, principal, scope, request, required_scope)

    def act(_environment: Environment, receipt_id: str) -> dict[str, Any]:
        wallet, amount = asked.value().wallet, asked.value().amount
        owed = money.account(connection, scope, money.WALLET, wallet, lock=True).spent
        if amount > owed:
            raise Conflict(
                "owes_less",
                f"The wallet {wallet!r} owes {owed}, which is less than {amount}.",
                next_step="Compare the payment with `horarium authority show`, and collect at most what is owed.",
            )
        left = money.collect(connection, scope, wallet, amount).spent
        told = {"wallet": wallet, "amount": amount, "owed": left}
        details = {**told, "owed_before": owed, "receipt_id": receipt_id}
        record_act(connection, scope, "collected", actor=principal.name, now=now, details=details)
        return told

    return perform_act(connection, principal, scope, request, key, operation="collect", now=now, act=act)


def approve(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    request: object,
    key: str,
    *,
    now: datetime,
    required_scope: str = OPERATOR_SCOPE,
) -> Receipt:
    """Approve one exact version for live runs until some time. A new version needs an approval of its own.

    It is bound to the digest. Raises `NotFound` for a schedule or revision that is not there, and `Conflict` with
    `digest_conflict` where the revision has another digest.
    """
    asked = let(ApproveRequest, principal, scope, request, required_scope)

    def act(_environment: Environment, receipt_id: str) -> dict[str, Any]:
        named, expires_at = asked.value().version, asked.value().expires_at
        if expires_at <= now:
            sentence = f"An approval ends in the future; {instant_text(expires_at)} has passed."
            raise InvalidSchedule([Fault("/expires_at", "passed", sentence)])
        schedule = require_schedule(connection, schedule_key(scope, named.schedule_id))
        reviewed = Reviewed(revision=named.revision, digest=named.digest)
        version = reviewed_version(connection, schedule, reviewed, default=named.revision)
        kind, name = "approval", version.digest
        found = find_declarations(connection, scope, {(kind, name)}).get((kind, name))
        before = None if found is None else dict(found.facts)
        after = stored(Approval(by=principal.name, expires_at=expires_at))
        told = {
            "schedule_id": schedule.key.schedule_id,
            "resource_id": version.resource_id,
            "reference": reference(schedule, version),
        }
        if before != after:
            details = {**told, "from": before, "to": after, "receipt_id": receipt_id}
            number = record_act(connection, scope, "approved", actor=principal.name, now=now, details=details)
            declare(connection, scope, kind, name, after, version=number, everywhere=False)
        return {"changed": before != after, **told, **after}

    return perform_act(connection, principal, scope, request, key, operation="approve", now=now, act=act)


def _renew(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    request: object,
    key: str,
    *,
    number: str,
    now: datetime,
    required_scope: str,
) -> Receipt:
    """Count one of the numbers of an environment up. Who was enabled before goes to review, in steps of their own."""
    asked = let(ChangeRequest, principal, scope, request, required_scope)
    operation, kind, told_as = {
        "authority_epoch": ("advance_epoch", "epoch_advanced", "environment_epoch"),
        "reset_generation": ("reset", "environment_reset", "reset_generation"),
    }[number]

    def act(environment: Environment, receipt_id: str) -> dict[str, Any]:
        before: int = getattr(environment, number)
        after = before + 1
        change_environment(connection, scope, **{number: after})
        details = {"because": asked.value().because, "from": before, "to": after, "receipt_id": receipt_id}
        record_act(connection, scope, kind, actor=principal.name, now=now, details=details)
        return {told_as: after, "from": before, "to": after, "to_review": count_enabled_before(connection, scope)}

    return perform_act(
        connection,
        principal,
        scope,
        request,
        key,
        operation=operation,
        expected=lambda: _expected(asked.value()),
        now=now,
        act=act,
    )


def _expected(request: ChangeRequest) -> Preconditions:
    return Preconditions(
        environment_epoch=request.expected_environment_epoch, reset_generation=request.expected_reset_generation
    )


def _lock(connection: Connection, scope: Scope, *, everywhere: bool) -> None:
    """The environment is locked already; what is of the organization has a lock of its own."""
    if everywhere:
        lock_organization(connection, scope)


def _stop(connection: Connection, scope: Scope, *, everywhere: bool) -> dict[str, Any] | None:
    """The kill switch of the environment, or of the organization, as a document; None where it is off."""
    for each in list_stops(connection, scope):
        if (each.environment_id == ORGANIZATION) is everywhere:
            return {
                "everywhere": everywhere,
                "since": instant_text(each.since),
                "by": each.by,
                "because": each.because,
            }
    return None
