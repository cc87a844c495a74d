"""How PostgreSQL is asked: who may read and write in how many connections, and how long anything may take."""

import math
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry

WRITERS = 4
"""Writers of one process. What they wait for is the disk of the server, and rows that others hold, so more gain little; and
a server has some 100 connections to give to all processes."""
LONGEST_READ_SECONDS = 60
"""How long one question of a reader may take: an audit asks about years."""


def writer(url: URL, *, patience: float, hide_parameters: bool) -> Engine:
    """The engine of those who write. `patience` is in seconds, and for each statement, lock and wait for a connection."""
    engine = _engine(url, WRITERS, patience, hide_parameters=hide_parameters, isolation_level="READ COMMITTED")
    _set_up_sessions(engine, patience, longest_statement=patience)
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
    return create_engine(
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


def _set_up_sessions(engine: Engine, patience: float, *, longest_statement: float) -> None:
    settings = {
        "lock_timeout": f"'{_milliseconds(patience)}'",
        "statement_timeout": f"'{_milliseconds(longest_statement)}'",
        # A process that was stopped in the middle must not hold a schedule's lock until it wakes.
        "idle_in_transaction_session_timeout": f"'{_milliseconds(longest_statement)}'",
        # Instants are told in the zone of the session, whose name this process may not know.
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


def _milliseconds(seconds: float) -> int:
    return round(1_000 * seconds)
