"""What becomes of the schedule behind a profile when the profile is saved, cleared or deleted."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from horarium.authority.asking import Content
from horarium.catalog.environments import Environment
from horarium.catalog.schedules import Activation, Schedule, find_activation, find_schedule, require_version
from horarium.control import activation
from horarium.control.activation import Reviewed
from horarium.control.ceilings import objections as over_ceilings
from horarium.control.publication import publish
from horarium.control.stepping import moved_on
from horarium.errors import Conflict, NotAdmissible
from horarium.schedule.canonical import canonical_json
from horarium.schedule.ceilings import Ceilings
from horarium.schedule.configuration import read_stored
from horarium.schedule.identity import ActivationKey, ScheduleKey
from horarium.schedule.profiles import CONTRACT


class ScheduleChange:
    """What saving or deleting does to the schedule of a profile. The caller holds the environment's lock."""

    def __init__(self, connection: Connection, by: str, now: datetime, receipt_id: str) -> None:
        self._connection = connection
        self._by = by
        self._now = now
        self._receipt_id = receipt_id

    def paused(self, key: ScheduleKey) -> ActivationKey | None:
        """Pause a schedule that fires; one that does not, or is not there, is as it should be. Returns the activation that this
        ended.
        """
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
            raise schedule_is_retired(schedule, schedule.retired_at)
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


def schedule_is_retired(schedule: Schedule, retired_at: datetime) -> Conflict:
    """The refusal of a profile whose schedule was retired by an earlier release."""
    return Conflict(
        "schedule_retired",
        f"The schedule of this profile, {schedule.key.schedule_id}, was retired on {retired_at:%Y-%m-%d}; that is final.",
        next_step="Save the profile under another id.",
    )
