"""What every test may use: one Temporal server and one PostgreSQL for the session, and how hypothesis searches."""

import asyncio
import gc
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from starter.temporal_server import TemporalServer
from tests.log_keeping import logs_put_back
from tests.postgres.databases import KINDS, Database
from tests.postgres.server import PostgresServer

# The same examples every time, however slow the machine: a red build must mean a fault that was just made.
settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
# `pytest --hypothesis-profile=search` looks for new ones, and for longer.
settings.register_profile("search", deadline=None, max_examples=2_000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci")


ENDED_ANYWAY = "ignore:Cannot find activity to cancel for token:UserWarning"
"""What Temporal's SDK says of a local activity that ended just as its time was up. On a busy machine one does now and then,
nothing is lost by it, and as an error it would end the worker of the test."""


def pytest_configure(config: pytest.Config) -> None:
    """Let signals mean what they mean in a terminal, to us and to the programs that tests start.

    Whoever runs the tests in the background of a shell, or under `nohup`, hands down that SIGINT or SIGHUP is ignored.
    """
    config.addinivalue_line("filterwarnings", ENDED_ANYWAY)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that need a server, which wait for minutes: else one of them is left for the end, alone."""
    waiting = {item.path for item in items if item.get_closest_marker("server") is not None}
    items.sort(key=lambda item: item.path not in waiting)


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """Each test finds the logs as the one before it did, whatever that did to them."""
    with logs_put_back():
        yield


@pytest.fixture(scope="module", autouse=True)
def logs_of_a_file_as_they_were() -> Iterator[None]:
    """So does each file: what is set up once for all its tests may do to the logs what a test may."""
    with logs_put_back():
        yield


@pytest.fixture(scope="session")
def temporal_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalServer]:
    """A real development server on a free port and a folder of its own, without a user interface.

    A test finds it by `.address` and `.namespace`. It is shared, so each test names workflows and task queues of its
    own, and a test that kills or restarts a server brings one with it.
    """
    server = TemporalServer(tmp_path_factory.mktemp("temporal"), port=0, headless=True)
    asyncio.run(server.start())
    yield server
    asyncio.run(server.stop())


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server for the session. A test that stops or kills a server brings one with it."""
    server = PostgresServer(max_connections=300)
    server.start()
    yield server
    server.remove()


@pytest.fixture(scope="module", params=KINDS)
def database(request: pytest.FixtureRequest) -> Database:
    """Where catalogs lie: whatever uses this runs on SQLite and on PostgreSQL."""
    return Database(None if request.param == "sqlite" else request.getfixturevalue("postgres"))


def pytest_unconfigure() -> None:
    """Leave as worker/exit.py does, for the same reason: the exit status of the tests must not lie."""
    gc.collect()
