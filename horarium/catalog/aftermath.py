"""What is done once a transaction has taken effect, such as a line in the log: nothing is told of what was rolled back."""

import json
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from typing import Final, TextIO

from sqlalchemy import Connection

Act = Callable[[], None]
_KEY: Final = "horarium_aftermath"


def after_commit(connection: Connection, act: Act) -> None:
    """Do something after the commit of a transaction that `Catalog.writing` began, in its thread and in the order of asking.

    By then the connection is somebody else's. What the act raises is told on stderr and reaches no caller: what was asked for
    has happened, and whoever hears of an error would ask for it again.
    """
    connection.info.setdefault(_KEY, []).append(act)


def forget(connection: Connection, *, behind: int = 0) -> None:
    """Forget what was asked for, and was rolled back: all of an earlier transaction on the same connection, or all but the
    first so many acts of this one."""
    del connection.info.get(_KEY, [])[behind:]


def count(connection: Connection) -> int:
    """How much was asked for until now."""
    return len(connection.info.get(_KEY, ()))


def taken(connection: Connection) -> list[Act]:
    """What was asked for, which is the caller's to do from now on. The transaction was committed."""
    found: list[Act] = connection.info.pop(_KEY, [])
    return found


def carry_out(acts: Iterable[Act]) -> None:
    """Do what was asked for, all of it: one that fails keeps no other from being done."""
    for act in acts:
        try:
            act()
        except Exception as error:  # noqa: BLE001 - whatever it is, it undoes no commit
            _UNTOLD.tell(error)


class _Untold:
    """Acts that failed, on stderr since the log may be what failed. Those that cannot be told there either are counted for the
    next one that can."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    def tell(self, error: Exception) -> None:
        with self._lock:
            before, self._count = self._count, self._count + 1
            if (stream := sys.stderr) is not None and self._written(stream, error, before):
                self._count = 0

    @staticmethod
    def _written(stream: TextIO, error: Exception, before: int) -> bool:
        # One line of JSON, as the log's are.
        told = {
            "event": "aftermath_failed",
            "level": "error",
            "because": "What was to be done after a commit failed. The change itself is stored.",
            "untold_before": before,
            "exception": "".join(traceback.format_exception(error)),
        }
        try:
            stream.write(json.dumps(told) + "\n")
            stream.flush()
        except (OSError, ValueError):  # gone, or closed
            return False
        return True


_UNTOLD: Final = _Untold()
