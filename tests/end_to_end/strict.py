"""Strict environments on a real Temporal server: each of its own organization, with one schedule, all served by one process."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, select
from temporalio.client import Client

from activities.clock import WorkerClock
from activities.pace import Pace
from horarium.agents import AgentReport, AgentRunner, CronStartEvent, RunContext
from horarium.authority.content import ContentFolder
from horarium.catalog import ledger, presence
from horarium.catalog.audit_events import list_events
from horarium.catalog.schedules import Activation, require_schedule, require_version
from horarium.catalog.tables import entries, runs, schedules
from horarium.control import manual
from horarium.control.activation import Changed, Reviewed, enable
from horarium.schedule.identity import ActivationKey, RunKey, Scope, schedule_key
from starter.setup import prepare_temporal
from starter.temporal_server import TemporalServer
from tests.control.operators import Operator
from tests.workflows.documents import every
from tests.workflows.house import LONG_LEASE, House, Worked, house, workers_beat
from tests.workflows.invariant import assert_every_instant_has_one_answer
from worker.plugin import horarium_plugin

AGENT = "worked@1"


@dataclass(kw_only=True)
class Strict:
    """The house, and the environments in which something is out of order."""

    house: House
    silent: set[Scope] = field(default_factory=set)
    """Their contents fail, as a disk does that is gone."""
    slow: set[Scope] = field(default_factory=set)
    """Their agents go on with a run that begins meanwhile until they are in here no more."""
    held: set[Scope] = field(default_factory=set)
    """Their runs are not begun before they are in here no more."""
    starts: list[tuple[Scope, datetime]] = field(default_factory=list)
    """When the agent was given each run, by its own clock."""

    def place(self, name: str, **environment: Any) -> "Place":
        """A new environment `name/strict` with an operator, an agent that is registered, and folders for its contents."""
        scope = Scope(org_id=name, environment_id="strict")
        operator = Operator(self.house.catalog, scope)
        operator.open(**environment)
        content = self.house.content.of(scope)
        content.inputs.mkdir(parents=True)
        (content.inputs / "letters").write_text("{}")
        (content.outputs / "reports").mkdir(parents=True)
        place = Place(strict=self, operator=operator)
        place.register()
        return place


@dataclass(kw_only=True)
class Place:
    """One strict environment with one schedule."""

    strict: Strict
    operator: Operator
    schedule_id: str = field(default_factory=lambda: str(uuid4()))

    @property
    def house(self) -> House:
        return self.strict.house

    @property
    def key(self):
        return schedule_key(self.operator.scope, self.schedule_id)

    def register(self, *, lease: timedelta = LONG_LEASE) -> None:
        """The runner says that its agent is there, for so long."""
        (discovery,) = AgentRunner([self.house.agent], task_queues="house").discovery()
        with self.house.catalog.writing() as connection:
            presence.register_agent(
                connection,
                self.operator.scope,
                AGENT,
                discovery.model_dump(mode="json"),
                lease_until=now() + lease,
                now=now(),
            )

    def release(self) -> None:
        """The runner leaves in good order."""
        with self.house.catalog.writing() as connection:
            presence.release_agent(connection, self.operator.scope, AGENT, now=now())

    def declare_usual(self) -> None:
        """All that a run of the usual request needs, but for money."""
        self.operator.declare("person", "ada")
        self.operator.declare("agent", AGENT, max_cost=10, max_run_seconds=60)
        self.operator.declare("input", "letters", readers=["ada"])
        self.operator.declare("output", "reports")
        self.operator.declare("grant", "mail.read", agents=[AGENT])

    @property
    def digest(self) -> str:
        """The digest of the one version."""
        with self.house.catalog.reading() as connection:
            return require_version(connection, require_schedule(connection, self.key), 1).digest

    async def publish(self, seconds: int, *, run: dict[str, Any], **policy: Any) -> None:
        """Publish a schedule of an interval."""
        document = every(seconds, **policy)
        document["run"] |= {"grants": ["mail.read"], **run}
        await self.house.published(document, self.key)

    async def enable(self) -> Changed:
        content = self.house.content.of(self.operator.scope)
        await self.house.catalog.write(workers_beat, at=now())
        changed: Changed = await self.house.catalog.write(enable, self.key, Reviewed(), content, by="ada", now=now())
        assert await self.house.temporal.start_schedule(changed.key)
        return changed

    async def pause(self) -> None:
        await self.house.paused(self.key)

    async def trigger(self) -> RunKey:
        """A person asks for a run now."""
        await self.house.catalog.write(workers_beat, at=now())
        triggered: manual.Triggered = await self.house.catalog.write(
            manual.trigger,
            self.key,
            Reviewed(),
            receipt_id=str(uuid4()),
            allow_overlap=True,
            by="ada",
            now=now(),
        )
        await self.house.starter.start(triggered.run)
        return triggered.run

    def rows(self) -> list[tuple[ledger.Entry, ledger.Run | None]]:
        """The ledger by nominal time."""
        with self.house.catalog.reading() as connection:
            return list(ledger.list_entries(connection, require_schedule(connection, self.key)))

    def activation(self, generation: int) -> Activation:
        return self.house.activation(ActivationKey(schedule=self.key, generation=generation))

    def told(self) -> list[str]:
        return [f"{entry.first_at:%S} {entry.disposition} {entry.reason or ''}".strip() for entry, _ in self.rows()]

    def events(self) -> list[str]:
        """The kinds of what is in the schedule's record."""
        with self.house.catalog.reading() as connection:
            events = list_events(connection, require_schedule(connection, self.key), after=0, limit=100)
        return [event["kind"] for event in events]

    def decided(self, *, since: datetime) -> list[tuple[ledger.Entry, ledger.Run]]:
        """The runs that were decided after a time, in the order of decision."""
        found = [
            (entry, run) for entry, run in self.rows() if run is not None and run.decided_at and run.decided_at > since
        ]
        return sorted(found, key=lambda row: row[1].decided_at or since)

    async def until_decided(
        self, *, since: datetime, due_since: datetime | None = None, within: float = 120
    ) -> tuple[ledger.Entry, ledger.Run]:
        """The first run that was decided after a time, once it is over; and, where that is asked, fell due after a time."""

        def found() -> list[tuple[ledger.Entry, ledger.Run]]:
            decided = self.decided(since=since)
            return [each for each in decided if due_since is None or each[0].first_at > due_since]

        await self.until(lambda: any(entry.closed_at for entry, _ in found()[:1]), within=within)
        return found()[0]

    async def until(self, holds: Callable[[], object], *, within: float = 120) -> None:
        try:
            async with asyncio.timeout(within):
                while not holds():  # noqa: ASYNC110 - what is waited for is in a database
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise AssertionError(f"waited in vain; the ledger says {self.told()}") from None

    async def proven(self) -> None:
        """End the schedule, let its runs end, and hold the ledger to its promise."""
        with self.house.catalog.reading() as connection:
            generation = require_schedule(connection, self.key).generation
        if self.activation(generation).is_live:
            await self.pause()
        await self.until(lambda: all(entry.closed_at for entry, _ in self.rows()))
        await self.house.catalog.write(workers_beat, at=now())
        assert_every_instant_has_one_answer(self.house.catalog, self.operator.scope, begun=[], now=now())


