"""What pages call things, and how texts of others are shown: dispositions, states, names."""

import re
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from horarium.schedule.ledger import Disposition, Reason

_STEERING: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Controls, and marks that turn the direction of writing: a name must not move what stands beside it."""
SHORT: Final = 200
"""Characters of a text of others that are shown among other things; a page of its own has all of it."""
_RUN_IN_REVIEW: Final = re.compile(
    r"(.*\(pause_on_failure), run ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(\)\.)", re.ASCII
)
"""How `horarium.control.running` ends the reason of a review after a run that failed."""


@dataclass(frozen=True, slots=True)
class Badge:
    """A state in words, with a tone (`good`, `bad`, `warn`, `busy`, `calm`) and a sign that tells it without colour."""

    text: str
    tone: str
    sign: str


@dataclass(frozen=True, slots=True)
class Review:
    """Why something is in review, and the run that led there; None where it was none, or it is not told which."""

    sentence: str
    run_id: str | None


DISPOSITIONS: Final = {
    Disposition.BUFFERED: Badge("waiting", "busy", "◔"),
    Disposition.STAGED: Badge("staged", "busy", "◑"),
    Disposition.ADMITTED: Badge("admitted", "busy", "◑"),
    Disposition.STARTED: Badge("running", "busy", "▶"),
    Disposition.SUCCEEDED: Badge("succeeded", "good", "✓"),
    Disposition.FAILED: Badge("failed", "bad", "✗"),
    Disposition.TIMED_OUT: Badge("timed out", "bad", "✗"),
    Disposition.NOT_STARTED: Badge("not started", "bad", "✗"),
    Disposition.REFUSED: Badge("refused", "warn", "⊘"),
    Disposition.MISSED: Badge("missed", "warn", "⊘"),
    Disposition.SKIPPED: Badge("skipped", "calm", "↷"),
    Disposition.DROPPED: Badge("dropped", "calm", "↷"),
    Disposition.CANCELLED: Badge("cancelled", "calm", "■"),
    Disposition.TERMINATED: Badge("terminated", "calm", "■"),
}

STATES: Final = {
    "enabled": Badge("enabled", "good", "●"),
    "never_enabled": Badge("never enabled", "calm", "○"),
    "paused": Badge("paused", "calm", "❚❚"),
    "review": Badge("review", "warn", "!"),
    "retired": Badge("retired", "calm", "■"),
    # What the controller saw last, where that says more.
    "active": Badge("active", "good", "●"),
    "pending": Badge("pending", "busy", "◔"),
    "stopping": Badge("stopping", "busy", "◑"),
    "unconfigured": Badge("unconfigured", "warn", "!"),
    "error": Badge("error", "bad", "✗"),
}


def disposition(value: str) -> Badge:
    """The badge of a disposition."""
    return DISPOSITIONS[Disposition(value)]


def state(value: str) -> Badge:
    """The badge of a schedule's state; one that this release does not know is told as it is."""
    return STATES.get(value, Badge(value, "warn", "?"))


def reason(value: str) -> str:
    """A reason's code in words. Its sentence says more; a code that this release does not know has none."""
    try:
        return Reason(value).sentence
    except ValueError:
        return value


def review(because: str) -> Review:
    """The reason of a review, with the id of a run taken out of it, for a link to stand in its place."""
    found = _RUN_IN_REVIEW.fullmatch(because)
    return Review(because, None) if found is None else Review(found[1] + found[3], found[2])


def short(text: str) -> str:
    """The beginning of a text of others, in one line of at most `SHORT` characters."""
    line = " ".join(text[: 4 * SHORT].split())
    return line if len(line) <= SHORT and len(text) <= 4 * SHORT else line[: SHORT - 1].rstrip() + "…"


def clean(text: str) -> str:
    """A text of others that moves nothing: what steers is shown as a mark."""
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", text)


def finalized(value: Any) -> Any:
    """What stands in a page for the value of an expression, before it is escaped."""
    return value if isinstance(value, Markup | int | float) else clean(str(value))
