"""An agent that does nothing but write down when each of its runs began: its own word, which no other clock touches."""

import json
import os
import time

from horarium.agents import Agent, AgentReport, CronStartEvent, RunContext, handles

LOG = "HORARIUM_BENCH_STARTS"
"""In the environment: the file that starts are appended to, a line of JSON each."""


class Stamping(Agent):
    """Writes the schedule, the nominal time and the seconds since the epoch at which its handler began."""

    name = "stamping"
    version = "1"
    max_run_seconds = 60

    @handles(CronStartEvent)
    async def work(self, event: CronStartEvent, _context: RunContext) -> AgentReport:
        """Begin, and have done."""
        began = time.time()
        run = event.run
        line = {"schedule": run.schedule.schedule_id, "nominal": run.nominal_time.isoformat(), "began": began}
        # One write of less than a page with O_APPEND is whole, whoever else writes.
        file = os.open(os.environ[LOG], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, (json.dumps(line) + "\n").encode())
        finally:
            os.close(file)
        return AgentReport.succeeded("It began.")


agents = [Stamping()]
