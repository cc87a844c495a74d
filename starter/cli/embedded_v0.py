"""Schedules of scheduler v0 in the catalog of a data folder."""

from collections.abc import Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

from horarium.authority.asking import asked_outside
from horarium.catalog import Catalog
from horarium.control import v0
from horarium.control.principals import Principal
from starter.cli.v0_place import Document
from worker.settings import Settings

_ASKING = frozenset({"resume"})
"""Changes that enable something, so that what it reads and writes has to be looked at."""


class EmbeddedV0:
    """Asks the catalog itself, as the person at this machine."""

    def __init__(self, catalog: Catalog, settings: Settings, person: Principal) -> None:
        self._catalog = catalog
        self._settings = settings
        self._person = person

    async def create(self, request: Mapping[str, Any], key: str) -> Document:
        """Create a schedule and enable it."""
        return await self._enabling(v0.create, dict(request), key)

    async def update(self, schedule_id: str, request: Mapping[str, Any], key: str) -> Document:
        """Replace what a schedule does."""
        return await self._enabling(v0.update, dict(request), key, schedule_id=schedule_id)

    async def move(self, act: str, schedule_id: str, key: str) -> Document:
        """Pause, resume or disable a schedule."""
        if act in _ASKING:
            return await self._enabling(getattr(v0, act), schedule_id, key)
        scope = self._settings.scope
        receipt = await self._catalog.write(getattr(v0, act), self._person, scope, schedule_id, key, now=_now())
        document: Document = receipt.document
        return document

    async def show(self, schedule_id: str) -> Document:
        """A schedule in the words of its contract."""
        return await self._catalog.read(v0.show, self._person, self._settings.scope, schedule_id)

    async def directory(self, *, after: str | None, limit: int) -> Document:
        """A page of the schedules."""
        return await self._catalog.read(v0.directory, self._person, self._settings.scope, after=after, limit=limit)

    async def events(self, schedule_id: str, *, after: int, limit: int) -> list[Document]:
        """Audit events, oldest first."""
        return await self._catalog.read(
            v0.events, self._person, self._settings.scope, schedule_id, after=after, limit=limit
        )

    async def _enabling(self, change: Any, what: Any, key: str, **about: str) -> Document:
        async with aclosing(self._settings.authority) as authority:
            receipt = await asked_outside(
                authority,
                lambda content: self._catalog.write(
                    change,
                    self._person,
                    self._settings.scope,
                    what,
                    key,
                    content=content,
                    now=_now(),
                    ceilings=self._settings.ceilings,
                    **about,
                ),
            )
        document: Document = receipt.document
        return document


def _now() -> datetime:
    return datetime.now(UTC)
