"""Cron profiles (seed 004): saving, deleting and starting one by hand, in the words of their contract, on the same engine.

A profile with a cron is a schedule whose runs have no user. To save it is publication and activation in one transaction, by a
person; where nothing changed, no version is made and what is enabled stays. To clear its cron, or to delete it, pauses the
schedule and never retires it: a profile of the same name takes it up again. What all of them raise is told in
`horarium.control.operations`; and `NotFound` with `agent_class_not_found` or `profile_not_found`.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from horarium.authority.asking import Content
from horarium.catalog.declarations import find_declarations
from horarium.catalog.environments import Environment
from horarium.catalog.presence import find_agent
from horarium.catalog.profiles import StoredProfile, delete_profile, find_profile, save_profile
from horarium.catalog.schedules import (
    Activation,
    Schedule,
    find_activation,
    find_schedule,
    require_schedule,
    require_version,
)
from horarium.control import activation, manual
from horarium.control.activation import Reviewed
from horarium.control.agent_classes import class_named, class_not_found, class_of, classes, reported
from horarium.control.ceilings import objections as over_ceilings
from horarium.control.events import reference
from horarium.control.principals import WRITE_SCOPE, Principal, authorize
from horarium.control.profile_records import directory, profile_not_found, show, thread
from horarium.control.publication import calendar_warnings, publish
from horarium.control.receipts import Receipt, perform
from horarium.control.stepping import moved_on
from horarium.errors import Conflict, InvalidSchedule, NotAdmissible, NotFound, Refused
from horarium.schedule.canonical import canonical_json
from horarium.schedule.ceilings import USUAL, Ceilings
from horarium.schedule.configuration import read_stored
from horarium.schedule.document import json_faults
from horarium.schedule.identity import ActivationKey, ScheduleKey, Scope, instant_text, schedule_key
from horarium.schedule.profiles import (
    CONTRACT,
    CRON_START_EVENT,
    binding_name,
    can_name,
    is_agent_id,
    parse_event,
    parse_profile,
    profile_schedule_id,
    stored_document,
    thread_id,
)

__all__ = ["class_of", "classes", "delete", "directory", "save", "show", "thread", "trigger"]


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
        raise class_not_found(scope, agent_class)
    _require_id(agent_id)
    _require_json(document)

    def act(environment: Environment, receipt_id: str) -> dict[str, Any]:
        # Not before: whoever asks again for what was saved is answered, whatever the class has become meanwhile.
        described = reported(connection, scope, agent_class, now=now)
        profile = parse_profile(document, described["submission_schema"])
        before = find_profile(connection, scope, agent_class, agent_id)
        schedule_id = None if before is None else before.schedule_id
        change = _Change(connection, scope, principal.name, now, receipt_id)
        if profile.cron is None:
            ended = change.paused(schedule_id)
            warnings: tuple[str, ...] = ()
        else:
            if not described["is_schedulable"]:
                raise _not_schedulable(agent_class)
            run = _bound_run(connection, scope, agent_class, agent_id)
            stored = stored_document(profile, run, agent_class=agent_class, agent_id=agent_id)
            schedule_id = profile_schedule_id(scope, agent_class, agent_id)
            ended = change.enabled(schedule_key(scope, schedule_id), stored, environment, content, ceilings)
            warnings = calendar_warnings(read_stored(stored), now=now)
        save_profile(
            connection,
            scope,
            agent_class,
            agent_id,
            tenant_id=profile.tenant_id,
            config=profile.config,
            schedule_id=schedule_id,
            by=principal.name,
            now=now,
        )
        return _about(connection, scope, agent_class, agent_id, schedule_id, ended=ended, warnings=warnings)

    body = {"agent_class": agent_class, "agent_id": agent_id, "document": document}
    return perform(
        connection, scope, principal, key, operation="profile_save", body=body, expected=None, now=now, act=act
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
    authorize(principal, scope, required_scope, human=True)
    _require_name(scope, agent_class, agent_id)

    def act(_environment: Environment, receipt_id: str) -> dict[str, Any]:
        profile = _require(connection, scope, agent_class, agent_id)
        ended = _Change(connection, scope, principal.name, now, receipt_id).paused(profile.schedule_id)
        delete_profile(connection, profile, by=principal.name, now=now)
        return _about(connection, scope, agent_class, agent_id, profile.schedule_id, ended=ended, warnings=())

    body = {"agent_class": agent_class, "agent_id": agent_id}
    return perform(
        connection, scope, principal, key, operation="profile_delete", body=body, expected=None, now=now, act=act
    )


def trigger(  # noqa: PLR0917 - the order of every operation: who, where, which, what, and the key
    connection: Connection,
    principal: Principal,
    scope: Scope,
    agent_class: str,
    agent_id: str,
    start_event: str,
    document: object,
    key: str,
    *,
    now: datetime,
    required_scope: str = WRITE_SCOPE,
) -> Receipt:
    """Start a run of a profile now, by a person, by any start event that its class declares.

    Unlike a run by the calendar it has a user, and is admitted on what that person may do and read. The receipt says that the
    run is staged; admission has yet to decide on it. Raises `NotFound` with `start_event_not_found`, `Conflict` with
    `not_enabled` where the profile does not fire, and `InvalidSchedule` for an event of more than 64 KiB.
    """
    authorize(principal, scope, required_scope, human=True)
    _require_name(scope, agent_class, agent_id)
    _require_json(document)

    def act(_environment: Environment, receipt_id: str) -> dict[str, Any]:
        _require_event(connection, scope, agent_class, start_event, now=now)
        event = parse_event(document, start_event)
        by_calendars = start_event == CRON_START_EVENT
        profile = _require(connection, scope, agent_class, agent_id)
        staged = manual.trigger(
            connection,
            _schedule_of(profile),
            Reviewed(),
            receipt_id=receipt_id,
            allow_overlap=True,
            by=principal.name,
            now=now,
            start_event=None if by_calendars else start_event,
            event_data=None if by_calendars else event,
        )
        schedule = require_schedule(connection, staged.run.activation.schedule)
        return {
            "agent_class": agent_class,
            "agent_id": agent_id,
            "schedule_id": profile.schedule_id,
            "resource_id": staged.version.resource_id,
            "reference": reference(schedule, staged.version),
            "generation": staged.run.activation.generation,
            "thread_id": thread_id(agent_class, agent_id),
            "start_event": start_event,
            "run_id": staged.run.run_id,
            "workflow_id": staged.run.workflow_id,
            "trigger": staged.run.trigger,
            "nominal_time": instant_text(staged.run.nominal_time),
            "warnings": [],
        }

    body = {"agent_class": agent_class, "agent_id": agent_id, "start_event": start_event, "document": document}
    return perform(
        connection, scope, principal, key, operation="profile_trigger", body=body, expected=None, now=now, act=act
    )


class _Change:
    """What saving or deleting does to the schedule of a profile. The caller holds the environment's lock."""

    def __init__(self, connection: Connection, scope: Scope, by: str, now: datetime, receipt_id: str) -> None:
        self._connection = connection
        self._scope = scope
        self._by = by
        self._now = now
        self._receipt_id = receipt_id

    def paused(self, schedule_id: str | None) -> ActivationKey | None:
        """Pause a schedule that fires; one that does not is as it should be. Returns the activation that this ended."""
        if schedule_id is None:
            return None
        key = schedule_key(self._scope, schedule_id)
        current = self._current(key)
        if current is None or not current.is_live:
            return None
        changed = activation.pause(
            self._connection, key, Reviewed(), by=self._by, now=self._now, receipt_id=self._receipt_id
        )
        return changed.ended

    def enabled(
        self,
        key: ScheduleKey,
        document: Mapping[str, Any],
        environment: Environment,
        content: Content,
        ceilings: Ceilings,
    ) -> ActivationKey | None:
        """Make the schedule fire what the document says. One that does already is left alone."""
        schedule = find_schedule(self._connection, key, lock=True)
        if schedule is not None and schedule.retired_at is not None:
            raise Conflict(
                "schedule_retired",
                f"The schedule of this profile, {key.schedule_id}, was retired on {schedule.retired_at:%Y-%m-%d}; that is "
                "final.",
                next_step="Save the profile under another id.",
            )
        stored = None if schedule is None else self._newest(schedule, document)
        if schedule is None or stored is None:
            self._publish(key, document)
        elif self._fires(schedule, environment):
            self._check_ceilings(schedule, ceilings)
            return None
        changed = activation.enable(
            self._connection,
            key,
            Reviewed(),
            content,
            by=self._by,
            now=self._now,
            receipt_id=self._receipt_id,
            ceilings=ceilings,
        )
        return changed.ended

    def _current(self, key: ScheduleKey) -> Activation | None:
        schedule = find_schedule(self._connection, key, lock=True)
        return None if schedule is None else find_activation(self._connection, schedule, schedule.generation)

    def _newest(self, schedule: Schedule, document: Mapping[str, Any]) -> int | None:
        """The revision of the newest version if that is the document, letter for letter: a damaged one is replaced."""
        if schedule.head_revision == 0:
            return None
        head = require_version(self._connection, schedule, schedule.head_revision)
        return head.revision if head.text == canonical_json(document).decode() else None

    def _fires(self, schedule: Schedule, environment: Environment) -> bool:
        """Whether the newest version fires, and goes on to: not so where the environment is another one than at enabling."""
        current = find_activation(self._connection, schedule, schedule.generation)
        if current is None or not current.is_live or current.revision != schedule.head_revision:
            return False
        return moved_on(environment, current) is None

    def _check_ceilings(self, schedule: Schedule, ceilings: Ceilings) -> None:
        """What is enabled is judged anew at each of its occurrences; a person who saves it hears of a lowered ceiling now."""
        version = require_version(self._connection, schedule, schedule.head_revision)
        current = find_activation(self._connection, schedule, schedule.generation)
        against = [
            {"code": each.reason.value, "sentence": each.sentence, "evidence": dict(each.evidence)}
            for each in over_ceilings(self._connection, schedule, version, current, ceilings, now=self._now)
        ]
        if against:
            raise NotAdmissible(against)

    def _publish(self, key: ScheduleKey, document: Mapping[str, Any]) -> None:
        publish(
            self._connection,
            key,
            document,
            expected_revision=None,
            by=self._by,
            now=self._now,
            configuration=read_stored(document),
            contract=CONTRACT,
            receipt_id=self._receipt_id,
        )


