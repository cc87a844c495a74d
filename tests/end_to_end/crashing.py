"""The processes of an installation, which kill themselves at a named point where a test says so.

`python -m tests.end_to_end.crashing schedules|runs|controller|agents` runs what the real command runs, of the same parts,
except that some of them die by SIGKILL at a point that is armed for the schedule at hand. A point is armed by a file and
disarmed by dying, so each crash happens once, and exactly there.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from temporalio import activity

from activities.admission import Admissions
from activities.agents import CatalogHost
from activities.ledger import Settlements
from activities.messages import AdmitRun, CommitPlan, RunSettled, SettleRun
from activities.temporal import RunStarter
from activities.timetable import Timetable
from horarium.agents import Claim
from horarium.control.admission import ADMITTED, Admission
from horarium.control.stepping import Status
from horarium.schedule.identity import ActivationKey, RunKey
from starter import controller
from starter.temporal import Temporal
from worker import composition, processes
from worker.exit import run
from worker.logs import configure
from worker.settings import load

AGENTS = "tests.end_to_end.agents"


def marker(folder: Path, point: str, schedule_id: str) -> Path:
    """The file that arms a point for a schedule."""
    return folder / f"{point.replace(' ', '-')}.{schedule_id}"


def crash_if_told(point: str, schedule_id: str) -> None:
    """Die as by `kill -9` if this point is armed for this schedule, once."""
    folder = os.environ.get("HORARIUM_TEST_CRASHES")
    if folder is None:
        return
    try:
        marker(Path(folder), point, schedule_id).unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


class CrashingStarter(RunStarter):
    async def start(self, key: RunKey) -> None:
        crash_if_told("between commit and start", key.activation.schedule.schedule_id)
        await super().start(key)


class CrashingTimetable(Timetable):
    @activity.defn
    async def commit_plan(self, request: CommitPlan) -> Status:
        done = await super().commit_plan(request)
        if request.plan.starts:
            crash_if_told("between start and history", request.key.schedule.schedule_id)
        return done


class CrashingSettlements(Settlements):
    @activity.defn
    async def settle_run(self, request: SettleRun) -> RunSettled:
        schedule_id = request.key.activation.schedule.schedule_id
        crash_if_told("before settlement", schedule_id)
        settled = await super().settle_run(request)
        crash_if_told("after settlement", schedule_id)
        return settled


class CrashingAdmissions(Admissions):
    @activity.defn
    async def admit_run(self, request: AdmitRun) -> Admission:
        decided = await super().admit_run(request)
        if decided.outcome == ADMITTED:
            crash_if_told("between decision and dispatch", request.key.activation.schedule.schedule_id)
        return decided

    async def _wait_for(self, request: AdmitRun) -> None:
        waiting = asyncio.ensure_future(super()._wait_for(request))
        try:
            _, pending = await asyncio.wait([waiting], timeout=0.5)
            if pending:
                crash_if_told("while it waits", request.key.activation.schedule.schedule_id)
            await waiting
        finally:
            waiting.cancel()


class CrashingHost(CatalogHost):
    async def begin(self, run_id: str, **how) -> Claim:
        claim = await super().begin(run_id, **how)
        crash_if_told("between claim and agent", claim.brief.schedule.schedule_id)
        return claim


class CrashingTemporal(Temporal):
    async def start_schedule(self, key: ActivationKey) -> bool:
        crash_if_told("before a schedule starts", key.schedule.schedule_id)
        started = await super().start_schedule(key)
        crash_if_told("after a schedule started", key.schedule.schedule_id)
        return started


async def main(role: str) -> None:
    composition.RunStarter = CrashingStarter
    composition.Timetable = CrashingTimetable
    composition.Settlements = CrashingSettlements
    composition.Admissions = CrashingAdmissions
    processes.CatalogHost = CrashingHost
    controller.Temporal = CrashingTemporal
    match role:
        case "controller":
            await controller.control(load())
        case "agents":
            await processes.serve_agents(load(), AGENTS, command="crashing agents")
        case _:
            await processes.serve(load(), [role])


if __name__ == "__main__":
    configure()
    run(main(sys.argv[1]))