@contextlib.asynccontextmanager
async def strict_house(folder: Path, monkeypatch, *, lead: timedelta = timedelta(seconds=1)) -> AsyncIterator[Strict]:
    """Everything in this process but the server, which is a real one. Runs are staged so early, or a second earlier."""
    server = TemporalServer(folder / "temporal", port=0, headless=True)
    await server.start()
    try:
        client = await Client.connect(server.address, plugins=[horarium_plugin()])
        await prepare_temporal(client)
        # A schedule that is blocked by a run which is held is to look by itself soon.
        pace = Pace(lead=lead, spread=timedelta(seconds=1), look_after=timedelta(seconds=2))
        monkeypatch.setattr(Worked, "max_run_seconds", 60)  # a run that is held must not pass its time limit
        async with house(client, folder, server_time=_time, clock=WorkerClock(), pace=pace) as inside:
            strict = Strict(house=inside)
            _let_be_silent(strict, monkeypatch)
            _let_be_slow(strict, monkeypatch)
            yield strict
    finally:
        await server.stop()


def _let_be_silent(strict: Strict, monkeypatch) -> None:
    """Contents of an environment that is named in `silent` fail as a disk does that is gone."""
    usual = ContentFolder.has_input

    def has_input(content: ContentFolder, reference: str) -> bool:
        if content.scope in strict.silent:
            raise OSError("stale file handle")
        return usual(content, reference)

    monkeypatch.setattr(ContentFolder, "has_input", has_input)


def _let_be_slow(strict: Strict, monkeypatch) -> None:
    """What an agent is given with its run tells where it is; what is held is held before the claim."""
    host, agent = strict.house.host, strict.house.agent
    begin, work = host.begin, agent.work

    async def held(run_id: str, **how: Any) -> Any:
        scope = await strict.house.catalog.read(_scope_of, run_id)
        while scope in strict.held:  # noqa: ASYNC110 - the test lets go of it, in one of many ways
            await asyncio.sleep(0.05)
        return await begin(run_id, **how)

    async def slow(event: CronStartEvent, context: RunContext) -> AgentReport:
        named = event.run.schedule
        scope = Scope(org_id=named.org_id, environment_id=named.environment_id)
        strict.starts.append((scope, now()))
        while scope in strict.slow:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.05)
        return await work(event, context)

    monkeypatch.setattr(host, "begin", held)
    monkeypatch.setattr(agent, "work", slow)


def _scope_of(connection: Connection, run_id: str) -> Scope | None:
    for scope in connection.execute(
        select(schedules.c.org_id, schedules.c.environment_id)
        .join(entries, entries.c.schedule == schedules.c.id)
        .join(runs, runs.c.entry == entries.c.id)
        .where(runs.c.run_id == run_id)
    ):
        return Scope(org_id=scope.org_id, environment_id=scope.environment_id)
    return None


async def _time() -> datetime:
    return now()


def now() -> datetime:
    return datetime.now(UTC)
