"""Rows that are there or are not yet: written in one statement, so that two writers never both insert one."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


def upsert(
    connection: Connection,
    table: Table,
    key: Mapping[str, Any],
    values: Mapping[str, Any],
    *,
    first: Mapping[str, Any] | None = None,
    where: ColumnElement[bool] | None = None,
) -> None:
    """Set `values` in the row with that primary key; the row is made where there is none, and given `first` too.

    One of which `where` does not hold is left as it is.
    """
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    connection.execute(
        dialect.insert(table)
        .values(**key, **values, **(first or {}))
        .on_conflict_do_update(index_elements=[table.c[name] for name in key], set_=dict(values), where=where)
    )


def upsert_all(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """As `upsert`, for many whole rows at once: the statement is made once, which is most of what one costs."""
    if not rows:
        return
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    insertion = dialect.insert(table)
    key = list(table.primary_key.columns)
    changed = {each.name: insertion.excluded[each.name] for each in table.columns if not each.primary_key}
    connection.execute(insertion.on_conflict_do_update(index_elements=key, set_=changed), [dict(row) for row in rows])


def make_sure(connection: Connection, table: Table, key: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Make a row with that primary key and `values` where there is none, and say whether it was made.

    One that is there is left as it is. Of two that make it at once, the second waits for the first and finds its row.
    """
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    returned = [table.c[name] for name in key]
    insertion = dialect.insert(table).values(**key, **values).on_conflict_do_nothing().returning(*returned)
    # Counted by what is returned: psycopg counts no row of an insertion that SQLAlchemy makes.
    return connection.execute(insertion).first() is not None
