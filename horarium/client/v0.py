"""`client.v0`: scheduler v0's schedules, as their contract writes them.

As in `client.schedules`, a request is copied when its method is called, and is sent once.
"""

from collections.abc import AsyncIterator, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from horarium.client.answers import Document, Events, LastOutcome, Receipt, Reference
from horarium.client.calls import LARGEST_PAGE, Caller, ScopeLike, changing, reading

Request = Mapping[str, Any]
ROOT = "/v0/schedules"


@dataclass(frozen=True, slots=True, kw_only=True)
class V0Schedule:
    """A schedule in the words of its contract. `schedule` is its newest document as it came, without defaults.

    `state` is `enabled`, `paused`, `disabled` or `review`, the last with its `reason`: a one-shot that has run, or whose
    instant has passed, is there. `problem` says what keeps the server from using a version that is shown or enabled.
    """

    schedule_id: str
    resource_id: str
    reference: Reference
    generation: int
    state: str
    schedule: Document
    reason: str | None = None
    problem: str | None = None
    last_outcome: LastOutcome | None = None
    document: Document = field(default_factory=dict)
    """Of one in a list, the document is that of the list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class V0Page:
    """A page of the directory, ordered by UUID. Continue with `after=next_cursor`; None says that it is the last."""

    schedules: tuple[V0Schedule, ...]
    next_cursor: str | None = None
    document: Document


class V0:
    """Schedules of scheduler v0. `scope` is `{"org_id": …, "environment_id": …}` in every call.

    A token of another organization than that of the scope finds nothing and changes nothing: `codes.EnvironmentNotFound`.
    Mutations need a human session and an idempotency key of the caller's, and are sent once: where the answer is lost they
    raise `OutcomeUnknown`. They take effect at once; there is no publication to review before.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(self, scope: ScopeLike, document: Request, idempotency_key: str) -> Coroutine[Any, Any, Receipt]:
        """Create a schedule from a document of the contract, and enable it. The receipt's `schedule_id` is its name.

        A one-shot whose instant has passed is accepted and never runs: `enabled` is False then, and a warning says so.
        Without a binding of the target it raises `codes.BindingMissing`.
        """
        call = changing("creation of the schedule", scope, request=document, key=idempotency_key, root=ROOT)
        return self._caller.send(call, Receipt)

    def update(
        self, scope: ScopeLike, schedule_id: str, document: Request, idempotency_key: str
    ) -> Coroutine[Any, Any, Receipt]:
        """Replace what a schedule does. An enabled one, and a spent one-shot, goes on with it; a paused one stays paused."""
        call = changing(
            "update of the schedule",
            scope,
            schedule_id,
            request=document,
            key=idempotency_key,
            method="PUT",
            root=ROOT,
        )
        return self._caller.send(call, Receipt)

    def pause(self, scope: ScopeLike, schedule_id: str, idempotency_key: str) -> Coroutine[Any, Any, Receipt]:
        """Stop firing. What falls due meanwhile is never caught up."""
        return self._move("pause", scope, schedule_id, idempotency_key)

    def resume(self, scope: ScopeLike, schedule_id: str, idempotency_key: str) -> Coroutine[Any, Any, Receipt]:
        """Fire again, as the newest document says; `codes.NotPaused` where it does."""
        return self._move("resume", scope, schedule_id, idempotency_key)

    def disable(self, scope: ScopeLike, schedule_id: str, idempotency_key: str) -> Coroutine[Any, Any, Receipt]:
        """End a schedule for good. Its versions, its ledger and its events stay."""
        return self._move("disable", scope, schedule_id, idempotency_key)

    def get(self, scope: ScopeLike, schedule_id: str) -> Coroutine[Any, Any, V0Schedule]:
        """A schedule; one that another contract made raises `codes.ScheduleNotFound`."""
        return self._caller.send(reading("reading of the schedule", scope, schedule_id, root=ROOT), V0Schedule)

    def list(self, scope: ScopeLike, *, limit: int = 25, after: str | None = None) -> Coroutine[Any, Any, V0Page]:
        """A page of this contract's schedules, ordered by UUID, the disabled ones too: 1 to 50."""
        query = {"limit": str(limit)} if after is None else {"limit": str(limit), "after": after}
        return self._caller.send(reading("listing of schedules", scope, query=query, root=ROOT), V0Page)

    async def iterate(self, scope: ScopeLike) -> AsyncIterator[V0Schedule]:
        """All schedules of this contract, page by page. One that is made meanwhile may be left out; none comes twice."""
        after: str | None = None
        while True:
            page = await self.list(scope, limit=LARGEST_PAGE, after=after)
            for each in page.schedules:
                yield each
            if page.next_cursor is None:
                return
            after = page.next_cursor

    def events(
        self, scope: ScopeLike, schedule_id: str, *, limit: int = 100, after: int = 0
    ) -> Coroutine[Any, Any, Events]:
        """A page of audit events, oldest first: 1 to 1,000. Those of the contract are `SCHEDULE_CREATED` and alike."""
        query = {"limit": str(limit), "after": str(after)}
        call = reading("reading of the events", scope, schedule_id, "events", query=query, root=ROOT)
        return self._caller.send(call, Events)

    def _move(self, what: str, scope: ScopeLike, schedule_id: str, key: str) -> Coroutine[Any, Any, Receipt]:
        call = changing(f"{what} of the schedule", scope, schedule_id, what, request=None, key=key, root=ROOT)
        return self._caller.send(call, Receipt)
