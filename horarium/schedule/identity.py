"""Which schedule, which activation, which run: references, and the ids that are derived from them.

The ids are the last line of exactly once (DESIGN.md, section 5): the same occurrence always has the same workflow id, so
Temporal refuses a second one.
"""

import re
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from horarium.errors import Refused
from horarium.schedule.ledger import BY_CALENDAR

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,62}[A-Za-z0-9])?")
"""What an organization or environment may be called: it stands in workflow ids between slashes."""

_RUNS = uuid.UUID("6f0bd2f1-4c36-5d0e-9f1b-0f7a4a1c2e55")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """One environment of one organization."""

    org_id: str
    environment_id: str

    def __post_init__(self) -> None:
        for word, value in (("organization", self.org_id), ("environment", self.environment_id)):
            if not NAME.fullmatch(value):
                raise Refused(
                    "invalid_scope",
                    f"{value[:80]!r} is no name of an {word}: 1 to 64 letters, digits, '_', '.' or '-', "
                    "beginning and ending with a letter or digit.",
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleKey:
    """One schedule: a UUID in its environment."""

    org_id: str
    environment_id: str
    schedule_id: str

    @property
    def scope(self) -> Scope:
        return Scope(org_id=self.org_id, environment_id=self.environment_id)

    @property
    def path(self) -> str:
        return f"{self.org_id}/{self.environment_id}/{self.schedule_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationKey:
    """One generation of one schedule."""

    schedule: ScheduleKey
    generation: int

    @property
    def workflow_id(self) -> str:
        """The id of its ScheduleWorkflow."""
        return f"schedule/{self.schedule.path}/{self.generation}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKey:
    """One run: an occurrence of an activation, or a manual trigger at it."""

    activation: ActivationKey
    nominal_time: datetime
    trigger: str = BY_CALENDAR

    @property
    def workflow_id(self) -> str:
        """The id of its RunWorkflow."""
        occasion = instant_text(self.nominal_time)
        if self.trigger != BY_CALENDAR:
            occasion = self.trigger.replace(":", "/", 1)
        return f"run/{self.activation.schedule.path}/{self.activation.generation}/{occasion}"

    @property
    def run_id(self) -> str:
        """The run's own id, a UUID that follows from the workflow id."""
        return str(uuid.uuid5(_RUNS, self.workflow_id))


def schedule_key(scope: Scope, schedule_id: str) -> ScheduleKey:
    """The key of a schedule in a scope; `Refused` where the id is no UUID in its usual spelling."""
    if not is_schedule_id(schedule_id):
        raise Refused(
            "invalid_schedule_id",
            f"{schedule_id[:80]!r} is no UUID.",
            next_step="A schedule id looks like 7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11; `horarium list` shows them.",
        )
    return ScheduleKey(org_id=scope.org_id, environment_id=scope.environment_id, schedule_id=schedule_id.lower())


def is_schedule_id(text: str) -> bool:
    """Whether a text is a UUID in its usual spelling, in small letters or capitals."""
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def instant_text(instant: datetime) -> str:
    """An instant as people and ids write it: `2026-11-29T07:30:00Z`; fractions only where there are any."""
    text = instant.astimezone(UTC).isoformat()
    return text.replace("+00:00", "Z")
