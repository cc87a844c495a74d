"""What the catalog would not take is counted by what it was."""

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import insert, text
from sqlalchemy.exc import IntegrityError

from horarium.catalog import Catalog, engine, migrate
from horarium.catalog.tables import workers
from horarium.errors import Misconfigured, Unavailable
from tests.control.desk import NOON
from tests.metrics.figures import growing
from tests.postgres.databases import Database

ERRORS = "horarium_catalog_errors_total"


def test_a_lock_that_is_held_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "BUSY_TIMEOUT_SECONDS", 0.2)
    catalog = Catalog.open(f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    migrate.upgrade(catalog)
    other = sqlite3.connect(tmp_path / "catalog.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with growing() as grown:
        with pytest.raises(Unavailable), catalog.writing():
            pass
        assert (grown.of(ERRORS, kind="locked"), grown.of(ERRORS)) == (1, 1)
    other.close()
    catalog.close()


def test_a_catalog_without_tables(database: Database, tmp_path: Path) -> None:
    with database.empty(tmp_path) as url:
        catalog = Catalog.open(url)
        with growing() as grown:
            with pytest.raises(Misconfigured), catalog.reading() as connection:
                connection.execute(workers.select())
            assert (grown.of(ERRORS, kind="unusable"), grown.of(ERRORS)) == (1, 1)
        catalog.close()


def test_a_broken_rule_of_the_tables(catalog: Catalog) -> None:
    row = {"instance": "one", "role": "r", "seen_at": NOON, "tzdata": "t"}
    with growing() as grown:
        with pytest.raises(IntegrityError), catalog.writing() as connection:
            connection.execute(insert(workers), [row, row])
        assert (grown.of(ERRORS, kind="fault"), grown.of(ERRORS)) == (1, 1)


def test_what_ends_well_counts_nothing(catalog: Catalog) -> None:
    with growing() as grown:
        with catalog.reading() as connection:
            connection.execute(text("SELECT 1"))
        assert grown.of(ERRORS) == 0
