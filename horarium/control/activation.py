"""Activation: enabling, pausing and retiring, each a new generation or an end, in one transaction with its audit event."""

from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from horarium import traces
from horarium.authority.asking import Content
from horarium.catalog import notifications
from horarium.catalog.environments import Environment, require_environment
from horarium.catalog.presence import HEARTBEAT_LIFETIME, ROLES, last_beat
from horarium.catalog.schedules import (
    Activation,
    Schedule,
    find_activation,
    insert_activation,
    require_schedule,
    require_version,
    retire_schedule,
)
from horarium.catalog.versions import Version
from horarium.control import events
from horarium.control.ceilings import objections as over_ceilings
from horarium.control.ending import end_activation
from horarium.control.judgement import enabler_of, judge, question_about
from horarium.control.retirement import refused_as_retired
from horarium.errors import Conflict, NotAdmissible, Refused, Unavailable
from horarium.schedule.ceilings import USUAL, Ceilings, runs_per_month
from horarium.schedule.identity import ActivationKey, ScheduleKey
from horarium.schedule.ledger import Reason
from horarium.schedule.v0 import CONTRACT as V0

_SPENT: Final = "calendar_exhausted"
"""How the reason begins of an end that a one-shot of scheduler v0 always comes to. No person has to look at it."""


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
    connection: Connection,
    key: ScheduleKey,
    reviewed: Reviewed,
    content: Content,
    *,
    by: str,
    now: datetime,
    receipt_id: str | None = None,
    ceilings: Ceilings = USUAL,
) -> Changed:
    """Make a version fire from now on; nothing of the past fires.

    Now is the later of `now` and the workers' last heartbeat: were it by a clock that is a little behind, what was just due by
    the workers' clock would fire late.
    Enabling what is enabled makes a new generation and ends the old one. Raises `Unavailable` while a runtime worker is
    missing, `Conflict` where something else was reviewed, `NotAdmissible` with every reason that an occurrence would meet now,
    `InvalidSchedule` where this release cannot evaluate the version. `content` must not block: `asked_outside` of
    `horarium.authority.asking` is the way to call this. `ceilings` are those that the installation is set up with.
    """
    environment, schedule, current = present(connection, key, reviewed)
    version = reviewed_version(connection, schedule, reviewed, default=schedule.head_revision)
    now = require_execution(connection, environment, "Enabling", now=now)
    declared = runs_per_month(version.configuration.calendar, now=now)  # raises where this release cannot evaluate it
    question = question_about(schedule, version, person=enabler_of(schedule, by))
    judgement = judge(connection, question, content, now=now, environment=environment)
    over = over_ceilings(connection, schedule, version, None, ceilings, now=now)
    against = [
        {"code": each.reason.value, "sentence": each.sentence, "evidence": dict(each.evidence)}
        for each in (*judgement.objections, *over)
    ]
    if against:
        raise NotAdmissible(against)
    change = _Change(
        connection, schedule, current, version, by=by, now=now, receipt_id=receipt_id, runs_per_month=declared
    )
    changed = change.make("enabled", ends=Reason.SUPERSEDED)
    traces.tell_enabled(connection, changed.key, version.revision)
    return changed


def pause(
    connection: Connection,
    key: ScheduleKey,
    reviewed: Reviewed,
    *,
    by: str,
    now: datetime,
    receipt_id: str | None = None,
) -> Changed:
    """Stop firing. Runs that were admitted go on; what waits is dropped. Pausing what is paused is a `Conflict`."""
    _, schedule, current = present(connection, key, reviewed)
    if current is None or not current.enabled:
        raise Conflict(
            "already_paused",
            f"Schedule {key.schedule_id} is not enabled, so there is nothing to pause.",
            next_step=f"`horarium {'v0 ' if schedule.contract == V0 else ''}get` shows how it stands.",
        )
    version = reviewed_version(connection, schedule, reviewed, default=current.revision, must_be=current.revision)
    change = _Change(connection, schedule, current, version, by=by, now=now, receipt_id=receipt_id)
    return change.make("paused", ends=Reason.PAUSED)


def retire(
    connection: Connection,
    key: ScheduleKey,
    reviewed: Reviewed,
    *,
    by: str,
    now: datetime,
    receipt_id: str | None = None,
) -> Changed:
    """End the schedule's identity for good. Its versions and its ledger stay."""
    _, schedule, current = present(connection, key, reviewed)
    revision = schedule.head_revision if current is None else current.revision
    version = reviewed_version(connection, schedule, reviewed, default=revision, must_be=revision)
    change = _Change(connection, schedule, current, version, by=by, now=now, receipt_id=receipt_id)
    changed = change.make("retired", ends=Reason.RETIRED)
    retire_schedule(connection, schedule, now=now)
    return changed


def send_to_review(
    connection: Connection, schedule: Schedule, activation: Activation, *, because: str, by: str, now: datetime
) -> None:
    """End a live activation because a person must look at it. Its generation stays; only a new one fires again."""
    end_activation(connection, schedule, activation, reason=Reason.REVIEW, because=because, now=now)
    before = events.activated(connection, schedule, activation)
    after = events.activated(connection, schedule, activation, state=Reason.REVIEW)
    events.tell(connection, schedule, "review", by=by, now=now, before=before, after=after, because=because)
    if schedule.contract != V0 or not because.startswith(_SPENT):
        notifications.tell_review(connection, schedule, activation.generation, because=because, now=now)


