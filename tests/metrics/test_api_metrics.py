"""The API's page has the Temporal SDK's own figures too, of the one client that it has."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from starter.setup import prepare_data
from starter.temporal_server import TemporalServer
from tests.api.house import Api, make_catalog
from tests.api.test_serving import Serving
from tests.metrics.figures import fetch, samples, summed
from tests.metrics.test_installation_metrics import bounded
from worker.settings import Settings, load

WITHIN = 300


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    found = load({}, data=tmp_path / "installation")
    prepare_data(found)
    return found


@pytest.fixture
def serving(settings: Settings, temporal_server: TemporalServer) -> Iterator[Serving]:
    started = Serving(settings.data, TEMPORAL_ADDRESS=temporal_server.address)
    yield started
    started.stop()


@pytest.mark.server
def test_the_apis_calls_of_temporal_are_among_its_figures(serving: Serving, settings: Settings) -> None:
    deadline = time.monotonic() + WITHIN
    found = samples(fetch(f"{serving.address}/metrics"))
    while not summed(found, "temporal_request_total", operation="DescribeNamespace"):
        assert time.monotonic() < deadline, serving.log.read_text()
        time.sleep(0.2)
        found = samples(fetch(f"{serving.address}/metrics"))
    bounded(found)
    names = {each.name for each in found}
    assert {"horarium_catalog_seconds_count", "horarium_catalog_errors_total", "process_resident_memory_bytes"} <= names


def test_what_a_process_tells_beside_its_own_figures_is_behind_them_and_may_be_nothing(tmp_path: Path) -> None:
    told = [b"temporal_request_total 3.0\n", b""]

    async def more() -> bytes:
        return told.pop(0)

    catalog = make_catalog(tmp_path)
    api = Api(catalog, more_figures=more)
    try:
        with_more, without = (api.get("!/metrics", by=None).text for _ in range(2))
    finally:
        api.close()
        catalog.close()
    assert summed(samples(with_more), "temporal_request_total") == 3
    assert "horarium_catalog_errors_total" in {each.name for each in samples(without)}
    assert not [each.name for each in samples(without) if each.name.startswith("temporal_")]
