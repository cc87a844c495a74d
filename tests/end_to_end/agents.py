"""Agents that do what the run's input says, and write down each run that they were given.

The input is `{"seconds": 0.1, "crash": true}`: how long the run takes, and whether the runner dies in the middle of the
first run that says so. What was begun is appended to the file HORARIUM_TEST_BEGUN, a JSON line each: the agents' own word,
to be held against the ledger.
"""

import asyncio
import json
import os
from datetime import UTC, datetime

from horarium.agents import Agent, AgentReport, CronStartEvent, RunContext, handles
from tests.end_to_end.crashing import crash_if_told


class Scripted(Agent):
    """May be begun once."""

    name = "scripted"
    version = "1"

    @handles(CronStartEvent)
    async def work(self, event: CronStartEvent, context: RunContext) -> AgentReport:
        run = event.run
        write_down(
            {
                "schedule": run.schedule.schedule_id,
                "nominal": run.nominal_time.isoformat(),
                "run_id": run.run_id,
                "pid": os.getpid(),
                "at": datetime.now(UTC).isoformat(),
            }
        )
        script = json.loads(await context.read_input())
        crash_if_told("in the agent", run.schedule.schedule_id)
        await asyncio.sleep(script["seconds"])
        if script.get("fails"):
            return AgentReport.failed("as it was told")
        return AgentReport.succeeded(f"took {script['seconds']} s")


class Repeatable(Scripted):
    """Declares that a second attempt of a run does no harm."""

    name = "repeatable"
    idempotent = True


def write_down(line: dict) -> None:
    """One write of less than a page with O_APPEND is whole, whoever else writes."""
    file = os.open(os.environ["HORARIUM_TEST_BEGUN"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, (json.dumps(line) + "\n").encode())
    finally:
        os.close(file)


agents = [Scripted(), Repeatable()]
