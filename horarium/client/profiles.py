"""`client.profiles`: agent classes, their profiles, and the start events that they declare.

As in `client.schedules`, a request is copied when its method is called, and is sent once.
"""

from collections.abc import AsyncIterator, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import AwareDatetime

from horarium.client.answers import Document, LastOutcome, Receipt, Reference
from horarium.client.calls import LARGEST_PAGE, Caller, ScopeLike, changing, reading

Request = Mapping[str, Any]
ROOT = "/v1/agent-classes"
CRON_START = "CronStartEvent"
"""The start event by which the calendar starts a profile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentVersion:
    """One version of an agent class, as its runner reported it. `agent_version` is `name@version`, which a run request names.

    Its runner vouches for it until `lease_until`. `lifecycle` is `ready`, or `stopped` where the runner left in good order.
    """

    agent_version: str
    lifecycle: str
    lease_until: AwareDatetime
    seen_at: AwareDatetime
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentClass:
    """An agent class, as its versions report it. What it can do follows from the start events that it declares.

    `offline_since` is None while a runner vouches for one of its versions; what is due meanwhile is dropped, never queued.
    `form` and `submission_schema` say what the `config` of a profile may hold, `event_schemas` what may be sent with each start
    event, by its class.
    """

    agent_class: str
    is_conversational: bool
    is_schedulable: bool
    start_events: tuple[str, ...]
    agent_versions: tuple[AgentVersion, ...]
    form: tuple[Document, ...]
    submission_schema: Document
    event_schemas: Mapping[str, Document] = field(default_factory=dict)
    offline_since: AwareDatetime | None = None
    document: Document = field(default_factory=dict)
    """Of one in a list, the document is that of the list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentClasses:
    """A page of the agent classes of an environment, by name."""

    agent_classes: tuple[AgentClass, ...]
    next_cursor: str | None = None
    document: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A profile of an agent class: its settings, and how its schedule stands.

    `cron` is None for one that has no schedule. `state` is `enabled`, `paused`, `review` (with its `reason`) or `unscheduled`.
    `reference` is the version that stands behind it.
    `fault` says why what is stored cannot be used or shown, or does not fit its agent version; it keeps no other from running.
    `last_outcome` is None before the first, and from a server of an older release.
    """

    agent_class: str
    agent_id: str
    config: Document | None
    cron: Document | None
    state: str
    thread_id: str
    tenant_id: str | None = None
    fault: str | None = None
    schedule_id: str | None = None
    reason: str | None = None
    generation: int | None = None
    reference: Reference | None = None
    next_due: AwareDatetime | None = None
    changed_at: AwareDatetime | None = None
    changed_by: str
    last_outcome: LastOutcome | None = None
    document: Document = field(default_factory=dict)
    """Of one in a list, the document is that of the list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilePage:
    """A page of the profiles of a class, by their ids. Continue with `after=next_cursor`."""

    profiles: tuple[Profile, ...]
    next_cursor: str | None = None
    document: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadEvent:
    """What happened to one run of a profile. Of a damaged row `at` is None, or `data` says under `unreadable` why it is so."""

    id: int
    kind: str
    at: AwareDatetime | None = None
    run_id: str | None = None
    data: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A page of a profile's thread, oldest first. Its age is in `created_at`; its id encodes no time."""

    thread_id: str
    agent_class: str
    agent_id: str
    created_at: AwareDatetime | None = None
    events: tuple[ThreadEvent, ...]
    tenant_id: str | None = None
    next_cursor: int | None = None
    document: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileReceipt(Receipt):
    """A completed change of a profile, or a run of it that was asked for by its `start_event`."""

    agent_class: str
    agent_id: str
    thread_id: str
    start_event: str | None = None


