"""Bring a catalog's tables to this release's form."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, text

from horarium.catalog.engine import Catalog
from horarium.errors import Misconfigured

_SCRIPTS = Path(__file__).parent / "migrations"
_MIGRATING = 0x686F726172697531
"""The advisory lock that migrations take: "horariu1" as a number, which nobody else in the database will think of."""


def upgrade(catalog: Catalog) -> None:
    """Apply what is missing, as one transaction; nothing is done where nothing is missing. Safe to call from many processes.

    Raises `Misconfigured` where a newer release has been at the catalog.
    """
    with catalog.writing() as connection:
        _take_turns(connection)
        config = _config()
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError as error:
            found = MigrationContext.configure(connection).get_current_revision()
            raise Misconfigured(
                f"The catalog is at revision {found!r}, which this release does not know. Use the release that wrote it."
            ) from error


def require_current(catalog: Catalog) -> None:
    """Raise `Misconfigured` unless the catalog has exactly this release's form."""
    expected = ScriptDirectory.from_config(_config()).get_current_head()
    with catalog.reading() as connection:
        found = MigrationContext.configure(connection).get_current_revision()
    if found != expected:
        raise Misconfigured(
            f"The catalog is at revision {found or 'none'}, and this release works with {expected}. "
            "Run `horarium db upgrade`, or use the release that wrote it."
        )


def _take_turns(connection: Connection) -> None:
    """Let nobody else migrate meanwhile. On SQLite the transaction itself sees to that."""
    if connection.dialect.name != "postgresql":
        return
    # Others wait as long as it takes, and an index over years of a ledger takes long. But a change of a table that waits
    # for its lock stops everybody behind it, so that wait stays as short as any.
    lock_timeout = connection.execute(text("SHOW lock_timeout")).scalar_one()
    connection.execute(text("SET LOCAL lock_timeout = 0"))
    connection.execute(text("SET LOCAL statement_timeout = 0"))
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATING})
    connection.execute(text(f"SET LOCAL lock_timeout = '{lock_timeout}'"))


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS))
    return config
