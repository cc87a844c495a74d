"""What a worker process does from its first to its last second."""

import asyncio
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import structlog
from sqlalchemy import Connection
from temporalio.client import Client
from temporalio.worker import Worker

from activities.agents import CatalogHost
from activities.clock import WorkerClock, machine_time
from activities.findings import Findings
from horarium.agents.lease import LeaseKeeper
from horarium.agents.runner import TASK_QUEUES, AgentRunner
from horarium.calendar import tzdata_version
from horarium.catalog import Catalog, migrate, presence
from horarium.catalog.clock import catalog_time
from horarium.control.starts import STARTS
from horarium.errors import HorariumError, Misconfigured, Unavailable
from horarium.schedule.identity import Scope
from worker.agent_modules import load_agents
from worker.composition import AGENT_GRACE, GRACE, agent_workers, run_worker, schedule_worker
from worker.connection import connect
from worker.metrics import ProcessMetrics
from worker.settings import Settings
from worker.starts import totals_told
from worker.tracing import traced

HEARTBEAT_EVERY = timedelta(seconds=5)
LEASE = timedelta(seconds=15)
"""How long an agent counts as present after its runner fell silent."""
WAIT_FOR_TEMPORAL_SECONDS = 60
LEAVING = timedelta(seconds=5)
"""Beyond a worker's grace; after that the process is ended whatever it still waits for."""
CATALOGS_TIME = "the catalog's time"
READY = "READY"
"""What a process says on stdout once it polls; whoever started it may wait for it."""

_logger = structlog.get_logger(__name__)


@traced("worker")
@totals_told()
async def serve(settings: Settings, roles: Sequence[str], *, machine: Callable[[], datetime] = machine_time) -> None:
    """Run the schedule worker, the run worker, or both, until SIGTERM or SIGINT; then leave in good order.

    `machine` is the machine's clock, which no setting changes: a process with another one is a test's.
    """
    catalog = open_catalog(settings)
    metrics = ProcessMetrics(settings.metrics)
    client = await connect(wait_seconds=WAIT_FOR_TEMPORAL_SECONDS, runtime=metrics.runtime)
    authority = settings.authority
    findings = Findings()
    watch = WorkerClock(machine=machine, server=CATALOGS_TIME, findings=findings)
    build: dict[str, Callable[[Client, Catalog, Settings], Worker]] = {
        "schedules": partial(schedule_worker, clock=watch, findings=findings),
        "runs": partial(run_worker, clock=WorkerClock(machine=machine, findings=findings), authority=authority),
    }
    watched: list[asyncio.Task[None]] = []
    watchdog = _watchdog(GRACE + LEAVING)
    async with AsyncExitStack() as stack:
        stack.callback(watchdog.cancel)
        stack.callback(catalog.close)
        stack.push_async_callback(authority.aclose)
        await stack.enter_async_context(metrics.served())
        for role in roles:
            worker = build[role](client, catalog, settings)
            await stack.enter_async_context(worker)
            # Before this process says that it is ready: whoever enables a schedule next relies on the first beat.
            life = _Life(
                catalog=catalog, worker=worker, role=role, scope=settings.scope, watch=watch, findings=findings
            )
            await life.begin()
            beats = asyncio.create_task(life.go_on())
            stack.push_async_callback(_stop_beating, beats, catalog, role)
            watched.append(beats)
        stack.callback(watchdog.start)
        # Told once more at the very end, unless the watchdog comes first.
        stack.callback(STARTS.flush)
        await until_told(watched)


@traced("agents")
async def serve_agents(
    settings: Settings, module: str, *, command: str, machine: Callable[[], datetime] = machine_time
) -> None:
    """Run the agents of a module (its `agents` list), registered and with a lease, until SIGTERM or SIGINT.

    `command` is what the person typed, for the sentence about a module that cannot be used; `machine` is as for `serve`.
    """
    runner = AgentRunner(
        load_agents(module, command=command),
        task_queues=f"{TASK_QUEUES}/{settings.scope.org_id}/{settings.scope.environment_id}",
    )
    catalog = open_catalog(settings)
    metrics = ProcessMetrics(settings.metrics)
    client = await connect(wait_seconds=WAIT_FOR_TEMPORAL_SECONDS, runtime=metrics.runtime)
    authority = settings.authority
    clock = WorkerClock(machine=machine)
    host = CatalogHost(catalog, authority, settings.content, settings.scope, clock.now)
    watchdog = _watchdog(AGENT_GRACE + LEAVING)
    async with AsyncExitStack() as stack:
        stack.callback(watchdog.cancel)
        stack.callback(catalog.close)
        stack.push_async_callback(authority.aclose)
        await stack.enter_async_context(metrics.served())
        keeper = await stack.enter_async_context(LeaseKeeper(host, runner.discovery(), lease=LEASE))
        for worker in agent_workers(client, runner, host, clock, runs=settings.agent_runs):
            await stack.enter_async_context(worker)
        stack.callback(watchdog.start)
        await until_told([keeper.renewals])


