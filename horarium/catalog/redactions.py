"""Queries on redactions: seals under which an event was changed on purpose, and what fits them since then."""

from datetime import datetime

from sqlalchemy import Connection, select

from horarium.catalog.archive_tables import redactions as table
from horarium.catalog.upsert import upsert
from horarium.schedule.identity import Scope


def redactions(connection: Connection, scope: Scope) -> dict[int, str]:
    """The digests that stand for those of seals whose events were redacted, by the numbers of the seals."""
    query = select(table.c.number, table.c.digest).where(
        table.c.org_id == scope.org_id, table.c.environment_id == scope.environment_id
    )
    return {row.number: row.digest for row in connection.execute(query)}


def find_redaction(connection: Connection, scope: Scope, number: int) -> str | None:
    """The digest that stands for that of one seal; None where its events are as they were sealed."""
    query = select(table.c.digest).where(
        table.c.org_id == scope.org_id, table.c.environment_id == scope.environment_id, table.c.number == number
    )
    return connection.execute(query).scalar_one_or_none()


def note_redaction(connection: Connection, scope: Scope, number: int, digest: str, *, now: datetime) -> None:
    """Say what fits a seal from now on. The seal itself stays, and with it the chain of all that came after."""
    key = {"org_id": scope.org_id, "environment_id": scope.environment_id, "number": number}
    upsert(connection, table, key, {"digest": digest, "redacted_at": now})
