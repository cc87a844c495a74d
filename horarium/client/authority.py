"""`client.authority`: what operators declare and do. Every call needs the operators' scope.

As in `client.schedules`, a request is copied when its method is called, and is sent once.
"""

from collections.abc import Coroutine, Mapping
from typing import Any

from horarium.client.answers import Acts, Applied, AuthorityOverview, Receipt
from horarium.client.calls import Caller, ScopeLike, changing, reading

Request = Mapping[str, Any]


class Authority:
    """The declarations of an environment, and an operator's acts. `scope` is `{"org_id": …, "environment_id": …}`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def get(self, scope: ScopeLike) -> Coroutine[Any, Any, AuthorityOverview]:
        """What is declared, what was counted of money, which kill switches are on, and who did what last."""
        return self._caller.send(reading("reading of the authority", scope, "authority"), AuthorityOverview)

    def apply(
        self, scope: ScopeLike, file: Request, idempotency_key: str, *, dry_run: bool = False
    ) -> Coroutine[Any, Any, Applied]:
        """Make the environment what a file says; one that is not there is created. A key may do it, too.

        A kind that the file does not name is left alone; of one that it names, what does not stand there is withdrawn. With
        `dry_run` nothing changes, and the answer tells what would.
        """
        query = {"dry_run": "true"} if dry_run else {}
        call = changing(
            "file of declarations", scope, "authority", request=file, key=idempotency_key, method="PUT", query=query
        )
        return self._caller.send(call, Applied)

    def events(self, scope: ScopeLike, *, limit: int = 100, after: int = 0) -> Coroutine[Any, Any, Acts]:
        """A page of what operators did, oldest first: 1 to 1,000, behind the one with the id `after`."""
        query = {"limit": str(limit), "after": str(after)}
        return self._caller.send(reading("reading of acts", scope, "authority", "events", query=query), Acts)

    def stop(self, scope: ScopeLike, request: Request, idempotency_key: str) -> Coroutine[Any, Any, Receipt]:
        """Put a kill switch on: `{because, everywhere}`. From then on no run starts."""
        return self._act("stop", scope, request, idempotency_key)

    def lift(self, scope: ScopeLike, request: Request, idempotency_key: str) -> Coroutine[Any, Any, Receipt]:
        """Take a kill switch off: `{everywhere}`. Nothing is caught up."""
        return self._act("lift", scope, request, idempotency_key)

    def advance_epoch(self, scope: ScopeLike, request: Request, idempotency_key: str) -> Coroutine[Any, Any, Receipt]:
        """Begin a new authority epoch: `{because, expected_environment_epoch, expected_reset_generation}`."""
        return self._act("epoch", scope, request, idempotency_key)

    def reset(self, scope: ScopeLike, request: Request, idempotency_key: str) -> Coroutine[Any, Any, Receipt]:
        """Reset the environment; the request is that of `advance_epoch`."""
        return self._act("reset", scope, request, idempotency_key)

    def collect(self, scope: ScopeLike, request: Request, idempotency_key: str) -> Coroutine[Any, Any, Receipt]:
        """Record a collected payment: `{wallet, amount}`, in minor units, never more than is owed."""
        return self._act("collections", scope, request, idempotency_key)

    def approve(self, scope: ScopeLike, request: Request, idempotency_key: str) -> Coroutine[Any, Any, Receipt]:
        """Approve one exact version for live runs: `{version, expires_at}`."""
        return self._act("approvals", scope, request, idempotency_key)

    def _act(self, part: str, scope: ScopeLike, request: Request, key: str) -> Coroutine[Any, Any, Receipt]:
        return self._caller.send(
            changing(f"operator's act ({part})", scope, "authority", part, request=request, key=key), Receipt
        )
