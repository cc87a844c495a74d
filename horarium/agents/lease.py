"""Keeping agents known as ready for as long as their runner lives."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from types import TracebackType
from typing import Self

import structlog

from horarium.agents.discovery import AgentDiscovery
from horarium.agents.host import AgentHost

_log = structlog.get_logger(__name__)


class LeaseKeeper:
    """Registers agents on entry, renews their lease while inside, and releases it on exit::

        async with LeaseKeeper(host, runner.discovery(), lease=timedelta(seconds=15)):
            ...

    The lease is renewed each third of its length, so that two renewals may fail before it runs out. A renewal that
    fails or hangs is logged and repeated sooner, as a registration, since the host may have lost what it knew; it
    never ends the runner. A registration that fails on entry is raised, and a release that fails is logged: the lease
    runs out by itself.
    """

    def __init__(self, host: AgentHost, discovery: Sequence[AgentDiscovery], *, lease: timedelta) -> None:
        assert lease > timedelta(0), "a lease has a length"
        self._host = host
        self._discovery = tuple(discovery)
        self._agent_versions = tuple(each.agent_version for each in self._discovery)
        self._lease = lease
        self._third = lease.total_seconds() / 3
        self._renewals: asyncio.Task[None] | None = None

    @property
    def renewals(self) -> asyncio.Task[None]:
        """The task that renews; it lasts as long as the lease is kept."""
        assert self._renewals is not None, "entered before it is asked"
        return self._renewals

    async def __aenter__(self) -> Self:
        await self._host.register(self._discovery, lease=self._lease)
        self._renewals = asyncio.create_task(self._renew_forever(), name="horarium-lease")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._renewals is not None, "entered before it is left"
        self._renewals.cancel()
        await asyncio.wait([self._renewals])
        try:
            async with asyncio.timeout(self._third):
                await self._host.release(self._agent_versions)
        except Exception as failure:  # noqa: BLE001 - leaving must go on; the lease runs out by itself
            _log.warning("lease_not_released", agent_versions=self._agent_versions, error=repr(failure))

    async def _renew_forever(self) -> None:
        healthy = True
        while True:
            # After a failure four times as often: three tries are left before the lease runs out, not one.
            await asyncio.sleep(self._third if healthy else self._third / 4)
            try:
                # A call that hangs must not outlast the lease that it is to renew.
                async with asyncio.timeout(self._third):
                    if healthy:
                        await self._host.renew(self._agent_versions, lease=self._lease)
                    else:
                        await self._host.register(self._discovery, lease=self._lease)
            except Exception as failure:  # noqa: BLE001 - a runner outlives every fault of its host
                healthy = False
                _log.warning("lease_not_renewed", agent_versions=self._agent_versions, error=repr(failure))
            else:
                if not healthy:
                    _log.info("lease_renewed_again", agent_versions=self._agent_versions)
                healthy = True
