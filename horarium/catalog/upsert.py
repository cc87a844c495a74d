"""One row that is there or is not yet: written in one statement, so that two writers never both insert it."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


def upsert(connection: Connection, table: Table, key: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Set `values` in the row with that primary key; the row is made where there is none."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    connection.execute(
        dialect.insert(table)
        .values(**key, **values)
        .on_conflict_do_update(index_elements=[table.c[name] for name in key], set_=dict(values))
    )


def make_sure(connection: Connection, table: Table, key: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Make a row with that primary key and `values` where there is none, and say whether it was made.

    One that is there is left as it is. Of two that make it at once, the second waits for the first and finds its row.
    """
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    returned = [table.c[name] for name in key]
    insertion = dialect.insert(table).values(**key, **values).on_conflict_do_nothing().returning(*returned)
    # Counted by what is returned: psycopg counts no row of an insertion that SQLAlchemy makes.
    return connection.execute(insertion).first() is not None
