"""The record: tables, migrations and queries, on SQLite and PostgreSQL alike."""

from horarium.catalog import archive_tables as _archive_tables  # noqa: F401 - so that the metadata has every table
from horarium.catalog import notification_tables as _notification_tables  # noqa: F401 - likewise
from horarium.catalog import session_tables as _session_tables  # noqa: F401 - likewise
from horarium.catalog.engine import Catalog

__all__ = ["Catalog"]
