"""A whole installation of real processes on a folder and a port of its own, and what a person would do with it."""

import asyncio
import json
import os
import signal
import sys
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from temporalio.client import Client

from horarium.catalog import Catalog, ledger
from horarium.catalog.presence import observations
from horarium.catalog.schedules import Activation, list_activations, require_schedule, require_version
from horarium.control.activation import Changed, Reviewed, enable, pause
from horarium.control.audit import audit, document
from horarium.control.publication import publish
from horarium.errors import Misconfigured, Unavailable
from horarium.schedule.identity import ActivationKey, ScheduleKey, schedule_key
from horarium.schedule.ledger import Disposition
from starter.child import Child, Program
from starter.setup import prepare_data, prepare_temporal
from starter.temporal_server import TemporalServer
from tests.end_to_end.crashing import marker
from worker.plugin import horarium_plugin
from worker.settings import Settings, load

REPOSITORY = Path(__file__).parents[2]
AGENTS = "tests.end_to_end.agents"
PARTS: Mapping[str, tuple[str, ...]] = {
    "schedules": ("-m", "worker", "schedules"),
    "runs": ("-m", "worker", "runs"),
    "workers": ("-m", "worker"),
    "controller": ("-m", "starter", "controller"),
    "impatient": ("-m", "tests.end_to_end.impatient"),
    "agents": ("-m", "worker", "agents", AGENTS),
    "patient": ("-m", "worker", "agents", "tests.end_to_end.patient_agents"),
    "ingestion": ("-m", "worker", "agents", "examples.ingestion"),
}
USUAL = ("schedules", "runs", "controller", "agents")
FEWEST = ("workers", "controller", "agents")
"""The same with both workers in one process: where much is started and stopped, that is a quarter of the time less."""
BEGUN = {
    Disposition.STARTED,
    Disposition.SUCCEEDED,
    Disposition.FAILED,
    Disposition.TIMED_OUT,
    Disposition.CANCELLED,
    Disposition.TERMINATED,
}
"""What the ledger may say of a run that an agent has begun."""

Row = tuple[ledger.Entry, ledger.Run | None]


