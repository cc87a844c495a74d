"""Scheduler v0's operations (seed 002): the same engine, asked in the words of its contract.

Create and update are publication and activation in one transaction, by a person, and read what they rest on themselves. What
all of them raise is told in `horarium.control.operations`; and `Refused` with `binding_missing` where no operator has said
what stands behind the target. The run request of the binding becomes part of the version: a later binding changes nothing that
is stored.

**A one-shot whose instant has passed** is accepted and never runs. An activation answers for what is due after it began, so
this one begins a second before its instant: the instant is due, entered as `missed` with `already_passed`, and accounted for
by the audit as any other. The activation ends at once, in review with `calendar_exhausted`. Where an earlier generation has
answered for that time there is no room for such an entry, and the request is refused with `run_at_passed`.
"""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection

from horarium.authority.asking import Content
from horarium.catalog import ledger, ledger_changes
from horarium.catalog.environments import Environment, require_environment
from horarium.catalog.schedules import (
    Activation,
    Schedule,
    change_activation,
    find_activation,
    list_schedules,
    require_schedule,
)
from horarium.catalog.standings import Standing, standings
from horarium.catalog.versions import Version
from horarium.control import activation, records, v0_events
from horarium.control.activation import Reviewed, send_to_review
from horarium.control.attempts import Attempt, attempt
from horarium.control.bindings import require_run
from horarium.control.events import reference
from horarium.control.principals import WRITE_SCOPE, Principal, authorize
from horarium.control.publication import calendar_warnings, publish
from horarium.control.receipts import Receipt, perform
from horarium.control.records import MAX_PAGE, head_of, last_outcome, require_limit
from horarium.errors import Conflict, InvalidSchedule, NotFound
from horarium.schedule.ceilings import USUAL, Ceilings
from horarium.schedule.configuration import read_stored
from horarium.schedule.identity import ActivationKey, ScheduleKey, Scope, instant_text, schedule_key
from horarium.schedule.ledger import Disposition, Fate, Reason, Span
from horarium.schedule.v0 import CONTRACT, V0Schedule, parse_v0, stored_document

EXHAUSTED: Final = "calendar_exhausted"
"""How the reason of an activation begins that has nothing left to run."""
_BIRTH: Final = datetime.min.replace(tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)


def create(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    document: object,
    key: str,
    *,
    content: Content,
    now: datetime,
    required_scope: str = WRITE_SCOPE,
    ceilings: Ceilings = USUAL,
) -> Receipt:
    """Create a schedule and enable it. The receipt's `schedule_id` is its name from now on.

    `document` may have been read before: an `Attempt` of `parse_v0`. Raises `InvalidSchedule` with every fault of it, and what
    enabling raises: then nothing is stored. Where live runs need an approval, the refusal names the digest to approve; the
    same request makes the same digest.
    """
    authorize(principal, scope, required_scope, human=True)
    asked = _attempt(document)

    def act(_environment: Environment, receipt_id: str) -> dict[str, Any]:
        schedule = schedule_key(scope, str(uuid.uuid4()))
        _store(connection, schedule, asked.value(), by=principal.name, now=now, receipt_id=receipt_id)
        return _enable(
            connection, schedule, content, by=principal.name, now=now, receipt_id=receipt_id, ceilings=ceilings
        )

    return perform(
        connection, scope, principal, key, operation="v0_create", body=asked.document, expected=None, now=now, act=act
    )


def update(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    document: object,
    key: str,
    *,
    schedule_id: str,
    content: Content,
    now: datetime,
    required_scope: str = WRITE_SCOPE,
    ceilings: Ceilings = USUAL,
) -> Receipt:
    """Replace what a schedule does. An enabled one, and a one-shot that has run, goes on with it; a paused one stays paused.

    `document` may have been read before, as for `create`.
    """
    authorize(principal, scope, required_scope, human=True)
    asked = _attempt(document)
    schedule = schedule_key(scope, schedule_id)

    def act(_environment: Environment, receipt_id: str) -> dict[str, Any]:
        value = asked.value()
        current = _current(connection, _require(connection, schedule))
        _store(connection, schedule, value, by=principal.name, now=now, receipt_id=receipt_id)
        if current is None or not _goes_on(current):
            return _about(connection, schedule, ended=None, warnings=())
        return _enable(
            connection, schedule, content, by=principal.name, now=now, receipt_id=receipt_id, ceilings=ceilings
        )

    body = {"schedule_id": schedule.schedule_id, "document": asked.document}
    return perform(connection, scope, principal, key, operation="v0_update", body=body, expected=None, now=now, act=act)


def pause(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    schedule_id: str,
    key: str,
    *,
    now: datetime,
    required_scope: str = WRITE_SCOPE,
) -> Receipt:
    """Stop firing. What falls due meanwhile is never caught up."""
    authorize(principal, scope, required_scope, human=True)
    schedule = schedule_key(scope, schedule_id)

    def act(_environment: Environment, receipt_id: str) -> dict[str, Any]:
        _require(connection, schedule)
        changed = activation.pause(connection, schedule, Reviewed(), by=principal.name, now=now, receipt_id=receipt_id)
        return _about(connection, schedule, ended=changed.ended, warnings=())

    return perform(
        connection, scope, principal, key, operation="v0_pause", body=_body(schedule), expected=None, now=now, act=act
    )


