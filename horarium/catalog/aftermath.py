"""What is done once a transaction has taken effect, such as a line in the log: nothing is told of what was rolled back."""

from collections.abc import Callable
from typing import Final

from sqlalchemy import Connection

_KEY: Final = "horarium_aftermath"


def after_commit(connection: Connection, act: Callable[[], None]) -> None:
    """Do something after the commit of a transaction that `Catalog.writing` began, in its thread and in the order of asking.

    It must not raise: what was asked for has happened by then.
    """
    connection.info.setdefault(_KEY, []).append(act)


def forget(connection: Connection) -> None:
    """Begin with nothing to do. What an earlier transaction on the same connection had asked for was rolled back with it."""
    connection.info.pop(_KEY, None)


def carry_out(connection: Connection) -> None:
    """Do what was asked for. The transaction was committed."""
    for act in connection.info.pop(_KEY, []):
        act()
