"""Calls that wait for the one writer of a file, carried out in one transaction: they wait for the disk together.

Each call is a part behind a savepoint. What one raises undoes that part alone; nobody is answered before the commit, and what
was to be done after it is done. Where the transaction as a whole fails, nothing took effect, and each of its calls is told so;
but one that raised before anything else had an effect saw what is committed alone, and what it raised stands.
"""

import copy
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, Final, Generic, TypeVar

from sqlalchemy import Connection

from horarium.catalog import aftermath
from horarium.catalog.failures import honest_errors
from horarium.errors import HorariumError

MOST: Final = 64
"""Calls in one transaction."""
TAKES_IN: Final = timedelta(milliseconds=25)
"""How long a transaction takes in further calls. The file is locked meanwhile, for every other process too."""
LEAVES: Final = timedelta(milliseconds=2)
"""How long the file is left to other processes before the next one, if more wait. Who waits for a lock of SQLite only looks
now and then, so without it they might wait until the last of many."""

R = TypeVar("R")


class Grouping:
    """The writer of a file. `writing` begins a transaction of it and commits it, as `Catalog.writing` does."""

    def __init__(self, writing: Callable[[], AbstractContextManager[Connection]], writer: ThreadPoolExecutor) -> None:
        self._writing = writing
        self._writer = writer
        self._waiting: deque[_Part[Any]] = deque()

    def submit(self, function: Callable[[Connection], R]) -> Future[R]:
        """Let the writer carry a call out, in the order of asking, and answer it after its commit.

        One that is cancelled before its turn is never carried out.
        """
        part = _Part(function)
        self._waiting.append(part)
        try:
            # As often as there are parts, so none is left; where an earlier turn has taken several, there is nothing to do.
            self._writer.submit(self._turn)
        except RuntimeError:
            # It was closed. A turn that was asked for before may be left, and either has taken this one or must not meet it.
            if part.future.cancel():
                raise
        return part.future

    def _turn(self) -> None:
        part = self._next()
        if part is None:
            return
        done: list[_Part[Any]] = [part]
        try:
            with self._writing() as connection:
                if self._waiting:
                    done = self._carry_out_several(connection, done)
                else:
                    part.carry_out(connection)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is for whoever asked
            _fail(done, error)
            return
        for each in done:
            each.answer()
        if self._waiting:
            time.sleep(LEAVES.total_seconds())

    def _carry_out_several(self, connection: Connection, done: list["_Part[Any]"]) -> list["_Part[Any]"]:
        until = time.monotonic() + TAKES_IN.total_seconds()
        part: _Part[Any] | None = done[0]
        while part is not None:
            part.carry_out_behind_a_savepoint(connection)
            part = self._next() if len(done) < MOST and time.monotonic() < until else None
            if part is not None:
                done.append(part)
        return done

    def _next(self) -> "_Part[Any] | None":
        while self._waiting:
            part = self._waiting.popleft()
            if part.future.set_running_or_notify_cancel():
                return part
        return None


def _fail(parts: Sequence["_Part[Any]"], error: BaseException) -> None:
    """Tell all of a transaction that it failed."""
    saw_what_is_lost = False
    for place, part in enumerate(parts):
        part.fail(error if place == 0 else _one_more(error), stands=not saw_what_is_lost)
        saw_what_is_lost |= part.had_an_effect


class _Part(Generic[R]):
    """One call, what came of it, and who waits for it. `had_an_effect` says that others behind it may have seen one."""

    def __init__(self, function: Callable[[Connection], R]) -> None:
        self.future: Future[R] = Future()
        self._function = function
        self._result: R
        self._error: BaseException | None = None
        self.had_an_effect = False

    def carry_out(self, connection: Connection) -> None:
        """Carry it out alone: what it raises is the transaction's end."""
        self._result = self._function(connection)

    def carry_out_behind_a_savepoint(self, connection: Connection) -> None:
        """Carry it out among others. Raises what ended the whole transaction, if that is what it did."""
        before = aftermath.count(connection)
        connection.exec_driver_sql("SAVEPOINT part")
        try:
            with honest_errors():
                self._result = self._function(connection)
            self.had_an_effect = True
        except BaseException as error:
            if not _is_going_on(connection):
                # A full disk, or one that cannot be read, may take the whole of a transaction back.
                raise
            self._error = error
            aftermath.forget(connection, behind=before)
            connection.exec_driver_sql("ROLLBACK TO part")
        connection.exec_driver_sql("RELEASE part")

    def answer(self) -> None:
        """Tell what came of it."""
        if self._error is None:
            self.future.set_result(self._result)
        else:
            self.future.set_exception(self._error)

    def fail(self, error: BaseException, *, stands: bool) -> None:
        """Tell that it took no effect, for what ended the transaction or, if that `stands`, for what it had raised itself."""
        self.future.set_exception(self._error if stands and self._error is not None else error)


def _is_going_on(connection: Connection) -> bool:
    return bool(getattr(connection.connection.driver_connection, "in_transaction", False))


def _one_more(error: BaseException) -> BaseException:
    """The same for somebody else: an error is told with the way that it took, and each takes its own."""
    try:
        again = copy.copy(error) if isinstance(error, HorariumError) else error
    except TypeError:
        # It says of itself nothing that it could be made from again.
        return error
    again.__cause__ = error.__cause__
    return again
