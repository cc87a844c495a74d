"""The real application in this process, on each database in turn, and clients of it."""

from collections.abc import Iterator

import pytest

from horarium.catalog import Catalog
from tests.api.house import Api, furnished_catalog
from tests.postgres.databases import Database


@pytest.fixture(scope="module")
def catalog(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    with database.migrated(tmp_path_factory.mktemp("catalog")) as url:
        opened = furnished_catalog(url)
        yield opened
        opened.close()


@pytest.fixture
def api(catalog: Catalog) -> Iterator[Api]:
    opened = Api(catalog)
    yield opened
    opened.close()
