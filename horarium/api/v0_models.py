"""Scheduler v0 (seed 002) as models for the OpenAPI page: its schedules as they are sent, and what is answered.

They describe only. `horarium.schedule.v0` reads what is sent, and the control plane makes what is answered.
"""

from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import ConfigDict, Field, RootModel

from horarium.api.models import Answer, LastOutcome, Reference
from horarium.api.requests import Body
from horarium.api.v0_examples import CRON, ONE_SHOT
from horarium.calendar.cron import MAX_LENGTH
from horarium.calendar.documents import MAX_EVERY_SECONDS
from horarium.schedule.policy import MAX_CONCURRENT_RUNS
from horarium.schedule.v0 import Misfire, ScheduleType

_RUNS: Final = "How many runs of this schedule may be active at once."
_SKIP: Final = "What is missed is gone: a one-shot knows no other policy."
_Runs = Annotated[int, Field(ge=1, le=MAX_CONCURRENT_RUNS, description=_RUNS)]
_Identity = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9._@:-]+$")]


class V0Target(Body):
    """Who runs: a stable identity. A session is none, so `session_id` is refused wherever it stands."""

    workspace_id: _Identity
    agent_id: _Identity


class V0OneShotPolicy(Body):
    """What happens when its instant cannot simply start."""

    misfire: Literal[Misfire.SKIP] = Field(default=Misfire.SKIP, description=_SKIP)
    max_concurrent_runs: _Runs = 1


class V0Policy(Body):
    """What happens when an instant cannot simply start."""

    misfire: Misfire = Field(
        default=Misfire.SKIP,
        description="`skip`: an instant that was missed, or fell due while runs held every slot, is gone. `defer_once`: the "
        "earliest of them runs late, once, and the rest is skipped.",
    )
    max_concurrent_runs: _Runs = 1


class V0OneShotSpec(Body):
    """A single instant."""

    run_at: str = Field(
        examples=["2026-03-25T09:00:00Z"],
        description="RFC 3339 with `Z` or an offset. One that has passed is accepted, entered as missed, and never runs.",
    )


class V0IntervalSpec(Body):
    """UTC instants at the Unix epoch plus the offset plus whole intervals."""

    every_seconds: int = Field(ge=1, le=MAX_EVERY_SECONDS)
    offset_seconds: int = Field(default=0, ge=0, lt=MAX_EVERY_SECONDS, description="Less than every_seconds.")


class V0CronSpec(Body):
    """Five cron positions, read as Vixie's cron reads them."""

    expr: str = Field(max_length=MAX_LENGTH, examples=["*/15 * * * *"])
    timezone: str = Field(default="UTC", examples=["Europe/Zurich"], description="An exact IANA name.")


class V0OneShot(Body):
    """A schedule of a single instant."""

    type: Literal[ScheduleType.ONE_SHOT]
    spec: V0OneShotSpec
    target: V0Target
    policy: V0OneShotPolicy = V0OneShotPolicy()


class V0Interval(Body):
    """A schedule of equal intervals."""

    type: Literal[ScheduleType.INTERVAL]
    spec: V0IntervalSpec
    target: V0Target
    policy: V0Policy = V0Policy()


class V0Cron(Body):
    """A schedule by the wall clock of a zone."""

    type: Literal[ScheduleType.CRON]
    spec: V0CronSpec
    target: V0Target
    policy: V0Policy = V0Policy()


class V0ScheduleDocument(RootModel[Annotated[V0OneShot | V0Interval | V0Cron, Field(discriminator="type")]]):
    """A schedule as its contract writes it: a type with its spec, a stable target, and a policy.

    What runs for the target is said by the binding that an operator declared for it. It becomes part of the stored version.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [ONE_SHOT, CRON]})


class V0NoDocument(Body):
    """Nothing: the path says it all. No body at all is as good."""


class V0Schedule(Answer):
    """A schedule in the words of its contract: its newest document, and whether it fires."""

    schedule_id: UUID
    resource_id: UUID = Field(description="The id of the newest version.")
    reference: Reference = Field(
        description="The newest version. Its digest is what an approval of live runs is about."
    )
    generation: int = Field(ge=0, description="That of its present activation.")
    state: Literal["enabled", "paused", "disabled", "review"] = Field(
        description="`enabled`: it fires; each run is still admitted by itself. `paused`: it was told to stop. `disabled`: it "
        "has ended for good. `review`: it stopped and says why; a one-shot that has run, or whose instant has "
        "passed, is there."
    )
    reason: str | None = Field(description="Why it is in `review`, as a sentence; null otherwise.")
    schedule: dict[str, Any] = Field(description="The document as it came, without defaults.")
    last_outcome: LastOutcome | None = Field(
        description="What became of the instant or run that was answered for last, a refused one too. null before the first."
    )
    problem: str | None = Field(
        default=None,
        description="Why this release cannot use a version that is shown or enabled; there only where it cannot.",
    )


class V0Directory(Answer):
    """A page of this contract's schedules, ordered by UUID, the disabled ones too."""

    schedules: list[V0Schedule]
    next_cursor: UUID | None = Field(description="Send it as `after` for the next page; null on the last.")
