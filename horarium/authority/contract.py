"""What is said between an installation and a platform's own authority, message by message.

`python -m starter.authority_page` makes the OpenAPI page of it, which stands in `deploy/`. Answers are read strictly: no text
for a number, no number for a boolean. A part that this release does not know is ignored beside the parts of an answer, and
refused within a declaration, where it may be a restriction that this release would pass over.
"""

from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from horarium.agents.report import MAX_COST
from horarium.authority.declared import MAX_AMOUNT, Amount, At, UsageClassName
from horarium.authority.facts import Facts

QUESTIONS: Final = "/v1/questions"
INPUTS: Final = "/v1/inputs/read"
RESERVATIONS: Final = "/v1/reservations/{run_id}/close"

MAX_VERSIONS: Final = 200
"""Things that one question can be about: 64 grants and a few more, with room for what an authority adds."""
_LARGEST: Final = 2**63 - 1


def _printable(text: str) -> str:
    if not text.isprintable():
        raise PydanticCustomError("not_printable", "This is one line of printable characters.")
    return text


_Told = Annotated[str, Field(max_length=300), AfterValidator(_printable)]
_Number = Annotated[int, Field(ge=0, le=_LARGEST)]


class _Message(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class ScopeTold(_Message):
    """Where it is about to run."""

    org_id: str = Field(description="The organization.")
    environment_id: str = Field(description="The environment of the organization.")


class RequestTold(_Message):
    """What would run, as the reviewed version says it."""

    agent_version: str = Field(description="One exact agent version.")
    input: str = Field(description="The reference of what it reads.")
    output_target: str = Field(description="Where it writes.")
    grants: tuple[str, ...] = Field(description="The workload grants that it needs.")
    budget_id: str | None = Field(description="What it is paid from; null where it costs nothing.")
    usage_class: UsageClassName


class QuestionAsked(_Message):
    """May this run now, on the word of this person?

    With `run_id`, a run is about to be admitted, and what it may cost is to be reserved: the agent's `max_cost`, if the budget
    has that much room, and once for each `run_id`, however often it is asked. Nothing is reserved without a `run_id`, nor for
    one whose reservation was closed.
    """

    scope: ScopeTold
    request: RequestTold
    person: str | None = Field(
        description="Who enabled the schedule or asked for the run; null for a run that is nobody's, as those of cron profiles."
    )
    digest: str = Field(description="The digest of the exact version, which approvals are bound to.")
    run_id: str | None = Field(description="The run to reserve for, or null.")
    asked_at: At = Field(description="The time where it is asked. The authority's own clock decides what has expired.")


class QuestionAnswered(Facts):
    """Everything that admission looks at. What does not exist is null, or missing from `grants`; it is no error.

    Answer with what is declared, expired and withdrawn things included: the reason that a person is given depends on it.
    """

    room: Annotated[int, Field(ge=-MAX_AMOUNT, le=MAX_AMOUNT)] | None = Field(
        default=None,
        description="What is left in the budget, in minor units: what was spent and every reservation taken off, but not this "
        "run's own. So the same question has the same answer after its reservation was made.",
    )
    owed: Amount = Field(default=0, description="What the wallet owes, in minor units.")
    versions: Annotated[dict[_Told, _Number | _Told], Field(max_length=MAX_VERSIONS)] = Field(
        default_factory=dict,
        description="The version of each thing that was looked at, by kind and name. Kept in the ledger as evidence.",
    )
    reserved: Amount | None = Field(
        default=None, description="What is held for the run of the question, in minor units; null where nothing is."
    )


class InputWanted(_Message):
    """The bytes of an input, for a started run. Whether the person may read it now is decided again."""

    scope: ScopeTold
    input: str = Field(description="The reference of the input.")
    person: str | None = Field(description="On whose word the run runs; null for a run that is nobody's.")


class ReservationClosed(_Message):
    """The end of a run's reservation, for good.

    It may be told more than once, also of a run that the authority has not heard of, whose question may still be on its way:
    nothing is reserved for it afterwards.
    """

    scope: ScopeTold
    run_id: str = Field(description="The run, as in the path.")
    spent: Annotated[int, Field(ge=0, le=MAX_COST)] | None = Field(
        description="What the run cost, in minor units, which may be more than was reserved; null to give everything back."
    )


class ReservationConfirmed(_Message):
    """The reservation of this run is closed, now or before."""

    run_id: str = Field(description="The run that was closed.")
