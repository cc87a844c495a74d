"""Publication: storing a version. It enables nothing, and it never replaces an enabled version."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from horarium import traces
from horarium.catalog.environments import require_environment
from horarium.catalog.schedules import find_schedule, insert_schedule, insert_version, require_version
from horarium.catalog.versions import Version
from horarium.control import events
from horarium.control.retirement import refused_as_retired
from horarium.errors import Conflict
from horarium.schedule.canonical import canonical_json, digest
from horarium.schedule.configuration import CONTRACT, Configuration, StoredConfiguration, parse_configuration
from horarium.schedule.identity import ScheduleKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What a publication stored. `warnings` are sentences for the person; they refused nothing."""

    key: ScheduleKey
    version: Version
    warnings: tuple[str, ...]


def publish(
    connection: Connection,
    key: ScheduleKey,
    document: Any,
    *,
    expected_revision: int | None,
    by: str,
    now: datetime,
    configuration: Configuration | StoredConfiguration | None = None,
    contract: str = CONTRACT,
    receipt_id: str | None = None,
) -> Published:
    """Store a configuration as the next version of a schedule.

    `expected_revision` is the head that the publisher reviewed, 0 for the first version; None takes whatever the head is.
    `configuration` is the document as a value, where it was parsed before the transaction began. `contract` is the one that
    made the document; all versions of a schedule are of one. Raises `InvalidSchedule` with every fault, `Conflict` where the
    head is another one, the schedule is of another contract, or it is retired.
    """
    configuration = configuration or parse_configuration(document)
    require_environment(connection, key.scope)
    schedule = find_schedule(connection, key, lock=True)
    if schedule is None:
        # Before the head is looked at: whoever publishes the first version at the same time may have been faster.
        schedule = insert_schedule(connection, key, contract=contract, now=now)
    head = schedule.head_revision
    if schedule.retired_at is not None:
        raise refused_as_retired(schedule)
    if schedule.contract != contract:
        raise Conflict(
            "other_contract",
            f"Schedule {key.schedule_id} was made by the contract {schedule.contract!r}, not by {contract!r}.",
            next_step="Change it where it was made, or publish under a new schedule id.",
        )
    if expected_revision is not None and expected_revision != head:
        raise Conflict(
            "revision_conflict",
            f"The head of schedule {key.schedule_id} is revision {head}, not {expected_revision}.",
            next_step=f"Read the head, review it, and publish with expected revision {head}.",
        )
    version = Version(
        revision=head + 1,
        resource_id=str(uuid.uuid4()),
        digest=digest(document),
        text=canonical_json(document).decode(),
        published_at=now,
        published_by=by,
    )
    before = events.published(schedule, require_version(connection, schedule, head)) if head else None
    insert_version(connection, schedule, version)
    after = events.published(schedule, version)
    events.tell(connection, schedule, "published", by=by, now=now, before=before, after=after, receipt_id=receipt_id)
    traces.tell_published(connection, key, version.revision)
    return Published(key=key, version=version, warnings=calendar_warnings(configuration, now=now))


def calendar_warnings(configuration: Configuration | StoredConfiguration, *, now: datetime) -> tuple[str, ...]:
    """What a person should know of a calendar that will never be due, as sentences."""
    if configuration.calendar.is_empty:
        return ("The calendar can never select an instant within its bounds, so it will never run anything.",)
    if configuration.calendar.after(now) is None:
        return ("The calendar selects no instant from now on: its last one has passed.",)
    return ()
