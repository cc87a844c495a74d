"""Audit events: one for each accepted change and each transition, written in its transaction.

Their details say from where to where: `from` and `to` with `reference`, `generation` and `state` as far as there is any, and
`because`, and `receipt_id` where a request with a key made the change.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from horarium.catalog.audit_events import record_event
from horarium.catalog.schedules import Activation, Schedule, require_version
from horarium.catalog.versions import Version
from horarium.control import v0_events
from horarium.schedule.ledger import Reason

Standing = dict[str, Any]


def tell(
    connection: Connection,
    schedule: Schedule,
    kind: str,
    *,
    by: str,
    now: datetime,
    before: Standing | None,
    after: Standing,
    because: str | None = None,
    receipt_id: str | None = None,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Append one event, and that of the schedule's own contract beside it.

    It is found under the generation and the revision of `after`.
    """
    details = {"from": before, "to": after, "because": because, "receipt_id": receipt_id, **(more or {})}
    record_event(
        connection,
        schedule,
        kind,
        at=now,
        actor=by,
        generation=after.get("generation"),
        revision=after["reference"]["revision"],
        details={name: value for name, value in details.items() if value is not None or name == "from"},
    )
    v0_events.tell_change(connection, schedule, kind, before, after, receipt_id=receipt_id, by=by, now=now)


def published(schedule: Schedule, version: Version) -> Standing:
    """Where a head stands."""
    return {"reference": reference(schedule, version)}


def activated(
    connection: Connection, schedule: Schedule, activation: Activation, *, state: str | None = None
) -> Standing:
    """Where an activation stands, in the words of the contract: enabled, paused, retired or review; or as told."""
    version = require_version(connection, schedule, activation.revision)
    return {
        "reference": reference(schedule, version),
        "generation": activation.generation,
        "state": state or _state(activation),
    }


def reference(schedule: Schedule, version: Version) -> dict[str, Any]:
    """The exact version that a person reviewed."""
    return {"schedule_id": schedule.key.schedule_id, "revision": version.revision, "digest": version.digest}


def _state(activation: Activation) -> str:
    return "enabled" if activation.is_live else activation.ended_as or Reason.PAUSED.value
