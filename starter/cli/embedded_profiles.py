"""Agent classes and profiles in the catalog of a data folder."""

from collections.abc import Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial
from typing import Any

from horarium.authority.asking import asked_outside
from horarium.catalog import Catalog
from horarium.control import profiles
from horarium.control.principals import Principal
from horarium.control.records import MAX_PAGE
from starter.cli.profile_place import Document, all_classes
from worker.settings import Settings


class EmbeddedProfiles:
    """Asks the catalog itself, as the person at this machine."""

    def __init__(self, catalog: Catalog, settings: Settings, person: Principal) -> None:
        self._catalog = catalog
        self._settings = settings
        self._person = person

    async def classes(self) -> list[Document]:
        """All agent classes that reported themselves."""
        ask = partial(profiles.classes, principal=self._person, scope=self._settings.scope, limit=MAX_PAGE, now=_now())
        return await all_classes(lambda after: self._catalog.read(partial(ask, after=after)))

    async def directory(self, agent_class: str, *, after: str | None, limit: int) -> Document:
        """A page of the profiles of a class."""
        return await self._catalog.read(
            profiles.directory, self._person, self._settings.scope, agent_class, after=after, limit=limit, now=_now()
        )

    async def show(self, agent_class: str, agent_id: str) -> Document:
        """A profile."""
        return await self._catalog.read(
            profiles.show, self._person, self._settings.scope, agent_class, agent_id, now=_now()
        )

    async def save(self, agent_class: str, agent_id: str, request: Mapping[str, Any], key: str) -> Document:
        """Save a profile, within the ceilings of this installation."""
        async with aclosing(self._settings.authority) as authority:
            receipt = await asked_outside(
                authority,
                lambda content: self._catalog.write(
                    profiles.save,
                    self._person,
                    self._settings.scope,
                    agent_class,
                    agent_id,
                    dict(request),
                    key,
                    content=content,
                    now=_now(),
                    ceilings=self._settings.ceilings,
                ),
            )
        return receipt.document

    async def clear(self, agent_class: str, agent_id: str, key: str) -> Document:
        """Take the cron out of a profile."""
        receipt = await self._catalog.write(
            profiles.clear, self._person, self._settings.scope, agent_class, agent_id, key, now=_now()
        )
        return receipt.document

    async def delete(self, agent_class: str, agent_id: str, key: str) -> Document:
        """Delete a profile."""
        receipt = await self._catalog.write(
            profiles.delete, self._person, self._settings.scope, agent_class, agent_id, key, now=_now()
        )
        return receipt.document

    async def trigger(
        self, agent_class: str, agent_id: str, start_event: str, request: Mapping[str, Any], key: str
    ) -> Document:
        """Stage a run, which the schedule's workflow or the controller starts."""
        receipt = await self._catalog.write(
            profiles.trigger,
            self._person,
            self._settings.scope,
            agent_class,
            agent_id,
            start_event,
            dict(request),
            key,
            now=_now(),
        )
        return receipt.document

    async def thread(self, agent_class: str, agent_id: str, *, after: int, limit: int) -> Document:
        """The thread with a page of its events."""
        found: Document = await self._catalog.read(
            profiles.thread, self._person, self._settings.scope, agent_class, agent_id, after=after, limit=limit
        )
        return found


def _now() -> datetime:
    return datetime.now(UTC)
