"""How often those that hold a task say so to the server: often enough to be missed soon, and not for one beat that is late."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest
from temporalio.worker import Worker

from activities.admission import HEARTBEAT_EVERY
from horarium.agents.host import AgentHost
from horarium.agents.runner import AgentRunner
from horarium.catalog import Catalog
from starter.temporal_server import TemporalServer
from tests.agents.test_agent import Triage
from worker.composition import agent_workers, run_worker
from worker.connection import connect
from worker.settings import load
from workflows.options import ADMISSION_HEARTBEAT, AGENT_HEARTBEAT


@pytest.fixture(scope="module")
def workers(temporal_server: TemporalServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Worker]:
    """The workers whose activities beat, as they are made for an installation."""
    folder: Path = tmp_path_factory.mktemp("data")

    async def made() -> dict[str, Worker]:
        client = await connect(address=temporal_server.address, wait_seconds=10)
        catalog = Catalog.open(f"sqlite:///{folder / 'catalog.db'}")
        try:
            (agents,) = agent_workers(client, AgentRunner([Triage()]), cast(AgentHost, None))
            return {"agents": agents, "runs": run_worker(client, catalog, load({}, data=folder))}
        finally:
            catalog.close()

    return asyncio.run(made())


@pytest.mark.server
def test_two_beats_of_an_agent_may_be_late_before_it_counts_as_lost(workers: dict[str, Worker]) -> None:
    """The SDK alone would send one every twelve seconds, of fifteen."""
    assert 3 * _held_back(workers["agents"]) <= AGENT_HEARTBEAT


@pytest.mark.server
def test_a_beat_of_a_decision_goes_out_when_it_is_made_and_may_be_late_by_a_second(workers: dict[str, Worker]) -> None:
    assert _held_back(workers["runs"]) < HEARTBEAT_EVERY
    room = ADMISSION_HEARTBEAT - HEARTBEAT_EVERY
    assert room >= timedelta(seconds=1)


def _held_back(worker: Worker) -> timedelta:
    """For how long the SDK keeps a beat at the most, where the timeout is longer than that."""
    return worker.config()["max_heartbeat_throttle_interval"]
