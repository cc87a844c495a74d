"""How many runs a month all enabled schedules of an installation declare, each as it was counted at its enabling."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, Select, bindparam, func, select, text, tuple_, update

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
    """What all declares that is enabled and was activated before this one."""
    return _declared(connection, activation)


def uncounted(
    connection: Connection, *, before: Activation | None = None, limit: int | None = None
) -> Sequence[Uncounted]:
    """What is enabled and not counted, in the order of activation; with `before`, only what was activated before that one."""
    query = (
        _live(before)
        .add_columns(activations.c.id, activations.c.schedule, activations.c.revision)
        .where(activations.c.runs_per_month.is_(None))
        .order_by(activations.c.changed_at, activations.c.id)
        .limit(limit)
    )
    return [Uncounted(row=row.id, schedule=row.schedule, revision=row.revision) for row in connection.execute(query)]


def keep_counts(connection: Connection, counts: Mapping[int, int]) -> None:
    """Keep what activations declare, by their rows. One that somebody else is changing is left for the next time: the caller
    holds no lock of its schedule, and must not wait for one."""
    rows = list(counts)
    for begin in range(0, len(rows), _AT_ONCE):
        ours = (
            select(activations.c.id)
            .where(activations.c.id.in_(rows[begin : begin + _AT_ONCE]), activations.c.runs_per_month.is_(None))
            .with_for_update(skip_locked=True, key_share=True)
        )
        found = [{"row": row, "counted": counts[row]} for row in connection.execute(ours).scalars()]
        if found:
            change = update(activations).where(activations.c.id == bindparam("row"))
            connection.execute(change.values(runs_per_month=bindparam("counted")), found)


def _declared(connection: Connection, before: Activation | None) -> Declared:
    counted = activations.c.runs_per_month
    query = _live(before).add_columns(func.coalesce(func.sum(counted), 0), func.count() - func.count(counted))
    runs, missing = connection.execute(query).one()
    return Declared(runs=int(runs), uncounted=int(missing))


def _live(before: Activation | None) -> Select[tuple[()]]:
    query: Select[tuple[()]] = select().select_from(activations).where(activations.c.ended_at.is_(None))
    if before is None:
        return query
    order = tuple_(activations.c.changed_at, activations.c.id)
    return query.where(order < tuple_(before.changed_at, before.row))
