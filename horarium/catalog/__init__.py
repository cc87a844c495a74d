"""The record: tables, migrations and queries, on SQLite and PostgreSQL alike."""

from horarium.catalog.engine import Catalog

__all__ = ["Catalog"]
