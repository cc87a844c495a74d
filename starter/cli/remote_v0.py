"""Schedules of scheduler v0 at a server."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from horarium.client import Client
from horarium.schedule.identity import Scope
from starter.cli.place import LARGEST_PAGE, Document


class RemoteV0:
    """Asks a server. `told` turns what the client raises into the error that the catalog itself would have raised."""

    def __init__(self, client: Client, scope: Scope, told: Callable[[Awaitable[Any]], Awaitable[Any]]) -> None:
        self._schedules = client.v0
        self._scope = scope
        self._told = told

    async def create(self, request: Mapping[str, Any], key: str) -> Document:
        """Create a schedule and enable it."""
        return await self._document(self._schedules.create(self._scope, request, key))

    async def update(self, schedule_id: str, request: Mapping[str, Any], key: str) -> Document:
        """Replace what a schedule does."""
        return await self._document(self._schedules.update(self._scope, schedule_id, request, key))

    async def move(self, act: str, schedule_id: str, key: str) -> Document:
        """Pause, resume or disable a schedule."""
        return await self._document(getattr(self._schedules, act)(self._scope, schedule_id, key))

    async def show(self, schedule_id: str) -> Document:
        """A schedule in the words of its contract."""
        return await self._document(self._schedules.get(self._scope, schedule_id))

    async def directory(self, *, after: str | None, limit: int) -> Document:
        """A page of the schedules."""
        return await self._document(self._schedules.list(self._scope, after=after, limit=limit))

    async def events(self, schedule_id: str, *, after: int, limit: int) -> list[Document]:
        """Audit events, oldest first."""
        found: list[Document] = []
        while len(found) < limit:
            most = min(limit - len(found), LARGEST_PAGE)
            page = await self._document(self._schedules.events(self._scope, schedule_id, after=after, limit=most))
            found += page["events"]
            if page["next_cursor"] is None:
                break
            after = page["next_cursor"]
        return found

    async def _document(self, call: Awaitable[Any]) -> Document:
        return dict((await self._told(call)).document)
