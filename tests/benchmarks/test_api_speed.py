"""The API's benchmark measures what it says: real requests on catalogs that are like those of real use."""

import json

import pytest

from benchmarks import api_speed
from benchmarks.stored_schedules import SCOPE, configuration, store
from horarium.catalog import Catalog
from horarium.control.audit import audit
from horarium.control.records import directory, record
from horarium.schedule.canonical import digest
from horarium.schedule.identity import schedule_key
from tests.control.desk import FAR


@pytest.fixture
def stored(database, tmp_path):
    with database.empty(tmp_path) as url:
        yield store(url, 30)


def test_schedules_that_were_loaded_in_bulk_are_as_if_published_one_by_one(stored):
    catalog = Catalog.open(stored.url)
    try:
        with catalog.reading() as connection:
            shown = [record(connection, schedule_key(SCOPE, each), now=FAR) for each in stored.ids]
            page = directory(connection, SCOPE, limit=50, now=FAR)
            found = audit(connection, SCOPE, now=FAR.replace(year=2026))
    finally:
        catalog.close()
    assert [each["configuration"] for each in shown] == [configuration(number) for number in range(30)]
    assert [each["reference"]["digest"] for each in shown] == [digest(each["configuration"]) for each in shown]
    first, *others = (
        {**each, "schedule_id": 0, "resource_id": 0, "reference": 0, "head": 0, "configuration": 0} for each in shown
    )
    first["activation"]["version"] = None
    for other in others:
        other["activation"]["version"] = None
        assert other == first
    assert [each["schedule_id"] for each in page["schedules"]] == sorted(stored.ids)
    assert found.clean


@pytest.mark.timeout(120)
def test_each_kind_is_measured_at_both_sizes_and_beside_a_bare_route(monkeypatch):
    sizes = api_speed.Sizes(few=10, many=40, samples=10, warm_up=1, seconds=0.05)
    monkeypatch.setenv("HORARIUM_BENCH", "short")
    monkeypatch.setattr(api_speed, "TRIED", sizes)
    figures = list(api_speed.measure())
    assert [figure.name for figure in figures] == api_speed.names()
    p99 = [figure for figure in figures if figure.name.endswith("p99")]
    kinds = ["get", "list 25", "publish", "activation"]
    engines = ["SQLite", "PostgreSQL"]
    assert [figure.name for figure in p99] == [f"{kind} on {engine}, p99" for engine in engines for kind in kinds]
    assert all(figure.budget is not None and figure.ratio is not None and figure.runs == 10 for figure in p99)
    rates = [figure for figure in figures if figure.unit == "1/s"]
    assert len(rates) == 3 * len(engines)
    assert all(figure.peer == "bare FastAPI route" and figure.ours > 0 for figure in rates)


def test_a_question_that_changes_something_has_a_key_of_its_own(stored):
    for ask in (api_speed._publish, api_speed._enable):
        one, two = ask(stored, 3), ask(stored, 3)
        assert one.key != two.key
        assert json.loads(one.body) == json.loads(two.body)
