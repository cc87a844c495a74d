"""Agents on a runner: of random duration, which fail, raise, hang, and now and then take their whole runner with them."""

import asyncio
import json
import os
import signal
from contextlib import suppress

from horarium.agents import Agent, AgentReport, CronStartEvent, RunContext, handles
from tests.chaos.fates import LIMIT_SECONDS, STUBBORN_SECONDS, Ending, draw
from tests.chaos.words import Said, say


class Once(Agent):
    """May be begun once."""

    name = "once"
    version = "1"
    max_run_seconds = LIMIT_SECONDS

    @handles(CronStartEvent)
    async def work(self, event: CronStartEvent, context: RunContext) -> AgentReport:
        run = event.run
        say(
            Said.BEGUN,
            run.run_id,
            agent=self.agent_version,
            schedule=run.schedule.schedule_id,
            nominal=run.nominal_time.isoformat(),
        )
        # A second attempt is in another process, or else it would crash, hang or fail as the first one did.
        fate = draw(json.loads(await context.read_input()), run.run_id, attempt=os.getpid())
        await asyncio.sleep(fate.seconds)
        match fate.ending:
            case Ending.CRASHES:
                say(Said.DYING, run.run_id, agent=self.agent_version)
                os.kill(os.getpid(), signal.SIGKILL)
            case Ending.HANGS:
                await asyncio.sleep(3_600)
            case Ending.RESISTS:
                until = asyncio.get_running_loop().time() + LIMIT_SECONDS + STUBBORN_SECONDS
                while (left := until - asyncio.get_running_loop().time()) > 0:
                    with suppress(asyncio.CancelledError):
                        await asyncio.sleep(left)
            case Ending.RAISES:
                raise RuntimeError("nobody foresaw this")
            case Ending.FAILS:
                say(Said.ENDED, run.run_id, agent=self.agent_version, outcome="failed", cost=fate.cost)
                return AgentReport.failed("as it was told", cost=fate.cost)
        await context.write_output("report.txt", f"took {fate.seconds:.2f} s")
        say(Said.ENDED, run.run_id, agent=self.agent_version, outcome="succeeded", cost=fate.cost)
        return AgentReport.succeeded(f"took {fate.seconds:.2f} s", outputs=context.outputs, cost=fate.cost)


class Again(Once):
    """A second attempt of a run does no harm."""

    name = "again"
    idempotent = True


agents = [Once(), Again()]
