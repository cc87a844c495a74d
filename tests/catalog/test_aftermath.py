"""What is to be done after a commit is done then, once, and never for what was rolled back."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from horarium.catalog import Catalog
from horarium.catalog.aftermath import after_commit
from tests.postgres.databases import Database


@pytest.fixture
def catalog(database: Database, tmp_path: Path) -> Iterator[Catalog]:
    with database.empty(tmp_path) as url:
        opened = Catalog.open(url)
        with opened.writing() as connection:
            connection.execute(text("CREATE TABLE notes (number INTEGER)"))
        yield opened
        opened.close()


def noted(connection: Connection, number: int, done: list[int]) -> None:
    connection.execute(text(f"INSERT INTO notes VALUES ({number})"))
    after_commit(connection, lambda: done.append(number))


def failing(connection: Connection, number: int, done: list[int]) -> None:
    noted(connection, number, done)
    raise ZeroDivisionError


def stored(catalog: Catalog) -> list[int]:
    with catalog.reading() as connection:
        return list(connection.execute(text("SELECT number FROM notes ORDER BY number")).scalars())


def test_it_is_done_after_the_commit_in_the_order_of_asking(catalog: Catalog) -> None:
    seen: list[list[int]] = []
    with catalog.writing() as connection:
        for number in (1, 2):
            connection.execute(text(f"INSERT INTO notes VALUES ({number})"))
            after_commit(connection, lambda: seen.append(stored(catalog)))
        assert seen == []
    assert seen == [[1, 2]] * 2, "others see by then what it is about"


def test_nothing_is_done_for_what_was_rolled_back_nor_by_the_next_transaction(catalog: Catalog) -> None:
    done: list[int] = []
    with pytest.raises(ZeroDivisionError):
        asyncio.run(catalog.write(failing, 1, done))
    with catalog.writing() as connection:
        noted(connection, 2, done)
    with catalog.writing():
        pass
    assert (done, stored(catalog)) == ([2], [2])


def test_a_coroutine_that_writes_has_it_done_before_it_goes_on(catalog: Catalog) -> None:
    done: list[int] = []
    asyncio.run(catalog.write(noted, 1, done))
    assert done == [1]
