"""What an agent says at the end of a run."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from horarium.agents.events import WireModel

MAX_SUMMARY_LENGTH = 2_000
"""Characters of a summary. What is longer belongs in an output."""


class Outcome(StrEnum):
    """How a run ended, as far as the agent can know."""

    SUCCEEDED = "succeeded"
    """The agent did its work, whatever it found."""
    FAILED = "failed"
    """The agent could not do its work."""


def shortened(text: str, length: int) -> str:
    """The text within a length, ending in `…` where something is left out; NUL and lone surrogates, which no database
    stores, become `�`.
    """
    storable = (
        text[: length + 1].replace("\x00", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )
    return storable if len(storable) <= length else storable[: length - 1] + "…"


def _summary(text: str) -> str:
    return shortened(text, MAX_SUMMARY_LENGTH)


class AgentReport(WireModel):
    """The outcome of a run, one or two sentences about it, references to what was written, and what it cost.

    A summary beyond `MAX_SUMMARY_LENGTH` is shortened, since a paid run must not fail on its last line. `cost` is in
    integer minor units of the budget's currency; None where the agent does not know.
    """

    outcome: Outcome
    summary: Annotated[str, AfterValidator(_summary)] = ""
    outputs: tuple[str, ...] = ()
    cost: int | None = Field(default=None, ge=0)

    @classmethod
    def succeeded(cls, summary: str, *, outputs: Iterable[str] = (), cost: int | None = None) -> "AgentReport":
        """The agent did its work."""
        return cls(outcome=Outcome.SUCCEEDED, summary=summary, outputs=tuple(outputs), cost=cost)

    @classmethod
    def failed(cls, summary: str, *, outputs: Iterable[str] = (), cost: int | None = None) -> "AgentReport":
        """The agent could not do its work; the summary says why."""
        return cls(outcome=Outcome.FAILED, summary=summary, outputs=tuple(outputs), cost=cost)
