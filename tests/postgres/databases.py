"""The databases that a catalog may lie in: what runs on one has to run on the other."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from horarium.catalog import Catalog, migrate
from tests.postgres.server import PostgresServer

KINDS = ("sqlite", "postgresql")
_MIGRATED = "migrated"


@dataclass(frozen=True, slots=True)
class Database:
    """Where a test gets catalogs of its own. `server` is None for SQLite."""

    server: PostgresServer | None

    @contextmanager
    def empty(self, folder: Path) -> Iterator[str]:
        """The URL of a catalog without tables."""
        if self.server is None:
            yield f"sqlite:///{folder / 'catalog.sqlite'}"
            return
        with _dropped(self.server, self.server.create_database()) as url:
            yield url

    @contextmanager
    def migrated(self, folder: Path) -> Iterator[str]:
        """The URL of a catalog in this release's form, with nothing in it."""
        if self.server is None:
            with self.empty(folder) as url:
                _migrate(url)
                yield url
            return
        if not self.server.has_database(_MIGRATED):
            # Copied for each test, which takes a fraction of what the migrations take.
            self.server.execute(f"CREATE DATABASE {_MIGRATED}")
            _migrate(self.server.url(_MIGRATED))
        with _dropped(self.server, self.server.create_database(template=_MIGRATED)) as url:
            yield url


@contextmanager
def _dropped(server: PostgresServer, name: str) -> Iterator[str]:
    try:
        yield server.url(name)
    finally:
        server.drop_database(name)


def _migrate(url: str) -> None:
    catalog = Catalog.open(url)
    migrate.upgrade(catalog)
    catalog.close()