def _require(connection: Connection, scope: Scope, agent_class: str, agent_id: str) -> StoredProfile:
    profile = find_profile(connection, scope, agent_class, agent_id)
    if profile is None or profile.deleted_at is not None:
        raise profile_not_found(scope, agent_class, agent_id)
    return profile


def _require_json(document: object) -> None:
    """Raise `InvalidSchedule` for what is no JSON, with its places in the document itself: the key is bound to a digest."""
    if faults := json_faults(document):
        raise InvalidSchedule(faults)


def _require_event(connection: Connection, scope: Scope, agent_class: str, start_event: str, *, now: datetime) -> None:
    declared = reported(connection, scope, agent_class, now=now)["start_events"]
    if start_event not in declared:
        raise NotFound(
            "start_event_not_found",
            f"Agent class {agent_class} declares no start event {start_event[:80]!r}.",
            next_step=f"It declares {', '.join(declared)}.",
        )


def _require_name(scope: Scope, agent_class: str, agent_id: str) -> None:
    """Of what cannot be a profile's name there is no profile. Asked before anything else, since it may not even be text."""
    if not can_name(agent_class, agent_id):
        raise profile_not_found(scope, agent_class, agent_id)


def _require_id(agent_id: str) -> None:
    if not is_agent_id(agent_id):
        raise Refused(
            "invalid_agent_id",
            f"{agent_id[:80]!r} is no id of a profile: 1 to 200 letters, digits or any of . _ @ : -",
            next_step="Choose another id; it is the profile's name for good.",
        )


