"""Where a command acts: the embedded catalog of a data folder, or a server over its API. Commands cannot tell which.

Both speak the same documents, those of the API, and raise the same errors, so that a command has the same answer.
"""

import os
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from horarium.errors import Misconfigured
from horarium.schedule.identity import Scope
from horarium.schedule.ledger import Disposition

if TYPE_CHECKING:
    from starter.cli.profile_place import Profiles
    from starter.cli.remote import Remote
    from starter.cli.v0_place import V0Schedules

Document = dict[str, Any]
LARGEST_PAGE = 1_000
"""Lines of a ledger, events or instants that the API gives at once."""
SERVER_VARIABLE = "HORARIUM_SERVER"
TOKEN_VARIABLE = "HORARIUM_TOKEN"  # noqa: S105 - the variable's name, and no token


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """What a person said about the place: `--data`, `--server`, both or neither."""

    data: Path | None = None
    server: str | None = None

    @property
    def address(self) -> str | None:
        """The server to ask, None for the data folder. A folder that is named counts more than the environment's server."""
        if self.server is not None or self.data is not None:
            return self.server
        return os.environ.get(SERVER_VARIABLE) or None

    @property
    def options(self) -> str:
        """What a command that is proposed has to end with, so that it acts at the same place."""
        if self.data is not None:
            return f" --data {shlex.quote(str(self.data))}"
        return "" if self.server is None else f" --server {shlex.quote(self.server)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Which lines of a ledger are asked for. `since` and `until` are nominal times, both included; None asks for all."""

    since: datetime | None = None
    until: datetime | None = None
    dispositions: Sequence[Disposition] = ()
    generation: int | None = None
    touched_since: datetime | None = None


class Place(Protocol):
    """What commands ask of a place. All documents are those of the API; a mutation answers with its receipt."""

    @property
    def scope(self) -> Scope:
        """The organization and environment that it is asked about."""

    @property
    def look_every(self) -> timedelta:
        """How often a follower looks for what is new."""

    @property
    def v0(self) -> "V0Schedules":
        """Its schedules of scheduler v0."""

    @property
    def profiles(self) -> "Profiles":
        """Its agent classes and their profiles."""

    async def environment(self) -> Document: ...

    async def last_beat(self) -> datetime | None:
        """The newest heartbeat of a worker, where none is alive and that is known; else None."""

    async def kill_switches(self) -> list[Document]:
        """What keeps everything from running, as far as whoever asks may be told."""

    async def record(self, schedule_id: str, *, revision: int | None = None) -> Document: ...

    async def directory(self, *, limit: int, after: str | None, include_retired: bool) -> Document: ...

    async def occurrences(self, schedule_id: str, wanted: Lines, *, limit: int) -> list[Document]:
        """The newest `limit` lines, oldest first."""

    async def events(self, schedule_id: str, *, after: int, limit: int) -> list[Document]: ...

    async def archived(self, schedule_id: str | None, wanted: Lines | None = None) -> list[Document]:
        """The archives that may hold what stood before the oldest of the lines, of a schedule's events, of operators' acts."""

    async def publish(self, request: Mapping[str, Any], key: str) -> Document: ...

    async def set_enabled(self, request: Mapping[str, Any], key: str) -> Document: ...

    async def retire(self, request: Mapping[str, Any], key: str) -> Document: ...

    async def trigger(self, request: Mapping[str, Any], key: str) -> Document: ...

    async def authority(self) -> Document:
        """The environment as operators see it."""

    async def acts(self, *, after: int, limit: int) -> list[Document]:
        """What operators did, oldest first."""

    async def apply_authority(self, file: Mapping[str, Any], key: str, *, dry_run: bool) -> Document: ...

    async def operate(self, act: str, request: Mapping[str, Any], key: str) -> Document:
        """An operator's act: stop, lift, advance_epoch, reset, collect or approve."""

    async def endpoints(self) -> list[Document]:
        """Who is told of what happens."""

    async def dead_letters(self, *, after: int, limit: int) -> list[Document]:
        """What nobody heard, oldest first."""

    async def notify(self, act: str, request: Mapping[str, Any], key: str) -> Document:
        """What operators do about notifications: add, heartbeat, remove, test or again."""


@asynccontextmanager
async def reach(where: Where) -> AsyncIterator[Place]:
    """The place that a person means; `Misconfigured`, with what to do, where it cannot be reached as it is set up."""
    from worker.settings import load  # noqa: PLC0415 - `--help` reads no settings

    settings = load(data=where.data)
    if where.address is None:
        from starter.cli.embedded import Embedded  # noqa: PLC0415 - a command that asks a server needs no catalog
        from starter.cli.installation import catalog_of  # noqa: PLC0415 - as above

        async with catalog_of(settings) as catalog:
            yield Embedded(catalog, settings)
        return
    async with served(where.address, settings.scope) as place:
        yield place


@asynccontextmanager
async def served(address: str, scope: Scope) -> AsyncIterator["Remote"]:
    """A server, with the token of the environment; `Misconfigured` where there is none."""
    import horarium  # noqa: PLC0415 - a command on a data folder needs no HTTP
    from starter.cli.remote import Remote  # noqa: PLC0415 - as above

    async with horarium.Client(address, token=_token()) as client:
        yield Remote(client, scope)


def scope_of(where: Where) -> Scope:
    """The organization and environment that commands are about."""
    from worker.settings import load  # noqa: PLC0415 - as above

    return load(data=where.data).scope


def _token() -> str:
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if not token:
        raise Misconfigured(
            f"A server wants a token. Set {TOKEN_VARIABLE}, for example: export {TOKEN_VARIABLE}=$(horarium token)"
        )
    return token
