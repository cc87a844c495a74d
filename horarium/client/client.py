"""The client itself: an address, a token, and the calls by what they are about."""

from collections.abc import Coroutine
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

import httpx

from horarium.client.answers import Environment, Receipt
from horarium.client.authority import Authority
from horarium.client.calls import ANSWER_WITHIN, Caller, ScopeLike, Token, reading
from horarium.client.notifications import Notifications
from horarium.client.profiles import Profiles
from horarium.client.schedules import Schedules
from horarium.client.v0 import V0


class Client:
    """Calls the HTTP API of Horarium. Close it, or use it as `async with`.

    `token` is a bearer token or a function that gives one, asynchronous or not; it is asked anew for each call. A request
    is copied when the method is called, before the token is awaited, so that later changes of the caller's reach nothing.
    Nothing is retried, reads neither. A mutation whose answer is lost raises `OutcomeUnknown`, which says what to do; one
    that is cancelled while it waits is just as unknown. Every problem of the API is an exception of its own
    (`horarium.client.problems`).

    A call takes at most `answer_within` after its token is there. `transport` replaces the network, for tests.
    Raises `Misconfigured` for an address that is none.
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: Token,
        answer_within: timedelta = ANSWER_WITHIN,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._caller = Caller(base_url, token, answer_within=answer_within, transport=transport)
        self.environments = Environments(self._caller)
        self.schedules = Schedules(self._caller)
        self.receipts = Receipts(self._caller)
        self.authority = Authority(self._caller)
        self.notifications = Notifications(self._caller)
        self.profiles = Profiles(self._caller)
        self.v0 = V0(self._caller)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._caller.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class Environments:
    """Environments: where schedules live, and the numbers that every mutation has to name."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def get(self, scope: ScopeLike) -> Coroutine[Any, Any, Environment]:
        """Read an environment. Do so before a publication or an activation, and submit the two numbers that it shows.

        `execution_ready` does not establish that an installed worker has completed a scheduled run.
        """
        return self._caller.send(reading("reading of the environment", scope), Environment)


class Receipts:
    """Receipts of the caller's own operations."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def get(self, scope: ScopeLike, key: str) -> Coroutine[Any, Any, Receipt]:
        """The receipt under an idempotency key, to recover an uncertain request; `NotFound` where there is none.

        Without one the operation had not been carried out when this was asked; a request that is still on its way may arrive
        later. A receipt confirms its operation: the current activation may have changed afterwards. Receipts of
        other principals are not found.
        """
        return self._caller.send(reading("reading of the receipt", scope, "receipts", key), Receipt)
