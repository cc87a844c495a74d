"""What enabled schedules declare, added up by the time of their activation: whoever asks for a sum does not read each of them.

There is a sum for each day, for every five minutes of it, and for every second of these. What was declared before an instant is
the days before it, the five minutes of its day before it, the seconds of these before it, and what was activated in its own
second before it, one by one. So beside the days at most 288 and 300 sums are read, and what a second takes in.

Rows are only added, three for each change, and several of one sum are made one from time to time. So a change never waits for
another one, and there are no more rows than three for each that is enabled, and a few.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    ScalarSelect,
    bindparam,
    delete,
    func,
    insert,
    select,
    tuple_,
)

from horarium.catalog.tables import activations, declared

DAY: Final = 86_400
FIVE_MINUTES: Final = 300
SECOND: Final = 1
SPANS: Final = (DAY, FIVE_MINUTES, SECOND)
"""How many seconds the sums are of. Each divides the one before it."""
FOLDED_EVERY: Final = 256
"""Rows that are added between two times that several rows of one sum are made one."""
LOOKED_BACK: Final = 4
"""Times whose rows are looked at. One is left out where it is rolled back, or where making rows one took its number."""
FOLDED_AT_ONCE: Final = 2_000
"""Rows that one such time reads."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one sum is of: so many seconds of a day, in UTC, from that second of it on."""

    span: int
    day: int
    since: int


def part_of(activated: datetime, span: int) -> Part:
    """The part of so many seconds that an instant is in."""
    at = activated.astimezone(UTC)
    second = at.hour * 3_600 + at.minute * 60 + at.second
    return Part(span=span, day=at.toordinal(), since=second - second % span)


def add(connection: Connection, activated: datetime, runs: int) -> None:
    """Count what is live from now on, or as declaring so many more; less than nothing, as declaring less."""
    if runs:
        parts = [(part_of(activated, span), runs) for span in SPANS]
        added = connection.execute(_ADD, _rows(parts)).scalars().all()
        if any(row % FOLDED_EVERY == 0 for row in added):
            fold(connection)


def change(connection: Connection, row: int, activated: datetime, *, to: int) -> None:
    """Count an activation as declaring so many, before its own row says so; 0 for one that ends. One that has ended is none.

    What it was counted as is read from its row, and its row is locked: somebody else may be counting it for the first time.
    """
    counted = connection.execute(_COUNTED, {"counted": row}).scalar_one_or_none()
    if counted is not None:
        add(connection, activated, to - counted)


def of_all() -> ScalarSelect[Any]:
    """For a statement: the sum of all."""
    return _sum_of(declared.c.span == DAY)


def before_second(activated: datetime) -> list[ScalarSelect[Any]]:
    """For a statement: what adds up to all that was activated before the second of an instant."""
    day, minutes, second = (part_of(activated, span) for span in SPANS)
    of_the_day = declared.c.day == day.day
    return [
        _sum_of(declared.c.span == DAY, declared.c.day < day.day),
        _sum_of(declared.c.span == FIVE_MINUTES, of_the_day, declared.c.since < minutes.since),
        _sum_of(
            declared.c.span == SECOND,
            of_the_day,
            declared.c.since >= minutes.since,
            declared.c.since < second.since,
        ),
    ]


def count_again(connection: Connection) -> None:
    """Add up anew from the activations themselves, for whoever wrote them by hand. Nobody else may be changing any."""
    sums: Counter[Part] = Counter()
    live = select(activations.c.changed_at, activations.c.runs_per_month).where(
        activations.c.ended_at.is_(None), activations.c.runs_per_month > 0
    )
    for activated, runs in connection.execute(live):
        for span in SPANS:
            sums[part_of(activated, span)] += runs
    connection.execute(delete(declared))
    _store(connection, sums.items())


def fold(connection: Connection) -> None:
    """Make several rows of one sum one, where one was added lately. Those that somebody else does it with are left to them."""
    newest = connection.execute(_NEWEST).scalar_one_or_none() or 0
    found = connection.execute(_SEVERAL, {"after": newest - LOOKED_BACK * FOLDED_EVERY}).all()
    sums: Counter[Part] = Counter()
    for row in found:
        sums[Part(row.span, row.day, row.since)] += row.runs
    if found:
        connection.execute(_DELETE, [{"folded": row.id} for row in found])
        _store(connection, sums.items())


def _store(connection: Connection, sums: Iterable[tuple[Part, int]]) -> None:
    if rows := _rows((part, runs) for part, runs in sums if runs):
        connection.execute(insert(declared), rows)


def _rows(sums: Iterable[tuple[Part, int]]) -> list[dict[str, int]]:
    return [{"span": part.span, "day": part.day, "since": part.since, "runs": runs} for part, runs in sums]


def _sum_of(*those: ColumnElement[bool]) -> ScalarSelect[Any]:
    return select(func.coalesce(func.sum(declared.c.runs), 0)).where(*those).scalar_subquery()


def _part(table: FromClause) -> tuple[ColumnElement[int], ...]:
    return table.c.span, table.c.day, table.c.since


_ADD = insert(declared).returning(declared.c.id)
_COUNTED = (
    select(func.coalesce(activations.c.runs_per_month, 0))
    .where(activations.c.id == bindparam("counted"), activations.c.ended_at.is_(None))
    .with_for_update()
)
_NEWEST = select(func.max(declared.c.id))
_added, _same = declared.alias("added"), declared.alias("same")
_LATELY = select(*_part(_added)).where(_added.c.id > bindparam("after"))
_OF_SEVERAL = (
    select(*_part(_same)).where(tuple_(*_part(_same)).in_(_LATELY)).group_by(*_part(_same)).having(func.count() > 1)
)
_SEVERAL = (
    select(declared)
    .where(tuple_(*_part(declared)).in_(_OF_SEVERAL))
    .order_by(declared.c.id)
    .limit(FOLDED_AT_ONCE)
    .with_for_update(skip_locked=True)
)
_DELETE = delete(declared).where(declared.c.id == bindparam("folded"))