def resume(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    schedule_id: str,
    key: str,
    *,
    content: Content,
    now: datetime,
    required_scope: str = WRITE_SCOPE,
    ceilings: Ceilings = USUAL,
) -> Receipt:
    """Fire again, as the newest version says. Raises `Conflict` with `not_paused` where it does."""
    authorize(principal, scope, required_scope, human=True)
    schedule = schedule_key(scope, schedule_id)

    def act(_environment: Environment, receipt_id: str) -> dict[str, Any]:
        current = _current(connection, _require(connection, schedule))
        if current is not None and current.is_live:
            raise Conflict(
                "not_paused",
                f"Schedule {schedule.schedule_id} is enabled, so there is nothing to resume.",
                next_step="Read it again.",
            )
        return _enable(
            connection, schedule, content, by=principal.name, now=now, receipt_id=receipt_id, ceilings=ceilings
        )

    return perform(
        connection, scope, principal, key, operation="v0_resume", body=_body(schedule), expected=None, now=now, act=act
    )


def disable(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    schedule_id: str,
    key: str,
    *,
    now: datetime,
    required_scope: str = WRITE_SCOPE,
) -> Receipt:
    """End the schedule for good. Its versions, its ledger and its events stay."""
    authorize(principal, scope, required_scope, human=True)
    schedule = schedule_key(scope, schedule_id)

    def act(_environment: Environment, receipt_id: str) -> dict[str, Any]:
        _require(connection, schedule)
        changed = activation.retire(connection, schedule, Reviewed(), by=principal.name, now=now, receipt_id=receipt_id)
        return _about(connection, schedule, ended=changed.ended, warnings=())

    return perform(
        connection, scope, principal, key, operation="v0_disable", body=_body(schedule), expected=None, now=now, act=act
    )


def show(
    connection: Connection, principal: Principal, scope: Scope, schedule_id: str, *, required_scope: str = WRITE_SCOPE
) -> dict[str, Any]:
    """A schedule in the words of its contract: the newest document as it came, and whether it fires.

    `state` is `enabled`, `paused`, `disabled` or `review`, the last with its `reason`: a spent one-shot is there. `problem`
    says what keeps this release from using a version that is shown or enabled, where something does. `last_outcome` is what
    became of the instant or run that was answered for last, a refused one too, and null before.
    """
    authorize(principal, scope, required_scope)
    require_environment(connection, scope)
    (standing,) = standings(connection, [_require(connection, schedule_key(scope, schedule_id))])
    (shown,) = _all_shown(connection, [standing])
    return shown


def directory(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    *,
    after: str | None = None,
    limit: int = 25,
    required_scope: str = WRITE_SCOPE,
) -> dict[str, Any]:
    """A page of this contract's schedules by UUID, the disabled ones too: `{"schedules": […], "next_cursor": UUID or None}`.

    An entry is what `show` tells. Raises `Refused` for a limit outside of 1 to 50 and for a cursor that is no UUID.
    """
    authorize(principal, scope, required_scope)
    require_limit(limit, MAX_PAGE, "schedules")
    behind = None if after is None else schedule_key(scope, after).schedule_id
    require_environment(connection, scope)
    found = list_schedules(connection, scope, after=behind, limit=limit + 1, include_retired=True, contract=CONTRACT)
    page = found[:limit]
    more = len(found) > limit
    return {
        "schedules": _all_shown(connection, standings(connection, page)),
        "next_cursor": page[-1].key.schedule_id if more else None,
    }


def events(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    schedule_id: str,
    *,
    after: int = 0,
    limit: int = 1_000,
    required_scope: str = WRITE_SCOPE,
) -> list[dict[str, Any]]:
    """A schedule's audit events, oldest first, beginning behind the event with the id `after`: the contract's beside ours."""
    authorize(principal, scope, required_scope)
    require_environment(connection, scope)
    schedule = _require(connection, schedule_key(scope, schedule_id))
    return records.events(connection, schedule.key, after=after, limit=limit)


def _all_shown(connection: Connection, page: Sequence[Standing]) -> list[dict[str, Any]]:
    closed = ledger.newest_closed(connection, [standing.schedule for standing in page])
    return [_shown(standing, closed.get(standing.schedule.row)) for standing in page]


def _shown(standing: Standing, closed: ledger.Entry | None) -> dict[str, Any]:
    schedule, version = standing.schedule, standing.head
    state, reason = ("disabled", None) if schedule.retired_at is not None else standing.state
    faults = {version.fault, None if standing.activated is None else standing.activated.fault} - {None}
    return {
        "schedule_id": schedule.key.schedule_id,
        "resource_id": version.resource_id,
        "reference": reference(schedule, version),
        "generation": schedule.generation,
        "state": state,
        "reason": reason,
        "schedule": _source(version),
        "last_outcome": last_outcome(closed),
        **({"problem": " ".join(sorted(str(fault) for fault in faults))} if faults else {}),
    }


