"""The figures of one run after the other, kept in a file of JSON lines, from which every table is made.

A line is a figure (`Figure.line`), with the suite that it is of, the size that was measured, the day, and the machine. So
each line can be read alone, and a file may hold figures of several machines. What was measured once more replaces what its
suite had.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure
from benchmarks.machine import Machine
from horarium.errors import Misconfigured

Line = Mapping[str, Any]
"""One figure, as JSON has it."""


class Records:
    """A file of lines that grows while figures are measured: one that was yielded is not lost by what happens later."""

    def __init__(self, path: Path, *, size: str, machine: Machine) -> None:
        self.path, self._size, self._machine = path, size, machine
        path.parent.mkdir(parents=True, exist_ok=True)

    def begin(self, suite: str) -> None:
        """Forget what the file has of a suite, which is measured anew."""
        kept = [line for line in read(self.path) if line["suite"] != suite] if self.path.exists() else []
        self.path.write_text("".join(f"{json.dumps(line)}\n" for line in kept))

    def add(self, suite: str, figure: Figure) -> Line:
        """Write down a figure; the line that was written."""
        about = {"suite": suite, "size": self._size, "day": f"{datetime.now(UTC):%Y-%m-%d}", "machine": self._machine}
        line = figure.line() | about
        with self.path.open("a") as file:
            file.write(f"{json.dumps(line)}\n")
        return line


def read(path: Path) -> list[Line]:
    """All lines of a file. Raises `Misconfigured` where it is none of ours."""
    try:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
    except (OSError, ValueError) as error:
        raise Misconfigured(f"{path} holds no figures ({error}). `python -m benchmarks` writes such a file.") from None
    if not all(isinstance(line, dict) and "suite" in line for line in lines):
        raise Misconfigured(f"{path} holds no figures. `python -m benchmarks` writes such a file.")
    return lines
