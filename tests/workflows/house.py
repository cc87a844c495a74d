"""An installation in one process, for tests of workflows: real catalog, real workers, real plugin, a server of choice."""

import asyncio
import contextlib
import itertools
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from temporalio.client import Client
from temporalio.worker import Worker

from activities.admission import Admissions
from activities.agents import AgentActivities, CatalogHost
from activities.clock import WorkerClock
from activities.ledger import Settlements
from activities.messages import RUNS_QUEUE, SCHEDULES_QUEUE
from activities.temporal import RunStarter
from activities.timetable import Pace, Timetable
from horarium.agents import Agent, AgentReport, AgentRunner, CronStartEvent, RunContext, handles
from horarium.authority.content import ContentFolder
from horarium.catalog import Catalog, ledger, migrate, presence
from horarium.catalog.schedules import ensure_environment, find_activation, require_schedule
from horarium.control.activation import Changed, Reviewed, enable, pause, retire
from horarium.control.publication import publish
from horarium.schedule.identity import ActivationKey, ScheduleKey, Scope, schedule_key
from starter.temporal import Temporal
from workflows.run import RunWorkflow
from workflows.schedule import ScheduleWorkflow

SCOPE = Scope(org_id="acme", environment_id="test")
LONG_LEASE = timedelta(days=3_650)


class Worked(Agent):
    """Succeeds, or does what the test put in `script` for the run's nominal time."""

    name = "worked"
    version = "1"

    def __init__(self) -> None:
        self.begun: list[datetime] = []
        self.script: dict[datetime, BaseException | float] = {}

    @handles(CronStartEvent)
    async def work(self, event: CronStartEvent, context: RunContext) -> AgentReport:
        self.begun.append(event.run.nominal_time)
        scripted = self.script.get(event.run.nominal_time)
        if isinstance(scripted, BaseException):
            raise scripted
        await asyncio.sleep(scripted or 0)
        return AgentReport.succeeded("worked")


def every(seconds: int, *, offset: int = 0, **policy: Any) -> dict[str, Any]:
    """A configuration of an interval."""
    return configuration([], [{"every_seconds": seconds, "offset_seconds": offset}], **policy)


def weekdays(hour: int, minute: int, zone: str) -> dict[str, Any]:
    """A configuration of Monday to Friday at one time."""
    rule = {
        field: [{"start": start, "end": end, "step": 1}]
        for field, (start, end) in {
            "second": (0, 0),
            "minute": (minute, minute),
            "hour": (hour, hour),
            "day_of_month": (1, 31),
            "month": (1, 12),
            "day_of_week": (1, 5),
        }.items()
    }
    return configuration([rule], [], zone=zone)


def configuration(
    calendars: list[Mapping[str, Any]],
    intervals: list[Mapping[str, Any]],
    *,
    zone: str = "UTC",
    end_at: str = "2199-12-31T23:59:59Z",
    overlap: str = "skip",
    window: int = 60,
    pause_on_failure: bool = False,
    slots: int | None = None,
) -> dict[str, Any]:
    """A configuration for the agent `worked@1`."""
    policy: dict[str, Any] = {
        "overlap": overlap,
        "catchup_window_seconds": window,
        "pause_on_failure": pause_on_failure,
    }
    if slots is not None:
        policy["max_concurrent_runs"] = slots
    return {
        "name": "A test",
        "calendar": {
            "timezone": zone,
            "calendars": calendars,
            "intervals": intervals,
            "start_at": "1970-01-01T00:00:00Z",
            "end_at": end_at,
        },
        "policy": policy,
        "run": {
            "agent_version": "worked@1",
            "input": "letters",
            "output_target": "reports",
            "grants": [],
            "budget_id": None,
            "usage_class": "test_simulation",
        },
    }