def open_catalog(settings: Settings) -> Catalog:
    """The catalog, if it has this release's form; else `Misconfigured`."""
    catalog = Catalog.open(settings.catalog_url)
    migrate.require_current(catalog)
    return catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class _Life:
    """The signs of life of one worker, by the catalog's clock, and with them what its process found."""

    catalog: Catalog
    worker: Worker
    role: str
    scope: Scope
    watch: WorkerClock
    findings: Findings

    async def begin(self) -> None:
        """The first beat, as soon as the worker polls."""
        while not self.worker.is_running:  # noqa: ASYNC110 - the SDK has a flag here, and no event
            await asyncio.sleep(0.05)
        await self._beat()

    async def go_on(self) -> None:
        """Tell the catalog that this worker polls. A beat that fails is logged and tried again: the worker outlives it."""
        while True:
            await asyncio.sleep(HEARTBEAT_EVERY.total_seconds())
            if self.worker.is_running:
                try:
                    await self._beat()
                except Misconfigured:
                    raise  # such as a catalog whose file was removed: to go on would only look alive
                except Exception as error:  # noqa: BLE001 - a beat that fails is no reason to stop working
                    _logger.warning("heartbeat_failed", role=self.role, error=repr(error))

    async def _beat(self) -> None:
        now = await self.catalog.write(_say_alive, self.role)
        self.watch.observe(now)
        self.watch.now()  # which warns where this machine's clock is wrong
        await self.findings.store(self.catalog, self.scope, now=now)


def _say_alive(connection: Connection, role: str) -> datetime:
    """Beat at the catalog's time, and return it."""
    now = catalog_time(connection)
    presence.beat(connection, instance=_instance(role), role=role, tzdata=tzdata_version(), now=now)
    return now


async def _stop_beating(beats: asyncio.Task[None], catalog: Catalog, role: str) -> None:
    beats.cancel()
    await asyncio.gather(beats, return_exceptions=True)  # what it raised has ended the process already
    try:
        await catalog.write(presence.leave, instance=_instance(role))
    except HorariumError as error:
        _logger.warning("leaving_not_recorded", role=role, error=str(error))


async def until_told(watched: Sequence[asyncio.Task[None]] = ()) -> None:
    """Say that this process is ready, then wait for SIGTERM or SIGINT.

    `watched` are tasks that last as long as the process; if one ends first, so does the process, and whoever keeps it
    alive starts it again. Raises what the task raised, or `Unavailable`.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    # Whoever keeps stdout and stderr in one file finds only JSON lines there.
    line = READY if sys.stdout.isatty() else json.dumps({"event": READY, "timestamp": datetime.now(UTC).isoformat()})
    print(line, flush=True)  # noqa: T201 - for the process or the person that started this one
    told = asyncio.ensure_future(stop.wait())
    try:
        done, _ = await asyncio.wait([told, *watched], return_when=asyncio.FIRST_COMPLETED)
    finally:
        told.cancel()
    for task in done - {told}:
        if not task.cancelled():
            task.result()
        raise Unavailable("part_ended", "A part of this process ended by itself.", next_step="Start it again.")


def _watchdog(limit: timedelta) -> threading.Timer:
    """Sees to it that leaving ends: the SDK waits without limit for work that will not stop, such as a blocked agent."""

    def give_up() -> None:
        _logger.error("leaving_took_too_long", limit_seconds=limit.total_seconds())
        os._exit(1)

    timer = threading.Timer(limit.total_seconds(), give_up)
    timer.daemon = True
    return timer


def _instance(role: str) -> str:
    return f"{role}@{socket.gethostname()}:{os.getpid()}"
