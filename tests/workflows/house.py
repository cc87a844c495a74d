"""An installation in one process, for tests of workflows: real catalog, real workers, real plugin, a server of choice."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from activities.admission import Admissions
from activities.agents import AgentActivities, CatalogHost
from activities.clock import WorkerClock
from activities.gateway import HttpGateway
from activities.ledger import Settlements
from activities.messages import RUNS_QUEUE, SCHEDULES_QUEUE
from activities.outcomes import HttpOutcomes
from activities.pace import Pace
from activities.temporal import RunStarter
from activities.timetable import Timetable
from horarium.agents import Agent, AgentReport, AgentRunner, CronStartEvent, RunContext, handles
from horarium.agents.events import RunBrief
from horarium.authority.content import ContentFolder
from horarium.authority.local import LocalAuthority
from horarium.catalog import Catalog, ledger, migrate, presence
from horarium.catalog.environments import ensure_environment
from horarium.catalog.schedules import Activation, find_activation, require_schedule
from horarium.control.activation import Changed, Reviewed, enable, pause, retire
from horarium.control.publication import publish
from horarium.errors import Unavailable
from horarium.schedule.identity import ActivationKey, RunKey, ScheduleKey, Scope, schedule_key
from starter.temporal import Temporal
from tests.workflows.invariant import assert_every_instant_has_one_answer
from tests.workflows.known import known
from tests.workflows.lasting import Script
from worker.composition import AGENT_HEARTBEAT_THROTTLE, HEARTBEAT_THROTTLE
from workflows.run import RunWorkflow
from workflows.schedule import ScheduleWorkflow

SCOPE = Scope(org_id="acme", environment_id="test")
LONG_LEASE = timedelta(days=3_650)
AGENTS_QUEUE = "house/worked@1"


class Worked(Agent):
    """Raises or works so many seconds, as `script` says for the run's nominal time, or else `usual`; then succeeds."""

    name = "worked"
    version = "1"
    max_run_seconds = 4

    def __init__(self) -> None:
        self.begun: list[RunBrief] = []
        self.usual: BaseException | float = 0.0
        self.script: dict[datetime, BaseException | float] = {}

    @handles(CronStartEvent)
    async def work(self, event: CronStartEvent, context: RunContext) -> AgentReport:
        self.begun.append(event.run)
        scripted = self.script.get(event.run.nominal_time, self.usual)
        if isinstance(scripted, BaseException):
            raise scripted
        await asyncio.sleep(scripted)
        return AgentReport.succeeded("worked")


class OutableCatalog(Catalog):
    """Does not answer while `is_out`."""

    is_out = False

    async def read(self, *args: Any, **kwargs: Any) -> Any:
        self._answer()
        return await super().read(*args, **kwargs)

    async def write(self, *args: Any, **kwargs: Any) -> Any:
        self._answer()
        return await super().write(*args, **kwargs)

    def _answer(self) -> None:
        if self.is_out:
            raise Unavailable("catalog_unavailable", "The catalog does not answer: it is out.")


@dataclass(kw_only=True)
class House:
    """What a test holds in its hands. `agent` does the runs, or `script` where they are `LastingRun`s."""

    client: Client
    catalog: OutableCatalog
    content: ContentFolder
    host: CatalogHost
    agent: Worked
    script: Script
    server_time: Callable[[], Awaitable[datetime]]
    starter: RunStarter

    @property
    def temporal(self) -> Temporal:
        return Temporal(self.client)

    @property
    def begun(self) -> list[datetime]:
        """The nominal times of the runs that were begun, in that order."""
        return [brief.nominal_time for brief in (*self.agent.begun, *self.script.begun)]

    async def now(self) -> datetime:
        """The server's time, as a person with the right time would have it."""
        return (await self.server_time()).astimezone(UTC)

    async def published(self, document: Mapping[str, Any], key: ScheduleKey | None = None) -> ScheduleKey:
        key = key or schedule_key(SCOPE, str(uuid.uuid4()))
        await self.catalog.write(publish, key, document, expected_revision=None, by="tester", now=await self.now())
        return key

    async def enabled(self, key: ScheduleKey, *, now: datetime | None = None, start: bool = True) -> Changed:
        at = now or await self.now()
        await self.catalog.write(workers_beat, at=at)
        changed: Changed = await self.catalog.write(enable, key, Reviewed(), self.content, by="tester", now=at)
        if start:
            assert await self.temporal.start_schedule(changed.key)
        return changed

    async def paused(self, key: ScheduleKey, *, nudge: bool = True, now: datetime | None = None) -> Changed:
        at = now or await self.now()
        changed: Changed = await self.catalog.write(pause, key, Reviewed(), by="tester", now=at)
        if nudge and changed.ended is not None:
            await self.temporal.signal(changed.ended, "pause")
        return changed

    async def retired(self, key: ScheduleKey, *, nudge: bool = True, now: datetime | None = None) -> Changed:
        at = now or await self.now()
        changed: Changed = await self.catalog.write(retire, key, Reviewed(), by="tester", now=at)
        if nudge and changed.ended is not None:
            await self.temporal.signal(changed.ended, "retire")
        return changed

    def entries(self, key: ScheduleKey) -> list[ledger.Entry]:
        with self.catalog.reading() as connection:
            return [entry for entry, _ in ledger.list_entries(connection, require_schedule(connection, key))]

    def fates(self, key: ScheduleKey, *, since: datetime) -> list[tuple[int, int, str, str | None]]:
        """The ledger in seconds from `since`: first, last, disposition, reason."""
        return [
            (_seconds(entry.first_at - since), _seconds(entry.last_at - since), entry.disposition, entry.reason)
            for entry in self.entries(key)
        ]

    def runs(self, key: ScheduleKey) -> list[ledger.Run]:
        """The runs, by their nominal times."""
        with self.catalog.reading() as connection:
            listed = ledger.list_entries(connection, require_schedule(connection, key))
        return [run for _, run in listed if run is not None]

    def activation(self, key: ActivationKey) -> Activation:
        with self.catalog.reading() as connection:
            found = find_activation(connection, require_schedule(connection, key.schedule), key.generation)
        assert found is not None
        return found

    def workflow(self, key: ActivationKey | RunKey) -> WorkflowHandle[Any, Any]:
        return self.client.get_workflow_handle(key.workflow_id)

    async def known(self, key: ActivationKey | RunKey) -> WorkflowHandle[Any, Any]:
        """The workflow, once Temporal has it: what the ledger says of a run is written before the run is started."""
        return await known(self.workflow(key))

    async def until(self, holds: Callable[[], object], *, within: float = 60) -> None:
        """Wait in real time until something holds."""
        async with asyncio.timeout(within):
            while not holds():  # noqa: ASYNC110 - most of what is waited for is in a database
                await asyncio.sleep(0.02)

    async def check(self) -> None:
        await self.catalog.write(workers_beat, at=await self.now())
        begun = (*self.agent.begun, *self.script.begun)
        assert_every_instant_has_one_answer(self.catalog, SCOPE, begun=begun, now=await self.now())


