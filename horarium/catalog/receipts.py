"""Queries on receipts: what was answered to a caller's key, kept as long as the catalog."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select

from horarium.catalog.tables import receipts
from horarium.schedule.identity import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReceipt:
    """A receipt as stored. `body_digest` is of the request that it answers, `reset_generation` of its environment then."""

    receipt_id: str
    operation: str
    body_digest: str
    reset_generation: int
    document: dict[str, Any]
    created_at: datetime


def find_receipt(connection: Connection, scope: Scope, principal: str, key: str) -> StoredReceipt | None:
    """What was answered to a principal's key, or None."""
    query = select(receipts).where(
        receipts.c.org_id == scope.org_id,
        receipts.c.environment_id == scope.environment_id,
        receipts.c.principal == principal,
        receipts.c.key == key,
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    return StoredReceipt(
        receipt_id=row.receipt_id,
        operation=row.operation,
        body_digest=row.body_digest,
        reset_generation=row.reset_generation,
        document=row.document,
        created_at=row.created_at,
    )


def insert_receipt(connection: Connection, scope: Scope, principal: str, key: str, receipt: StoredReceipt) -> None:
    """Bind a key to its answer. The caller holds the environment's lock."""
    connection.execute(
        insert(receipts).values(
            org_id=scope.org_id,
            environment_id=scope.environment_id,
            principal=principal,
            key=key,
            receipt_id=receipt.receipt_id,
            operation=receipt.operation,
            body_digest=receipt.body_digest,
            reset_generation=receipt.reset_generation,
            document=receipt.document,
            created_at=receipt.created_at,
        )
    )
