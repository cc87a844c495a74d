"""What an agent says at the end of a run."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from horarium.agents.events import WireModel

MAX_SUMMARY_LENGTH = 2_000
"""Characters of a summary. What is longer belongs in an output."""
MAX_OUTPUTS = 100
"""How many references to outputs a report names; a run may write more."""
MAX_REFERENCE_LENGTH = 500
"""Characters of a reference to an output."""
MAX_COST = 2**53 - 1
"""The largest integer that every JSON program reads as the same number, and far below what a database stores."""


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


def kept_summary(summary: object) -> str:
    """What is kept of a summary, whatever was reported; nothing of what is no text."""
    return shortened(summary, MAX_SUMMARY_LENGTH) if isinstance(summary, str) else ""


def kept_outputs(outputs: object) -> tuple[str, ...]:
    """What is kept of references to outputs, whatever was reported: the first `MAX_OUTPUTS` texts, each made storable."""
    if not isinstance(outputs, tuple | list):
        return ()
    return tuple(shortened(each, MAX_REFERENCE_LENGTH) for each in outputs[:MAX_OUTPUTS] if isinstance(each, str))


def kept_cost(cost: object) -> int | None:
    """What is kept of a cost, whatever was reported: within 0 to `MAX_COST`, and None for what is no integer."""
    if not isinstance(cost, int) or isinstance(cost, bool):
        return None
    return max(0, min(cost, MAX_COST))


class AgentReport(WireModel):
    """The outcome of a run, one or two sentences about it, references to what was written, and what it cost.

    A summary beyond `MAX_SUMMARY_LENGTH` is shortened, and of more than `MAX_OUTPUTS` outputs the first are named, since a
    paid run must not fail on its last line. `cost` is in integer minor units of the budget's currency, at most `MAX_COST`;
    None where the agent does not know.
    """

    outcome: Outcome
    summary: Annotated[str, AfterValidator(kept_summary)] = ""
    outputs: Annotated[tuple[str, ...], AfterValidator(kept_outputs)] = ()
    cost: int | None = Field(default=None, ge=0, le=MAX_COST)

    @classmethod
    def succeeded(cls, summary: str, *, outputs: Iterable[str] = (), cost: int | None = None) -> "AgentReport":
        """The agent did its work."""
        return cls(outcome=Outcome.SUCCEEDED, summary=summary, outputs=tuple(outputs), cost=cost)

    @classmethod
    def failed(cls, summary: str, *, outputs: Iterable[str] = (), cost: int | None = None) -> "AgentReport":
        """The agent could not do its work; the summary says why."""
        return cls(outcome=Outcome.FAILED, summary=summary, outputs=tuple(outputs), cost=cost)
