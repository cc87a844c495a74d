"""What one caller may ask of the service: sizes, times, and requests a second."""

import asyncio
import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from horarium.api.problems import Rejected
from horarium.authority.file import MAX_FILE_BYTES
from horarium.schedule.document import MAX_DOCUMENT_BYTES

REMEMBERED_CALLERS = 10_000
"""Buckets that are kept; of more callers, those that were longest silent are forgotten, and begin anew."""
_NETWORK_OF_ONE_HOST = 64
"""An IPv6 host commonly has a whole /64 to itself, so that is what counts as one peer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """So many requests a second for long, and `burst` of them at once."""

    per_second: float
    burst: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds of a request. Sizes are bytes; `declarations` is that of a body with a file of declarations.

    `per_principal` is for requests with a valid token; `per_peer` for all others of one address.
    """

    body: int = MAX_DOCUMENT_BYTES
    declarations: int = MAX_FILE_BYTES
    headers: int = 16 * 1024
    query: int = 4 * 1024
    path: int = 2 * 1024
    body_within: timedelta = timedelta(seconds=30)
    per_principal: Rate = field(default_factory=lambda: Rate(per_second=50, burst=200))
    per_peer: Rate = field(default_factory=lambda: Rate(per_second=10, burst=50))


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class Buckets:
    """Token buckets, one for each caller, in this process: several processes allow as many times as much."""

    def __init__(self, rate: Rate, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._buckets: OrderedDict[object, _Bucket] = OrderedDict()

    def take(self, caller: object) -> None:
        """Take one request's token; `Rejected` with 429, and when to come again, where none is left."""
        now, rate = self._clock(), self._rate
        bucket = self._buckets.setdefault(caller, _Bucket(rate.burst, now))
        self._buckets.move_to_end(caller)
        bucket.tokens = min(rate.burst, bucket.tokens + (now - bucket.at) * rate.per_second)
        bucket.at = now
        while len(self._buckets) > REMEMBERED_CALLERS:
            self._buckets.popitem(last=False)
        if bucket.tokens >= 1:
            bucket.tokens -= 1
            return
        seconds = max(1, math.ceil((1 - bucket.tokens) / rate.per_second))
        raise Rejected(
            429,
            "rate_limited",
            f"More than {rate.per_second:g} requests a second, or {rate.burst} at once.",
            next_step=f"Come again in {seconds} s. A change keeps its key and body.",
            headers={"Retry-After": str(seconds)},
        )

    def give_back(self, caller: object) -> None:
        """Return what a request took, which turned out to be limited in another name."""
        bucket = self._buckets.get(caller)
        if bucket is not None:
            bucket.tokens = min(self._rate.burst, bucket.tokens + 1)


@dataclass(slots=True)
class _Queue:
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    length: int = 0


class LongWork:
    """Work that takes a processor for long: `at_once` pieces of it in this process, and one of each caller.

    Threads of such work share one interpreter, so more at once would not end sooner, and everybody else would wait. Whoever
    asks for a lot waits in a queue of their own; where `waiting` requests are in it, the next one is refused.
    """

    def __init__(self, *, at_once: int = 2, waiting: int = 10) -> None:
        self._places = asyncio.Semaphore(at_once)
        self._waiting = waiting
        self._queues: dict[object, _Queue] = {}

    @asynccontextmanager
    async def of(self, caller: object) -> AsyncIterator[None]:
        """Wait for a place and hold it; `Rejected` with 429 where the caller's queue is full."""
        queue = self._queues.setdefault(caller, _Queue())
        if queue.length >= self._waiting:
            raise Rejected(
                429,
                "rate_limited",
                f"{self._waiting} requests of yours wait here already for their turn at a long computation.",
                next_step="Come again when some of them are answered.",
                headers={"Retry-After": "1"},
            )
        queue.length += 1
        try:
            async with queue.turn, self._places:
                yield
        finally:
            queue.length -= 1
            if not queue.length:
                del self._queues[caller]


def peer(host: str | None) -> str:
    """What stands for one peer: its address, or the network of an IPv6 host."""
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return host or "unknown"
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((int(address), _NETWORK_OF_ONE_HOST), strict=False))
