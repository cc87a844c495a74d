"""Everything that an installation is made of, as separate processes on free ports, each started again whenever it ends."""

import asyncio
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from temporalio.client import Client

from horarium.catalog import Catalog, migrate
from horarium.control.declaring import apply
from horarium.control.principals import local_principal
from horarium.errors import Misconfigured
from starter.child import Child, Program
from starter.data_folder import make_writable
from starter.keys import make_key
from starter.ports import free_port
from starter.setup import prepare_temporal
from starter.temporal_server import TemporalServer
from tests.chaos.receiver import SECRET
from tests.chaos.schedules import Planned, declarations
from tests.chaos.words import WORDS
from tests.postgres.server import PostgresServer
from worker.plugin import horarium_plugin
from worker.settings import Settings, load

REPOSITORY = Path(__file__).parents[2]
POSTGRESQL = "postgresql"
TEMPORAL = "temporal"
APIS = ("api-1", "api-2")
PARTS: Mapping[str, tuple[str, ...]] = {
    "schedules-1": ("-m", "worker", "schedules"),
    "schedules-2": ("-m", "worker", "schedules"),
    "runs-1": ("-m", "worker", "runs"),
    "runs-2": ("-m", "worker", "runs"),
    "controller-1": ("-m", "starter", "controller"),
    "controller-2": ("-m", "starter", "controller"),
    "agents": ("-m", "worker", "agents", "tests.chaos.agents"),
}
_UNTIL_AGAIN_SECONDS = 3.0
"""How long something stays away at the most, once it has died."""


@dataclass
class Fleet:
    """The installation. `deaths` counts the ends of each process, by its name and how it ended."""

    folder: Path
    settings: Settings
    catalog: Catalog
    chance: random.Random
    children: dict[str, Child]
    postgres: PostgresServer | None
    ports: Mapping[str, int]
    deaths: Counter[str] = field(default_factory=Counter)
    stopped: dict[str, int] = field(default_factory=dict)
    """What is held by SIGSTOP now, by name, as process ids."""
    keepers: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """Every process that may be hit."""
        return [*self.children, *([] if self.postgres is None else [POSTGRESQL])]

    @property
    def words(self) -> Path:
        """The agents' log."""
        return self.folder / "words.jsonl"

    @property
    def environment(self) -> dict[str, str]:
        """What a command of this installation finds in its environment."""
        return {**os.environ, **self.settings.environment(), "TEMPORAL_ADDRESS": self._temporal.address}

    @property
    def apis(self) -> list[str]:
        """Where the API is."""
        return [f"http://127.0.0.1:{self.ports[name]}" for name in APIS]

    def pid(self, name: str) -> int | None:
        """The process that goes by a name now; None while it is away."""
        if name == POSTGRESQL:
            assert self.postgres is not None
            return self.postgres.pid if self.postgres.running else None
        child = self.children[name]
        return child.pid if child.running else None

    def hit(self, name: str, number: signal.Signals) -> bool:
        """Send a signal to one process; False where there is none."""
        pid = self.pid(name)
        if pid is None:
            return False
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        return True

    def hold(self, name: str) -> bool:
        """Stop a process where it stands; False where there is none, or it is held."""
        pid = self.pid(name)
        if pid is None or name in self.stopped:
            return False
        self.stopped[name] = pid
        return self.hit(name, signal.SIGSTOP)

    def let_go(self, name: str) -> None:
        """Let a process go on, if it has not died meanwhile."""
        pid = self.stopped.pop(name, None)
        if pid is not None and pid == self.pid(name):
            self.hit(name, signal.SIGCONT)

    async def start(self) -> None:
        """Start everything in order, and keep it going."""
        await self.children[TEMPORAL].start()
        client = await Client.connect(self._temporal.address, plugins=[horarium_plugin()])
        await prepare_temporal(client)
        for name, child in self.children.items():
            await child.start()
            self.keepers.append(asyncio.create_task(self._keep(name, child), name=f"keep {name}"))
        if self.postgres is not None:
            self.keepers.append(asyncio.create_task(self._keep_postgres(self.postgres), name="keep postgresql"))

    async def temporal_client(self) -> Client:
        """A client of the server as it is now."""
        return await Client.connect(self._temporal.address, plugins=[horarium_plugin()])

    async def all_up(self) -> None:
        """Let everything go on, and wait until everything is there."""
        for name in list(self.stopped):
            self.let_go(name)
        async with asyncio.timeout(180):
            while any(self.pid(name) is None for name in self.names):
                self._raise_what_a_keeper_raised()
                await asyncio.sleep(0.1)

    async def stop(self) -> None:
        """End everything at once."""
        for name in list(self.stopped):
            self.let_go(name)
        for keeper in self.keepers:
            keeper.cancel()
        await asyncio.gather(*self.keepers, return_exceptions=True)
        for child in reversed(self.children.values()):
            child.kill()
        if self.postgres is not None:
            self.postgres.kill()

    @property
    def _temporal(self) -> TemporalServer:
        found = self.children[TEMPORAL]
        assert isinstance(found, TemporalServer)
        return found

    def _raise_what_a_keeper_raised(self) -> None:
        for keeper in self.keepers:
            if keeper.done():
                keeper.result()

    async def _keep(self, name: str, child: Child) -> None:
        while True:
            status = await child.ended()
            self.stopped.pop(name, None)
            self.deaths[f"{name} {_how(status)}"] += 1
            while not child.running:
                await asyncio.sleep(self.chance.uniform(0.1, _UNTIL_AGAIN_SECONDS))
                with suppress(Misconfigured):  # it was killed again before it was ready, or what it needs is away
                    await child.start()

    async def _keep_postgres(self, server: PostgresServer) -> None:
        while True:
            while server.running:  # noqa: ASYNC110 - no event tells of another process
                await asyncio.sleep(0.05)
            self.stopped.pop(POSTGRESQL, None)
            self.deaths[f"{POSTGRESQL} SIGKILL"] += 1
            await asyncio.sleep(self.chance.uniform(0.1, _UNTIL_AGAIN_SECONDS))
            # From this thread, which is the one that its end is tied to, and so everything else waits for a moment.
            server.start()