class Profiles:
    """Agent classes and profiles of an environment. `scope` is `{"org_id": …, "environment_id": …}` in every call.

    A token of another organization than that of the scope finds nothing and changes nothing: `codes.EnvironmentNotFound`.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def classes(
        self,
        scope: ScopeLike,
        *,
        is_conversational: bool | None = None,
        is_schedulable: bool | None = None,
        limit: int = 25,
        after: str | None = None,
    ) -> Coroutine[Any, Any, AgentClasses]:
        """A page of the agent classes that reported themselves, by name, beginning behind the class `after`.

        Of the page those only that can do something, or cannot, where that is asked: `next_cursor` says whether there are more.
        """
        asked = {"is_conversational": is_conversational, "is_schedulable": is_schedulable}
        query = {name: "true" if value else "false" for name, value in asked.items() if value is not None}
        query |= {"limit": str(limit)} if after is None else {"limit": str(limit), "after": after}
        return self._caller.send(reading("listing of agent classes", scope, query=query, root=ROOT), AgentClasses)

    def get_class(self, scope: ScopeLike, agent_class: str) -> Coroutine[Any, Any, AgentClass]:
        """One agent class, with the form of its profiles."""
        return self._caller.send(reading("reading of the agent class", scope, agent_class, root=ROOT), AgentClass)

    def list(
        self, scope: ScopeLike, agent_class: str, *, limit: int = 25, after: str | None = None
    ) -> Coroutine[Any, Any, ProfilePage]:
        """A page of the profiles of a class, by their ids: 1 to 50."""
        query = {"limit": str(limit)} if after is None else {"limit": str(limit), "after": after}
        call = reading("listing of profiles", scope, agent_class, "profiles", query=query, root=ROOT)
        return self._caller.send(call, ProfilePage)

    async def iterate(self, scope: ScopeLike, agent_class: str) -> AsyncIterator[Profile]:
        """All profiles of a class, page by page."""
        after: str | None = None
        while True:
            page = await self.list(scope, agent_class, limit=LARGEST_PAGE, after=after)
            for each in page.profiles:
                yield each
            if page.next_cursor is None:
                return
            after = page.next_cursor

    def get(self, scope: ScopeLike, agent_class: str, agent_id: str) -> Coroutine[Any, Any, Profile]:
        """A profile, how its schedule stands, and when it is due next."""
        call = reading("reading of the profile", scope, agent_class, "profiles", agent_id, root=ROOT)
        return self._caller.send(call, Profile)

    def save(
        self, scope: ScopeLike, agent_class: str, agent_id: str, request: Request, idempotency_key: str
    ) -> Coroutine[Any, Any, ProfileReceipt]:
        """Save a profile: `{"config": {…}, "tenant_id": …}`; a human session alone may.

        With a `cron` in its config it fires from now on; without one, or with None, it does not. `codes.InvalidProfile` holds
        every fault of the submission at its place.
        """
        path = (agent_class, "profiles", agent_id)
        return self._change("saving of the profile", scope, *path, request=request, key=idempotency_key, method="PUT")

    def clear(
        self, scope: ScopeLike, agent_class: str, agent_id: str, idempotency_key: str
    ) -> Coroutine[Any, Any, ProfileReceipt]:
        """Take the cron out of a profile, so that it fires no more; a human session alone may. The rest of it stays."""
        path = (agent_class, "profiles", agent_id, "cron")
        return self._change("clearing of the profile", scope, *path, request=None, key=idempotency_key, method="DELETE")

    def delete(
        self, scope: ScopeLike, agent_class: str, agent_id: str, idempotency_key: str
    ) -> Coroutine[Any, Any, ProfileReceipt]:
        """Delete a profile; a human session alone may. Its schedule is paused; its thread and its ledger stay."""
        path = (agent_class, "profiles", agent_id)
        return self._change("deletion of the profile", scope, *path, request=None, key=idempotency_key, method="DELETE")

    def trigger(
        self,
        scope: ScopeLike,
        agent_class: str,
        agent_id: str,
        idempotency_key: str,
        *,
        start_event: str = CRON_START,
        event: Request | None = None,
    ) -> Coroutine[Any, Any, ProfileReceipt]:
        """Start a run now, by any start event that the class declares; a human session alone may, and is its user.

        `event` holds the event's own fields; `codes.InvalidProfile` has every fault of them at its place. The receipt says that
        the run was asked for; admission has yet to decide on it.
        """
        path = (agent_class, "profiles", agent_id, start_event)
        return self._change(
            "manual run of the profile",
            scope,
            *path,
            request={"event": {} if event is None else event},
            key=idempotency_key,
        )

    def thread(
        self, scope: ScopeLike, agent_class: str, agent_id: str, *, limit: int = 100, after: int = 0
    ) -> Coroutine[Any, Any, Thread]:
        """A page of a profile's thread, oldest first: 1 to 1,000 events, behind the one with the id `after`.

        It needs the operators' scope. There is none before the first run.
        """
        query = {"limit": str(limit), "after": str(after)}
        call = reading(
            "reading of the thread", scope, agent_class, "profiles", agent_id, "thread", query=query, root=ROOT
        )
        return self._caller.send(call, Thread)

    def _change(
        self,
        what: str,
        scope: ScopeLike,
        *path: str,
        request: Request | None,
        key: str,
        method: str = "POST",
    ) -> Coroutine[Any, Any, ProfileReceipt]:
        call = changing(what, scope, *path, request=request, key=key, method=method, root=ROOT)
        return self._caller.send(call, ProfileReceipt)
