"""One catalog and one application for the tests of a module."""

from collections.abc import Iterator

import pytest

from horarium.catalog import Catalog
from tests.api.house import Api, make_catalog


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    opened = make_catalog(tmp_path_factory.mktemp("catalog"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def api(catalog: Catalog) -> Iterator[Api]:
    made = Api(catalog)
    yield made
    made.close()
