"""A server as a place to act, over its API. Its problems are raised as the errors that the catalog itself raises."""

from collections.abc import Awaitable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

from horarium.client import Client, Problem, Unreachable, problems
from horarium.errors import InvalidSchedule, NotAdmissible, Refused, Unavailable
from horarium.schedule.identity import Scope
from starter.cli.place import LARGEST_PAGE, TOKEN_VARIABLE, Document, Lines
from starter.cli.remote_profiles import RemoteProfiles
from starter.cli.remote_v0 import RemoteV0

T = TypeVar("T")


class Remote:
    """Asks a server. Every method is one request, or as many as there are pages."""

    look_every = timedelta(seconds=2)

    def __init__(self, client: Client, scope: Scope) -> None:
        self._client = client
        self.scope = scope
        self.profiles = RemoteProfiles(client, scope, _plain)
        self.v0 = RemoteV0(client, scope, _plain)

    async def environment(self) -> Document:
        """The environment as the server shows it."""
        return dict((await _plain(self._client.environments.get(self.scope))).document)

    async def last_beat(self) -> datetime | None:
        """A server does not tell."""
        return None

    async def kill_switches(self) -> list[Document]:
        """A server tells operators alone, as a part of all that they see."""
        return []

    async def record(self, schedule_id: str, *, revision: int | None = None) -> Document:
        """A schedule at its head or at one revision."""
        found = await _plain(self._client.schedules.get(self.scope, schedule_id, revision=revision))
        return dict(found.document)

    async def directory(self, *, limit: int, after: str | None, include_retired: bool) -> Document:
        """A page of schedules."""
        page = self._client.schedules.list(self.scope, limit=limit, after=after, include_retired=include_retired)
        return dict((await _plain(page)).document)

    async def occurrences(self, schedule_id: str, wanted: Lines, *, limit: int) -> list[Document]:
        """The newest lines of a ledger, oldest first."""
        newest: list[Document] = []
        after: str | None = None
        while len(newest) < limit:
            page = await _plain(
                self._client.schedules.occurrences(
                    self.scope,
                    schedule_id,
                    since=wanted.since,
                    until=wanted.until,
                    dispositions=wanted.dispositions,
                    generation=wanted.generation,
                    touched_since=wanted.touched_since,
                    newest_first=True,
                    limit=min(limit - len(newest), LARGEST_PAGE),
                    after=after,
                )
            )
            newest += page.document["occurrences"]
            after = page.next_cursor
            if after is None:
                break
        return newest[::-1]

    async def events(self, schedule_id: str, *, after: int, limit: int) -> list[Document]:
        """Audit events, oldest first."""
        found: list[Document] = []
        while len(found) < limit:
            most = min(limit - len(found), LARGEST_PAGE)
            page = await _plain(self._client.schedules.events(self.scope, schedule_id, after=after, limit=most))
            found += page.document["events"]
            if page.next_cursor is None:
                break
            after = page.next_cursor
        return found

    async def archived(self, schedule_id: str | None, wanted: Lines | None = None) -> list[Document]:
        """See `Place.archived`."""
        if schedule_id is None:
            page: Any = await _plain(self._client.authority.events(self.scope, limit=1))
        elif wanted is None:
            page = await _plain(self._client.schedules.events(self.scope, schedule_id, limit=1))
        else:
            page = await _plain(
                self._client.schedules.occurrences(
                    self.scope,
                    schedule_id,
                    since=wanted.since,
                    until=wanted.until,
                    touched_since=wanted.touched_since,
                    limit=1,
                )
            )
        # A server of before tells of none.
        return list(page.document.get("archived", []))

    async def preview(self, spec: Any, *, since: datetime, until: datetime | None, limit: int) -> Document:
        """When a configuration is due, as the server's zone data has it."""
        most = min(limit, LARGEST_PAGE)
        shown = self._client.schedules.preview(self.scope, spec, since=since, until=until, limit=most)
        return dict((await _plain(shown)).document)

    async def publish(self, request: Mapping[str, Any], key: str) -> Document:
        """Store a version."""
        return dict((await _plain(self._client.schedules.publish(self.scope, request, key))).document)

    async def set_enabled(self, request: Mapping[str, Any], key: str) -> Document:
        """Enable or pause."""
        return dict((await _plain(self._client.schedules.set_enabled(self.scope, request, key))).document)

    async def retire(self, request: Mapping[str, Any], key: str) -> Document:
        """Retire for good."""
        return dict((await _plain(self._client.schedules.retire(self.scope, request, key))).document)

    async def trigger(self, request: Mapping[str, Any], key: str) -> Document:
        """Ask for a run now."""
        return dict((await _plain(self._client.schedules.trigger(self.scope, request, key))).document)

    async def authority(self) -> Document:
        """The environment as operators see it."""
        return dict((await _plain(self._client.authority.get(self.scope))).document)

    async def acts(self, *, after: int, limit: int) -> list[Document]:
        """What operators did, oldest first."""
        found: list[Document] = []
        while len(found) < limit:
            most = min(limit - len(found), LARGEST_PAGE)
            page = await _plain(self._client.authority.events(self.scope, after=after, limit=most))
            found += page.document["events"]
            if page.next_cursor is None:
                break
            after = page.next_cursor
        return found

    async def apply_authority(self, file: Mapping[str, Any], key: str, *, dry_run: bool) -> Document:
        """Make the environment what a file says, or tell what that would change."""
        return dict((await _plain(self._client.authority.apply(self.scope, file, key, dry_run=dry_run))).document)

    async def operate(self, act: str, request: Mapping[str, Any], key: str) -> Document:
        """Do what an operator may."""
        return dict((await _plain(getattr(self._client.authority, act)(self.scope, request, key))).document)

    async def endpoints(self) -> list[Document]:
        """Who is told of what happens."""
        found = await _plain(self._client.notifications.list(self.scope))
        return list(found.document["endpoints"])

    async def dead_letters(self, *, after: int, limit: int) -> list[Document]:
        """What nobody heard, oldest first."""
        found: list[Document] = []
        while len(found) < limit:
            most = min(limit - len(found), LARGEST_PAGE)
            page = await _plain(self._client.notifications.dead(self.scope, after=after, limit=most))
            found += page.document["dead"]
            if page.next_cursor is None:
                break
            after = page.next_cursor
        return found

    async def notify(self, act: str, request: Mapping[str, Any], key: str) -> Document:
        """Do what operators do about notifications."""
        return dict((await _plain(getattr(self._client.notifications, act)(self.scope, request, key))).document)


async def _plain(call: Awaitable[T]) -> T:
    """An answer, or the error that the catalog itself would have raised."""
    try:
        return await call
    except problems.NotAdmissible as found:
        raise NotAdmissible(found.objections) from found
    except (Unreachable, problems.TooManyRequests) as found:
        # Both may be repeated as they are, which is what a follower does.
        code, sentence = ("rate_limited", found.sentence) if isinstance(found, Problem) else ("unreachable", str(found))
        raise Unavailable(code, sentence, next_step="Try the same again.") from found
    except problems.Unauthenticated as found:
        again = f"Set {TOKEN_VARIABLE} to one of this server that has not expired: export {TOKEN_VARIABLE}=$(horarium token)"
        raise Refused(found.code, found.sentence, next_step=again) from found
    except Problem as found:
        if found.code in {"invalid_schedule", "invalid_profile"} and found.faults:
            raise InvalidSchedule(found.faults) from found
        raise
