"""A catalog for all tests of a module, and a schedule of its own for each test."""

from collections.abc import Iterator

import pytest

from horarium.catalog import Catalog
from tests.control.desk import Desk, open_catalog


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    opened = open_catalog(tmp_path_factory.mktemp("catalog"))
    yield opened
    opened.close()


@pytest.fixture
def desk(catalog: Catalog) -> Desk:
    return Desk(catalog)
