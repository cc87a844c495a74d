"""`client.notifications`: who is told of what happens. Every call needs the operators' scope.

As in `client.schedules`, a request is copied when its method is called, and is sent once.
"""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from horarium.client.answers import Document
from horarium.client.calls import Caller, ScopeLike, changing, reading

Request = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """All endpoints and heartbeats of an environment, each as the server shows it."""

    endpoints: tuple[Document, ...]
    document: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """A page of what was given up, oldest first. Continue with `after=next_cursor`; None says that it is the last."""

    dead: tuple[Document, ...]
    next_cursor: int | None = None
    document: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationReceipt:
    """What an operator did about notifications. It says not that anything was heard. `message_id` is that of what is sent."""

    receipt_id: str
    operation: str
    name: str
    message_id: str | None = None
    replayed: bool = False
    document: Document


class Notifications:
    """The endpoints and heartbeats of an environment, and dead letters. `scope` is `{"org_id": …, "environment_id": …}`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(self, scope: ScopeLike) -> Coroutine[Any, Any, Endpoints]:
        """All endpoints and heartbeats: what each is told, what waits for it, and what was given up."""
        return self._caller.send(reading("reading of endpoints", scope, "notifications"), Endpoints)

    def dead(self, scope: ScopeLike, *, limit: int = 100, after: int = 0) -> Coroutine[Any, Any, DeadLetters]:
        """A page of what was given up, oldest first: 1 to 1,000, behind the one with the id `after`."""
        query = {"limit": str(limit), "after": str(after)}
        return self._caller.send(
            reading("reading of dead letters", scope, "notifications", "dead", query=query), DeadLetters
        )

    def add(self, scope: ScopeLike, request: Request, idempotency_key: str) -> Coroutine[Any, Any, NotificationReceipt]:
        """Declare an endpoint, or change the one of that name: `{name, url, secret, on}`, and `schedule_id` or `private`."""
        return self._act("add", scope, request, idempotency_key)

    def heartbeat(
        self, scope: ScopeLike, request: Request, idempotency_key: str
    ) -> Coroutine[Any, Any, NotificationReceipt]:
        """Declare the heartbeat of a schedule, or change it: `{schedule_id, url, secret}`, and `private`."""
        return self._act("heartbeat", scope, request, idempotency_key)

    def remove(
        self, scope: ScopeLike, request: Request, idempotency_key: str
    ) -> Coroutine[Any, Any, NotificationReceipt]:
        """Tell an endpoint nothing any more: `{name}`."""
        return self._act("remove", scope, request, idempotency_key)

    def test(
        self, scope: ScopeLike, request: Request, idempotency_key: str
    ) -> Coroutine[Any, Any, NotificationReceipt]:
        """Send a signed test: `{name}`."""
        return self._act("test", scope, request, idempotency_key)

    def again(
        self, scope: ScopeLike, request: Request, idempotency_key: str
    ) -> Coroutine[Any, Any, NotificationReceipt]:
        """Send a dead letter again: `{id}`."""
        return self._act("again", scope, request, idempotency_key)

    def _act(self, part: str, scope: ScopeLike, request: Request, key: str) -> Coroutine[Any, Any, NotificationReceipt]:
        call = changing(f"change of notifications ({part})", scope, "notifications", part, request=request, key=key)
        return self._caller.send(call, NotificationReceipt)
