"""The mutations of the contract, as documents: what a caller asks for, and the receipt that answers it (DESIGN.md, section 7).

Each is one transaction: principal, request, precondition, change, receipt and audit event. `request` is the document as the
caller sent it, `key` the caller's idempotency key. What all of them raise: `NotFound` for another organization's environment
and what is not there, `Forbidden`, `InvalidSchedule` with every fault of the request, and `Conflict` where the state is not the
one that was reviewed. Then nothing has changed, and the key is not bound.

What remains to be done at Temporal after the commit is in the receipt (`run_to_start`, `activation_to_nudge`). The controller
does it too, so losing it costs seconds.
"""

from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Connection

from horarium.authority.asking import Content
from horarium.catalog.environments import Environment
from horarium.catalog.schedules import Schedule, require_schedule
from horarium.catalog.versions import Version
from horarium.control import activation, manual, publication
from horarium.control.activation import Changed, Reviewed
from horarium.control.attempts import Attempt, attempt
from horarium.control.events import reference
from horarium.control.principals import WRITE_SCOPE, Principal, authorize
from horarium.control.profile_guard import leave_enabling_to_profiles, leave_retiring_to_profiles
from horarium.control.publication import calendar_warnings
from horarium.control.receipts import Preconditions, Receipt, perform
from horarium.control.requests import (
    ActivateRequest,
    Publication,
    PublishRequest,
    RetireRequest,
    TriggerRequest,
    VersionReference,
    read_publication,
    read_request,
)
from horarium.schedule.ceilings import USUAL, Ceilings
from horarium.schedule.identity import ActivationKey, RunKey, ScheduleKey, Scope, instant_text, schedule_key


def publish(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    request: object,
    key: str,
    *,
    now: datetime,
    required_scope: str = WRITE_SCOPE,
) -> Receipt:
    """Store a configuration as the next version of a schedule, by a key or a person. It enables nothing.

    `request` may have been read before: an `Attempt` of `read_publication`.
    """
    authorize(principal, scope, required_scope)
    asked: Attempt[Publication] = request if isinstance(request, Attempt) else attempt(read_publication, request)

    def act(_environment: Environment, receipt_id: str) -> dict[str, Any]:
        read = asked.value()
        schedule = schedule_key(scope, read.request.schedule_id)
        published = publication.publish(
            connection,
            schedule,
            read.request.configuration,
            expected_revision=read.request.expected_revision,
            by=principal.name,
            now=now,
            configuration=read.configuration,
            receipt_id=receipt_id,
        )
        stored = require_schedule(connection, schedule)
        return {**_about(stored, published.version), "warnings": list(published.warnings)}

    return perform(
        connection,
        scope,
        principal,
        key,
        operation="publish",
        body=asked.document,
        expected=lambda: _expected(asked.value().request),
        now=now,
        act=act,
    )


def set_activation(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    request: object,
    key: str,
    *,
    content: Content,
    now: datetime,
    schedule_id: str | None = None,
    required_scope: str = WRITE_SCOPE,
    ceilings: Ceilings = USUAL,
) -> Receipt:
    """Enable an exact version, or pause the one that is enabled; by a person.

    `schedule_id` is the schedule that the request was sent to. Enabling raises `Unavailable` while a runtime worker is
    missing, `Refused` with `runtime_unconfigured`, and `NotAdmissible` with every reason that an occurrence would meet now.
    The schedule behind a cron profile is paused here and never enabled (`Conflict` with `other_contract`). `ceilings` are those
    that the installation is set up with.
    """
    authorize(principal, scope, required_scope, human=True)
    asked = attempt(partial(read_request, ActivateRequest, schedule_id=schedule_id), request)
    enables = isinstance(request, dict) and request.get("enabled") is True

    def act(_environment: Environment, receipt_id: str) -> dict[str, Any]:
        schedule, reviewed = _reviewed(scope, asked.value())
        by = principal.name
        if not enables:
            paused = activation.pause(connection, schedule, reviewed, by=by, now=now, receipt_id=receipt_id)
            return _changed(connection, paused, warnings=())
        leave_enabling_to_profiles(connection, schedule)
        enabled = activation.enable(
            connection, schedule, reviewed, content, by=by, now=now, receipt_id=receipt_id, ceilings=ceilings
        )
        return _changed(connection, enabled, warnings=calendar_warnings(enabled.version.configuration, now=now))

    return perform(
        connection,
        scope,
        principal,
        key,
        operation="enable" if enables else "pause",
        body=request,
        expected=lambda: _expected(asked.value()),
        now=now,
        act=act,
    )


