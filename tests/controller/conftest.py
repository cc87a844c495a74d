"""Tests here are coroutines too, and run on each database in turn."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from horarium.catalog import Catalog
from tests.control.desk import furnish, open_undurable
from tests.postgres.databases import Database
from tests.workflows.conftest import pytest_pyfunc_call

__all__ = ["catalog", "pytest_pyfunc_call"]


@pytest.fixture
def catalog(database: Database, tmp_path: Path) -> Iterator[Catalog]:
    with database.migrated(tmp_path) as url:
        opened = open_undurable(url)
        furnish(opened)
        yield opened
        opened.close()
