"""Tests here are coroutines too."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from horarium.catalog import Catalog
from tests.control.desk import open_catalog
from tests.workflows.conftest import pytest_pyfunc_call

__all__ = ["catalog", "pytest_pyfunc_call"]


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    opened = open_catalog(tmp_path)
    yield opened
    opened.close()
