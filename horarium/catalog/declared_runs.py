"""How many runs a month all enabled schedules of an installation declare, each as it was counted at its enabling."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, ScalarSelect, bindparam, func, select, text, tuple_, update

from horarium.catalog import declared_sums
from horarium.catalog.schedules import Activation
from horarium.catalog.tables import activations

_ADDING: Final = 0x686F726172697532
"""The advisory lock of whoever adds to the sum: "horariu2" as a number, beside that of migrations."""
_AT_ONCE: Final = 500
"""Rows that one statement names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The runs a month of what is enabled and was counted, and how much was not: an earlier release enabled it."""

    runs: int
    uncounted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncounted:
    """A live activation that nobody has counted: its own row, that of its schedule, and its revision."""

    row: int
    schedule: int
    revision: int
    activated: datetime


def lock_declared(connection: Connection) -> None:
    """Let nobody else who calls this in the installation go on until the transaction ends.

    Whoever adds to the sum and is bound by it does: what two add at once would be seen by neither. It is taken after all
    other locks. SQLite has one writer anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADDING})


def declared_by_all(connection: Connection) -> Declared:
    """What all that is enabled declares, of every organization."""
    return _declared(connection, None)


def declared_before(connection: Connection, activation: Activation) -> Declared:
    """What all declares that is enabled and was activated before this one. Of the same second it is added up one by one."""
    return _declared(connection, activation)


def uncounted(
    connection: Connection, *, before: Activation | None = None, limit: int | None = None
) -> Sequence[Uncounted]:
    """What is enabled and not counted, in the order of activation; with `before`, only what was activated before that one."""
    query = (
        select(activations.c.id, activations.c.schedule, activations.c.revision, activations.c.changed_at)
        .where(*_uncounted(before))
        .order_by(activations.c.changed_at, activations.c.id)
        .limit(limit)
    )
    return [
        Uncounted(row=row.id, schedule=row.schedule, revision=row.revision, activated=row.changed_at)
        for row in connection.execute(query)
    ]


def keep_counts(connection: Connection, counts: Mapping[int, int]) -> None:
    """Keep what activations declare, by their rows. One that somebody else is changing is left for the next time: the caller
    holds no lock of its schedule, and must not wait for one."""
    rows = list(counts)
    for begin in range(0, len(rows), _AT_ONCE):
        ours = (
            select(activations.c.id, activations.c.changed_at)
            .where(
                activations.c.id.in_(rows[begin : begin + _AT_ONCE]),
                activations.c.runs_per_month.is_(None),
                activations.c.ended_at.is_(None),
            )
            .with_for_update(skip_locked=True, key_share=True)
        )
        locked = connection.execute(ours).all()
        for row in locked:
            declared_sums.add(connection, row.changed_at, counts[row.id])
        found = [{"row": row.id, "counted": counts[row.id]} for row in locked]
        if found:
            change = update(activations).where(activations.c.id == bindparam("row"))
            connection.execute(change.values(runs_per_month=bindparam("counted")), found)


def _declared(connection: Connection, before: Activation | None) -> Declared:
    missing = select(func.count()).select_from(activations).where(*_uncounted(before)).scalar_subquery()
    sums = (
        [declared_sums.of_all()]
        if before is None
        else [*declared_sums.before_second(before.changed_at), _since(before)]
    )
    *found, uncounted_ones = connection.execute(select(*sums, missing)).one()
    # PostgreSQL adds up to a decimal number.
    return Declared(runs=sum(map(int, found)), uncounted=int(uncounted_ones))


def _since(before: Activation) -> ScalarSelect[Any]:
    second = before.changed_at.astimezone(UTC).replace(microsecond=0)
    of_that_second = (activations.c.ended_at.is_(None), activations.c.changed_at >= second, _is_before(before))
    return select(func.coalesce(func.sum(activations.c.runs_per_month), 0)).where(*of_that_second).scalar_subquery()


def _uncounted(before: Activation | None) -> tuple[ColumnElement[bool], ...]:
    none = (activations.c.ended_at.is_(None), activations.c.runs_per_month.is_(None))
    return none if before is None else (*none, _is_before(before))


def _is_before(activation: Activation) -> ColumnElement[bool]:
    order = tuple_(activations.c.changed_at, activations.c.id)
    return order < tuple_(activation.changed_at, activation.row)
