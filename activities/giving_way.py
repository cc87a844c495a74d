"""Where many runs are due in the same second, those that have ended wait until the others have begun.

A run has a second to begin on, and none to end on. But an end is as much work for the Temporal server as a beginning, and it
takes whatever comes first: of 300 short runs that were due together, the ends of the first made the last begin twice as late.

What a run is settled at includes the wait. So only a second that stands by itself has its ends wait: where many are due every
other second, the next instant of one must not find it still taken.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

MANY = 30
"""Runs of one second that began here, from which on ends of that second wait. Fewer have begun before it matters."""
QUIET = timedelta(milliseconds=500)
"""So long after the latest beginning of a second, all of it is taken to have begun. In a herd there is one every ten
milliseconds, but a busy machine was seen to pause for more than 200 in the middle of it: all ends went then, and the last run
began twice as late."""
LONGEST = timedelta(seconds=4)
"""The most that an end waits. A runner that is killed in that time takes with it what it knows of how the run ended."""
APART = timedelta(seconds=15)
"""How far the second before that had as many is away at the least."""
REMEMBERED = 100
"""Seconds whose beginnings are counted: those of a minute and a half, where each has its runs."""


@dataclass(slots=True)
class _Beginnings:
    count: int = 0
    latest: float = 0.0
    """By the clock of the event loop."""


class GivingWay:
    """Lets the ends of runs give way to the beginnings of others that are due in the same second. For one event loop.

    `room` is how many runs can be done at the same time: once as many are, ends make room and wait no longer. Without it there
    is room for any number.
    """

    def __init__(
        self, room: float = math.inf, *, many: int = MANY, quiet: timedelta = QUIET, longest: timedelta = LONGEST
    ) -> None:
        self._room = room
        self._many = many
        self._quiet = quiet.total_seconds()
        self._longest = longest.total_seconds()
        self._seconds: dict[datetime, _Beginnings] = {}
        self._full = asyncio.Event()
        self._open = 0

    @contextmanager
    def taking_room(self) -> Iterator[None]:
        """Count a run that takes room here, for as long as the block lasts."""
        self._open += 1
        if self._open >= self._room:
            self._full.set()
        try:
            yield
        finally:
            self._open -= 1
            if self._open < self._room:
                self._full.clear()

    def began(self, nominal_time: datetime) -> None:
        """Count a run of this second, which begins now."""
        second = self._seconds.setdefault(nominal_time, _Beginnings())
        second.count += 1
        second.latest = asyncio.get_running_loop().time()
        if len(self._seconds) > REMEMBERED:
            del self._seconds[next(iter(self._seconds))]

    async def give_way(
        self, nominal_time: datetime, *, at_most: timedelta, until: Callable[[], Awaitable[object]]
    ) -> None:
        """Wait until the runs of this second have begun: so long at the most, and until what it is given comes true.

        A second with few runs is not waited for, nor one soon after another with many. Cancelled, it waits no longer, and says
        nothing: what has ended is not cancelled any more.
        """
        second = self._seconds.get(nominal_time)
        if second is None or second.count < self._many or self._is_soon_after_another(nominal_time):
            return
        loop = asyncio.get_running_loop()
        deadline = loop.time() + min(self._longest, at_most.total_seconds())
        reasons = [asyncio.ensure_future(until()), asyncio.ensure_future(self._full.wait())]
        try:
            while not any(reason.done() for reason in reasons):
                left = min(second.latest + self._quiet, deadline) - loop.time()
                if left <= 0:
                    return
                await asyncio.wait(reasons, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            # Nothing is left to cancel: to raise it would throw away a report that is there.
            pass
        finally:
            for reason in reasons:
                reason.cancel()

    def _is_soon_after_another(self, nominal_time: datetime) -> bool:
        return any(
            second.count >= self._many and timedelta(0) < nominal_time - other <= APART
            for other, second in self._seconds.items()
        )
