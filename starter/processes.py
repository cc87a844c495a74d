"""A tree of child processes that come up in order, are kept alive, and are gone when we are."""

import asyncio
import signal
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import Self

from horarium.errors import HorariumError, Misconfigured
from starter.child import Child, in_words

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, a plain `kill`, and the terminal that is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarts:
    """How a child that ends by itself is started again.

    `limit` times `within` a while, with pauses that start at `first_pause` and double. The five default pauses are
    15.5 s together, so a child that cannot live is given up well inside the minute.
    """

    limit: int = 5
    within: timedelta = timedelta(seconds=60)
    first_pause: timedelta = timedelta(milliseconds=500)


class ProcessTree:
    """Children of one process, as an async context manager; enter it in the main thread.

    ::

        async with ProcessTree() as tree:
            await tree.start(TemporalServer(folder))
            await tree.start(Child(Program(name="The worker", argv=..., log=...)))
            await tree.run_until_stopped()

    A child that ends is started again (see Restarts), and `report` is told so in a sentence. On the way out the
    children are stopped one by one, the last one first; a second signal kills those that are left.

    Ctrl-C, SIGTERM and a closed terminal end the block: it is cancelled where it waits, and execution goes on behind
    it with `stopped_by` set. Under `nohup` a closed terminal is ignored, as it should be. A child that cannot be kept
    alive ends the block too, which then raises Misconfigured.
    """

    def __init__(
        self,
        *,
        restarts: Restarts | None = None,
        report: Callable[[str], None] = lambda text: print(text, file=sys.stderr),
    ) -> None:
        self.stopped_by: signal.Signals | None = None
        self._restarts = restarts or Restarts()
        self._report = report
        self._children: list[Child] = []
        self._watches: list[asyncio.Task[None]] = []
        self._host: asyncio.Task[object] | None = None
        self._host_cancelling = 0
        self._leaving = False
        self._failure: Exception | None = None

    async def start(self, child: Child) -> None:
        """Start `child`, wait until it is ready, and keep it alive from then on. Raises as Child.start does."""
        await child.start()
        self._children.append(child)
        self._watches.append(asyncio.create_task(self._watch(child), name=f"watch {child.program.name}"))

    async def run_until_stopped(self) -> None:
        """Wait, until the block is ended from outside."""
        await asyncio.get_running_loop().create_future()

    async def __aenter__(self) -> Self:
        self._host = asyncio.current_task()
        assert self._host is not None
        self._host_cancelling = self._host.cancelling()
        loop = asyncio.get_running_loop()
        for number in _stopping_signals():
            loop.add_signal_handler(number, self._signalled, number)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        assert self._host is not None
        # If somebody else cancelled the block too, theirs is the word that counts.
        alone = self._leaving and self._host.uncancel() <= self._host_cancelling
        cancelled_by_us = alone and isinstance(error, asyncio.CancelledError)
        self._leaving = True
        try:
            await self._stop_all()
        finally:
            for child in reversed(self._children):
                child.kill()
            for number in _stopping_signals():
                asyncio.get_running_loop().remove_signal_handler(number)
        if self._failure is not None and (error is None or cancelled_by_us):
            raise self._failure
        return cancelled_by_us

    async def _stop_all(self) -> None:
        for watch in self._watches:
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)
        for child in reversed(self._children):
            await child.stop()

    async def _watch(self, child: Child) -> None:
        try:
            await self._keep_alive(child)
        except Exception as error:  # noqa: BLE001 - raised again where the block ends
            self._failure = self._failure or error
            self._leave()

    async def _keep_alive(self, child: Child) -> None:
        name, allowed = child.program.name, self._restarts
        clock = asyncio.get_running_loop().time
        ends: deque[float] = deque()
        while True:
            how = in_words(await child.ended())
            ends.append(clock())
            while ends[-1] - ends[0] > allowed.within.total_seconds():
                ends.popleft()
            if len(ends) > allowed.limit:
                raise Misconfigured(
                    f"{name} cannot be kept running: it ended {len(ends)} times within "
                    f"{allowed.within.total_seconds():g} s, the last time with {how}. {child.last_words()}"
                )
            pause = allowed.first_pause.total_seconds() * 2 ** (len(ends) - 1)
            self._report(f"{name} ended with {how}. It is started again in {pause:g} s.")
            await asyncio.sleep(pause)
            try:
                await child.start()
            except HorariumError as error:
                self._report(str(error))

    def _signalled(self, number: signal.Signals) -> None:
        if self.stopped_by is None:
            self.stopped_by = number
            self._leave()
            return
        self._report("Killing what is left.")
        for child in reversed(self._children):
            child.kill()

    def _leave(self) -> None:
        if not self._leaving:
            assert self._host is not None
            self._leaving = True
            self._host.cancel()


def _stopping_signals() -> list[signal.Signals]:
    # SIGINT is taken even where a shell's `&` made it ignored: whoever sends it by hand means it.
    return [n for n in STOPPING if n is not signal.SIGHUP or signal.getsignal(n) is not signal.SIG_IGN]
