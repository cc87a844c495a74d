"""The API's hand on Temporal. It need not be there: what it would do, the controller does a little later."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Self

import structlog
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.temporal import RunStarter
from horarium.errors import HorariumError, Unavailable
from horarium.schedule.identity import ActivationKey, RunKey
from starter.temporal import Temporal
from worker.connection import connect

CONNECT_EVERY = timedelta(seconds=5)
ANSWER_WITHIN = timedelta(seconds=5)

_logger = structlog.get_logger(__name__)


class TemporalHands:
    """See `horarium.api.hands.Hands`. Entered, it connects in the background, and tries again until it succeeds."""

    def __init__(self, *, connecting: Callable[[], Awaitable[Client]] = connect) -> None:
        self._connecting = connecting
        self._client: Client | None = None
        self._starter: RunStarter | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._connect(), name="connect to Temporal")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def start_run(self, key: RunKey) -> None:
        """Start the workflow of a run; one that was started before is left alone."""
        self._connected()
        assert self._starter is not None
        await _answered(self._starter.start(key))

    async def nudge(self, key: ActivationKey, signal: str) -> None:
        """Tell the workflow of an activation to look again."""
        await _answered(Temporal(self._connected()).signal(key, signal))

    async def tell_run(self, key: RunKey, signal: str) -> None:
        """Tell the workflow of a run to look again; one that is over need not know."""
        with suppress(RPCError):
            await _answered(self._connected().get_workflow_handle(key.workflow_id).signal(signal))

    async def cancel_run(self, key: RunKey) -> bool:
        """Ask a run to end; False where Temporal knows no such run."""
        handle = self._connected().get_workflow_handle(key.workflow_id)
        try:
            await _answered(handle.cancel())
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise
        return True

    def _connected(self) -> Client:
        if self._client is None:
            raise Unavailable("temporal_unavailable", "No Temporal server has answered yet.", next_step="Try again.")
        return self._client

    async def _connect(self) -> None:
        told = False
        while self._client is None:
            try:
                self._client = await self._connecting()
                self._starter = RunStarter(self._client)
            except HorariumError as error:
                if not told:
                    _logger.warning("temporal_not_reached", error=str(error))
                told = True
                await asyncio.sleep(CONNECT_EVERY.total_seconds())
        _logger.info("temporal_reached")


async def _answered(call: Awaitable[None]) -> None:
    try:
        async with asyncio.timeout(ANSWER_WITHIN.total_seconds()):
            await call
    except (TimeoutError, RuntimeError) as error:
        raise Unavailable("temporal_unavailable", "Temporal does not answer.", next_step="Try again.") from error
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise
        raise Unavailable(
            "temporal_unavailable", f"Temporal answers: {error.message}.", next_step="Try again."
        ) from error