def _how(status: int | None) -> str:
    return signal.Signals(-status).name if status is not None and status < 0 else f"exit {status}"


@asynccontextmanager
async def fleet(folder: Path, *, catalog: str, schedules: list[Planned], chance: random.Random) -> AsyncIterator[Fleet]:
    """An installation with these schedules, on an empty folder. PostgreSQL's own folder is left to whoever looks into it."""
    postgres = PostgresServer(max_connections=200) if catalog == POSTGRESQL else None
    ports = {name: free_port() for name in (*APIS, "receiver")}
    assert len(set(ports.values())) == len(ports)
    variables = {
        "HORARIUM_ORGANIZATION": "chaos",
        "HORARIUM_ENVIRONMENT": "fire",
        "HORARIUM_PUBLIC_URL": f"http://127.0.0.1:{ports[APIS[0]]}",
    }
    try:
        if postgres is not None:
            postgres.start()
            variables["HORARIUM_CATALOG"] = postgres.url(postgres.create_database())
        settings = load(variables, data=folder)
        _prepare(settings, schedules, receiver=f"http://127.0.0.1:{ports['receiver']}")
        opened = Catalog.open(settings.catalog_url)
        it = Fleet(
            folder=folder,
            settings=settings,
            catalog=opened,
            chance=chance,
            children=_children(folder, settings, ports),
            postgres=postgres,
            ports=ports,
        )
        try:
            await it.start()
            yield it
        finally:
            await it.stop()
            opened.close()
    finally:
        if postgres is not None:
            postgres.kill()


def _prepare(settings: Settings, schedules: list[Planned], *, receiver: str) -> None:
    make_writable(settings.data)
    make_key(settings.key_file)
    make_writable(settings.content.inputs)
    make_writable(settings.content.outputs / "reports")
    catalog = Catalog.open(settings.catalog_url)
    migrate.upgrade(catalog)
    operator = local_principal("local:chaos", settings.scope)
    document = declarations(settings.scope, schedules, receiver=receiver)
    with catalog.writing() as connection:
        apply(connection, operator, settings.scope, document, "declarations", now=datetime.now(UTC))
    catalog.close()


def _children(folder: Path, settings: Settings, ports: Mapping[str, int]) -> dict[str, Child]:
    temporal = TemporalServer(folder, port=0, headless=True)
    environment = {
        **settings.environment(),
        "HORARIUM_REQUESTS_PER_SECOND": "500",
        "TEMPORAL_ADDRESS": temporal.address,
        WORDS: str(folder / "words.jsonl"),
        SECRET: "shared-by-the-receiver-and-the-workers",
    }

    def child(name: str, *arguments: str) -> Child:
        return Child(
            Program(
                name=name,
                argv=(sys.executable, *arguments),
                log=folder / "logs" / f"{name}.log",
                environment=environment,
                folder=REPOSITORY,
                ready_within=timedelta(seconds=60),
                grace=timedelta(seconds=30),
            )
        )

    return {
        TEMPORAL: temporal,
        **{name: child(name, *arguments) for name, arguments in PARTS.items()},
        **{name: child(name, "-m", "starter", "api", "--port", str(ports[name])) for name in APIS},
        "receiver": child("receiver", "-m", "tests.chaos.receiver", str(ports["receiver"])),
    }
