"""What workflows and activities say to each other: one value in, one out.

Between our own versions unknown fields are ignored and new ones are optional, so that a rolling deployment can go back.
Instants are aware and UTC; zones never travel.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from horarium.control.running import Outcome
from horarium.schedule.facts import Facts
from horarium.schedule.identity import ActivationKey, RunKey
from horarium.schedule.plan import Plan

SCHEDULES_QUEUE = "horarium-schedules"
"""Workflows, and the calendar activities that live beside them."""
RUNS_QUEUE = "horarium-runs"
"""Admission."""
RUN_WORKFLOW = "RunWorkflow"
SCHEDULE_WORKFLOW = "ScheduleWorkflow"
RUN_CLOSED = "run_closed"
OUTCOME_REPORTED = "outcome_reported"
RUN_AGENT = "run_agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatherFacts:
    """Begin a step of an activation at the workflow's time."""

    key: ActivationKey
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFacts:
    """What a step knows; no facts where the activation fires no more.

    `look_after` is how long a blocked schedule waits before it looks by itself, at first. `steps_per_run` makes a workflow
    continue as new after so many steps; None leaves it to the size of its history. `tzdata` is the version of
    the zone rules that the instants were found with.
    """

    facts: Facts | None
    waiting: bool
    look_after: timedelta
    steps_per_run: int | None = None
    tzdata: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitPlan:
    """Carry a plan out. `attended_until` is how far a blocked schedule accounts later."""

    key: ActivationKey
    plan: Plan
    now: datetime
    attended_until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScheduled:
    """The input of a run's workflow."""

    key: RunKey


@dataclass(frozen=True, slots=True, kw_only=True)
class RunClosed:
    """The result of a run's workflow, for people who read it in the Temporal UI."""

    disposition: str
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitRun:
    """Wait for the nominal second of a run, then decide it."""

    key: RunKey


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAgent:
    """Do a run. What it is about is told by the catalog when it is begun; no secret stands in a history."""

    run_id: str
    agent_version: str
    idempotent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDone:
    """What an agent reported."""

    succeeded: bool
    summary: str
    outputs: tuple[str, ...] = ()
    cost: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleRun:
    """Write down how a run ended, and when by the server's clock, which dates every slot."""

    key: RunKey
    outcome: Outcome
    ended_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettled:
    """What is left to do about a settled run: `tell_agent` that it was cancelled, where it was sent elsewhere."""

    tell_agent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAtRun:
    """Ask the catalog how a run stands that somebody else may settle."""

    key: RunKey


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStanding:
    """How a run ended; no disposition while it goes on."""

    disposition: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PollRun:
    """Ask the agent behind the gateway how a run stands, until it has ended or its time is up."""

    key: RunKey
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TellCancelled:
    """Tell the agent behind the gateway that a run was cancelled."""

    key: RunKey
