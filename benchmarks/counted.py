"""An installation within this process, where everything that it asks of Temporal and of its catalog is counted.

The workers and the agent are those of the real processes, composed by the same functions, each with its own access to the
catalog, so that what it asks is counted by part. Signs of life, leases and enabling are done beside them and not counted:
they are no part of an occurrence. There is no controller; the workflows of schedules are started here as it would do.
"""

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import Connection, func, select
from temporalio.client import Client

from activities.agents import CatalogHost
from benchmarks.counting import Requests, Statements
from benchmarks.stored_schedules import beat
from horarium.agents import Agent, AgentReport, CronStartEvent, RunContext, handles
from horarium.agents.runner import TASK_QUEUES, AgentRunner
from horarium.catalog import Catalog, ledger
from horarium.catalog.ledger import Entry
from horarium.catalog.schedules import require_schedule
from horarium.catalog.tables import entries
from horarium.control.activation import Reviewed, enable
from horarium.control.publication import publish
from horarium.schedule.identity import ActivationKey, ScheduleKey, schedule_key
from starter.setup import prepare_data, prepare_temporal
from starter.temporal import Temporal
from starter.temporal_server import TemporalServer
from worker.composition import agent_workers, run_worker, schedule_worker
from worker.connection import connect
from worker.settings import Settings, load

PARTS = ("schedules", "runs", "agents")
_LEASE = timedelta(hours=2)
_BEAT_EVERY = 4.0
_BY = "bench"
_INPUT, _OUTPUT = "nothing", "reports"


class Nothing(Agent):
    """Does nothing, so that the whole of a run is ours."""

    name = "nothing"
    version = "1"
    max_run_seconds = 60

    @handles(CronStartEvent)
    async def work(self, _event: CronStartEvent, _context: RunContext) -> AgentReport:
        """Have done."""
        return AgentReport.succeeded("done")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The installation, and its counters. `client` and `catalog` are beside it: what they ask is not counted."""

    settings: Settings
    address: str
    client: Client
    catalog: Catalog
    statements: Statements
    requests: Requests

    async def start(self, *, every: int, offset: int) -> ActivationKey:
        """Publish a schedule of an interval, enable it and start its workflow."""
        key = schedule_key(self.settings.scope, str(uuid.uuid4()))
        await self.catalog.write(self._enable, key, every, offset)
        activation = ActivationKey(schedule=key, generation=1)
        await Temporal(self.client).start_schedule(activation)
        return activation

    def _enable(self, connection: Connection, key: ScheduleKey, every: int, offset: int) -> None:
        now = datetime.now(UTC)
        publish(connection, key, _configuration(every, offset), expected_revision=0, by=_BY, now=now)
        enable(connection, key, Reviewed(), self.settings.content.of(key.scope), by=_BY, now=now)

    async def answers(self) -> int:
        """How many occurrences have ended."""
        return await self.catalog.read(_answers)

    async def ended(self, key: ActivationKey) -> Sequence[Entry]:
        """The occurrences of a schedule that have ended, earliest first."""
        return await self.catalog.read(_ended, key)


@asynccontextmanager
async def counted() -> AsyncIterator[Counted]:
    """An installation in a folder that is removed afterwards."""
    statements, requests = Statements(), Requests()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="horarium-bench-")))
        settings = load({}, data=folder)
        prepare_data(settings)
        (settings.content.outputs / _OUTPUT).mkdir()
        (settings.content.inputs / f"{_INPUT}.json").write_text("{}")
        server = TemporalServer(folder, port=0, headless=True)
        await server.start()
        stack.push_async_callback(server.stop)
        beside = await connect(address=server.address, wait_seconds=10)
        await prepare_temporal(beside)
        working = await connect(address=server.address, wait_seconds=10, runtime=requests.runtime)
        catalogs = {part: Catalog.open(settings.catalog_url) for part in (*PARTS, "beside")}
        for part, catalog in catalogs.items():
            stack.callback(catalog.close)
            if part in PARTS:
                statements.watch(catalog.engine, part)
        runner = AgentRunner(
            [Nothing()], task_queues=f"{TASK_QUEUES}/{settings.scope.org_id}/{settings.scope.environment_id}"
        )
        hosts = {part: _host(catalogs[part], settings) for part in ("agents", "beside")}
        await hosts["beside"].register(runner.discovery(), lease=_LEASE)
        for worker in (
            schedule_worker(working, catalogs["schedules"], settings),
            run_worker(working, catalogs["runs"], settings, authority=settings.authority),
            *agent_workers(working, runner, hosts["agents"]),
        ):
            await stack.enter_async_context(worker)
        await catalogs["beside"].write(beat)
        beats = asyncio.create_task(_go_on(catalogs["beside"]))
        stack.callback(beats.cancel)
        yield Counted(
            settings=settings,
            address=server.address,
            client=beside,
            catalog=catalogs["beside"],
            statements=statements,
            requests=requests,
        )


def _configuration(every: int, offset: int) -> dict[str, Any]:
    return {
        "name": f"every {every} s",
        "calendar": {
            "timezone": "Etc/UTC",
            "calendars": [],
            "intervals": [{"every_seconds": every, "offset_seconds": offset}],
            "start_at": "2026-01-01T00:00:00Z",
            "end_at": "2099-12-31T23:59:59Z",
        },
        "policy": {"overlap": "skip", "catchup_window_seconds": 600, "pause_on_failure": False},
        "run": {
            "agent_version": Nothing().agent_version,
            "input": _INPUT,
            "output_target": _OUTPUT,
            "grants": [],
            "budget_id": None,
            "usage_class": "test_simulation",
        },
    }


def _host(catalog: Catalog, settings: Settings) -> CatalogHost:
    return CatalogHost(catalog, settings.authority, settings.content, settings.scope)


async def _go_on(catalog: Catalog) -> None:
    while True:
        await asyncio.sleep(_BEAT_EVERY)
        await catalog.write(beat)


def _answers(connection: Connection) -> int:
    query = select(func.count()).select_from(entries).where(entries.c.closed_at.is_not(None))
    return connection.execute(query).scalar_one()


def _ended(connection: Connection, key: ActivationKey) -> Sequence[Entry]:
    schedule = require_schedule(connection, key.schedule)
    found = ledger.list_entries(connection, schedule)
    return [entry for entry, _ in found if entry.closed_at is not None]


def since(counter: Counter[str], before: Counter[str]) -> Counter[str]:
    """What was counted since."""
    return Counter({name: count - before[name] for name, count in counter.items() if count != before[name]})
