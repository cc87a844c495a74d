"""A part of an installation on a machine whose clock is wrong: by as many seconds as a file says, which may change.

`python -m tests.end_to_end.skewed PART FILE`. Nothing of this is in the product: its processes are given the machine's clock, and
no setting or environment variable of theirs changes it.
"""

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from starter import controller
from tests.end_to_end.installation import AGENTS
from worker import processes
from worker.exit import run
from worker.logs import configure
from worker.settings import load


def clock_off_by(file: Path) -> Callable[[], datetime]:
    """A clock that a test sets."""

    def machine() -> datetime:
        return datetime.now(UTC) + timedelta(seconds=float(file.read_text()))

    return machine


async def main(part: str, file: str) -> None:
    machine = clock_off_by(Path(file))
    match part:
        case "controller":
            await controller.control(load(), machine=machine)
        case "agents":
            await processes.serve_agents(load(), AGENTS, command="agents off the time", machine=machine)
        case _:
            await processes.serve(load(), [part], machine=machine)


if __name__ == "__main__":
    configure()
    run(main(*sys.argv[1:]))
