"""A catalog for all tests of a module, on each database in turn, and a schedule of its own for each test."""

from collections.abc import Iterator

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