def _source(version: Version) -> dict[str, Any]:
    """The document as it came; nothing of what is none any more, for which there is the `problem`."""
    try:
        source = version.document.get("source")
    except InvalidSchedule:
        return {}
    return dict(source) if isinstance(source, dict) else {}


def _attempt(document: object) -> Attempt[V0Schedule]:
    return document if isinstance(document, Attempt) else attempt(parse_v0, document)


def _body(schedule: ScheduleKey) -> dict[str, str]:
    return {"schedule_id": schedule.schedule_id}


def _require(connection: Connection, key: ScheduleKey) -> Schedule:
    """A schedule of this contract; of another one the caller is told what it is told of none at all."""
    schedule = require_schedule(connection, key)
    if schedule.contract != CONTRACT:
        raise NotFound(
            "schedule_not_found",
            f"There is no schedule {key.schedule_id} of scheduler v0 in {key.org_id}/{key.environment_id}.",
            next_step="`horarium list` shows the schedules of all contracts.",
        )
    return schedule


def _current(connection: Connection, schedule: Schedule) -> Activation | None:
    return find_activation(connection, schedule, schedule.generation)


def _goes_on(current: Activation) -> bool:
    """Whether a new version takes over from it: it fires, or had nothing left to fire."""
    spent = current.ended_as == Reason.REVIEW and (current.ended_reason or "").startswith(EXHAUSTED)
    return current.is_live or spent


def _store(
    connection: Connection, key: ScheduleKey, asked: V0Schedule, *, by: str, now: datetime, receipt_id: str
) -> None:
    target = asked.target
    whose = f"agent {target.agent_id!r} in workspace {target.workspace_id!r}"
    document = stored_document(asked, require_run(connection, key.scope, target.binding, whose=whose))
    publish(
        connection,
        key,
        document,
        expected_revision=None,
        by=by,
        now=now,
        configuration=read_stored(document),
        contract=CONTRACT,
        receipt_id=receipt_id,
    )


def _enable(
    connection: Connection,
    key: ScheduleKey,
    content: Content,
    *,
    by: str,
    now: datetime,
    receipt_id: str,
    ceilings: Ceilings,
) -> dict[str, Any]:
    earlier = _current(connection, _require(connection, key))
    changed = activation.enable(
        connection, key, Reviewed(), content, by=by, now=now, receipt_id=receipt_id, ceilings=ceilings
    )
    passed = _passed(changed.version, changed.activation)
    if passed is not None:
        _enter_passed(connection, key, changed.activation, passed, earlier)
        warnings: tuple[str, ...] = (f"{instant_text(passed)} has passed: it is entered as missed, and never runs.",)
    else:
        warnings = calendar_warnings(changed.version.configuration, now=now)
    return _about(connection, key, ended=changed.ended, warnings=warnings)


def _passed(version: Version, enabled: Activation) -> datetime | None:
    """The instant of a one-shot, where it is not after the moment that its activation answers from."""
    configuration = version.configuration
    if "instant" not in configuration.timing or configuration.calendar.after(enabled.activated_at) is not None:
        return None
    return configuration.calendar.after(_BIRTH)


def _enter_passed(
    connection: Connection, key: ScheduleKey, enabled: Activation, instant: datetime, earlier: Activation | None
) -> None:
    """Enter a passed instant as missed, and end the activation that was begun for it: see above."""
    if earlier is not None and instant - _SECOND < (earlier.ended_at or enabled.activated_at):
        raise Conflict(
            "run_at_passed",
            f"{instant_text(instant)} has passed, and schedule {key.schedule_id} has answered for that time already.",
            next_step="Update it with a `run_at` that is to come.",
        )
    now = enabled.activated_at
    schedule = require_schedule(connection, key, lock=True)
    change_activation(connection, enabled, activated_at=instant - _SECOND)
    span = Span(first=instant, last=instant, count=1)
    fate = Fate(span=span, disposition=Disposition.MISSED, reason=Reason.ALREADY_PASSED)
    ledger_changes.write_fate(connection, schedule, generation=enabled.generation, fate=fate, now=now)
    v0_events.tell_skipped(connection, schedule, enabled.generation, fate, by=enabled.changed_by, now=now)
    because = f"{EXHAUSTED}: {instant_text(instant)} had passed when it was enabled."
    current = _current(connection, schedule)
    assert current is not None, "it was enabled in this transaction"
    send_to_review(connection, schedule, current, because=because, by=enabled.changed_by, now=now)


def _about(
    connection: Connection, key: ScheduleKey, *, ended: ActivationKey | None, warnings: tuple[str, ...]
) -> dict[str, Any]:
    return {
        **head_of(connection, require_schedule(connection, key)),
        "ended_generation": None if ended is None else ended.generation,
        "warnings": list(warnings),
    }
