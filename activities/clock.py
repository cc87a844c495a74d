"""What time it is: this machine's clock, unless the server's stamps contradict it.

Every started activity carries the server's time. Each stamp is kept by its distance to the monotonic clock, which nobody
sets, so that it goes on telling the server's time after somebody has set this machine's clock, forwards or backwards. The way
from the server to here only makes a stamp look older, so the furthest of the recent ones is nearest to the truth. Where the
machine's clock differs from it by more than one second, the server's time is taken, carried on by the monotonic
clock, and a warning names the skew (DESIGN.md, section 10).
"""

import time
from collections import deque
from datetime import UTC, datetime, timedelta

import structlog

TOLERANCE = timedelta(seconds=1)
RECENT = 20
"""How many stamps are kept: enough that one slow answer does not look like a wrong clock."""
FRESH = timedelta(minutes=5)
"""How old a stamp may be, except for the newest. The monotonic clock drifts by some 15 ms in that time. It stands still while
a machine sleeps; then the next stamp is further and counts at once. A server whose clock was set back is believed after it."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_logger = structlog.get_logger(__name__)


class WorkerClock:
    """The time as a worker should take it: never ahead of the server's by more than the tolerance."""

    def __init__(self, *, recent: int = RECENT) -> None:
        self._stamps: deque[tuple[timedelta, timedelta]] = deque(maxlen=recent)
        """When a stamp came, by the monotonic clock, and the server's time when that clock began, as the stamp has it."""
        self._warned: timedelta | None = None

    def observe(self, stamped: datetime) -> None:
        """Take note of a stamp that the server has just set."""
        came = _monotonic()
        self._stamps.append((came, stamped - _EPOCH - came))
        while came - self._stamps[0][0] > FRESH:
            self._stamps.popleft()

    @property
    def skew(self) -> timedelta:
        """How far the server's clock is ahead of ours; zero within the tolerance, and without a stamp."""
        if not self._stamps:
            return timedelta(0)
        servers = _EPOCH + max(began for _, began in self._stamps) + _monotonic()
        ahead = servers - datetime.now(UTC)
        return ahead if abs(ahead) > TOLERANCE else timedelta(0)

    def now(self) -> datetime:
        """The time, aware, UTC."""
        skew = self.skew
        if not skew:
            self._warned = None
        elif self._warned is None or abs(self._warned - skew) > TOLERANCE:
            self._warned = skew
            _logger.warning("clock_skew", skew_seconds=round(skew.total_seconds(), 3), taken="the server's time")
        return datetime.now(UTC) + skew


def _monotonic() -> timedelta:
    return timedelta(seconds=time.monotonic())
