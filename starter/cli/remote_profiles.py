"""Agent classes and profiles at a server."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from horarium.client import Client
from horarium.control.records import MAX_PAGE
from horarium.schedule.identity import Scope
from starter.cli.profile_place import Document, all_classes

T = TypeVar("T")


class RemoteProfiles:
    """Asks a server. `told` turns what the client raises into the error that the catalog itself would have raised."""

    def __init__(self, client: Client, scope: Scope, told: Callable[[Awaitable[Any]], Awaitable[Any]]) -> None:
        self._profiles = client.profiles
        self._scope = scope
        self._told = told

    async def classes(self) -> list[Document]:
        """All agent classes that reported themselves."""
        ask = partial(self._profiles.classes, self._scope, limit=MAX_PAGE)
        return await all_classes(lambda after: self._document(ask(after=after)))

    async def directory(self, agent_class: str, *, after: str | None, limit: int) -> Document:
        """A page of the profiles of a class."""
        return await self._document(self._profiles.list(self._scope, agent_class, after=after, limit=limit))

    async def show(self, agent_class: str, agent_id: str) -> Document:
        """A profile."""
        return await self._document(self._profiles.get(self._scope, agent_class, agent_id))

    async def save(self, agent_class: str, agent_id: str, request: Mapping[str, Any], key: str) -> Document:
        """Save a profile."""
        return await self._document(self._profiles.save(self._scope, agent_class, agent_id, request, key))

    async def clear(self, agent_class: str, agent_id: str, key: str) -> Document:
        """Take the cron out of a profile."""
        return await self._document(self._profiles.clear(self._scope, agent_class, agent_id, key))

    async def delete(self, agent_class: str, agent_id: str, key: str) -> Document:
        """Delete a profile."""
        return await self._document(self._profiles.delete(self._scope, agent_class, agent_id, key))

    async def trigger(
        self, agent_class: str, agent_id: str, start_event: str, request: Mapping[str, Any], key: str
    ) -> Document:
        """Ask for a run now."""
        call = self._profiles.trigger(
            self._scope, agent_class, agent_id, key, start_event=start_event, event=request["event"]
        )
        return await self._document(call)

    async def thread(self, agent_class: str, agent_id: str, *, after: int, limit: int) -> Document:
        """The thread with a page of its events."""
        call = self._profiles.thread(self._scope, agent_class, agent_id, after=after, limit=limit)
        return await self._document(call)

    async def _document(self, call: Awaitable[Any]) -> Document:
        return dict((await self._told(call)).document)
