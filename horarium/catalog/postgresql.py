"""How PostgreSQL is asked: who may read and write in how many connections, and how long anything may take."""

import math
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry

WRITERS = 4
"""Writers of one process. What they wait for is the disk of the server, and rows that others hold, so more gain little; and
a server has some 100 connections to give to all processes."""
_DATA_EXCEPTION = "22"
"""The class of errors about values; https://www.postgresql.org/docs/current/errcodes-appendix.html."""
LONGEST_READ_SECONDS = 60
"""How long one question of a reader may take: an audit asks about years."""


def writer(url: URL, *, patience: float, hide_parameters: bool) -> Engine:
    """The engine of those who write. `patience` is in seconds: how long they wait for a lock, or for a connection."""
    engine = _engine(url, WRITERS, patience, hide_parameters=hide_parameters, isolation_level="READ COMMITTED")
    # Longer than the wait for a lock, so that this is told as what it is.
    _set_up_sessions(engine, patience, longest_statement=2 * patience)
    return engine


def reader(url: URL, *, threads: int, patience: float, hide_parameters: bool) -> Engine:
    """The engine of those who read: each transaction sees one state of the catalog, and changes nothing."""
    options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    engine = _engine(url, threads, patience, hide_parameters=hide_parameters, execution_options=options)
    _set_up_sessions(engine, patience, longest_statement=LONGEST_READ_SECONDS)
    return engine


def _engine(url: URL, threads: int, patience: float, **options: Any) -> Engine:
    """An engine with a connection for each thread, and as many again for whoever asks outside of them."""
    seconds = max(2, math.ceil(patience))  # libpq takes whole ones, from two
    network = {
        "connect_timeout": seconds,
        # A server whose machine is gone says nothing at all: ask after some seconds of silence, and soon give up.
        "keepalives_idle": seconds,
        "keepalives_interval": seconds,
        "keepalives_count": 2,
        "tcp_user_timeout": 3_000 * seconds,
        "application_name": "horarium",
    }
    engine = create_engine(
        url,
        # What the person wrote into the URL counts more.
        connect_args={name: value for name, value in network.items() if name not in url.query},
        pool_size=threads,
        max_overflow=threads,
        pool_timeout=patience,
        # After a restart of the server all kept connections are dead; so each is asked before it is used.
        pool_pre_ping=True,
        **options,
    )
    event.listen(engine, "handle_error", _conceal)
    return engine


def _set_up_sessions(engine: Engine, patience: float, *, longest_statement: float) -> None:
    settings = {
        "lock_timeout": f"'{_milliseconds(patience)}'",
        "statement_timeout": f"'{_milliseconds(longest_statement)}'",
        # A process that was stopped in the middle must not hold a schedule's lock until it wakes.
        "idle_in_transaction_session_timeout": f"'{_milliseconds(longest_statement)}'",
        # Instants are told in the form and the zone of the session, and the driver does not read all of them.
        "DateStyle": "'ISO'",
        "TimeZone": "'UTC'",
        # A ledger that forgets its last lines after a power cut could not prove anything.
        "synchronous_commit": (
            "CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' "
            "ELSE current_setting('synchronous_commit') END"
        ),
    }
    calls = [f"set_config('{name}', {value}, false)" for name, value in settings.items()]
    statement = f"SELECT {', '.join(calls)}"

    def set_up(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        cursor.execute(statement)
        cursor.close()
        connection.commit()

    event.listen(engine, "connect", set_up)


def _conceal(context: ExceptionContext) -> None:
    """Leave out of an error what was being written: the server tells it in its details, and behind a colon of what is wrong."""
    error = context.original_exception
    said: str | None = getattr(getattr(error, "diag", None), "message_primary", None)
    if said is None:
        return  # not the server's words
    if getattr(error, "sqlstate", "").startswith(_DATA_EXCEPTION):
        said = said.partition(': "')[0]
    error.args = (said,)
    if context.sqlalchemy_exception is not None:
        context.sqlalchemy_exception.args = (f"({type(error).__module__}.{type(error).__name__}) {said}",)


def _milliseconds(seconds: float) -> int:
    return round(1_000 * seconds)
