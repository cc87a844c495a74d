"""The catalog's own clock: one for all processes of an installation, whatever their machines believe."""

from datetime import UTC, datetime

from sqlalchemy import Connection, text

_SQLITE = text("SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now')")
_POSTGRESQL = text("SELECT clock_timestamp()")
"""Not `now()`, which is the time at which the transaction began."""


def catalog_time(connection: Connection) -> datetime:
    """The database's time at this moment: the server's with PostgreSQL, and with SQLite that of the machine that all are on."""
    if connection.dialect.name == "postgresql":
        told: datetime = connection.execute(_POSTGRESQL).scalar_one()
        return told.astimezone(UTC)
    return datetime.fromisoformat(connection.execute(_SQLITE).scalar_one()).replace(tzinfo=UTC)
