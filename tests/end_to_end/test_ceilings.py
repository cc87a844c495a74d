"""A ceiling that an operator lowers and raises, on a real server: the run worker is started again, and nothing else."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from temporalio.client import Client

from activities.clock import WorkerClock
from activities.messages import RUNS_QUEUE
from activities.pace import Pace
from horarium.authority.local import LocalAuthority
from horarium.schedule.identity import ActivationKey, ScheduleKey
from horarium.schedule.ledger import Disposition, Reason
from starter.setup import prepare_temporal
from starter.temporal_server import TemporalServer
from tests.end_to_end.strict import now
from tests.workflows.documents import every
from tests.workflows.house import House, house
from worker.composition import run_worker
from worker.plugin import horarium_plugin
from worker.settings import load

pytestmark = pytest.mark.server

EVERY_TWO_SECONDS = 30 * 86_400 // 2
RUNS = (Disposition.SUCCEEDED, None)
OVER = (Disposition.REFUSED, Reason.CEILING_EXCEEDED)


@dataclass(kw_only=True)
class Installation:
    """The house, and one run worker after another, each as its environment says."""

    house: House
    address: str
    folder: Path

    @contextlib.asynccontextmanager
    async def run_worker(self, **environ: str) -> AsyncIterator[None]:
        settings = load(environ, data=self.folder)
        authority = LocalAuthority(self.house.content)
        # A process has one worker for a task queue, and these are several processes.
        client = await Client.connect(self.address, plugins=[horarium_plugin()])
        async with run_worker(client, self.house.catalog, settings, authority=authority):
            yield

    async def enabled(self) -> ActivationKey:
        key = await self.house.published(every(2))
        return (await self.house.enabled(key)).key

    async def next(self, key: ScheduleKey) -> tuple[Disposition, Reason | None]:
        """How the next instant ends of those that are to come."""
        since = now()

        def ended() -> list[tuple[Disposition, Reason | None]]:
            return [
                (each.disposition, each.reason)
                for each in self.house.entries(key)
                if each.first_at > since and each.closed_at is not None
            ]

        await self.house.until(ended, within=60)
        return ended()[0]


@contextlib.asynccontextmanager
async def installation(folder: Path) -> AsyncIterator[Installation]:
    server = TemporalServer(folder / "temporal", port=0, headless=True)
    await server.start()
    try:
        client = await Client.connect(server.address, plugins=[horarium_plugin()])
        await prepare_temporal(client)
        pace = Pace(lead=timedelta(seconds=1), spread=timedelta(seconds=1))

        async def server_time() -> datetime:
            return now()

        async with house(
            client, folder, server_time=server_time, clock=WorkerClock(), pace=pace, without=(RUNS_QUEUE,)
        ) as inside:
            yield Installation(house=inside, address=server.address, folder=folder)
    finally:
        await server.stop()


async def lowered_and_raised(folder: Path) -> None:
    both, one = str(2 * EVERY_TWO_SECONDS), str(2 * EVERY_TWO_SECONDS - 1)
    async with installation(folder) as it:
        async with it.run_worker():
            first, second = await it.enabled(), await it.enabled()
            assert await it.next(first.schedule) == RUNS
            assert await it.next(second.schedule) == RUNS
        async with it.run_worker(SCHEDULER_MAX_TOTAL_RUNS_PER_MONTH=one):
            # What was activated last is over it.
            assert await it.next(second.schedule) == OVER
            assert await it.next(first.schedule) == RUNS
            assert it.house.activation(second).is_live
        async with it.run_worker(SCHEDULER_MAX_TOTAL_RUNS_PER_MONTH=both):
            assert await it.next(second.schedule) == RUNS
            for each in (first, second):
                await it.house.paused(each.schedule)
            await it.house.until(
                lambda: all(entry.closed_at for each in (first, second) for entry in it.house.entries(each.schedule))
            )


def test_a_lowered_ceiling_stops_what_was_enabled_under_the_old_one_and_a_raised_one_lets_it_go_on(tmp_path):
    asyncio.run(lowered_and_raised(tmp_path))
