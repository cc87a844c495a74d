"""What commands ask of a place about the schedules of scheduler v0. All documents are those of the API."""

from collections.abc import Mapping
from typing import Any, Protocol

Document = dict[str, Any]


class V0Schedules(Protocol):
    """Schedules of scheduler v0, in the catalog of a data folder or at a server. A mutation answers with its receipt."""

    async def create(self, request: Mapping[str, Any], key: str) -> Document: ...

    async def update(self, schedule_id: str, request: Mapping[str, Any], key: str) -> Document: ...

    async def move(self, act: str, schedule_id: str, key: str) -> Document:
        """Pause, resume or disable a schedule."""

    async def show(self, schedule_id: str) -> Document: ...

    async def directory(self, *, after: str | None, limit: int) -> Document: ...

    async def events(self, schedule_id: str, *, after: int, limit: int) -> list[Document]:
        """Audit events, oldest first."""
