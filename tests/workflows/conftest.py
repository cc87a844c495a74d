"""Tests here are coroutines, each on an event loop of its own and with a time limit."""

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from functools import partial

import pytest

from tests.postgres.databases import Database
from tests.workflows.skipping import SkippingHouse, skipping_house

TIME_LIMIT_SECONDS = 240


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), TIME_LIMIT_SECONDS))
    return True


@pytest.fixture
def where(request: pytest.FixtureRequest) -> Database:
    """Where the catalog of a house lies: in a file, or wherever its module asks for both kinds."""
    kind = getattr(request, "param", "sqlite")
    return Database(None if kind == "sqlite" else request.getfixturevalue("postgres"))


@pytest.fixture
def skipping(tmp_path, where) -> Iterator[Callable[..., AbstractAsyncContextManager[SkippingHouse]]]:
    """Build a house on a time-skipping server, empty and with nothing due yet."""
    with where.empty(tmp_path) as url:
        yield partial(skipping_house, tmp_path, catalog_url=url)
