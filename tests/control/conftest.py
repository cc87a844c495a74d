"""A catalog for all tests of a module, on each database in turn, and a schedule of its own for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from horarium.catalog import Catalog
from tests.control.desk import Desk, furnish, open_undurable
from tests.postgres.databases import Database


@pytest.fixture(scope="module")
def catalog(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    with database.migrated(tmp_path_factory.mktemp("catalog")) as url:
        opened = open_undurable(url)
        furnish(opened)
        yield opened
        opened.close()


@pytest.fixture
def desk(catalog: Catalog) -> Desk:
    return Desk(catalog)


@pytest.fixture
def own_catalog(database: Database, tmp_path: Path) -> Iterator[Catalog]:
    """A catalog for one test alone, with nothing in it."""
    with database.migrated(tmp_path) as url:
        opened = open_undurable(url)
        yield opened
        opened.close()


@pytest.fixture
def own_desk(own_catalog: Catalog) -> Desk:
    """The only schedule of a furnished catalog, for what is about a whole environment."""
    furnish(own_catalog)
    return Desk(own_catalog)
