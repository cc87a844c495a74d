"""What enabled schedules declare, added up by the day of their activation: whoever asks for the sum does not read each of them.

Rows are only added, one for each change, and several of a day are made one from time to time. So a change never waits for
another one, and those that are added up are as many as there are days, and a few.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from horarium.catalog.tables import activations, declared

FOLDED_EVERY: Final = 256
"""Changes between two times that the rows of a day are made one."""
FOLDED_AT_ONCE: Final = 2_000
"""Rows that one such time reads."""


def day_of(activated: datetime) -> int:
    """The day, in UTC, that what was activated then is counted under."""
    return activated.toordinal()


def add(connection: Connection, activated: datetime, runs: int) -> None:
    """Count what is live from now on."""
    if runs:
        row = connection.execute(_ADD, {"day": day_of(activated), "runs": runs}).scalar_one()
        _fold_now_and_then(connection, row)


def change(connection: Connection, row: int, activated: datetime, *, to: int) -> None:
    """Count an activation as declaring so many, before its own row says so; 0 for one that ends. One that has ended is none.

    What it was counted as is read from its row, and its row is locked: somebody else may be counting it for the first time.
    """
    place = {"counted": row, "day": day_of(activated), "to": to}
    for added in connection.execute(_CHANGE, place).scalars().all():
        _fold_now_and_then(connection, added)


def count_again(connection: Connection) -> None:
    """Add up anew from the activations themselves, for whoever wrote them by hand. Nobody else may be changing any."""
    sums: Counter[int] = Counter()
    live = select(activations.c.changed_at, activations.c.runs_per_month).where(
        activations.c.ended_at.is_(None), activations.c.runs_per_month > 0
    )
    for activated, runs in connection.execute(live):
        sums[day_of(activated)] += runs
    connection.execute(delete(declared))
    _store(connection, sums.items())


def fold(connection: Connection) -> None:
    """Make the rows of each day one. Those that somebody else is doing the same with are left to them."""
    several = select(declared.c.day).group_by(declared.c.day).having(func.count() > 1)
    rows = select(declared).where(declared.c.day.in_(several)).order_by(declared.c.id).limit(FOLDED_AT_ONCE)
    found = connection.execute(rows.with_for_update(skip_locked=True)).all()
    sums: Counter[int] = Counter()
    for row in found:
        sums[row.day] += row.runs
    if found:
        connection.execute(
            delete(declared).where(declared.c.id == bindparam("folded")), [{"folded": row.id} for row in found]
        )
        _store(connection, sums.items())


def _fold_now_and_then(connection: Connection, row: int) -> None:
    if row % FOLDED_EVERY == 0:
        fold(connection)


def _store(connection: Connection, sums: Iterable[tuple[int, int]]) -> None:
    if rows := [{"day": day, "runs": runs} for day, runs in sums if runs]:
        connection.execute(insert(declared), rows)


_ADD = insert(declared).returning(declared.c.id)
_COUNTED = func.coalesce(activations.c.runs_per_month, 0)
_CHANGE = (
    insert(declared)
    .from_select(
        ["day", "runs"],
        select(bindparam("day", type_=declared.c.day.type), bindparam("to", type_=declared.c.runs.type) - _COUNTED)
        # Whatever it comes to: where nothing were asked of the row, it would not be locked.
        .where(activations.c.id == bindparam("counted"), activations.c.ended_at.is_(None))
        .with_for_update(),
    )
    .returning(declared.c.id)
)
