"""The tables of people's sessions at the pages."""

from sqlalchemy import JSON, Column, Index, String, Table

from horarium.catalog.tables import metadata
from horarium.catalog.types import Instant

# Who is signed in. Of what the browser shows only the hash is kept, so that a copy of the catalog lets nobody in.
sessions = Table(
    "sessions",
    metadata,
    Column("secret_hash", String(64), primary_key=True),
    Column("org_id", String(200), nullable=False),
    Column("person", String(200), nullable=False),
    Column("scopes", JSON, nullable=False),
    Column("began_at", Instant, nullable=False),
    # When the person did something last, to the minute.
    Column("used_at", Instant, nullable=False),
    Column("ends_at", Instant, nullable=False),
)
Index("ix_sessions_person", sessions.c.org_id, sessions.c.person, sessions.c.began_at)
# Those that are over are at its beginning.
Index("ix_sessions_ends_at", sessions.c.ends_at)

# What lets a person sign in once: made at the command line of a development installation.
sign_in_codes = Table(
    "sign_in_codes",
    metadata,
    Column("code_hash", String(64), primary_key=True),
    Column("org_id", String(200), nullable=False),
    Column("person", String(200), nullable=False),
    Column("scopes", JSON, nullable=False),
    Column("ends_at", Instant, nullable=False),
)
Index("ix_sign_in_codes_ends_at", sign_in_codes.c.ends_at)
