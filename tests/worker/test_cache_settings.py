"""How many workflows a schedule worker keeps in memory: what the variable takes, and that the worker is made so."""

import asyncio
from pathlib import Path

import pytest

from horarium.catalog import Catalog
from horarium.errors import Misconfigured
from starter.temporal_server import TemporalServer
from worker.composition import schedule_worker
from worker.connection import connect
from worker.settings import DEFAULT_CACHED_WORKFLOWS, MOST_CACHED_WORKFLOWS, load

NAME = "HORARIUM_CACHED_WORKFLOWS"


def cached(tmp_path: Path, value: str) -> int:
    return load({NAME: value}, data=tmp_path).cached_workflows


def test_by_default_it_is_what_fits_into_two_gibibytes(tmp_path: Path) -> None:
    assert load({}, data=tmp_path).cached_workflows == DEFAULT_CACHED_WORKFLOWS
    assert cached(tmp_path, "") == DEFAULT_CACHED_WORKFLOWS


@pytest.mark.parametrize("number", [1, 250, MOST_CACHED_WORKFLOWS])
def test_any_number_may_be_asked_for_up_to_a_million(tmp_path: Path, number: int) -> None:
    assert cached(tmp_path, str(number)) == number


@pytest.mark.parametrize(
    "value", ["0", "-1", "1.5", "1e3", "3,000", "3_000", " 7", "many", "\u0663", "1000001", "9" * 5_000]
)
def test_anything_else_is_refused_by_name_with_what_is_expected(tmp_path: Path, value: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        cached(tmp_path, value)
    said = str(refused.value)
    assert said.startswith(f"{NAME} is {value[:40]!r}; it is a whole number from 1 to {MOST_CACHED_WORKFLOWS}.")
    assert f"Leave it out for {DEFAULT_CACHED_WORKFLOWS}." in said


@pytest.mark.parametrize("value", ["", "250"])
def test_a_child_keeps_as_many_whatever_its_parent_inherited(tmp_path: Path, value: str) -> None:
    settings = load({NAME: value}, data=tmp_path)
    assert load({NAME: "7", **settings.environment()}).cached_workflows == settings.cached_workflows


@pytest.mark.server
def test_the_schedule_worker_keeps_as_many_as_the_setting_says(temporal_server: TemporalServer, tmp_path: Path) -> None:
    async def configured() -> int:
        client = await connect(address=temporal_server.address, wait_seconds=10)
        catalog = Catalog.open(f"sqlite:///{tmp_path / 'catalog.db'}")
        try:
            config = schedule_worker(client, catalog, load({NAME: "250"}, data=tmp_path)).config()
        finally:
            catalog.close()
        return config["max_cached_workflows"]

    assert asyncio.run(configured()) == 250
