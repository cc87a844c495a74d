"""A whole installation as real processes in a temporary folder.

The Temporal development server runs on a file with the pragmas that `horarium dev` gives it. The schedule worker, the run
worker, the controller and the agent runners are processes of their own, started by their real commands.

There are two environments. In `OURS` the controller sees to it that schedules fire. In `PEERS` there are the same schedules
for whoever else fires them: nothing of ours looks at them before a run is started, and from there on all is the same. The
workers serve both, and each has an agent runner of its own, since a runner serves one.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar

from temporalio.client import Client, WorkflowExecutionDescription
from temporalio.service import RPCError, RPCStatusCode

from benchmarks import stamping_agent
from benchmarks.due_schedules import INPUT, OUTPUT_TARGET, answers, configuration, enable_all, open_entries, pause_all
from benchmarks.start_log import LostRuns, StartLog
from horarium.catalog import Catalog
from horarium.errors import Unavailable
from horarium.schedule.identity import ActivationKey, RunKey, Scope
from starter.child import Child, Program
from starter.setup import prepare_data, prepare_temporal
from starter.temporal_server import TemporalServer
from worker.connection import connect
from worker.settings import Settings, load

OURS: Final = Scope(org_id="bench", environment_id="ours")
PEERS: Final = Scope(org_id="bench", environment_id="peers")

AT_ONCE: Final = 20
"""Requests to Temporal at the same time."""
_IN_ONE_TRANSACTION = 50
_LOOK_EVERY = 0.2
_PATIENCE = 600
"""Seconds, for what takes a fraction of that."""
_ASLEEP_EVENTS = 5
"""Started; a task scheduled, begun and completed; and the timer that it sleeps on."""
_FOLDER = Path(__file__).parent.parent

A = TypeVar("A")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """What a benchmark holds in its hands."""

    folder: Path
    server: TemporalServer
    settings: Settings
    catalog: Catalog
    client: Client
    workers: Mapping[str, Child]
    others: Mapping[str, Child]
    log: StartLog = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "log", StartLog(_starts_in(self.folder)))

    async def start(self) -> None:
        """Start everything, at the same time, and wait until all of it is ready."""
        await asyncio.gather(*(child.start() for child in self._children))

    async def restart_workers(self) -> None:
        """Stop both runtime workers in good order, and start them again; they are ready when this returns."""
        await asyncio.gather(*(worker.stop() for worker in self.workers.values()))
        await asyncio.gather(*(worker.start() for worker in self.workers.values()))

    async def stop(self) -> None:
        """End everything that was started, in good order: agents before the workers that settle their runs."""
        for child in reversed(self._children):
            await child.stop()

    def kill(self) -> None:
        """End whatever still runs."""
        for child in self._children:
            child.kill()

    async def enabled(self, scope: Scope, due: Sequence[datetime]) -> list[ActivationKey]:
        """Publish and enable a schedule for each instant, in its order."""
        return await self.enabled_as(scope, [configuration(instant) for instant in due])

    async def enabled_as(self, scope: Scope, configurations: Sequence[Mapping[str, Any]]) -> list[ActivationKey]:
        """Publish and enable a schedule of each configuration, in their order."""
        content = self.settings.content.of(scope)
        keys: list[ActivationKey] = []
        for some in batches(configurations):
            async with asyncio.timeout(_PATIENCE):
                while True:
                    try:
                        keys += await self.catalog.write(enable_all, scope, some, content)
                        break
                    except Unavailable:  # a heartbeat of the workers can be late on a busy machine
                        await asyncio.sleep(_LOOK_EVERY)
        return keys

    async def paused(self, keys: Sequence[ActivationKey]) -> None:
        """Pause schedules."""
        for some in batches(keys):
            await self.catalog.write(pause_all, some)

    async def asleep(self, workflow_ids: Sequence[str]) -> None:
        """Wait until each of these workflows has started, and done what it does before it first sleeps."""
        await self._until_each(
            workflow_ids,
            lambda found: found is not None and found.history_length >= _ASLEEP_EVENTS,
            what="do not come to rest",
        )

    async def gone(self, workflow_ids: Sequence[str]) -> None:
        """Wait until none of these workflows runs."""
        await self._until_each(
            workflow_ids, lambda found: found is None or found.close_time is not None, what="do not end"
        )

    async def begun(self, runs: Sequence[RunKey], *, within: float) -> list[float]:
        """Wait so many seconds at the most until each of these runs has begun; how late each did, in seconds.

        Raises `LostRuns`.
        """

        async def all_begun() -> bool:
            return self.log.missing(runs) == 0

        try:
            await until(all_begun, lambda: "", within=within)
        except TimeoutError:
            told = dict(await self.catalog.read(answers, [run.activation for run in runs]))
            missing = self.log.missing(runs)
            raise LostRuns(f"{missing} of {len(runs)} runs have not begun. The ledger says {told}.") from None
        return self.log.lateness(runs)

    async def settled(self, scope: Scope) -> None:
        """Wait until every entry in the ledger of an environment has its answer."""

        async def all_settled() -> bool:
            return await self.catalog.read(open_entries, scope) == 0

        await until(all_settled, lambda: "there are runs that are not settled")

    @property
    def _children(self) -> Sequence[Child]:
        return (*self.workers.values(), *self.others.values())

    async def _until_each(
        self,
        workflow_ids: Sequence[str],
        is_so: Callable[[WorkflowExecutionDescription | None], bool],
        *,
        what: str,
    ) -> None:
        """Ask for each workflow until it is so once, of None where there is none."""
        left = list(workflow_ids)

        async def none_left() -> bool:
            found = await each_of(left, self._described)
            left[:] = [each for each, description in zip(left, found, strict=True) if not is_so(description)]
            return not left

        await until(none_left, lambda: f"{len(left)} of {len(workflow_ids)} workflows {what}, such as {left[0]!r}")

    async def _described(self, workflow_id: str) -> WorkflowExecutionDescription | None:
        try:
            return await self.client.get_workflow_handle(workflow_id).describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise


@asynccontextmanager
async def installation(
    *, dynamic_config: Mapping[str, Any] | None = None, beside: Sequence[str] = (), further: Sequence[Scope] = ()
) -> AsyncIterator[Installation]:
    """An installation that runs, in a folder that is removed afterwards.

    `dynamic_config` is for the Temporal server, `beside` names modules that are run as processes of the installation too.
    `further` are environments in addition to the two, each with a controller of its own.
    """
    scopes = (OURS, PEERS, *further)
    with TemporaryDirectory(prefix="horarium-bench-") as name:
        folder = Path(name)
        server = TemporalServer(folder, port=0, headless=True, dynamic_config=dynamic_config)
        settings = replace(load({}, data=folder), scope=OURS)
        for scope in scopes:
            _prepare(replace(settings, scope=scope))
        await server.start()
        catalog = Catalog.open(settings.catalog_url)
        it: Installation | None = None
        try:
            client = await connect(address=server.address, namespace=server.namespace, wait_seconds=10)
            await prepare_temporal(client)
            it = Installation(
                folder=folder,
                server=server,
                settings=settings,
                catalog=catalog,
                client=client,
                workers={role: _child(role, ("worker", role), settings, server) for role in ("schedules", "runs")},
                others={
                    **{module: _child(module, (module,), settings, server) for module in beside},
                    "controller": _child("controller", ("starter", "controller"), settings, server),
                    **{_controller_of(scope): _controller(scope, settings, server) for scope in further},
                    **{_agents_of(scope): _agents(scope, settings, server) for scope in scopes},
                },
            )
            await it.start()
            yield it
            await it.stop()
        finally:
            if it is not None:
                it.kill()
            catalog.close()
            await server.stop()


async def until(
    condition: Callable[[], Awaitable[bool]], what: Callable[[], str], *, within: float = _PATIENCE
) -> None:
    """Wait until a condition holds. After so many seconds, raise `TimeoutError` with what is wrong instead."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while not await condition():
        if loop.time() > deadline:
            raise TimeoutError(f"After {within:g} s: {what()}.")
        await asyncio.sleep(_LOOK_EVERY)


