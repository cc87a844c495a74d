"""Agents that do what the run's input says, and write down each run that they were given.

The input is `{"seconds": 0.1, "fails": true}`: how long the run takes, and how it ends. With a list of seconds the first run
that begins takes the first of them, the next one the second, and all later ones the last. A run whose input names a file as
`while` goes on as long as there is that file. What was begun is appended to the
file HORARIUM_TEST_BEGUN, a JSON line each: the agents' own word, to be held against the ledger.
"""

import asyncio
import json
import os
from datetime import UTC, datetime
from pathlib import Path

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
        seconds = seconds_of(script, begun_before(run.schedule.schedule_id, run.run_id))
        await asyncio.sleep(seconds)
        while "while" in script and Path(script["while"]).exists():  # noqa: ASYNC110, ASYNC240 - a test removes it
            await asyncio.sleep(0.1)
        if script.get("fails"):
            return AgentReport.failed("as it was told")
        return AgentReport.succeeded(f"took {seconds} s")


class Repeatable(Scripted):
    """Declares that a second attempt of a run does no harm."""

    name = "repeatable"
    idempotent = True


class Brief(Scripted):
    """May take five seconds, however many its input says."""

    name = "brief"
    max_run_seconds = 5


def seconds_of(script: dict, before: int) -> float:
    """How long a run takes before which so many have begun."""
    told = script["seconds"]
    return told[min(before, len(told) - 1)] if isinstance(told, list) else told


def begun_before(schedule_id: str, run_id: str) -> int:
    """How many runs of a schedule had begun before this one did."""
    lines = [json.loads(line) for line in Path(os.environ["HORARIUM_TEST_BEGUN"]).read_text().splitlines()]
    return [line["run_id"] for line in lines if line["schedule"] == schedule_id].index(run_id)


def write_down(line: dict) -> None:
    """One write of less than a page with O_APPEND is whole, whoever else writes."""
    file = os.open(os.environ["HORARIUM_TEST_BEGUN"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, (json.dumps(line) + "\n").encode())
    finally:
        os.close(file)


agents = [Scripted(), Repeatable(), Brief()]