@contextlib.asynccontextmanager
async def house(
    client: Client,
    folder: Path,
    *,
    server_time: Callable[[], Awaitable[datetime]],
    clock: WorkerClock,
    pace: Pace,
    schedule_workflow: type = ScheduleWorkflow,
    run_workflow: type = RunWorkflow,
    timetable: type[Timetable] = Timetable,
    without: Sequence[str] = (),
    gateway: HttpGateway | None = None,
    catalog_url: str | None = None,
) -> AsyncIterator[House]:
    """Set everything up on an empty folder, take it down again, and hold the ledger to its promise.

    `without` names task queues that nobody serves. `gateway` is for agents elsewhere, and `catalog_url` for an empty
    catalog elsewhere.
    """
    content = ContentFolder(folder / "content", SCOPE)
    for each in (content.inputs, content.outputs / "reports"):
        each.mkdir(parents=True)
    (content.inputs / "letters").write_text("{}")
    authority = LocalAuthority(content)
    catalog = OutableCatalog.open(catalog_url or f"sqlite:///{folder / 'catalog.db'}")
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(catalog.close)
        migrate.upgrade(catalog)
        agent = Worked()
        runner = AgentRunner([agent], task_queues="house")
        host = CatalogHost(catalog, authority, content, SCOPE)
        script = Script(host=host, now=clock.now)
        await _open_for_business(catalog, host, runner)
        starter = RunStarter(client)
        steps = timetable(catalog, starter, pace)
        settlements = Settlements(catalog, client)
        gateway = gateway or HttpGateway("http://api.test")
        elsewhere = HttpOutcomes(catalog, gateway, client, clock)
        for worker in (
            Worker(
                client,
                task_queue=SCHEDULES_QUEUE,
                workflows=[schedule_workflow, run_workflow],
                activities=[steps.gather_facts, steps.commit_plan, settlements.settle_run, settlements.look_at_run],
            ),
            Worker(
                client,
                task_queue=RUNS_QUEUE,
                activities=[
                    Admissions(catalog, authority, client, clock, gateway).admit_run,
                    elsewhere.poll_run,
                    elsewhere.tell_cancelled,
                ],
                default_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
                max_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
            ),
            Worker(
                client,
                task_queue=AGENTS_QUEUE,
                activities=[AgentActivities(runner, host, now=clock.now).run_agent, script.begin_work],
                max_heartbeat_throttle_interval=AGENT_HEARTBEAT_THROTTLE,
            ),
        ):
            if worker.task_queue not in without:
                await stack.enter_async_context(worker)
        inside = House(
            client=client,
            catalog=catalog,
            content=content,
            host=host,
            agent=agent,
            script=script,
            server_time=server_time,
            starter=starter,
        )
        yield inside
        await inside.check()


def workers_beat(connection: Connection, *, at: datetime) -> None:
    """Both runtime workers say that they are there."""
    for role in presence.ROLES:
        presence.beat(connection, instance=role, role=role, tzdata="test", now=at)


async def _open_for_business(catalog: Catalog, host: CatalogHost, runner: AgentRunner) -> None:
    """An environment and an agent with a lease: what enabling and admission ask for."""
    await catalog.write(ensure_environment, SCOPE, mode="simulation", runtime_profile="embedded")
    await host.register(runner.discovery(), lease=LONG_LEASE)


def _seconds(distance: timedelta) -> int:
    assert distance % timedelta(seconds=1) == timedelta(0)
    return int(distance.total_seconds())
