"""`client.schedules`: publication, activation, manual runs, and what is stored of schedules.

The methods are plain functions that return a coroutine, so that a request is copied when the method is called and not when
its coroutine is first run.
"""

from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from datetime import datetime
from typing import Any

from horarium.client.answers import Entry, Events, Occurrences, Page, Preview, Receipt, Record
from horarium.client.calls import LARGEST_PAGE, Caller, ScopeLike, asking, changing, reading
from horarium.errors import Fault, InvalidSchedule
from horarium.schedule.identity import instant_text

Request = Mapping[str, Any]


class Schedules:
    """Schedules of an environment. `scope` is `{"org_id": …, "environment_id": …}` in every call.

    Mutations take the request as the API has it and an idempotency key of the caller's. Choose the key before the first
    attempt and keep it, with the reviewed request, account and environment, until the outcome is known. They are sent once:
    where the answer is lost they raise `OutcomeUnknown`.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def publish(self, scope: ScopeLike, request: Request, idempotency_key: str) -> Coroutine[Any, Any, Receipt]:
        """Store a configuration as the next version. It enables nothing, and replaces no enabled version.

        The request is `{schedule_id, expected_revision, expected_environment_epoch, expected_reset_generation,
        configuration}`; `expected_revision` is 0 for the first version, else the head that was reviewed. The receipt's
        `resource_id` leads to the version. A retired schedule cannot be revived by it.
        """
        return self._caller.send(
            changing("publication", scope, "schedules", request=request, key=idempotency_key), Receipt
        )

    def set_enabled(self, scope: ScopeLike, request: Request, idempotency_key: str) -> Coroutine[Any, Any, Receipt]:
        """Enable or pause exactly the version that was reviewed; a human session alone may.

        The request is `{version, expected_generation, expected_environment_epoch, expected_reset_generation, enabled}`:
        `version` is the exact reference, `expected_generation` the activation's, 0 where there is none. Enabling needs
        `execution_ready` and fires nothing of the past. The enabled version can differ from the head: inspect
        `record.activation.version` before pausing it.
        """
        return self._change("change of activation", "activation", scope, request, idempotency_key)

    def retire(self, scope: ScopeLike, request: Request, idempotency_key: str) -> Coroutine[Any, Any, Receipt]:
        """Retire a schedule for good; a human session alone may. The request is that of `set_enabled` without `enabled`.

        Versions, receipts and the ledger stay. Publishing another version cannot revive the schedule.
        """
        return self._change("retirement", "retirement", scope, request, idempotency_key)

    def trigger(self, scope: ScopeLike, request: Request, idempotency_key: str) -> Coroutine[Any, Any, Receipt]:
        """Run an enabled schedule now, once; a human session alone may.

        The request is that of `retire`, and `overlap: "allow"` where the run may begin beside another one. The run is
        admitted like any occurrence, and may be refused there: the receipt says that it was asked for, not that it ran.
        """
        return self._change("manual run", "runs", scope, request, idempotency_key)

    def get(self, scope: ScopeLike, schedule_id: str, *, revision: int | None = None) -> Coroutine[Any, Any, Record]:
        """The record at the publication head, or at one revision. It can differ from the version that is enabled."""
        query = {} if revision is None else {"revision": str(revision)}
        return self._caller.send(
            reading("reading of the schedule", scope, "schedules", schedule_id, query=query), Record
        )

    def get_version(self, scope: ScopeLike, resource_id: str) -> Coroutine[Any, Any, Record]:
        """The record at one exact immutable version."""
        return self._caller.send(reading("reading of the version", scope, "schedule-versions", resource_id), Record)

    def list(
        self, scope: ScopeLike, *, limit: int = 25, after: str | None = None, include_retired: bool = False
    ) -> Coroutine[Any, Any, Page]:
        """A page of the directory, ordered by UUID: 1 to 50 schedules. Continue with `after=page.next_cursor`."""
        query = {"limit": str(limit), "include_retired": "true" if include_retired else "false"}
        if after is not None:
            query["after"] = after
        return self._caller.send(reading("listing of schedules", scope, "schedules", query=query), Page)

    async def iterate(self, scope: ScopeLike, *, include_retired: bool = False) -> AsyncIterator[Entry]:
        """All schedules of the directory, page by page. One that is published meanwhile may be left out; none comes twice."""
        after: str | None = None
        while True:
            page = await self.list(scope, limit=LARGEST_PAGE, after=after, include_retired=include_retired)
            for entry in page.schedules:
                yield entry
            if page.next_cursor is None:
                return
            after = page.next_cursor

    def occurrences(
        self,
        scope: ScopeLike,
        schedule_id: str,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        dispositions: Sequence[str] = (),
        generation: int | None = None,
        touched_since: datetime | None = None,
        newest_first: bool = False,
        limit: int = 100,
        after: str | None = None,
    ) -> Coroutine[Any, Any, Occurrences]:
        """A page of the ledger: one line for each due instant, span of them, or manual run; 1 to 1,000 lines.

        `since` and `until` are nominal times, aware, both included. `touched_since` leaves what is open or was closed from
        then on. Continue with `after=page.next_cursor`.
        """
        query: dict[str, str | Sequence[str]] = {
            "limit": str(limit),
            "disposition": [str(each) for each in dispositions],
        }
        for name, instant in (("from", since), ("until", until), ("touched_since", touched_since)):
            if instant is not None:
                query[name] = _instant(name, instant)
        if generation is not None:
            query["generation"] = str(generation)
        if newest_first:
            query["newest_first"] = "true"
        if after is not None:
            query["after"] = after
        call = reading("reading of the ledger", scope, "schedules", schedule_id, "occurrences", query=query)
        return self._caller.send(call, Occurrences)

    def events(
        self, scope: ScopeLike, schedule_id: str, *, limit: int = 100, after: int = 0
    ) -> Coroutine[Any, Any, Events]:
        """A page of audit events, oldest first: 1 to 1,000, behind the one with the id `after`."""
        query = {"limit": str(limit), "after": str(after)}
        call = reading("reading of the events", scope, "schedules", schedule_id, "events", query=query)
        return self._caller.send(call, Events)

    def preview(
        self,
        scope: ScopeLike,
        spec: Request,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
    ) -> Coroutine[Any, Any, Preview]:
        """When a configuration, or a calendar alone, would be due, and what changes of the clock do to it. Stores nothing."""
        request: dict[str, Any] = {"spec": spec}
        for name, instant in (("from", since), ("until", until)):
            if instant is not None:
                request[name] = _instant(name, instant)
        if limit is not None:
            request["limit"] = limit
        return self._caller.send(asking("preview", scope, "schedule-previews", request=request), Preview)

    def _change(
        self, operation: str, part: str, scope: ScopeLike, request: Request, key: str
    ) -> Coroutine[Any, Any, Receipt]:
        schedule_id = _named_schedule(request)
        return self._caller.send(
            changing(operation, scope, "schedules", schedule_id, part, request=request, key=key), Receipt
        )


def _named_schedule(request: Request) -> str:
    version = request.get("version")
    schedule_id = version.get("schedule_id") if isinstance(version, Mapping) else None
    if not isinstance(schedule_id, str) or not schedule_id:
        sentence = "The request names the exact version that was reviewed: {schedule_id, revision, digest}."
        raise InvalidSchedule([Fault("/version/schedule_id", "required", sentence)])
    return schedule_id


def _instant(name: str, instant: datetime) -> str:
    if instant.tzinfo is None:
        raise InvalidSchedule(
            [Fault(f"/{name}", "naive_time", f"{instant!r} names no zone; an aware time was expected.")]
        )
    return instant_text(instant)
