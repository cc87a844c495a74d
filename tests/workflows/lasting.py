"""Runs that last as long as the server's time does: the real workflow, with a scripted sleep where its agent would be.

An agent that really sleeps holds a time-skipping server at the speed of the wall clock. Here admission, the claim and the
settlement are the real ones, and only the work between them is a timer.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from temporalio import activity, workflow

with workflow.unsafe.imports_passed_through():
    from activities.messages import RUN_WORKFLOW, RunClosed, RunScheduled
    from horarium.agents.events import RunBrief
    from horarium.agents.host import AgentHost
    from horarium.control.admission import Dispatch
    from horarium.control.running import Outcome
    from horarium.errors import HorariumError
    from horarium.schedule.ledger import Disposition, Reason
    from workflows.run import RunWorkflow

BEGIN_WORK = "begin_work"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one run shall do: last so long, then end so."""

    lasts: timedelta = timedelta(0)
    fails: bool = False


@dataclass(kw_only=True)
class Script:
    """The agent's part, by nominal time. `usual` is for the instants that `works` does not name."""

    host: AgentHost
    now: Callable[[], datetime]
    usual: Work = field(default_factory=Work)
    works: dict[datetime, Work] = field(default_factory=dict)
    begun: list[RunBrief] = field(default_factory=list)

    @activity.defn(name=BEGIN_WORK)
    async def begin_work(self, run_id: str) -> Work:
        """Claim a run as an agent's runner does, and say what the run shall do."""
        claim = await self.host.begin(run_id, at=self.now())
        nominal = claim.brief.nominal_time
        self.begun.append(claim.brief)
        return self.works.get(nominal, self.usual)


@workflow.defn(name=RUN_WORKFLOW, failure_exception_types=[HorariumError])
class LastingRun(RunWorkflow):
    """Takes the real one's place under its name."""

    @workflow.init
    def __init__(self, run: RunScheduled) -> None:
        super().__init__(run)

    @workflow.run
    async def run(self, run: RunScheduled) -> RunClosed:
        return await super().run(run)

    async def _with_its_agent(self, dispatch: Dispatch) -> Outcome:
        work = await workflow.execute_activity(
            BEGIN_WORK,
            dispatch.run_id,
            result_type=Work,
            task_queue=dispatch.task_queue,
            start_to_close_timeout=timedelta(seconds=10),
        )
        await workflow.sleep(work.lasts)
        if work.fails:
            return Outcome(disposition=Disposition.FAILED, reason=Reason.AGENT_REPORTED_FAILURE)
        return Outcome(disposition=Disposition.SUCCEEDED, reason=None)
