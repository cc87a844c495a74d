"""Cron profiles (seed 004) in the words of their contract, on the same engine: saved, cleared, deleted and started by hand.

A profile with a cron is a schedule whose runs have no user. To save it is publication and activation in one transaction, by a
person; where nothing changed, no version is made and what is enabled stays. To clear its cron, or to delete it, pauses the
schedule and never retires it: a profile of the same name takes it up again. What all of them raise is told in
`horarium.control.operations`; and `NotFound` with `agent_class_not_found` or `profile_not_found`.

An audit event is one of a schedule, and a profile has none before its first cron: what is done to it until then is told by its
receipts and by `changed_by` alone. Nothing of that could ever start a run.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from horarium.authority.asking import Content
from horarium.catalog.environments import Environment
from horarium.catalog.profiles import StoredProfile, change_config, delete_profile, save_profile
from horarium.catalog.schedules import find_schedule
from horarium.control.agent_classes import class_not_found, class_of, classes
from horarium.control.principals import WRITE_SCOPE, Principal, authorize
from horarium.control.profile_bindings import bound_run, described
from horarium.control.profile_records import directory, show, thread
from horarium.control.profile_requests import require_id, require_json, require_name, require_profile
from horarium.control.profile_schedules import ScheduleChange
from horarium.control.profile_starts import trigger
from horarium.control.publication import calendar_warnings
from horarium.control.receipts import Receipt, perform
from horarium.control.records import head_of
from horarium.errors import InvalidSchedule, Refused
from horarium.schedule.ceilings import USUAL, Ceilings
from horarium.schedule.configuration import read_stored
from horarium.schedule.identity import ActivationKey, ScheduleKey, Scope, schedule_key
from horarium.schedule.profiles import (
    CRON_START_EVENT,
    parse_profile,
    profile_schedule_id,
    stored_document,
    thread_id,
)

__all__ = ["class_of", "classes", "clear", "delete", "directory", "save", "show", "thread", "trigger"]


def save(  # noqa: PLR0917 - the order of every operation: who, where, which, what, and the key
    connection: Connection,
    principal: Principal,
    scope: Scope,
    agent_class: str,
    agent_id: str,
    document: object,
    key: str,
    *,
    content: Content,
    now: datetime,
    required_scope: str = WRITE_SCOPE,
    ceilings: Ceilings = USUAL,
) -> Receipt:
    """Save a profile; with a cron it fires from now on, and nothing of the past does, and without one it does not fire.

    Raises `InvalidSchedule` with every fault of the submission; `Refused` with `agent_class_not_schedulable`, with
    `binding_missing` where no operator has said what runs, or with `binding_mismatch`; and what enabling raises, more runs than
    the installation allows among it. Then nothing is stored.
    """
    authorize(principal, scope, required_scope, human=True)
    if not agent_class.isidentifier():
        raise class_not_found(connection, scope, agent_class)
    require_id(agent_id)
    require_json(document)

    def act(environment: Environment, receipt_id: str) -> dict[str, Any]:
        # Not before: whoever asks again for what was saved is answered, whatever the class has become meanwhile.
        class_ = described(connection, scope, agent_class, agent_id, now=now)
        profile = parse_profile(document, class_["submission_schema"])
        schedule = _behind(scope, agent_class, agent_id)
        change = ScheduleChange(connection, principal.name, now, receipt_id)
        if profile.cron is None:
            ended = change.paused(schedule)
            warnings: tuple[str, ...] = ()
        else:
            if not class_["is_schedulable"]:
                raise _not_schedulable(agent_class)
            run = bound_run(connection, scope, agent_class, agent_id)
            stored = stored_document(profile, run, agent_class=agent_class, agent_id=agent_id)
            ended = change.enabled(schedule, stored, environment, content, ceilings)
            warnings = calendar_warnings(read_stored(stored), now=now)
        save_profile(
            connection,
            scope,
            agent_class,
            agent_id,
            tenant_id=profile.tenant_id,
            config=profile.config,
            schedule_id=None if find_schedule(connection, schedule) is None else schedule.schedule_id,
            by=principal.name,
            now=now,
        )
        return _about(connection, scope, agent_class, agent_id, ended=ended, warnings=warnings)

    body = {"agent_class": agent_class, "agent_id": agent_id, "document": document}
    return perform(
        connection, scope, principal, key, operation="profile_save", body=body, expected=None, now=now, act=act
    )


def clear(  # noqa: PLR0917 - the order of every operation: who, where, which, what, and the key
    connection: Connection,
    principal: Principal,
    scope: Scope,
    agent_class: str,
    agent_id: str,
    key: str,
    *,
    now: datetime,
    required_scope: str = WRITE_SCOPE,
) -> Receipt:
    """Take the cron out of a profile and pause its schedule. The rest of the profile stays as it is, and is not judged: what
    its class has become meanwhile keeps nobody from stopping it.

    A stored configuration that cannot be read is left alone, and the receipt warns of it; the schedule is paused all the same.
    """

    def change(profile: StoredProfile) -> tuple[str, ...]:
        return _without_cron(connection, profile, by=principal.name, now=now)

    authorize(principal, scope, required_scope, human=True)
    return _stop(
        connection, principal, scope, agent_class, agent_id, key, operation="profile_clear", change=change, now=now
    )


def delete(  # noqa: PLR0917 - the order of every operation: who, where, which, what, and the key
    connection: Connection,
    principal: Principal,
    scope: Scope,
    agent_class: str,
    agent_id: str,
    key: str,
    *,
    now: datetime,
    required_scope: str = WRITE_SCOPE,
) -> Receipt:
    """Delete a profile and pause its schedule. Versions, ledger, thread and events stay."""

    def change(profile: StoredProfile) -> tuple[str, ...]:
        delete_profile(connection, profile, by=principal.name, now=now)
        return ()

    authorize(principal, scope, required_scope, human=True)
    return _stop(
        connection, principal, scope, agent_class, agent_id, key, operation="profile_delete", change=change, now=now
    )


def _stop(  # noqa: PLR0917 - the order of every operation: who, where, which, and the key
    connection: Connection,
    principal: Principal,
    scope: Scope,
    agent_class: str,
    agent_id: str,
    key: str,
    *,
    operation: str,
    change: Callable[[StoredProfile], tuple[str, ...]],
    now: datetime,
) -> Receipt:
    """Keep a profile from firing: its schedule is paused, and `change` does the rest and says what to warn of."""
    require_name(scope, agent_class, agent_id)

    def act(_environment: Environment, receipt_id: str) -> dict[str, Any]:
        profile = require_profile(connection, scope, agent_class, agent_id)
        schedule = _behind(scope, agent_class, agent_id)
        ended = ScheduleChange(connection, principal.name, now, receipt_id).paused(schedule)
        return _about(connection, scope, agent_class, agent_id, ended=ended, warnings=change(profile))

    body = {"agent_class": agent_class, "agent_id": agent_id}
    return perform(connection, scope, principal, key, operation=operation, body=body, expected=None, now=now, act=act)


def _without_cron(connection: Connection, profile: StoredProfile, *, by: str, now: datetime) -> tuple[str, ...]:
    try:
        config = profile.config
    except InvalidSchedule as error:
        return (f"The stored config was left as it is, since it cannot be read: {error.faults[0].sentence}",)
    if config.get("cron") is not None:
        change_config(connection, profile, {**config, "cron": None}, by=by, now=now)
    return ()


def _behind(scope: Scope, agent_class: str, agent_id: str) -> ScheduleKey:
    """The schedule behind a profile, whether it is there or not."""
    return schedule_key(scope, profile_schedule_id(scope, agent_class, agent_id))


def _not_schedulable(agent_class: str) -> Refused:
    return Refused(
        "agent_class_not_schedulable",
        f"Agent class {agent_class} does not handle {CRON_START_EVENT}, so nothing can start it by a calendar.",
        next_step=f"Leave cron out, or have the class handle {CRON_START_EVENT}.",
    )


def _about(
    connection: Connection,
    scope: Scope,
    agent_class: str,
    agent_id: str,
    *,
    ended: ActivationKey | None,
    warnings: tuple[str, ...],
) -> dict[str, Any]:
    """The receipt's own part: the profile, and where its schedule stands; nulls where it has none."""
    profile = {"agent_class": agent_class, "agent_id": agent_id, "thread_id": thread_id(agent_class, agent_id)}
    after = {
        "ended_generation": None if ended is None else ended.generation,
        "warnings": list(warnings),
    }
    schedule = find_schedule(connection, _behind(scope, agent_class, agent_id))
    if schedule is None:
        none = {"schedule_id": None, "resource_id": None, "reference": None, "generation": None, "enabled": False}
        return {**profile, **none, **after}
    return {**profile, **head_of(connection, schedule), **after}