def _not_schedulable(agent_class: str) -> Refused:
    return Refused(
        "agent_class_not_schedulable",
        f"Agent class {agent_class} does not handle {CRON_START_EVENT}, so nothing can start it by a calendar.",
        next_step=f"Leave cron out, or have the class handle {CRON_START_EVENT}.",
    )


def _schedule_of(profile: StoredProfile) -> ScheduleKey:
    if profile.schedule_id is None:
        raise Conflict(
            "not_enabled",
            f"Profile {profile.agent_class}/{profile.agent_id} has never had a cron, so nothing stands behind it that can run.",
            next_step="Save it with a cron, then try again.",
        )
    return schedule_key(profile.scope, profile.schedule_id)


def _bound_run(connection: Connection, scope: Scope, agent_class: str, agent_id: str) -> Mapping[str, Any]:
    name = binding_name(agent_class, agent_id)
    found = find_declarations(connection, scope, [("binding", name)]).get(("binding", name))
    if found is None:
        raise Refused(
            "binding_missing",
            f"No operator has said what runs for profile {agent_id!r} of agent class {agent_class}.",
            next_step=f"Have {name!r} declared under `bindings` by `horarium authority apply`, then try again.",
        )
    run: Mapping[str, Any] = found.facts["run"]
    registered = find_agent(connection, scope, str(run["agent_version"]))
    other = None if registered is None else class_named(registered)
    if other is not None and other != agent_class:
        raise Refused(
            "binding_mismatch",
            f"The binding {name!r} names the agent version {run['agent_version']!r}, which is of the class {other}.",
            next_step=f"Have a version of {agent_class} declared there, then try again.",
        )
    return run


def _about(
    connection: Connection,
    scope: Scope,
    agent_class: str,
    agent_id: str,
    schedule_id: str | None,
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
    if schedule_id is None:
        none = {"schedule_id": None, "resource_id": None, "reference": None, "generation": None, "enabled": False}
        return {**profile, **none, **after}
    schedule = require_schedule(connection, schedule_key(scope, schedule_id))
    version = require_version(connection, schedule, schedule.head_revision)
    current = find_activation(connection, schedule, schedule.generation)
    return {
        **profile,
        "schedule_id": schedule_id,
        "resource_id": version.resource_id,
        "reference": reference(schedule, version),
        "generation": schedule.generation,
        "enabled": current is not None and current.is_live,
        **after,
    }
