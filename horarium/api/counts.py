"""Counts over the whole catalog, such as how many schedules stand in which state: not made anew for everybody who asks."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")

FRESH_FOR_SECONDS = 10.0


class Counts(Generic[T]):
    """The last count, kept for a while. Of many who ask at once, one counts."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = asyncio.Lock()
        self._counted: T
        self._until = float("-inf")

    async def get(self, count: Callable[[], Awaitable[T]]) -> T:
        """The count that is there, or a new one; what `count` raises is the caller's."""
        async with self._lock:
            if self._clock() >= self._until:
                self._counted = await count()
                self._until = self._clock() + FRESH_FOR_SECONDS
            return self._counted