@dataclass
class House:
    """What a test holds in its hands."""

    client: Client
    catalog: Catalog
    content: ContentFolder
    agent: Worked
    clock: "ServerClock"
    pace: Pace

    @property
    def temporal(self) -> Temporal:
        return Temporal(self.client)

    async def published(self, document: Mapping[str, Any], key: ScheduleKey | None = None) -> ScheduleKey:
        key = key or schedule_key(SCOPE, str(uuid.uuid4()))
        now = await self.clock.now()
        await self.catalog.write(publish, key, document, expected_revision=None, by="tester", now=now)
        return key

    async def enabled(self, key: ScheduleKey) -> Changed:
        now = await self.clock.now()
        changed = await self.catalog.write(enable, key, Reviewed(), self.content, by="tester", now=now)
        assert await self.temporal.start_schedule(changed.key)
        return changed

    async def paused(self, key: ScheduleKey, *, nudge: bool = True) -> None:
        changed = await self.catalog.write(pause, key, Reviewed(), by="tester", now=await self.clock.now())
        if nudge and changed.ended is not None:
            await self.temporal.signal(changed.ended, "pause")

    async def retired(self, key: ScheduleKey) -> None:
        changed = await self.catalog.write(retire, key, Reviewed(), by="tester", now=await self.clock.now())
        if changed.ended is not None:
            await self.temporal.signal(changed.ended, "retire")

    def entries(self, key: ScheduleKey) -> list[ledger.Entry]:
        with self.catalog.reading() as connection:
            return [entry for entry, _ in ledger.list_entries(connection, require_schedule(connection, key))]

    def activation(self, key: ActivationKey) -> Any:
        with self.catalog.reading() as connection:
            return find_activation(connection, require_schedule(connection, key.schedule), key.generation)


class ServerClock:
    """The server's time, as a person with the right time would have it."""

    def __init__(self, now: Any) -> None:
        self._now = now

    async def now(self) -> datetime:
        instant: datetime = await self._now()
        return instant.astimezone(UTC)


@contextlib.asynccontextmanager
async def house(
    client: Client,
    folder: Path,
    *,
    now: Any,
    pace: Pace,
    run_workflow: type = RunWorkflow,
    clock: WorkerClock | None = None,
) -> AsyncIterator[House]:
    """Set everything up on an empty folder, and take it down again."""
    for area in ("inputs", "outputs/reports"):
        (folder / "content" / area).mkdir(parents=True)
    (folder / "content" / "inputs" / "letters").write_text("{}")
    catalog = Catalog.open(f"sqlite:///{folder / 'catalog.db'}")
    migrate.upgrade(catalog)
    content = ContentFolder(folder / "content")
    worker_clock = clock or WorkerClock()
    agent = Worked()
    runner = AgentRunner([agent], task_queues=f"agents-{next(_numbers)}")
    host = CatalogHost(catalog, content, SCOPE)
    timetable = Timetable(catalog, RunStarter(client), pace)
    settlements = Settlements(catalog, client)
    admissions = Admissions(catalog, content, client, worker_clock)
    agents = AgentActivities(runner, host, now=worker_clock.now)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(catalog.close)
        await catalog.write(ensure_environment, SCOPE, mode="simulation", runtime_profile="embedded")
        await host.register(runner.discovery(), lease=LONG_LEASE)
        far = datetime(2100, 1, 1, tzinfo=UTC)
        for role in presence.ROLES:
            await catalog.write(presence.beat, instance=role, role=role, tzdata="test", now=far)
        for worker in (
            Worker(
                client,
                task_queue=SCHEDULES_QUEUE,
                workflows=[ScheduleWorkflow, run_workflow],
                activities=[timetable.gather_facts, timetable.commit_plan, settlements.settle_run],
            ),
            Worker(client, task_queue=RUNS_QUEUE, activities=[admissions.admit_run]),
            Worker(client, task_queue=runner.task_queue_of("worked@1"), activities=[agents.run_agent]),
        ):
            await stack.enter_async_context(worker)
        yield House(client=client, catalog=catalog, content=content, agent=agent, clock=ServerClock(now), pace=pace)


_numbers = itertools.count()
