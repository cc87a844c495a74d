"""From a database's errors to ours: what another attempt mends, what a person has to mend, and what is our own fault.

PostgreSQL names an error by a code of five characters, but only once a connection stands. What goes wrong before that is a
sentence of the server or of libpq, and known by its words; a server that speaks another language than English is taken to be
out for a while, and its words are shown.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from horarium.catalog import tallies
from horarium.errors import HorariumError, Misconfigured, Unavailable

CODE = "catalog_unavailable"

_BROKEN_FILE = {
    "SQLITE_READONLY": "cannot be written. Give this user the right to write to it and to its folder.",
    "SQLITE_CANTOPEN": "cannot be opened. Check that its folder exists and that this user may write there.",
    "SQLITE_NOTADB": "is no SQLite database. Name another file, or move this one away.",
    "SQLITE_CORRUPT": "is damaged. Restore it from a copy.",
}
"""What no repetition mends, by SQLite's own name for it."""

_UNDEFINED_TABLE, _INSUFFICIENT_PRIVILEGE, _READ_ONLY = "42P01", "42501", "25006"
"""https://www.postgresql.org/docs/current/errcodes-appendix.html"""
_LOCKED_OUT = frozenset({"55P03", "40P01", "57014"})
"""Waited for a lock for too long, or in a circle, or the statement took too long."""
_ENDED_FROM_OUTSIDE = ("08", "57")
"""Classes of errors that say that a connection ended, whatever the statement was doing: the network, an operator."""

_NOT_LET_IN = re.compile(
    r"password authentication failed|no password supplied|no pg_hba\.conf entry|is not permitted to log in"
    r"|(?:role|database) \".*\" does not exist|permission denied for database|not currently accepting connections"
    r"|server does not support SSL|invalid \w+ value|certificate verify failed|root certificate file"
)


class OutcomeUnknown(Unavailable):
    """The catalog was lost while it committed: the transaction took effect as a whole, or not at all, and nobody knows which.

    Every transaction of ours may be made again. A change that was asked for with a key finds its receipt if it took effect,
    and a step its mark, so the same call tells.
    """


@contextmanager
def honest_errors() -> Iterator[None]:
    """Raise `Unavailable` where another attempt may succeed and nothing took effect, `Misconfigured` where a person must act.

    Whatever else the database says, such as a broken rule of the tables, is a fault of ours and is raised as it is.
    """
    try:
        yield
    except PoolTimeoutError as error:
        tallies.note_error("busy")
        raise Unavailable(
            CODE, "The catalog does not answer: all connections of this process are taken.", next_step=_AGAIN
        ) from error
    except DBAPIError as error:
        found = _of_sqlite(error) or _of_postgresql(error)
        if found is None and (isinstance(error, OperationalError) or error.connection_invalidated):
            found = Unavailable(CODE, f"The catalog does not answer: {_words(error)}.", next_step=_AGAIN)
        tallies.note_error(_kind_of(error, found))
        if found is None:
            raise
        raise found from error


@contextmanager
def honest_outcome() -> Iterator[None]:
    """Around a COMMIT: raise `OutcomeUnknown` where it may have taken effect although no answer came."""
    try:
        yield
    except DBAPIError as error:
        state = _state(error)
        if error.connection_invalidated and (state is None or state.startswith(_ENDED_FROM_OUTSIDE)):
            tallies.note_error("outcome_unknown")
            raise OutcomeUnknown(
                CODE,
                "The connection to the catalog was lost while it committed, so it is not known whether the change took effect.",
                next_step="Make the same call again, with the same key where it had one: it tells.",
            ) from error
        raise


def is_read_only(error: DBAPIError) -> bool:
    """Whether PostgreSQL takes no changes now: it became a standby, or an operator said so."""
    return _state(error) == _READ_ONLY


_AGAIN = "Try the same again."
_NO_TABLES = "The catalog has no tables yet. Run `horarium db upgrade`."


def _kind_of(error: DBAPIError, told: HorariumError | None) -> str:
    """What it is counted as."""
    if told is None:
        return "fault"
    if isinstance(told, Misconfigured):
        return "unusable"
    state = _state(error)
    busy = getattr(error.orig, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
    if busy or state in _LOCKED_OUT:
        return "locked"
    is_lost = error.connection_invalidated or (state or "").startswith(_ENDED_FROM_OUTSIDE)
    return "lost" if is_lost and error.statement is not None else "unanswered"


def _of_sqlite(error: DBAPIError) -> HorariumError | None:
    if "no such table" in str(error.orig):
        return Misconfigured(_NO_TABLES)
    primary = "_".join(getattr(error.orig, "sqlite_errorname", "").split("_")[:2])
    if primary in _BROKEN_FILE:
        return Misconfigured(f"The catalog's file {_BROKEN_FILE[primary]} ({error.orig})")
    return None


def _of_postgresql(error: DBAPIError) -> HorariumError | None:
    state = _state(error)
    if state == _UNDEFINED_TABLE:
        return Misconfigured(_NO_TABLES)
    if state == _INSUFFICIENT_PRIVILEGE:
        return Misconfigured(f"The catalog's role may not do that: {_words(error)}. Let its owner grant it the right.")
    # Without a statement and a code, it did not come to a connection.
    if error.statement is None and state is None:
        if isinstance(error, ProgrammingError):
            return Misconfigured(f"The catalog's URL cannot be used: {_words(error)}.")
        if _NOT_LET_IN.search(str(error.orig)):
            return Misconfigured(
                f"PostgreSQL does not let us into the catalog: {_words(error)}. Check user, password and database in its URL."
            )
    return None


def _state(error: DBAPIError) -> str | None:
    state: str | None = getattr(error.orig, "sqlstate", None)
    return state


def _words(error: DBAPIError) -> str:
    """What the driver said, on one line, without its hints. It never says a password."""
    lines = [line for line in str(error.orig).splitlines() if not line.startswith("\t")]
    return " ".join(" ".join(lines).split()).rstrip(".")
