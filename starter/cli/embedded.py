"""The embedded catalog of a data folder as a place to act, recorded as `local:{user}`."""

from collections.abc import Mapping
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from horarium.authority.asking import asked_outside
from horarium.catalog import Catalog, presence
from horarium.catalog.pages import Wanted
from horarium.control import administration, declaring, notifications, operations, overview, pages, records
from horarium.control.archived import archived
from horarium.control.principals import local_principal
from horarium.control.receipts import Receipt
from horarium.control.sweeping import review_all_enabled_before
from horarium.schedule.identity import ScheduleKey, schedule_key
from starter.cli.embedded_profiles import EmbeddedProfiles
from starter.cli.embedded_v0 import EmbeddedV0
from starter.cli.place import Document, Lines
from worker.settings import Settings


class Embedded:
    """Asks the catalog itself. What was changed is carried out at Temporal by the controller, within seconds."""

    look_every = timedelta(milliseconds=500)

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._catalog = catalog
        self._settings = settings
        self.scope = settings.scope
        self._person = local_principal(settings.principal, settings.scope)
        self.profiles = EmbeddedProfiles(catalog, settings, self._person)
        self.v0 = EmbeddedV0(catalog, settings, self._person)

    async def environment(self) -> Document:
        """The environment of this installation."""
        return await self._catalog.read(pages.environment, self.scope, now=_now())

    async def last_beat(self) -> datetime | None:
        """The newest heartbeat of a worker, where none is alive."""
        return await self._catalog.read(_last_beat, now=_now())

    async def kill_switches(self) -> list[Document]:
        """What keeps everything from running, the whole organization's first."""
        return await self._catalog.read(overview.kill_switches, self.scope)

    async def record(self, schedule_id: str, *, revision: int | None = None) -> Document:
        """A schedule at its head or at one revision."""
        return await self._catalog.read(records.record, self._key(schedule_id), revision=revision, now=_now())

    async def directory(self, *, limit: int, after: str | None, include_retired: bool) -> Document:
        """A page of schedules."""
        return await self._catalog.read(
            records.directory, self.scope, after=after, limit=limit, include_retired=include_retired, now=_now()
        )

    async def occurrences(self, schedule_id: str, wanted: Lines, *, limit: int) -> list[Document]:
        """The newest lines of a ledger, oldest first."""
        newest = await self._catalog.read(
            records.occurrences,
            self._key(schedule_id),
            since=wanted.since,
            until=wanted.until,
            dispositions=wanted.dispositions,
            generation=wanted.generation,
            touched_since=wanted.touched_since,
            limit=limit,
            newest_first=True,
        )
        return newest[::-1]

    async def events(self, schedule_id: str, *, after: int, limit: int) -> list[Document]:
        """Audit events, oldest first."""
        return await self._catalog.read(records.events, self._key(schedule_id), after=after, limit=limit)

    async def archived(self, schedule_id: str | None, wanted: Lines | None = None) -> list[Document]:
        """See `Place.archived`."""
        if schedule_id is None:
            return await self._catalog.read(archived, self.scope)
        key = self._key(schedule_id)
        if wanted is None:
            return await self._catalog.read(records.archived_events, key)
        asked = Wanted(since=wanted.since, until=wanted.until, touched_since=wanted.touched_since)
        return (await self._catalog.read(pages.schedule_ledger, key, asked, after=None, limit=1)).archived

    async def publish(self, request: Mapping[str, Any], key: str) -> Document:
        """Store a version."""
        receipt = await self._catalog.write(
            operations.publish, self._person, self.scope, dict(request), key, now=_now()
        )
        return receipt.document

    async def set_enabled(self, request: Mapping[str, Any], key: str) -> Document:
        """Enable or pause."""
        async with aclosing(self._settings.authority) as authority:
            receipt = await asked_outside(
                authority,
                lambda content: self._catalog.write(
                    operations.set_activation,
                    self._person,
                    self.scope,
                    dict(request),
                    key,
                    content=content,
                    now=_now(),
                    ceilings=self._settings.ceilings,
                ),
            )
        return receipt.document

    async def retire(self, request: Mapping[str, Any], key: str) -> Document:
        """Retire for good."""
        receipt = await self._catalog.write(operations.retire, self._person, self.scope, dict(request), key, now=_now())
        return receipt.document

    async def trigger(self, request: Mapping[str, Any], key: str) -> Document:
        """Stage a run, which the schedule's workflow or the controller starts."""
        receipt = await self._catalog.write(
            operations.trigger, self._person, self.scope, dict(request), key, now=_now()
        )
        return receipt.document

    async def authority(self) -> Document:
        """The environment as operators see it."""
        return await self._catalog.read(overview.overview, self.scope)

    async def acts(self, *, after: int, limit: int) -> list[Document]:
        """What operators did, oldest first."""
        return await self._catalog.read(overview.acts, self.scope, after=after, limit=limit)

    async def apply_authority(self, file: Mapping[str, Any], key: str, *, dry_run: bool) -> Document:
        """Make the environment what a file says, or tell what that would change."""
        if dry_run:
            return await self._catalog.read(declaring.preview_of, self._person, self.scope, dict(file))
        receipt = await self._catalog.write(declaring.apply, self._person, self.scope, dict(file), key, now=_now())
        return receipt.document

    async def operate(self, act: str, request: Mapping[str, Any], key: str) -> Document:
        """Do what an operator may."""
        operation = getattr(administration, act)
        receipt: Receipt = await self._catalog.write(
            operation, self._person, self.scope, dict(request), key, now=_now()
        )
        if act in {"advance_epoch", "reset"}:
            # There may be no controller to do it.
            await review_all_enabled_before(self._catalog, self.scope, now=_now)
        return receipt.document

    async def endpoints(self) -> list[Document]:
        """Who is told of what happens."""
        found = await self._catalog.read(notifications.endpoints_document, self.scope)
        return list(found["endpoints"])

    async def dead_letters(self, *, after: int, limit: int) -> list[Document]:
        """What nobody heard, oldest first."""
        return await self._catalog.read(notifications.dead_letters, self.scope, after=after, limit=limit)

    async def notify(self, act: str, request: Mapping[str, Any], key: str) -> Document:
        """Write it down; the controller does what is to be sent."""
        operation = getattr(notifications, "try_out" if act == "test" else act)
        receipt: Receipt = await self._catalog.write(
            operation, self._person, self.scope, dict(request), key, now=_now()
        )
        return receipt.document

    def _key(self, schedule_id: str) -> ScheduleKey:
        return schedule_key(self.scope, schedule_id)


def _now() -> datetime:
    return datetime.now(UTC)


def _last_beat(connection: Connection, *, now: datetime) -> datetime | None:
    if presence.roles_present(connection, now=now):
        return None
    return max(filter(None, (presence.last_beat(connection, role) for role in presence.ROLES)), default=None)
