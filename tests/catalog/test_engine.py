"""The door to the catalog: several processes at one catalog, files that cannot be used, and one writer for each file."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, func, insert, select
from sqlalchemy.exc import IntegrityError

from horarium.catalog import Catalog, engine, migrate
from horarium.catalog.tables import workers
from horarium.errors import Misconfigured, Unavailable
from tests.catalog.words import told
from tests.postgres.databases import Database

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def url(folder: Path) -> str:
    return f"sqlite:///{folder / 'catalog.sqlite'}"


@pytest.fixture
def catalog(database: Database, tmp_path: Path) -> Iterator[Catalog]:
    with database.migrated(tmp_path) as found:
        opened = Catalog.open(found)
        yield opened
        opened.close()


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Catalog]:
    """A catalog on SQLite, for what is about its file."""
    opened = Catalog.open(url(tmp_path))
    migrate.upgrade(opened)
    yield opened
    opened.close()


def add(connection: Connection, instance: str) -> str:
    connection.execute(insert(workers).values(instance=instance, role="runs", seen_at=NOW, tzdata="2026.1"))
    return threading.current_thread().name


def count(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(workers)).scalar_one()


def test_an_error_does_not_tell_what_was_being_written(catalog: Catalog) -> None:
    with catalog.writing() as connection:
        add(connection, "s3cret")
    with pytest.raises(IntegrityError) as refused, catalog.writing() as connection:
        add(connection, "s3cret")
    assert "s3cret" not in told(refused.value)


WRITER = """
import sys
from sqlalchemy import func, insert, select
from horarium.catalog import Catalog, migrate
from horarium.catalog.tables import workers
from tests.catalog.test_engine import NOW, add, count

catalog = Catalog.open(sys.argv[1])
migrate.upgrade(catalog)
for number in range(int(sys.argv[3])):
    with catalog.writing() as connection:
        count(connection)  # A transaction that reads first is the one that fails without BEGIN IMMEDIATE.
        add(connection, f"{sys.argv[2]}-{number}")
    with catalog.reading() as connection:
        assert count(connection) > number
catalog.close()
"""


def test_processes_that_begin_and_write_at_once_are_never_told_that_it_is_locked(
    database: Database, tmp_path: Path
) -> None:
    """They even race to create the tables: each migrates first, and only one of them has something to do."""
    with database.empty(tmp_path) as found:
        processes_write_at_once(found)


def processes_write_at_once(url: str) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, url, f"process{number}", "40"],
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    failures = [child.communicate(timeout=120)[1] for child in children]
    assert [child.returncode for child in children] == [0] * 4, failures
    catalog = Catalog.open(url)
    with catalog.reading() as connection:
        assert count(connection) == 160
    catalog.close()


def test_a_process_has_one_writer_to_a_file_and_reads_beside_it(file: Catalog) -> None:
    async def many() -> tuple[set[str], int]:
        names = await asyncio.gather(*(file.write(add, f"w{number}") for number in range(20)))
        return set(names), await file.read(count)

    names, found = asyncio.run(many())
    assert len(names) == 1
    assert found == 20


def test_a_reader_is_not_kept_waiting_by_a_writer(catalog: Catalog) -> None:
    with catalog.writing() as connection:
        add(connection, "unfinished")
        with catalog.reading() as other:
            assert count(other) == 0


def add_twice(connection: Connection) -> None:
    add(connection, "other")
    add(connection, "twice")
    add(connection, "twice")


def test_a_transaction_that_raises_leaves_nothing(catalog: Catalog) -> None:
    """A broken rule of the tables is a fault of ours, so it is told as it is and not as an outage."""
    with pytest.raises(IntegrityError), catalog.writing() as connection:
        add_twice(connection)
    with catalog.reading() as connection:
        assert count(connection) == 0


def test_a_catalog_that_is_locked_for_long_is_unavailable_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BUSY_TIMEOUT_SECONDS", 0.3)
    catalog = Catalog.open(url(tmp_path))
    migrate.upgrade(catalog)
    other = sqlite3.connect(tmp_path / "catalog.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    began = time.monotonic()
    with (
        pytest.raises(Unavailable, match=r"does not answer.*locked.*Try the same again"),
        catalog.writing() as connection,
    ):
        add(connection, "waits")
    assert 0.2 < time.monotonic() - began < 3
    with catalog.reading() as connection:
        assert count(connection) == 0

    other.execute("COMMIT")
    with catalog.writing() as connection:
        add(connection, "waits")
    with catalog.reading() as connection:
        assert count(connection) == 1
    other.close()
    catalog.close()


def test_a_transaction_waits_for_another_process_that_is_soon_done(file: Catalog, tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "catalog.sqlite", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.4, lambda: other.execute("COMMIT"))
    release.start()
    with file.writing() as connection:
        add(connection, "patient")
    release.join()
    other.close()
    with file.reading() as connection:
        assert count(connection) == 1


def test_the_longest_wait_is_what_a_step_gives_its_local_activity() -> None:
    options = (Path(__file__).parents[2] / "workflows" / "options.py").read_text()
    assert f"CATALOG_ANSWERS_WITHIN = timedelta(seconds={engine.BUSY_TIMEOUT_SECONDS})" in options


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"nowhere' does not exist. Create it"):
        Catalog.open(url(tmp_path / "nowhere"))


def test_what_is_no_url_is_named() -> None:
    with pytest.raises(Misconfigured, match="URL cannot be used"):
        Catalog.open("my catalog")


@pytest.mark.parametrize("port", ["abc", "", "0", "65536", "-1", "se:cret@there", "5432x"])
def test_a_port_that_is_none_is_told_without_the_password(port: str) -> None:
    with pytest.raises(Misconfigured, match=r"cannot be used") as refused:
        Catalog.open(f"postgresql+nothing://user:secret@host:{port}/name")
    assert "ecret" not in str(refused.value)


def test_a_catalog_without_tables_says_what_to_do(database: Database, tmp_path: Path) -> None:
    with database.empty(tmp_path) as found:
        catalog = Catalog.open(found)
        with pytest.raises(Misconfigured, match="Run `horarium db upgrade`"), catalog.reading() as connection:
            count(connection)
        catalog.close()


def test_a_file_that_cannot_be_written_is_no_outage(tmp_path: Path) -> None:
    catalog = Catalog.open(url(tmp_path))
    migrate.upgrade(catalog)
    # The superuser writes to any file, so the connection itself is made read-only; SQLite answers the same.
    event.listen(catalog.engine, "begin", lambda connection: connection.exec_driver_sql("PRAGMA query_only=ON"))
    with pytest.raises(Misconfigured, match="cannot be written"), catalog.writing() as connection:
        add(connection, "never")
    catalog.close()


def test_a_path_that_is_a_folder_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "catalog.sqlite").mkdir()
    catalog = Catalog.open(url(tmp_path))
    with pytest.raises(Misconfigured, match="cannot be opened"), catalog.reading():
        pass
    catalog.close()


def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "catalog.sqlite").write_text("These are my notes, and no database at all.\n" * 100)
    catalog = Catalog.open(url(tmp_path))
    with pytest.raises(Misconfigured, match="is no SQLite database"), catalog.reading():
        pass
    catalog.close()
    assert (tmp_path / "catalog.sqlite").read_text().startswith("These are my notes")
