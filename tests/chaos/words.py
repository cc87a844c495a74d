"""The agents' own word: what they were given, began and ended, written down before anything else, and for good.

One file for all agents of an installation, a JSON line each. The driver holds it against the ledger, so it must not depend on
anything of ours: a line is one write with O_APPEND, which is whole whoever else writes, and on the disk when it returns.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

WORDS = "HORARIUM_CHAOS_WORDS"
"""In the environment: the path of the file."""


class Said(StrEnum):
    """What an agent may have to say of a run."""

    POSTED = "posted"
    """A POST with the run has arrived."""
    BEGUN = "begun"
    """It does the run's work from now on."""
    ENDED = "ended"
    """It has done the work: `outcome` and `cost`."""
    REPORTED = "reported"
    """It told the API an `outcome`, and was answered with `status`."""
    DYING = "dying"
    """It is about to crash its own process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One line."""

    said: Said
    run_id: str
    agent: str
    pid: int
    at: datetime
    more: dict[str, Any] = field(default_factory=dict)


def say(said: Said, run_id: str, *, agent: str, **more: Any) -> None:
    """Write one line down, so that it outlives this process."""
    line = {
        "said": said,
        "run_id": run_id,
        "agent": agent,
        "pid": os.getpid(),
        "at": datetime.now(UTC).isoformat(),
        "more": more,
    }
    file = os.open(os.environ[WORDS], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, (json.dumps(line) + "\n").encode())
        os.fsync(file)
    finally:
        os.close(file)


def read_words(path: Path) -> Sequence[Word]:
    """All lines, in the order in which they were written."""
    if not path.exists():
        return []
    found = (json.loads(line) for line in path.read_text().splitlines())
    return [Word(**{**each, "said": Said(each["said"]), "at": datetime.fromisoformat(each["at"])}) for each in found]