async def each_of(several: Iterable[A], act: Callable[[A], Awaitable[R]]) -> list[R]:
    """Do something to each, a few at the same time; the results in their order."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(each: A) -> R:
        async with room:
            return await act(each)

    return await asyncio.gather(*(one(each) for each in several))


def batches(several: Sequence[A]) -> list[Sequence[A]]:
    """As many as are changed in one transaction: others must not wait long for it."""
    return [several[start : start + _IN_ONE_TRANSACTION] for start in range(0, len(several), _IN_ONE_TRANSACTION)]


def _prepare(settings: Settings) -> None:
    prepare_data(settings)
    (settings.content.inputs / f"{INPUT}.json").write_text("{}")
    (settings.content.outputs / OUTPUT_TARGET).mkdir()


def _controller_of(scope: Scope) -> str:
    return f"controller-{scope.org_id}-{scope.environment_id}"


def _controller(scope: Scope, settings: Settings, server: TemporalServer) -> Child:
    return _child(_controller_of(scope), ("starter", "controller"), replace(settings, scope=scope), server)


def _agents_of(scope: Scope) -> str:
    return f"agents-{scope.org_id}-{scope.environment_id}"


def _agents(scope: Scope, settings: Settings, server: TemporalServer) -> Child:
    arguments = ("worker", "agents", stamping_agent.__name__)
    return _child(_agents_of(scope), arguments, replace(settings, scope=scope), server)


def _child(name: str, arguments: tuple[str, ...], settings: Settings, server: TemporalServer) -> Child:
    return Child(
        Program(
            name=name,
            argv=(sys.executable, "-m", *arguments),
            log=settings.data / "logs" / f"{name}.log",
            environment={
                **settings.environment(),
                "TEMPORAL_ADDRESS": server.address,
                "TEMPORAL_NAMESPACE": server.namespace,
                "TEMPORAL_CONFIG_FILE": os.devnull,
                stamping_agent.LOG: str(_starts_in(settings.data)),
            },
            forget="TEMPORAL_",
            folder=_FOLDER,
            ready_within=timedelta(seconds=90),
            grace=timedelta(seconds=30),
        )
    )


def _starts_in(folder: Path) -> Path:
    return folder / "starts.jsonl"
