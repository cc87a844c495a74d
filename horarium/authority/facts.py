"""What admission looks at: the question, and the facts that answer it. Values only; the rules are in `rules`."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from horarium.authority.declared import Agent, Approval, At, Budget, Grant, Output, Wallet
from horarium.schedule.configuration import RunRequest
from horarium.schedule.identity import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """May this request run now, in this environment, on the word of this person?

    `person` is who enabled the schedule, or asked for the manual run; None for a run that is nobody's, as those of cron
    profiles are. `digest` is that of the exact version, which approvals are bound to.
    """

    scope: Scope
    request: RunRequest
    person: str | None
    digest: str


class _Fact(BaseModel):
    """A part of the answer. Fields that are not known are ignored, so that an authority may know more than this release."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class InputFacts(_Fact):
    """What is true of the input for the person of the question."""

    readable: bool = Field(description="Whether it is there and the person may read it now.")
    expires_at: At | None = Field(default=None, description="When the input may be used no longer.")
    consent_expires_at: At | None = Field(default=None, description="When the consent to its use ends, or ended.")
    consent_withdrawn: bool = Field(default=False, description="Whether the consent to its use was withdrawn.")


class Facts(_Fact):
    """Everything that is looked at for one question. What is not there is None, or missing from `grants`."""

    member: bool = Field(description="Whether the person is a member of the organization now.")
    agent: Agent | None = Field(default=None, description="The exact agent version.")
    input: InputFacts | None = None
    output: Output | None = None
    grants: dict[str, Grant] = Field(default_factory=dict, description="Those of the asked grants that exist, by name.")
    budget: Budget | None = None
    room: int | None = Field(
        default=None, description="What is left in the budget, reservations taken off, in minor units."
    )
    wallet: Wallet | None = Field(default=None, description="What the budget is paid from, where it is paid by wallet.")
    owed: int = Field(default=0, description="What the wallet owes, in minor units.")
    approval: Approval | None = Field(default=None, description="The approval of the exact version.")
    versions: dict[str, int | str] = Field(
        default_factory=dict,
        description="The version of each thing that was looked at, by kind and name. Kept as evidence.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """Whether an agent takes runs now. `lease_until` is None where nothing has to be renewed."""

    lifecycle: str
    lease_until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A kill switch that is on. `everywhere` is true for the whole organization's."""

    everywhere: bool
    since: datetime
    by: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What Horarium itself knows at the moment of the decision, whoever the authority is.

    `epoch` and `reset_generation` are those at enabling, None where the activation is being enabled now or was enabled by a
    release that did not keep them. `due` is when an occurrence fell due, or a manual run was asked for, None at enabling;
    `lifted_at` when a kill switch was lifted last.
    """

    mode: str
    runtime_profile: str | None
    live_needs_approval: bool
    environment_epoch: int
    environment_reset_generation: int
    epoch: int | None
    reset_generation: int | None
    stop: Stop | None
    presence: Presence | None
    due: datetime | None = None
    lifted_at: datetime | None = None


def evidence_of(question: Question, facts: Facts, around: Surroundings) -> dict[str, Any]:
    """What was looked at, by id and version, for the ledger. Nothing secret is among it."""
    looked: dict[str, Any] = {
        "person": question.person,
        "environment": {
            "mode": around.mode,
            "epoch": around.environment_epoch,
            "reset_generation": around.environment_reset_generation,
        },
        "looked_at": dict(sorted(facts.versions.items())),
    }
    if around.presence is not None:
        lease = around.presence.lease_until
        looked["agent"] = {
            "lifecycle": around.presence.lifecycle,
            "lease_until": None if lease is None else lease.isoformat(),
        }
    return looked
