"""How much a worker takes on: what the variables take, and that the workers are made so."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from horarium.agents.host import AgentHost
from horarium.agents.runner import AgentRunner
from horarium.catalog import Catalog
from horarium.errors import Misconfigured
from starter.temporal_server import TemporalServer
from tests.agents.test_agent import Triage
from worker.composition import agent_workers, schedule_worker
from worker.connection import connect
from worker.settings import (
    DEFAULT_AGENT_RUNS,
    DEFAULT_CACHED_WORKFLOWS,
    MOST_AGENT_RUNS,
    MOST_CACHED_WORKFLOWS,
    load,
)

HERD = 300
"""So many runs are to begin on the second, by the budgets of DESIGN.md."""


@dataclass(frozen=True)
class Amount:
    """A whole number that a variable says."""

    name: str
    field: str
    default: int
    most: int

    def read(self, folder: Path, value: str) -> int:
        return cast(int, getattr(load({self.name: value}, data=folder), self.field))


CACHED = Amount("HORARIUM_CACHED_WORKFLOWS", "cached_workflows", DEFAULT_CACHED_WORKFLOWS, MOST_CACHED_WORKFLOWS)
AGENT_RUNS = Amount("HORARIUM_AGENT_RUNS", "agent_runs", DEFAULT_AGENT_RUNS, MOST_AGENT_RUNS)
each_amount = pytest.mark.parametrize("amount", [CACHED, AGENT_RUNS], ids=lambda amount: amount.field)


@each_amount
def test_left_out_or_empty_it_is_the_default(tmp_path: Path, amount: Amount) -> None:
    assert getattr(load({}, data=tmp_path), amount.field) == amount.default
    assert amount.read(tmp_path, "") == amount.default


def test_by_default_a_whole_herd_is_done_at_the_same_time() -> None:
    assert DEFAULT_AGENT_RUNS > HERD


@each_amount
def test_any_number_may_be_asked_for_up_to_the_most(tmp_path: Path, amount: Amount) -> None:
    for number in (1, 250, amount.most):
        assert amount.read(tmp_path, str(number)) == number


@each_amount
@pytest.mark.parametrize(
    "value", ["0", "-1", "1.5", "1e3", "3,000", "3_000", " 7", "many", "\u0663", "1000001", "9" * 5_000]
)
def test_anything_else_is_refused_by_name_with_what_is_expected(tmp_path: Path, amount: Amount, value: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        amount.read(tmp_path, value)
    said = str(refused.value)
    assert said.startswith(f"{amount.name} is {value[:40]!r}; it is a whole number from 1 to {amount.most}.")
    assert f"Leave it out for {amount.default}." in said


@each_amount
@pytest.mark.parametrize("value", ["", "250"])
def test_a_child_has_the_same_whatever_its_parent_inherited(tmp_path: Path, amount: Amount, value: str) -> None:
    settings = load({amount.name: value}, data=tmp_path)
    child = load({amount.name: "7", **settings.environment()})
    assert getattr(child, amount.field) == getattr(settings, amount.field)


@pytest.mark.server
def test_the_schedule_worker_keeps_as_many_as_the_setting_says(temporal_server: TemporalServer, tmp_path: Path) -> None:
    async def configured() -> int:
        client = await connect(address=temporal_server.address, wait_seconds=10)
        catalog = Catalog.open(f"sqlite:///{tmp_path / 'catalog.db'}")
        try:
            config = schedule_worker(client, catalog, load({CACHED.name: "250"}, data=tmp_path)).config()
        finally:
            catalog.close()
        return config["max_cached_workflows"]

    assert asyncio.run(configured()) == 250


@pytest.mark.server
def test_the_agents_workers_do_as_many_as_they_are_told(temporal_server: TemporalServer) -> None:
    async def made(**told: int) -> int | None:
        client = await connect(address=temporal_server.address, wait_seconds=10)
        (worker,) = agent_workers(client, AgentRunner([Triage()]), cast(AgentHost, None), **told)
        return worker.config()["max_concurrent_activities"]

    assert asyncio.run(made(runs=20)) == 20
    assert asyncio.run(made()) == DEFAULT_AGENT_RUNS
