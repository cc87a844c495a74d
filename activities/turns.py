"""Whose turn it is where many want the same and few can have it at a time: organizations take turns."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """Lets in at most `at_once` at the same time. Those who wait are let in by turns of whom they belong to.

    Whoever belongs to nobody who waits is next but for one of each, however many the others are: 300 of one organization make
    the first of another wait for one, where a queue would make it wait for 300. Of the same organization, who came first is
    first. Temporal's fairness keys do the same in the server's queues; this is for the queue in a worker, in front of the
    catalog. For one event loop.
    """

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """By owner, whose turn is next first. None of the lines is empty."""

    @asynccontextmanager
    async def turn(self, owner: str) -> AsyncIterator[None]:
        """Wait for a turn of `owner`, and have it for as long as the block lasts."""
        await self._take(owner)
        try:
            yield
        finally:
            self._pass_on()

    async def _take(self, owner: str) -> None:
        if self._free:
            self._free -= 1
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(place)
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():
                # It was given the turn in the moment in which it was cancelled.
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        while self._waiting:
            owner, line = self._waiting.popitem(last=False)
            place = line.popleft()
            if line:
                self._waiting[owner] = line
            if not place.done():
                place.set_result(None)
                return
        self._free += 1
