"""What an agent runner says about its agents, so that schedules can be checked against them."""

from typing import Any

from pydantic import Field

from horarium.agents.events import WireModel


class AgentDiscovery(WireModel):
    """One agent of a runner, as derived from its class.

    `agent_version` is what a run request names, `{name}@{version}`. `agent_class` is the name of the Python class.
    `start_events` are the declared events, by class name, and `calendar_event` is the one that an occurrence of a schedule
    comes as: None for an agent that is not schedulable, and for a runner of an older release. `max_run_seconds` is how long a
    run may take, in seconds.
    `idempotent` says that a second attempt of the same run does no harm; only then may one be made. `form` is what an
    administrator is shown for a profile of it, element by element, and `submission_schema` the JSON schema of what may be
    saved; both have the schedule last, and only where the agent is schedulable. `event_schemas` are the JSON schemas of the
    fields that may be sent with each start event, without its `run`. All three are empty for a runner of an older release.
    """

    agent_class: str
    version: str
    agent_version: str
    description: str
    start_events: tuple[str, ...]
    is_conversational: bool
    is_schedulable: bool
    calendar_event: str | None = None
    max_run_seconds: int
    idempotent: bool
    task_queue: str
    form: tuple[dict[str, Any], ...] = ()
    submission_schema: dict[str, Any] = Field(default_factory=dict)
    event_schemas: dict[str, dict[str, Any]] = Field(default_factory=dict)
