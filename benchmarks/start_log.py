"""What the stamping agent wrote down, and how late its runs were."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from horarium.schedule.identity import RunKey

Start = tuple[str, datetime]
"""A schedule's id, and a nominal time."""


class LostRuns(Exception):
    """Not every run began, or one began twice. Then there is no figure: it would be of those that were not lost."""


@dataclass(slots=True)
class StartLog:
    """For each schedule and nominal time, when runs began, in seconds since the epoch."""

    path: Path
    _starts: dict[Start, list[float]] = field(default_factory=dict)
    _read_to: int = 0

    def missing(self, runs: Sequence[RunKey]) -> int:
        """How many of these runs have not begun by now."""
        self._read()
        return sum(_start(run) not in self._starts for run in runs)

    def lateness(self, runs: Sequence[RunKey]) -> list[float]:
        """How many seconds after its nominal time each run began, in their order.

        Negative where one began early. Raises `LostRuns` where one has not begun, or more than once.
        """
        starts = self._read()
        for run in runs:
            times = len(starts.get(_start(run), ()))
            if times != 1:
                raise LostRuns(f"Run {run.workflow_id} began {times} times.")
        return [starts[_start(run)][0] - run.nominal_time.timestamp() for run in runs]

    def _read(self) -> Mapping[Start, Sequence[float]]:
        """Take up whole lines that were written since the last time."""
        if self.path.exists():
            with self.path.open("rb") as log:
                log.seek(self._read_to)
                whole, newline, _ = log.read().rpartition(b"\n")
            self._read_to += len(whole) + len(newline)
            for line in whole.splitlines():
                found = json.loads(line)
                start = (found["schedule"], datetime.fromisoformat(found["nominal"]))
                self._starts.setdefault(start, []).append(found["began"])
        return self._starts


def _start(run: RunKey) -> Start:
    return run.activation.schedule.schedule_id, run.nominal_time
