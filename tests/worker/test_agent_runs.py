"""How many runs an agent runner does at the same time: what the variable takes, and that the workers are made so."""

import asyncio
from pathlib import Path
from typing import cast

import pytest

from horarium.agents.host import AgentHost
from horarium.agents.runner import AgentRunner
from horarium.errors import Misconfigured
from starter.temporal_server import TemporalServer
from tests.agents.test_agent import Triage
from worker.composition import agent_workers
from worker.connection import connect
from worker.settings import DEFAULT_AGENT_RUNS, MOST_AGENT_RUNS, load

NAME = "HORARIUM_AGENT_RUNS"
HERD = 300
"""So many are to begin on the second, by the budgets of DESIGN.md."""


def runs(tmp_path: Path, value: str) -> int:
    return load({NAME: value}, data=tmp_path).agent_runs


def test_by_default_a_whole_herd_is_done_at_the_same_time(tmp_path: Path) -> None:
    assert load({}, data=tmp_path).agent_runs == runs(tmp_path, "") == DEFAULT_AGENT_RUNS
    assert DEFAULT_AGENT_RUNS > HERD


@pytest.mark.parametrize("number", [1, 20, MOST_AGENT_RUNS])
def test_any_number_may_be_asked_for_up_to_ten_thousand(tmp_path: Path, number: int) -> None:
    assert runs(tmp_path, str(number)) == number


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "many", "10001", "9" * 5_000])
def test_anything_else_is_refused_by_name_with_what_is_expected(tmp_path: Path, value: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        runs(tmp_path, value)
    said = str(refused.value)
    assert said.startswith(f"{NAME} is {value[:40]!r}; it is a whole number from 1 to {MOST_AGENT_RUNS}.")
    assert f"Leave it out for {DEFAULT_AGENT_RUNS}." in said


@pytest.mark.parametrize("value", ["", "20"])
def test_a_child_does_as_many_whatever_its_parent_inherited(tmp_path: Path, value: str) -> None:
    settings = load({NAME: value}, data=tmp_path)
    assert load({NAME: "7", **settings.environment()}).agent_runs == settings.agent_runs


@pytest.mark.server
def test_the_agents_workers_do_as_many_as_they_are_told(temporal_server: TemporalServer) -> None:
    async def made(**told: int) -> int:
        client = await connect(address=temporal_server.address, wait_seconds=10)
        (worker,) = agent_workers(client, AgentRunner([Triage()]), cast(AgentHost, None), **told)
        return worker.config()["max_concurrent_activities"]

    assert asyncio.run(made(runs=20)) == 20
    assert asyncio.run(made()) == DEFAULT_AGENT_RUNS
