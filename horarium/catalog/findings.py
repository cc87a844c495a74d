"""How often each thing was found that should not be. Counts only grow, and outlive whoever counted."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection, func, select, update

from horarium.catalog.tables import findings
from horarium.catalog.upsert import make_sure
from horarium.schedule.findings import Finding
from horarium.schedule.identity import Scope


def add(connection: Connection, scope: Scope, counts: Mapping[Finding, int], *, now: datetime) -> None:
    """Add to the counts of an environment."""
    # In one order, so that no two who add several wait for each other's locks.
    for kind in sorted(counts):
        key = {"org_id": scope.org_id, "environment_id": scope.environment_id, "kind": kind}
        if make_sure(connection, findings, key, {"count": counts[kind], "last_at": now}):
            continue
        mine = [findings.c[name] == value for name, value in key.items()]
        connection.execute(update(findings).where(*mine).values(count=findings.c["count"] + counts[kind], last_at=now))


def totals(connection: Connection) -> Mapping[str, int]:
    """How often each kind was found, over all environments; kinds that never were are 0."""
    query = select(findings.c.kind, func.sum(findings.c["count"])).group_by(findings.c.kind)
    found = {kind: int(count) for kind, count in connection.execute(query)}
    return {kind.value: found.get(kind, 0) for kind in Finding}
