"""What starts an agent, and what a scheduled run is told about itself."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict


def _in_utc(instant: datetime) -> datetime:
    return instant.astimezone(UTC)


Instant = Annotated[AwareDatetime, AfterValidator(_in_utc)]
"""An instant on the wire: aware, in UTC. A naive datetime is refused; another offset is converted."""


class WireModel(BaseModel):
    """What passes between our processes. Frozen; ignores unknown fields, or a rolling deploy could not go back."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class ScheduleReference(WireModel):
    """The schedule that a run belongs to, and the exact version that was enabled: what a person reviewed."""

    org_id: str
    environment_id: str
    schedule_id: str
    revision: int
    digest: str


class RunBrief(WireModel):
    """What a run is told about itself. It holds no secrets: the token for the input travels beside it, never in it.

    `nominal_time` is the instant that the calendar selected, and what a report should name. `actual_time` is when the
    run was admitted. `previous_success` is the nominal time of the schedule's last run that succeeded, None if there
    is none: an agent that works through what is new since then loses nothing when a run fails. `trigger` is
    `schedule`, or `manual:{receipt}` for a run that a person asked for. `input` and `output_target` are the
    references of the run request.
    """

    run_id: str
    schedule: ScheduleReference
    trigger: str
    nominal_time: Instant
    actual_time: Instant
    previous_success: Instant | None = None
    agent_version: str
    input: str
    output_target: str


class StartEvent(WireModel):
    """The base of everything that starts an agent. Derive from it for start events of your own."""


class UserMessageEvent(StartEvent):
    """A person wrote to the agent. An agent that handles this is conversational."""

    text: str


class CronStartEvent(StartEvent):
    """An occurrence of a schedule was admitted. An agent that handles this is schedulable."""

    run: RunBrief
