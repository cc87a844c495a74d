"""One catalog and one application with pages for the tests of a module, on each database in turn."""

from collections.abc import Iterator

import pytest

from horarium.catalog import Catalog
from tests.api.house import furnished_catalog
from tests.pages.browser import Browser, Pages, person
from tests.postgres.databases import Database


@pytest.fixture(scope="module")
def catalog(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    with database.migrated(tmp_path_factory.mktemp("catalog")) as url:
        opened = furnished_catalog(url)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def pages(catalog: Catalog) -> Iterator[Pages]:
    made = Pages(catalog)
    yield made
    made.close()


@pytest.fixture
def ada(pages: Pages) -> Browser:
    return pages.browser(person())