@dataclass
class Installation:
    """What a test holds in its hands. `deaths` are the ends that nobody asked for, as (part, exit status)."""

    folder: Path
    server: TemporalServer
    settings: Settings
    catalog: Catalog
    client: Client
    children: dict[str, Child] = field(default_factory=dict)
    deaths: list[tuple[str, int | None]] = field(default_factory=list)
    keepers: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def program(self, part: str, name: str, *, crashing: bool) -> Program:
        """A part of the installation, by its real command or by the one that can be told to crash."""
        arguments = ("-m", "tests.end_to_end.crashing", part) if crashing else PARTS[part]
        return Program(
            name=name,
            argv=(sys.executable, *arguments),
            log=self.folder / "logs" / f"{name}.log",
            environment={
                **self.settings.environment(),
                "TEMPORAL_ADDRESS": self.server.address,
                "HORARIUM_TEST_BEGUN": str(self.folder / "begun.jsonl"),
                "HORARIUM_TEST_CRASHES": str(self.folder / "crashes"),
            },
            folder=REPOSITORY,
            ready_within=timedelta(seconds=60),
            grace=timedelta(seconds=30),
        )

    async def start(self, part: str, *, name: str | None = None, crashing: bool = False) -> Child:
        """Start a part, and start it again whenever it is killed, until `stop`."""
        name = name or part
        child = self.children.get(name) or Child(self.program(part, name, crashing=crashing))
        self.children[name] = child
        await child.start()
        self.keepers[name] = asyncio.create_task(self._keep(name, child))
        return child

    async def stop(self, name: str) -> int | None:
        """Stop a part in good order; its exit status."""
        await self._let_go(name)
        return await self.children[name].stop()

    async def kill(self, name: str) -> None:
        """Kill a part, and leave it dead."""
        await self._let_go(name)
        self.children[name].kill()

    async def _keep(self, name: str, child: Child) -> None:
        while True:
            self.deaths.append((name, await child.ended()))
            while not child.running:
                with suppress(Misconfigured):  # it was killed again before it was ready
                    await child.start()

    async def _let_go(self, name: str) -> None:
        keeper = self.keepers.pop(name, None)
        if keeper is not None:
            keeper.cancel()
            with suppress(asyncio.CancelledError):
                await keeper

    def arm(self, point: str, key: ScheduleKey) -> None:
        """Let whoever next comes to this point with this schedule die there."""
        marker(self.folder / "crashes", point, key.schedule_id).touch()

    def is_armed(self, point: str, key: ScheduleKey) -> bool:
        return marker(self.folder / "crashes", point, key.schedule_id).exists()

    async def published(
        self,
        *,
        every: int,
        offset: int = 0,
        seconds: float | Sequence[float] = 0.05,
        fails: bool = False,
        agent: str = "scripted@1",
        overlap: str = "skip",
        window: int = 60,
        pause_on_failure: bool = False,
        slots: int | None = None,
    ) -> ScheduleKey:
        """Publish a schedule of an interval, whose agent takes some seconds: each run its own, where they are several."""
        schedule_id = str(uuid.uuid4())
        key = schedule_key(self.settings.scope, schedule_id)
        script = {"seconds": seconds, "fails": fails}
        (self.settings.content.inputs / f"{schedule_id}.json").write_text(json.dumps(script))
        configuration = {
            "name": f"every {every} s",
            "calendar": {
                "timezone": "Europe/Zurich",
                "calendars": [],
                "intervals": [{"every_seconds": every, "offset_seconds": offset}],
                "start_at": "2026-01-01T00:00:00Z",
                "end_at": "2199-12-31T23:59:59Z",
            },
            "policy": {
                "overlap": overlap,
                "catchup_window_seconds": window,
                "pause_on_failure": pause_on_failure,
                **({} if slots is None else {"max_concurrent_runs": slots}),
            },
            "run": {
                "agent_version": agent,
                "input": schedule_id,
                "output_target": "reports",
                "grants": [],
                "budget_id": None,
                "usage_class": "test_simulation",
            },
        }
        await self.catalog.write(publish, key, configuration, expected_revision=0, by="tester", now=now())
        return key

    async def enabled(self, key: ScheduleKey) -> Changed:
        """Enable a schedule, as soon as the workers are there."""
        content = self.settings.content
        async with asyncio.timeout(60):
            while True:
                with suppress(Unavailable):
                    return await self.catalog.write(enable, key, Reviewed(), content, by="tester", now=now())
                await asyncio.sleep(0.2)

    async def paused(self, key: ScheduleKey) -> Changed:
        return await self.catalog.write(pause, key, Reviewed(), by="tester", now=now())

    def rows(self, key: ScheduleKey) -> Sequence[Row]:
        """The ledger of a schedule."""
        with self.catalog.reading() as connection:
            return ledger.list_entries(connection, require_schedule(connection, key))

    def told(self, key: ScheduleKey) -> list[str]:
        """The ledger in short, in the order of time: `succeeded`, `failed agent_lost`, `3 missed outside_window`, …"""
        return [
            " ".join(
                [*([str(entry.count)] if entry.count > 1 else []), entry.disposition, *filter(None, [entry.reason])]
            )
            for entry, _ in self.rows(key)
        ]

    def activations(self, key: ScheduleKey) -> Sequence[Activation]:
        with self.catalog.reading() as connection:
            return list_activations(connection, require_schedule(connection, key))

    def runtime(self, key: ScheduleKey) -> tuple[str | None, str | None]:
        """What the controller observed last: the state and its reason."""
        with self.catalog.reading() as connection:
            schedule = require_schedule(connection, key)
            seen = observations(connection, [schedule]).get(schedule.row)
        return (None, None) if seen is None else (seen.state, seen.reason)

    def begun(self, key: ScheduleKey) -> list[dict[str, Any]]:
        """What the agents say that they have begun, in the order in which they did."""
        log = self.folder / "begun.jsonl"
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [line for line in lines if line["schedule"] == key.schedule_id]

    async def until_closed(self, key: ScheduleKey, count: int, *, within: float = 120) -> None:
        """Wait until so many due instants of a schedule have their answer."""
        await until(
            lambda: sum(entry.count for entry, _ in self.rows(key) if entry.closed_at) >= count,
            lambda: f"{count} answers; the ledger says {self.told(key)}",
            within=within,
        )

    async def proven(self, *keys: ScheduleKey, repeated: bool = False) -> None:
        """End the schedules, let their runs end, and hold ledger, calendar and the agents' own word against each other.

        `repeated` is for agents that may be begun again.
        """
        for key in keys:
            if self.activations(key)[-1].is_live:
                await self.paused(key)
        for key in keys:
            await until(
                lambda key=key: all(entry.closed_at for entry, _ in self.rows(key)),
                lambda key=key: f"an end of every run; the ledger says {self.told(key)}",
                within=120,
            )
            result = await self.catalog.read(audit, key, now=now(), grace=timedelta(0))
            assert result.clean, document(result)
            assert result.not_entered == 0, document(result)
            assert sum(result.dispositions.values()) == result.due == self._due(key), document(result)
            self._agents_agree(key, repeated=repeated)

    async def audited(self) -> None:
        """Let the command `horarium audit` find everything in order, as a person would ask it."""
        command = (sys.executable, "-m", "starter", "audit", "--data", str(self.folder), "-o", "json")
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=REPOSITORY,
            env={**os.environ, **self.settings.environment()},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        said, errors = await process.communicate()
        assert process.returncode == 0, (said.decode(), errors.decode())
        assert json.loads(said)["clean"] is True

    def _due(self, key: ScheduleKey) -> int:
        """How many instants of the interval lie in the times of activation: the audit's count, found in another way."""
        with self.catalog.reading() as connection:
            schedule = require_schedule(connection, key)
            interval = require_version(connection, schedule, 1).document["calendar"]["intervals"][0]
        every, offset = interval["every_seconds"], interval["offset_seconds"]

        def passed(instant: datetime) -> int:
            return int((instant.timestamp() - offset) // every)

        spans = [(each.activated_at, each.ended_at) for each in self.activations(key) if each.enabled]
        return sum(passed(ended) - passed(activated) for activated, ended in spans if ended is not None)

    def _agents_agree(self, key: ScheduleKey, *, repeated: bool) -> None:
        begun = self.begun(key)
        times = Counter(line["nominal"] for line in begun)
        assert repeated or all(count == 1 for count in times.values()), times
        entries = {entry.first_at.isoformat(): (entry, run) for entry, run in self.rows(key) if run is not None}
        for line in begun:
            entry, run = entries[line["nominal"]]
            assert run is not None
            assert run.run_id == line["run_id"]
            assert entry.disposition in BEGUN, (entry, line)
            assert run.begun_at is not None, (entry, line)
        succeeded = {at for at, (entry, _) in entries.items() if entry.disposition is Disposition.SUCCEEDED}
        assert succeeded <= set(times), "the ledger knows of successes that no agent had"

    async def schedule_events(self, key: ActivationKey) -> int:
        """How many events the history of a schedule's workflow has, with those that it was continued from."""
        history = await self.client.get_workflow_handle(key.workflow_id).fetch_history()
        return len(history.events)


@asynccontextmanager
async def installation(
    folder: Path,
    *,
    parts: Sequence[str] = USUAL,
    crashing: bool = False,
    catalog_url: str | None = None,
    dynamic_config: Mapping[str, Any] | None = None,
) -> AsyncIterator[Installation]:
    """Set everything up on an empty folder, and take it down again, in good order.

    `catalog_url` is for a catalog elsewhere, `dynamic_config` for the Temporal server.
    """
    server = TemporalServer(folder, port=0, headless=True, dynamic_config=dynamic_config)
    settings = load({} if catalog_url is None else {"HORARIUM_CATALOG": catalog_url}, data=folder)
    prepare_data(settings)
    (settings.content.outputs / "reports").mkdir()
    (folder / "crashes").mkdir()
    await server.start()
    catalog = Catalog.open(settings.catalog_url)
    it: Installation | None = None
    try:
        client = await Client.connect(server.address, plugins=[horarium_plugin()])
        await prepare_temporal(client)
        it = Installation(folder=folder, server=server, settings=settings, catalog=catalog, client=client)
        await asyncio.gather(*(it.start(part, crashing=crashing) for part in parts))
        yield it
        await it.audited()
        for name in reversed(list(it.keepers)):
            assert await it.stop(name) == 0, it.children[name].last_words()
    finally:
        if it is not None:
            for name, child in it.children.items():
                await it._let_go(name)
                child.kill()
        catalog.close()
        await server.stop()


async def until(
    condition: Callable[[], bool | Awaitable[bool]], what: str | Callable[[], str], *, within: float = 120
) -> None:
    """Wait until a condition holds; otherwise fail with a sentence that says for what it was waited in vain."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while True:
        holds = condition()
        if await holds if isinstance(holds, Awaitable) else holds:
            return
        if loop.time() > deadline:
            raise AssertionError(f"waited {within:g} s in vain for {what if isinstance(what, str) else what()}")
        await asyncio.sleep(0.1)


def now() -> datetime:
    return datetime.now(UTC)


KILLED = -signal.SIGKILL
