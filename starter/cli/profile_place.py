"""What commands ask of a place about agent classes and their profiles. All documents are those of the API."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

Document = dict[str, Any]


class Profiles(Protocol):
    """Agent classes and profiles, in the catalog of a data folder or at a server. A mutation answers with its receipt."""

    async def classes(self) -> list[Document]:
        """All agent classes that reported themselves."""

    async def directory(self, agent_class: str, *, after: str | None, limit: int) -> Document: ...

    async def show(self, agent_class: str, agent_id: str) -> Document: ...

    async def save(self, agent_class: str, agent_id: str, request: Mapping[str, Any], key: str) -> Document: ...

    async def clear(self, agent_class: str, agent_id: str, key: str) -> Document: ...

    async def delete(self, agent_class: str, agent_id: str, key: str) -> Document: ...

    async def trigger(
        self, agent_class: str, agent_id: str, start_event: str, request: Mapping[str, Any], key: str
    ) -> Document: ...

    async def thread(self, agent_class: str, agent_id: str, *, after: int, limit: int) -> Document:
        """The thread with a page of its events, oldest first, behind the one with the id `after`: at most 1,000."""


async def all_classes(page: Callable[[str | None], Awaitable[Document]]) -> list[Document]:
    """All agent classes, page after page; `page` asks for the one that begins behind a class."""
    found: list[Document] = []
    after: str | None = None
    while True:
        answer = await page(after)
        found += answer["agent_classes"]
        after = answer["next_cursor"]
        if after is None:
            return found
