"""Activation: enabling, pausing and retiring, each a new generation or an end, in one transaction with its audit event."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from horarium.catalog.presence import ROLES, roles_present
from horarium.catalog.schedules import (
    Activation,
    Environment,
    Schedule,
    Version,
    find_activation,
    insert_activation,
    record_event,
    require_environment,
    require_schedule,
    require_version,
    retire_schedule,
)
from horarium.control.admission import Content, objections
from horarium.control.ending import end_activation
from horarium.errors import Conflict, Refused, Unavailable
from horarium.schedule.identity import ActivationKey, ScheduleKey
from horarium.schedule.ledger import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """What a person looked at before deciding. None stands for whatever is there now.

    `revision` and `digest` name the exact version; `generation` the activation, 0 where there was none.
    """

    revision: int | None = None
    digest: str | None = None
    generation: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A change of activation: the new one, and the one that it ended."""

    key: ActivationKey
    activation: Activation
    version: Version
    ended: ActivationKey | None


def enable(
    connection: Connection, key: ScheduleKey, reviewed: Reviewed, content: Content, *, by: str, now: datetime
) -> Changed:
    """Make a version fire from now on; nothing of the past fires.

    Enabling what is enabled makes a new generation and ends the old one. Raises `Unavailable` while a runtime worker is
    missing, `Conflict` where something else was reviewed, `Refused` with every reason that an occurrence would meet now.
    """
    environment, schedule, current = _present(connection, key, reviewed)
    version = _version(connection, schedule, reviewed, default=schedule.head_revision)
    _require_execution(connection, environment, now=now)
    found = list(objections(connection, key.scope, version.configuration.run, content, now=now))
    if found:
        raise Refused(
            found[0].reason.value,
            f"Enabling is refused: {' '.join(objection.sentence for objection in found)}",
            next_step="An occurrence would be refused for the same reasons. Put them right, then enable again.",
        )
    ended, since = _end_current(connection, schedule, current, Reason.SUPERSEDED, by=by, now=now)
    activation = insert_activation(connection, schedule, revision=version.revision, by=by, now=now, since=since)
    return _changed(connection, schedule, activation, version, ended, kind="enabled", by=by, now=now)


def pause(connection: Connection, key: ScheduleKey, reviewed: Reviewed, *, by: str, now: datetime) -> Changed:
    """Stop firing. Runs that were admitted go on; what waits is dropped. Pausing what is paused is a `Conflict`."""
    _, schedule, current = _present(connection, key, reviewed)
    if current is None or not current.enabled:
        raise Conflict(
            "already_paused",
            f"Schedule {key.schedule_id} is not enabled, so there is nothing to pause.",
            next_step="`horarium get` shows its activation.",
        )
    version = _version(connection, schedule, reviewed, default=current.revision, must_be=current.revision)
    ended, since = _end_current(connection, schedule, current, Reason.PAUSED, by=by, now=now)
    activation = insert_activation(
        connection, schedule, revision=version.revision, by=by, now=now, since=since, ended_as=Reason.PAUSED
    )
    return _changed(connection, schedule, activation, version, ended, kind="paused", by=by, now=now)


def retire(connection: Connection, key: ScheduleKey, reviewed: Reviewed, *, by: str, now: datetime) -> Changed:
    """End the schedule's identity for good. Its versions and its ledger stay."""
    _, schedule, current = _present(connection, key, reviewed)
    revision = schedule.head_revision if current is None else current.revision
    version = _version(connection, schedule, reviewed, default=revision, must_be=revision)
    ended, since = _end_current(connection, schedule, current, Reason.RETIRED, by=by, now=now)
    activation = insert_activation(
        connection, schedule, revision=version.revision, by=by, now=now, since=since, ended_as=Reason.RETIRED
    )
    retire_schedule(connection, schedule, now=now)
    return _changed(connection, schedule, activation, version, ended, kind="retired", by=by, now=now)


def send_to_review(
    connection: Connection, schedule: Schedule, activation: Activation, *, because: str, by: str, now: datetime
) -> None:
    """End a live activation because a person must look at it. Its generation stays; only a new one fires again."""
    end_activation(connection, schedule, activation, reason=Reason.REVIEW, because=because, now=now)
    record_event(
        connection,
        schedule,
        "review",
        at=now,
        actor=by,
        generation=activation.generation,
        revision=activation.revision,
        details={"because": because},
    )


def _present(
    connection: Connection, key: ScheduleKey, reviewed: Reviewed
) -> tuple[Environment, Schedule, Activation | None]:
    environment = require_environment(connection, key.scope)
    schedule = require_schedule(connection, key, lock=True)
    if schedule.retired_at is not None:
        raise Conflict(
            "schedule_retired",
            f"Schedule {key.schedule_id} was retired on {schedule.retired_at:%Y-%m-%d}; that is final.",
            next_step="Publish under a new schedule id.",
        )
    if reviewed.generation is not None and reviewed.generation != schedule.generation:
        raise Conflict(
            "generation_conflict",
            f"The activation of schedule {key.schedule_id} is at generation {schedule.generation}, "
            f"not {reviewed.generation}.",
            next_step="Read it again and review what changed.",
        )
    return environment, schedule, find_activation(connection, schedule, schedule.generation)


def _version(
    connection: Connection, schedule: Schedule, reviewed: Reviewed, *, default: int, must_be: int | None = None
) -> Version:
    revision = default if reviewed.revision is None else reviewed.revision
    version = require_version(connection, schedule, revision)
    if reviewed.digest is not None and reviewed.digest != version.digest:
        raise Conflict(
            "digest_conflict",
            f"Revision {revision} has the digest {version.digest}, not {reviewed.digest}.",
            next_step="Read the version again and review it.",
        )
    if must_be is not None and revision != must_be:
        raise Conflict(
            "version_conflict",
            f"The activation is of revision {must_be}, not {revision}.",
            next_step=f"Name revision {must_be}, which is the one that this changes.",
        )
    return version


def _require_execution(connection: Connection, environment: Environment, *, now: datetime) -> None:
    if environment.runtime_profile is None:
        raise Refused(
            "runtime_unconfigured",
            f"Environment {environment.scope.environment_id!r} has no runtime profile, so nothing can run in it.",
        )
    missing = [role for role in ROLES if role not in roles_present(connection, now=now)]
    if missing:
        raise Unavailable(
            "execution_unavailable",
            f"Enabling needs both runtime workers, and there is no heartbeat of: {', '.join(missing)}.",
            next_step="Start them with `horarium worker` (or `horarium dev`), then enable again.",
        )


def _end_current(
    connection: Connection, schedule: Schedule, current: Activation | None, reason: Reason, *, by: str, now: datetime
) -> tuple[ActivationKey | None, datetime]:
    if current is None:
        return None, now
    key = ActivationKey(schedule=schedule.key, generation=current.generation)
    if not current.is_live:
        return key, max(now, current.ended_at or now)
    return key, end_activation(connection, schedule, current, reason=reason, because=f"{reason.value} by {by}", now=now)


def _changed(
    connection: Connection,
    schedule: Schedule,
    activation: Activation,
    version: Version,
    ended: ActivationKey | None,
    *,
    kind: str,
    by: str,
    now: datetime,
) -> Changed:
    record_event(
        connection,
        schedule,
        kind,
        at=now,
        actor=by,
        generation=activation.generation,
        revision=version.revision,
        details={"digest": version.digest},
    )
    key = ActivationKey(schedule=schedule.key, generation=activation.generation)
    return Changed(key=key, activation=activation, version=version, ended=ended)
