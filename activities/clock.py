"""What time it is: this machine's clock, unless the server's stamps contradict it.

Every started activity carries the server's time. The smallest recent distance to it bounds how wrong the local clock can
be, since the way from the server to here only adds to it. Beyond one second the server's time is taken, carried on by
the monotonic clock, and a warning names the skew (DESIGN.md, section 10).
"""

import time
from collections import deque
from datetime import UTC, datetime, timedelta

import structlog

TOLERANCE = timedelta(seconds=1)
RECENT = 20
"""How many stamps are kept: enough that one slow answer does not look like a wrong clock."""

_logger = structlog.get_logger(__name__)


class WorkerClock:
    """The time as a worker should take it. Not before the server's by more than the tolerance, nor after."""

    def __init__(self, *, recent: int = RECENT) -> None:
        self._anchor = (datetime.now(UTC), time.monotonic())
        self._offsets: deque[timedelta] = deque(maxlen=recent)
        self._warned: timedelta | None = None

    def observe(self, stamped: datetime) -> None:
        """Take note of a stamp that the server has just set."""
        self._offsets.append(stamped - datetime.now(UTC))

    @property
    def skew(self) -> timedelta:
        """How far the server's clock is ahead of ours, at the least; zero within the tolerance."""
        nearest = min(self._offsets, key=abs, default=timedelta(0))
        return nearest if abs(nearest) > TOLERANCE else timedelta(0)

    def now(self) -> datetime:
        """The time, aware, UTC."""
        skew = self.skew
        if not skew:
            self._warned = None
            self._anchor = (datetime.now(UTC), time.monotonic())
            return self._anchor[0]
        if self._warned is None or abs(self._warned - skew) > TOLERANCE:
            self._warned = skew
            self._anchor = (datetime.now(UTC) + skew, time.monotonic())
            _logger.warning("clock_skew", skew_seconds=skew.total_seconds(), taken="the server's time")
        start, since = self._anchor
        return start + timedelta(seconds=time.monotonic() - since)
