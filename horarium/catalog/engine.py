"""The door to the catalog: who may write when, and how a coroutine asks without stalling its loop.

SQLite takes one writer at a time. Several processes share the file, so each process has one writer thread and every
writing transaction begins with BEGIN IMMEDIATE: a transaction that starts by reading and then wants to write fails with
"database is locked" under load, and no timeout helps it.

PostgreSQL takes as many as there are. There the rows that a transaction locks keep writers apart, and a process has a handful.
"""

import asyncio
import contextvars
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Concatenate, ParamSpec, Self, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from horarium.catalog import aftermath, postgresql, tallies
from horarium.catalog.failures import CODE, honest_errors, honest_outcome, is_read_only
from horarium.catalog.grouping import Grouping
from horarium.errors import Misconfigured, Unavailable

P = ParamSpec("P")
R = TypeVar("R")

BUSY_TIMEOUT_SECONDS = 5
"""How long a transaction waits for another process's; a step gives its local activity as long."""
READERS = 4
HIDE_PARAMETERS = True
"""What was being written is no part of an error: errors reach logs, and the histories that Temporal keeps."""


class Catalog:
    """One process's access to the catalog.

    Functions that take a `Connection` first run through `read` and `write` here; each such call is one transaction.
    A catalog that does not answer raises `Unavailable`, and nothing of the call took effect; only where the connection was
    lost during the COMMIT itself is the outcome not known, and then the error says so (`OutcomeUnknown`). What a call asked to
    be done after its commit (`horarium.catalog.aftermath`) is done before it returns.

    `reader` is the engine of readers where it is another one than that of writers.
    """

    def __init__(
        self, engine: Engine, file: Path | None = None, *, reader: Engine | None = None, writers: int = 1
    ) -> None:
        self._engine = engine
        self._reader = reader or engine
        self._file = file
        self._identity: tuple[int, int] | None = None
        self._writer = ThreadPoolExecutor(writers, thread_name_prefix="catalog-writer")
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="catalog-reader")
        # PostgreSQL lets transactions that end together wait for its disk together.
        self._grouping = Grouping(self.writing, self._writer) if engine.dialect.name == "sqlite" else None

    @classmethod
    def open(cls, url: str) -> Self:
        """Open the catalog at an SQLAlchemy URL; `Misconfigured` if its folder does not exist or cannot be written."""
        try:
            parsed = _parsed(url)
            if parsed.get_backend_name() != "sqlite":
                writer = postgresql.writer(parsed, patience=BUSY_TIMEOUT_SECONDS, hide_parameters=HIDE_PARAMETERS)
                reader = postgresql.reader(
                    parsed, threads=READERS, patience=BUSY_TIMEOUT_SECONDS, hide_parameters=HIDE_PARAMETERS
                )
                return cls(writer, reader=reader, writers=postgresql.WRITERS)
        except (ArgumentError, ModuleNotFoundError) as error:
            # The URL itself may hold a password, so it is not repeated.
            raise Misconfigured(
                f"The catalog's URL cannot be used: {error}. It looks like sqlite:////srv/horarium/catalog.db or "
                "postgresql+psycopg://user@host/name, and needs its driver installed."
            ) from error
        path = Path(parsed.database or "")
        if not path.parent.is_dir():
            raise Misconfigured(
                f"The catalog's folder {str(path.parent)!r} does not exist. Create it, or name another."
            )
        engine = create_engine(
            parsed,
            connect_args={"timeout": BUSY_TIMEOUT_SECONDS, "check_same_thread": False},
            hide_parameters=HIDE_PARAMETERS,
        )
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return cls(engine, path if parsed.database not in {None, "", ":memory:"} else None)

    @property
    def engine(self) -> Engine:
        """The engine, for migrations and for tests."""
        return self._engine

    def close(self) -> None:
        """Wait for what is running, then close every connection."""
        self._writer.shutdown()
        self._readers.shutdown()
        self._engine.dispose()
        self._reader.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One consistent view of the catalog: on PostgreSQL by REPEATABLE READ, READ ONLY."""
        with honest_errors(), self._reader.connect() as connection, connection.begin():
            self._require_same_file()
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One writing transaction: all of it, or nothing where the block raises.

        On PostgreSQL it is READ COMMITTED on purpose. Whoever writes locks a row first (of the environment, of the schedule)
        and reads the rest in statements after that, each of which sees what was committed while it waited for the lock. Under
        a stricter level the view would be as old as the first statement, and whoever waited would have to fail and begin anew.
        """
        with honest_errors(), self._engine.connect() as plain:
            connection = plain.execution_options(horarium_writes=True)
            with _taking_changes(connection), connection.begin() as transaction:
                self._require_same_file()
                aftermath.forget(connection)
                yield connection
                with honest_outcome(), _left_if_it_fails(connection):
                    transaction.commit()
            acts = aftermath.taken(connection)
        aftermath.carry_out(acts)

    def _require_same_file(self) -> None:
        """A file that was removed goes on taking what is written, and takes it away at the end; so look before each use."""
        if self._file is None:
            return
        try:
            found = self._file.stat()
        except FileNotFoundError:
            identity = None
        else:
            identity = (found.st_dev, found.st_ino)
        if self._identity is None:
            self._identity = identity
        if identity is None or identity != self._identity:
            raise Misconfigured(
                f"The catalog's file {str(self._file)!r} was removed or replaced while it was in use. Stop every process of "
                "this installation, put the file back from your last copy, and start again."
            )

    async def read(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a reading function in a thread."""

        context = contextvars.copy_context()

        def call() -> R:
            with self.reading() as connection:
                return function(connection, *args, **kwargs)

        return await asyncio.get_running_loop().run_in_executor(self._readers, context.run, call)

    async def write(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a writing function in a writer thread, as one transaction.

        On SQLite it is the only one, and several calls that wait for it may share a transaction (`horarium.catalog.grouping`).
        To its caller each is one of its own.
        """

        # What is logged in a thread is about the same as what is logged where it was asked for.
        context = contextvars.copy_context()

        def call(connection: Connection) -> R:
            return context.run(function, connection, *args, **kwargs)

        def alone() -> R:
            with self.writing() as connection:
                return call(connection)

        if self._grouping is not None:
            return await asyncio.wrap_future(self._grouping.submit(call))
        return await asyncio.get_running_loop().run_in_executor(self._writer, alone)


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ValueError:
        # What was taken for the port may be a part of the password, so nothing of it is repeated.
        raise Misconfigured(_BAD_PORT) from None
    if parsed.port is not None and not 0 < parsed.port <= HIGHEST_PORT:
        raise Misconfigured(_BAD_PORT)
    return parsed


HIGHEST_PORT = 65_535
_BAD_PORT = (
    f"The catalog's URL cannot be used: its port is no number from 1 to {HIGHEST_PORT}. It looks like "
    "postgresql+psycopg://user@host:5432/name; write ':', '/' and '@' in a password as %3A, %2F and %40."
)


@contextmanager
def _taking_changes(connection: Connection) -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        if not is_read_only(error):
            raise
        # The next connection may reach the server that took over.
        connection.invalidate(error)
        tallies.note_error("read_only")
        raise Unavailable(
            CODE, "The catalog takes no changes now: the database is read-only.", next_step="Try the same again."
        ) from error


@contextmanager
def _left_if_it_fails(connection: Connection) -> Iterator[None]:
    """Around a COMMIT: one that fails, as on a full disk, leaves its transaction open in SQLite, and the file locked."""
    try:
        yield
    except DBAPIError:
        connection.invalidate()
        raise


def _prepare_sqlite(connection: sqlite3.Connection, _record: ConnectionPoolEntry) -> None:
    # The driver's own transaction handling begins late and deferred; `_begin_sqlite` does it instead.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    # A ledger that forgets its last lines after a power cut could not prove anything.
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("horarium_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
