"""The tables that say what was archived, pruned and erased: what is gone is told, and never looks as if it had not been."""

from sqlalchemy import JSON, BigInteger, Column, ForeignKey, Integer, String, Table

from horarium.catalog.tables import metadata, schedules
from horarium.catalog.types import Instant

# Of an activation whose ledger was pruned: until when, and how many instants of each disposition are in archives instead.
pruned_ledgers = Table(
    "pruned_ledgers",
    metadata,
    Column("schedule", schedules.c.id.type, ForeignKey("schedules.id"), primary_key=True),
    Column("generation", Integer, primary_key=True),
    Column("through", Instant, nullable=False),
    Column("dispositions", JSON, nullable=False),
)

# Each archive that something was pruned after. The digest is its manifest's, which names every file with its own.
archives = Table(
    "archives",
    metadata,
    Column("archive_id", String(36), primary_key=True),
    Column("org_id", String(200), nullable=False),
    Column("environment_id", String(200), nullable=False),
    Column("before", Instant, nullable=False),
    Column("began_at", Instant, nullable=False),
    Column("digest", String(71), nullable=False),
    # The newest seal whose events are in it and no longer here; 0 for none.
    Column("seal", Integer, nullable=False),
    Column("rows", BigInteger, nullable=False),
    # None until all that it holds is pruned.
    Column("ended_at", Instant),
)

# Seals under which an event was changed on purpose, since it named a person who is erased: what fits them since then.
redactions = Table(
    "redactions",
    metadata,
    Column("org_id", String(200), primary_key=True),
    Column("environment_id", String(200), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("digest", String(71), nullable=False),
    Column("redacted_at", Instant, nullable=False),
)
