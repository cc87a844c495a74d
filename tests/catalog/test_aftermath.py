"""What is to be done after a commit is done then, once, and never for what was rolled back."""

import asyncio
import io
import json
import sys
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


class Unwritable(io.StringIO):
    """What a pipe is whose reader has gone."""

    def write(self, _text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


def broken() -> None:
    raise BrokenPipeError(32, "Broken pipe")


def test_one_that_fails_undoes_nothing_reaches_nobody_and_keeps_no_other_from_being_done(
    catalog: Catalog, capsys: pytest.CaptureFixture[str]
) -> None:
    done: list[int] = []

    def write(connection: Connection) -> str:
        after_commit(connection, broken)
        noted(connection, 1, done)
        return "stored"

    assert asyncio.run(catalog.write(write)) == "stored"
    assert (done, stored(catalog)) == ([1], [1])
    told = json.loads(capsys.readouterr().err)
    assert (told["event"], told["untold_before"]) == ("aftermath_failed", 0)
    assert told["exception"].splitlines()[-1] == "BrokenPipeError: [Errno 32] Broken pipe"
    assert "in broken" in told["exception"], "where it failed"


def test_what_cannot_be_told_on_stderr_either_is_counted_for_what_can(
    catalog: Catalog, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", Unwritable())
        for _ in range(3):
            with catalog.writing() as connection:
                after_commit(connection, broken)
    for _ in range(2):
        with catalog.writing() as connection:
            after_commit(connection, broken)
    told = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [each["untold_before"] for each in told] == [3, 0]


def test_its_connection_is_anothers_by_then(catalog: Catalog) -> None:
    held: list[int] = []
    with catalog.writing() as connection:
        after_commit(connection, lambda: held.append(catalog.engine.pool.checkedout()))
        held.append(catalog.engine.pool.checkedout())
    assert held == [1, 0]
