"""A whole installation of real processes whose catalog is a PostgreSQL database, that is restarted under them."""

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from tests.end_to_end.installation import installation, until
from tests.postgres.server import PostgresServer

pytestmark = pytest.mark.server

AWAY_SECONDS = 5


@pytest.fixture
def durable() -> Iterator[PostgresServer]:
    """A server that keeps what it confirmed, as one in production does."""
    server = PostgresServer(durable=True)
    server.start()
    yield server
    server.remove()


def test_nothing_is_lost_or_doubled_when_the_database_is_shut_down_at_once_and_comes_back(durable, tmp_path):
    """In the middle of the installation's work: runs are staged, with their agent, and about to be settled."""
    asyncio.run(_restarted(durable, tmp_path))


async def _restarted(server: PostgresServer, folder) -> None:
    async with installation(folder, catalog_url=server.url(server.create_database())) as it:
        assert it.catalog.engine.dialect.name == "postgresql"
        keys = [
            await it.published(every=1, overlap="allow"),
            await it.published(every=1, seconds=2.5),
            await it.published(every=2, seconds=3, overlap="buffer_one"),
            await it.published(every=5, seconds=0.5, overlap="buffer_all"),
        ]
        for key in keys:
            await it.enabled(key)
        for key in keys:
            await it.until_closed(key, 2)
        for shut_down in (signal.SIGQUIT, signal.SIGKILL):
            os.kill(server.pid, shut_down)
            await until(lambda: not server.running, "the end of the server")
            before = [len(it.begun(key)) for key in keys]
            await asyncio.sleep(AWAY_SECONDS)
            server.start()
            for key, count in zip(keys, before, strict=True):
                await until(lambda key=key, count=count: len(it.begun(key)) > count + 1, "agents to begin again")
        assert it.deaths == []
        await it.proven(*keys)
        for key in keys:
            print(it.told(key))
