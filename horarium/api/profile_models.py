"""The documents of cron profiles as models. They describe: what is sent comes from the control plane as it is."""

from typing import Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from horarium.api.models import Answer, LastOutcome, Receipt


class AgentVersion(Answer):
    """One version of an agent class, as its runner reported it."""

    agent_version: str = Field(description="`name@version`, which a run request names.")
    lifecycle: str = Field(description="`ready`, or `stopped` where its runner left in good order.")
    lease_until: AwareDatetime = Field(description="Until when its runner vouches for it.")
    seen_at: AwareDatetime
    description: str


class AgentClass(Answer):
    """An agent class: what its versions report of themselves. Capabilities are those of its newest version."""

    agent_class: str
    is_conversational: bool = Field(description="Whether it handles an event that is a message of a user.")
    is_schedulable: bool = Field(description="Whether it handles a cron start.")
    start_events: list[str] = Field(description="The start events that it declares; each has a route below a profile.")
    agent_versions: list[AgentVersion] = Field(description="By name, of more than 100 the newest.")
    form: list[dict[str, Any]] = Field(
        description="The published form, element by element. Of a schedulable class the cron control is the last."
    )
    submission_schema: dict[str, Any] = Field(description="The JSON schema of what a profile's `config` may hold.")
    event_schemas: dict[str, dict[str, Any]] = Field(
        description="The JSON schema of what may be sent with each start event, by its class. `run` is not among it: whoever "
        "dispatches tells it. A runner of an older release reports none; then the run alone judges what was sent."
    )
    offline_since: AwareDatetime | None = Field(
        description="null while a runner vouches for a version. What is due while a class is offline is dropped, never queued."
    )


class AgentClasses(Answer):
    """A page of the agent classes of an environment, by name. With a filter it may hold fewer than its limit, and none."""

    agent_classes: list[AgentClass]
    next_cursor: str | None


class ProfileCron(BaseModel):
    """When a profile is due: five cron positions, each required, and a zone. A schedule is stated, never inferred."""

    model_config = ConfigDict(extra="forbid")

    minute: str
    hour: str
    day_of_month: str
    month: str
    day_of_week: str
    timezone: str = Field(description="An exact IANA name.")


class ProfileConfig(BaseModel):
    """A profile's settings: `cron`, which belongs to the platform, and those of its class."""

    model_config = ConfigDict(extra="allow")

    cron: ProfileCron | None = Field(default=None, description="null, or left out, for a profile that has no schedule.")


class ProfileSubmission(BaseModel):
    """What is saved of a profile."""

    model_config = ConfigDict(extra="forbid")

    config: ProfileConfig = Field(description="As `submission_schema` of the class has it.")
    tenant_id: str | None = Field(
        default=None, description="The tenant whose data the agent reads. It is the profile's, whoever starts a run."
    )


class EventSubmission(BaseModel):
    """A start event that a person sends."""

    model_config = ConfigDict(extra="forbid")

    event: dict[str, Any] = Field(
        default={}, description="The event's own fields, as `event_schemas` of the class has them. At most 64 KiB."
    )


class Profile(Answer):
    """A profile of an agent class, and how its schedule stands."""

    agent_class: str
    agent_id: str
    tenant_id: str | None
    config: dict[str, Any] | None
    cron: dict[str, Any] | None = Field(description="As in `config`; null where it has no schedule.")
    fault: str | None = Field(
        description="Why what is stored cannot be used or shown, or no longer fits the agent version that it is for, in "
        "sentences that say what to do. It keeps nothing else from running."
    )
    schedule_id: UUID | None = Field(description="The schedule that stands behind it, once it had a cron.")
    state: Literal["enabled", "paused", "review", "unscheduled"]
    reason: str | None = Field(description="Why it is in review.")
    thread_id: str = Field(description="Where all its scheduled runs leave their events: SHA-256 of `class/profile`.")
    generation: int | None = Field(description="The activation's.")
    reference: dict[str, Any] | None = Field(description="The version that stands behind it.")
    next_due: AwareDatetime | None
    changed_at: AwareDatetime | None = Field(description="null only where the stored row is damaged.")
    changed_by: str
    last_outcome: LastOutcome | None = Field(
        description="What became of the run that was decided or ended last, a refused one too: what is enabled may be refused "
        "each time. null before the first."
    )


class Profiles(Answer):
    """A page of the profiles of a class, by their ids."""

    profiles: list[Profile]
    next_cursor: str | None = Field(description="Send it as `after` for the next page; null on the last.")


class ThreadEvent(Answer):
    """What happened to one run of a profile."""

    id: int
    kind: str
    at: AwareDatetime | None = Field(description="null only where the stored row is damaged.")
    run_id: UUID | None
    data: dict[str, Any] = Field(description="Of a damaged row, `unreadable` says why there is nothing else.")


class Thread(Answer):
    """A page of a profile's thread, oldest first."""

    thread_id: str
    agent_class: str
    agent_id: str
    tenant_id: str | None = Field(description="The profile's.")
    created_at: AwareDatetime | None = Field(
        description="The thread's age. Its id encodes no time. null only where the stored row is damaged."
    )
    members: list[str] = Field(description="None: it is read by operators.")
    events: list[ThreadEvent] = Field(
        description="Where the installation keeps them for some days only (SCHEDULER_EVENT_RETENTION_DAYS), older ones are "
        "deleted and in no archive; the ledger of the profile's schedule still has the runs."
    )
    next_cursor: int | None = Field(description="Send it as `after` for the next page; null on the last.")


class ProfileReceipt(Receipt):
    """The proof of one accepted change of a profile. It is not the present state."""

    operation: str = Field(description="`profile_save`, `profile_clear`, `profile_delete` or `profile_trigger`.")
    agent_class: str | None = None
    agent_id: str | None = None
    thread_id: str | None = None
    start_event: str | None = Field(default=None, description="Of a `profile_trigger`: the event that it was.")
