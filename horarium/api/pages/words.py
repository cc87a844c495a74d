"""What pages call things, and how texts of others are shown: dispositions, states, names."""

import re
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from horarium.schedule.ledger import Disposition, Reason

_STEERING: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Controls, and marks that turn the direction of writing: a name must not move what stands beside it."""


@dataclass(frozen=True, slots=True)
class Badge:
    """A state in words, with a tone (`good`, `bad`, `warn`, `busy`, `calm`) and a sign that tells it without colour."""

    text: str
    tone: str
    sign: str


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


def clean(text: str) -> str:
    """A text of others that moves nothing: what steers is shown as a mark."""
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", text)


def finalized(value: Any) -> Any:
    """What stands in a page for the value of an expression, before it is escaped."""
    return value if isinstance(value, Markup | int | float) else clean(str(value))