def present(
    connection: Connection, key: ScheduleKey, reviewed: Reviewed
) -> tuple[Environment, Schedule, Activation | None]:
    """What a change finds, under the schedule's lock. Raises `Conflict` for one that is retired or was not the reviewed one."""

    environment = require_environment(connection, key.scope)
    schedule = require_schedule(connection, key, lock=True)
    if schedule.retired_at is not None:
        raise refused_as_retired(schedule)
    if reviewed.generation is not None and reviewed.generation != schedule.generation:
        raise Conflict(
            "generation_conflict",
            f"The activation of schedule {key.schedule_id} is at generation {schedule.generation}, "
            f"not {reviewed.generation}.",
            next_step="Read it again and review what changed.",
        )
    return environment, schedule, find_activation(connection, schedule, schedule.generation)


def reviewed_version(
    connection: Connection, schedule: Schedule, reviewed: Reviewed, *, default: int, must_be: int | None = None
) -> Version:
    """The version that was reviewed. Raises `Conflict` for another digest, and for another revision than `must_be`."""
    revision = default if reviewed.revision is None else reviewed.revision
    version = require_version(connection, schedule, revision)
    if reviewed.digest is not None and reviewed.digest != version.digest:
        raise Conflict(
            "digest_conflict",
            f"Revision {revision} has the digest {version.digest}, not {reviewed.digest}.",
            next_step="Read the version again and review it.",
        )
    if must_be is not None and revision != must_be:
        whose = "activation is of" if schedule.generation else "schedule was never enabled, and its head is"
        raise Conflict(
            "version_conflict",
            f"The {whose} revision {must_be}, not {revision}.",
            next_step=f"Name revision {must_be}, which is the one that this changes.",
        )
    return version


def require_execution(connection: Connection, environment: Environment, what: str, *, now: datetime) -> datetime:
    """Return the later of `now` and the last heartbeat of the runtime workers, by whose clocks runs are decided.

    Raises `Refused` without a runtime profile, and `Unavailable` while a runtime worker is missing, and also with
    `clock_skew` where `now` is behind a heartbeat by more than `HEARTBEAT_LIFETIME`. A clock that is as far ahead finds no
    heartbeat that is fresh.
    """
    if environment.runtime_profile is None:
        raise Refused(
            "runtime_unconfigured",
            f"Environment {environment.scope.environment_id!r} has no runtime profile, so nothing can run in it.",
            next_step="Have an operator give it one, then try again. Publication and reads work meanwhile.",
        )
    beats = {role: last_beat(connection, role, present=True) for role in ROLES}
    latest = max((beat for beat in beats.values() if beat is not None), default=now)
    if latest - now > HEARTBEAT_LIFETIME:
        raise Unavailable(
            "clock_skew",
            f"The clock here is {(latest - now).total_seconds():.0f} s behind that of the runtime workers, so {what.lower()} "
            "would begin in their past.",
            next_step="Set the clocks right (with NTP, say), then try again.",
        )
    missing = [role for role, beat in beats.items() if beat is None or now - beat >= HEARTBEAT_LIFETIME]
    if missing:
        raise Unavailable(
            "execution_unavailable",
            f"{what} needs both runtime workers, and there is no heartbeat of: {', '.join(missing)}.",
            next_step="Start them with `horarium worker` (or `horarium dev`), then try again. "
            "If they run, compare their clocks with the one here.",
        )
    return max(now, latest)


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of activation that nothing speaks against any more. The caller holds the schedule's lock."""

    connection: Connection
    schedule: Schedule
    current: Activation | None
    version: Version
    _: KW_ONLY
    by: str
    now: datetime
    receipt_id: str | None
    runs_per_month: int | None = None

    def make(self, kind: str, *, ends: Reason) -> Changed:
        """End the current activation, begin the next one, and tell both."""
        connection, schedule, current = self.connection, self.schedule, self.current
        before = None if current is None else events.activated(connection, schedule, current)
        since = self._end(ends)
        activation = insert_activation(
            connection,
            schedule,
            revision=self.version.revision,
            by=self.by,
            now=self.now,
            since=since,
            ended_as=None if ends is Reason.SUPERSEDED else ends,
            runs_per_month=self.runs_per_month,
            look_by=self.version.configuration.calendar.after(since) if ends is Reason.SUPERSEDED else None,
        )
        after = events.activated(connection, schedule, activation)
        if ends is Reason.SUPERSEDED and current is not None and current.is_live:
            self._tell_superseded(current, before, activation)
        events.tell(
            connection,
            schedule,
            kind,
            by=self.by,
            now=self.now,
            before=before,
            after=after,
            receipt_id=self.receipt_id,
        )
        return Changed(
            key=ActivationKey(schedule=schedule.key, generation=activation.generation),
            activation=activation,
            version=self.version,
            ended=None if current is None else ActivationKey(schedule=schedule.key, generation=current.generation),
        )

    def _end(self, reason: Reason) -> datetime:
        """End what is live, and return since when the next activation answers."""
        current = self.current
        if current is None:
            return self.now
        if not current.is_live:
            return max(self.now, current.ended_at or self.now)
        because = f"{reason.value} by {self.by}"
        return end_activation(self.connection, self.schedule, current, reason=reason, because=because, now=self.now)

    def _tell_superseded(self, ended: Activation, before: events.Standing | None, following: Activation) -> None:
        after = events.activated(self.connection, self.schedule, ended, state=Reason.SUPERSEDED)
        events.tell(
            self.connection,
            self.schedule,
            "superseded",
            by=self.by,
            now=self.now,
            before=before,
            after=after,
            because=f"Generation {following.generation} was enabled.",
            receipt_id=self.receipt_id,
        )
