"""`publish`, `enable`, `pause` and `retire`: the changes that a person makes, each in one transaction."""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from horarium.control import activation, publication
from horarium.control.activation import Changed, Reviewed
from horarium.control.records import record
from horarium.schedule.configuration import parse_configuration
from horarium.schedule.identity import ScheduleKey, instant_text, schedule_key
from starter.cli.installation import catalog_of, find
from starter.cli.printing import Output, print_fields, show, where
from starter.documents import read_document
from worker.settings import Settings, load

Change = Callable[[Connection, ScheduleKey, Reviewed, Settings, datetime], Changed]


async def publish(
    file: str, *, schedule: str | None, expected_revision: int | None, data: Path | None, output: Output | None
) -> int:
    """Store a configuration as the next version of a schedule, or of a new one."""
    document = read_document(file)
    parse_configuration(document)  # whoever wrote a bad document need not have an installation to be told so
    settings = load(data=data)
    key = schedule_key(settings.scope, schedule or str(uuid.uuid4()))
    async with catalog_of(settings) as catalog:
        published = await catalog.write(
            publication.publish,
            key,
            document,
            expected_revision=expected_revision,
            by=settings.principal,
            now=datetime.now(UTC),
        )
    version = published.version
    answer = {
        "schedule_id": key.schedule_id,
        "resource_id": version.resource_id,
        "reference": {"schedule_id": key.schedule_id, "revision": version.revision, "digest": version.digest},
        "published_at": instant_text(version.published_at),
        "published_by": version.published_by,
        "warnings": list(published.warnings),
    }

    def table() -> None:
        print_fields(
            [
                ("Published", document["name"]),
                ("Schedule", key.schedule_id),
                ("Revision", version.revision),
                ("Digest", version.digest),
                *(("Warning", warning) for warning in published.warnings),
            ]
        )
        print(f"Nothing is enabled by that. Next: horarium enable {key.schedule_id}{where(data)}")

    show(answer, output, table)
    return 0


async def change(kind: str, written: str, reviewed: Reviewed, *, data: Path | None, output: Output | None) -> int:
    """Enable, pause or retire a schedule, and show its record."""
    settings = load(data=data)
    async with catalog_of(settings) as catalog:
        key = await find(catalog, settings, written)
        changed = await catalog.write(_CHANGES[kind], key, reviewed, settings, datetime.now(UTC))
        answer = await catalog.read(record, key, revision=changed.version.revision, now=datetime.now(UTC))
    show(answer, output, lambda: _print(kind, changed, answer))
    return 0


def _print(kind: str, changed: Changed, answer: dict[str, Any]) -> None:
    following = changed.version.configuration.calendar.after(changed.activation.activated_at)
    due = "nothing is due from now on" if following is None else instant_text(following)
    print_fields(
        [
            (f"{kind.capitalize()}d", answer["configuration"]["name"]),
            ("Schedule", answer["schedule_id"]),
            ("Revision", changed.version.revision),
            ("Generation", changed.activation.generation),
            ("By", changed.activation.changed_by),
            *([("Next due", due)] if changed.activation.enabled else []),
        ]
    )


def _enable(connection: Connection, key: ScheduleKey, reviewed: Reviewed, settings: Settings, now: datetime) -> Changed:
    return activation.enable(connection, key, reviewed, settings.content, by=settings.principal, now=now)


def _pause(connection: Connection, key: ScheduleKey, reviewed: Reviewed, settings: Settings, now: datetime) -> Changed:
    return activation.pause(connection, key, reviewed, by=settings.principal, now=now)


def _retire(connection: Connection, key: ScheduleKey, reviewed: Reviewed, settings: Settings, now: datetime) -> Changed:
    return activation.retire(connection, key, reviewed, by=settings.principal, now=now)


_CHANGES: dict[str, Change] = {"enable": _enable, "pause": _pause, "retire": _retire}
