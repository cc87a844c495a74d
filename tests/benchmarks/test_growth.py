"""The growth benchmark measures what it says: catalogs that are large in one way, and are like those of real use."""

import pytest

from benchmarks import growth
from benchmarks.filled_catalogs import FILLS, long_ledger, many_versions
from benchmarks.stored_schedules import SCOPE
from horarium.catalog import Catalog
from horarium.control.records import occurrences, record
from horarium.schedule.canonical import digest
from horarium.schedule.identity import schedule_key
from tests.control.desk import FAR

SIZE = 40


def filled(database, folder, fill):
    """The catalog's one large schedule, and the catalog."""
    with database.empty(folder) as url:
        stored = fill(lambda _folder: url, folder, SIZE)
        catalog = Catalog.open(stored.url)
        try:
            with catalog.reading() as connection:
                yield schedule_key(SCOPE, stored.ids[0]), connection
        finally:
            catalog.close()


def test_many_versions_are_as_if_published_one_by_one(database, tmp_path):
    for key, connection in filled(database, tmp_path, many_versions):
        versions = [record(connection, key, revision=number, now=FAR) for number in range(1, SIZE + 2)]
        assert record(connection, key, now=FAR)["head"]["revision"] == SIZE + 1
        assert [each["reference"]["digest"] for each in versions] == [
            digest(each["configuration"]) for each in versions
        ]
        assert len({each["configuration"]["name"] for each in versions}) == SIZE + 1
        assert record(connection, key, now=FAR)["activation"]["version"]["revision"] == SIZE + 1


def test_a_long_ledger_is_of_runs_that_have_ended(database, tmp_path):
    for key, connection in filled(database, tmp_path, long_ledger):
        told = occurrences(connection, key)
        assert len(told) == SIZE
        assert {each["disposition"] for each in told} == {"succeeded"}
        assert len({each["run_id"] for each in told}) == SIZE


@pytest.mark.timeout(120)
def test_everything_is_measured_at_each_size(monkeypatch):
    sizes = growth.Sizes(rows=(5, 10), samples=2, rounds=2, engines=("SQLite",))
    monkeypatch.setenv("HORARIUM_BENCH", "short")
    monkeypatch.setattr(growth, "TRIED", sizes)
    figures = list(growth.measure())
    assert [figure.name for figure in figures] == growth.names()
    assert len(figures) == 6 * len(FILLS)
    assert all([size for size, _ in figure.points] == [5, 10] for figure in figures)
    assert all(figure.budget == growth.LOGARITHMIC and figure.runs == 2 and figure.plot for figure in figures)


def test_a_figure_is_the_exponent_of_the_medians():
    taken = {100: [1.0, 9.0, 1.0, 1.0], 1_000: [2.0, 2.0, 2.0, 2.0], 10_000: [4.0, 4.0, 3.0, 5.0]}
    found = growth.figure("it", taken, rounds=2)
    assert found.ours == pytest.approx(0.30103)
    assert found.holds is False
    assert found.plot == "1 ▂▄█ 4 ms"
    assert found.spread == 0
    assert found.runs == 4
