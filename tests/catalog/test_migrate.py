"""What migrations make is what the tables say, and a process works with its own release's form only."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, inspect, text

from horarium.catalog import Catalog, migrate
from horarium.catalog.tables import metadata
from horarium.errors import Misconfigured


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    opened = Catalog.open(f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    yield opened
    opened.close()


def test_the_migrations_make_exactly_the_tables(catalog: Catalog, tmp_path: Path) -> None:
    """Alembic compares what it can; the rest (partial indexes, keys, defaults) is compared as SQLite keeps it."""
    migrate.upgrade(catalog)
    with catalog.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, metadata) == []
        migrated = written_down(connection)
    (tmp_path / "direct").mkdir()
    direct = Catalog.open(f"sqlite:///{tmp_path / 'direct' / 'catalog.sqlite'}")
    with direct.writing() as connection:
        metadata.create_all(connection)
        assert migrated == written_down(connection)
    direct.close()


def written_down(connection: Connection) -> dict[str, list[str]]:
    """The words of each statement, in no order: constraints are told in any."""
    query = text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name != 'alembic_version'")
    return {name: sorted(re.findall(r"\w+|[^\s\w]", sql)) for name, sql in connection.execute(query)}


def test_upgrading_twice_changes_nothing(catalog: Catalog) -> None:
    migrate.upgrade(catalog)
    migrate.upgrade(catalog)
    migrate.require_current(catalog)
    with catalog.reading() as connection:
        assert set(inspect(connection).get_table_names()) == {*metadata.tables, "alembic_version"}


def test_an_empty_file_is_not_current(catalog: Catalog) -> None:
    with pytest.raises(Misconfigured, match=r"at revision none, .*Run `horarium db upgrade`"):
        migrate.require_current(catalog)


def test_a_catalog_of_a_newer_release_is_left_to_it(catalog: Catalog) -> None:
    migrate.upgrade(catalog)
    with catalog.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(Misconfigured, match=r"at revision 9999, .*or use the release that wrote it"):
        migrate.require_current(catalog)
    with pytest.raises(Misconfigured, match="'9999', which this release does not know"):
        migrate.upgrade(catalog)