def retire(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    request: object,
    key: str,
    *,
    now: datetime,
    schedule_id: str | None = None,
    required_scope: str = WRITE_SCOPE,
) -> Receipt:
    """End a schedule's identity for good, by a person. Its versions, receipts and ledger stay.

    That of the schedule behind a cron profile is never ended: `Conflict` with `other_contract`.
    """
    authorize(principal, scope, required_scope, human=True)
    asked = attempt(partial(read_request, RetireRequest, schedule_id=schedule_id), request)

    def act(_environment: Environment, receipt_id: str) -> dict[str, Any]:
        schedule, reviewed = _reviewed(scope, asked.value())
        leave_retiring_to_profiles(connection, schedule)
        changed = activation.retire(connection, schedule, reviewed, by=principal.name, now=now, receipt_id=receipt_id)
        return _changed(connection, changed, warnings=())

    return perform(
        connection,
        scope,
        principal,
        key,
        operation="retire",
        body=request,
        expected=lambda: _expected(asked.value()),
        now=now,
        act=act,
    )


def trigger(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    request: object,
    key: str,
    *,
    now: datetime,
    schedule_id: str | None = None,
    required_scope: str = WRITE_SCOPE,
) -> Receipt:
    """Run the enabled version now, by a person. The receipt says that the run is staged; admission has yet to decide on it.

    Raises `Conflict` with `overlap` where the schedule's runs hold every slot and the request does not allow that, and
    `Unavailable` while a runtime worker is missing.
    """
    authorize(principal, scope, required_scope, human=True)
    asked = attempt(partial(read_request, TriggerRequest, schedule_id=schedule_id), request)

    def act(_environment: Environment, receipt_id: str) -> dict[str, Any]:
        schedule, reviewed = _reviewed(scope, asked.value())
        staged = manual.trigger(
            connection,
            schedule,
            reviewed,
            receipt_id=receipt_id,
            allow_overlap=asked.value().overlap is not None,
            by=principal.name,
            now=now,
        )
        return {
            **_about(require_schedule(connection, schedule), staged.version),
            "generation": staged.run.activation.generation,
            "run_id": staged.run.run_id,
            "workflow_id": staged.run.workflow_id,
            "trigger": staged.run.trigger,
            "nominal_time": instant_text(staged.run.nominal_time),
            "warnings": [],
        }

    return perform(
        connection,
        scope,
        principal,
        key,
        operation="trigger",
        body=request,
        expected=lambda: _expected(asked.value()),
        now=now,
        act=act,
    )


def run_to_start(scope: Scope, receipt: Receipt) -> RunKey | None:
    """The manual run that a receipt is of, to be started after the commit. A run that was started before is not again."""
    document = receipt.document
    if document["operation"] not in {"trigger", "profile_trigger"}:
        return None
    return RunKey(
        activation=_activation_key(scope, document, document["generation"]),
        nominal_time=datetime.fromisoformat(document["nominal_time"]),
        trigger=document["trigger"],
    )


def activation_to_nudge(scope: Scope, receipt: Receipt) -> ActivationKey | None:
    """The activation that a receipt ended, whose workflow is worth telling after the commit."""
    ended = receipt.document.get("ended_generation")
    return None if ended is None else _activation_key(scope, receipt.document, ended)


def _activation_key(scope: Scope, document: dict[str, Any], generation: int) -> ActivationKey:
    return ActivationKey(schedule=schedule_key(scope, document["schedule_id"]), generation=generation)


def _expected(request: PublishRequest | RetireRequest) -> Preconditions:
    return Preconditions(
        environment_epoch=request.expected_environment_epoch, reset_generation=request.expected_reset_generation
    )


def _reviewed(scope: Scope, request: RetireRequest) -> tuple[ScheduleKey, Reviewed]:
    version: VersionReference = request.version
    reviewed = Reviewed(revision=version.revision, digest=version.digest, generation=request.expected_generation)
    return schedule_key(scope, version.schedule_id), reviewed


def _about(schedule: Schedule, version: Version) -> dict[str, Any]:
    return {
        "schedule_id": schedule.key.schedule_id,
        "resource_id": version.resource_id,
        "reference": reference(schedule, version),
    }


def _changed(connection: Connection, changed: Changed, *, warnings: tuple[str, ...]) -> dict[str, Any]:
    schedule = require_schedule(connection, changed.key.schedule)
    return {
        **_about(schedule, changed.version),
        "generation": changed.activation.generation,
        "enabled": changed.activation.enabled,
        "ended_generation": None if changed.ended is None else changed.ended.generation,
        "warnings": list(warnings),
    }
