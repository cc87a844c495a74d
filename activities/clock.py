"""What time it is: this machine's clock, unless the server's stamps contradict it.

Every started activity carries the server's time. Each stamp is kept by its distance to the monotonic clock, which nobody
sets, so that it goes on telling the server's time after somebody has set this machine's clock, forwards or backwards. The way
from the server to here only makes a stamp look older, so the furthest of the recent ones is nearest to the truth. Where the
machine's clock differs from it by more than one second, the server's time is taken, carried on by the monotonic
clock, and a warning names the skew (DESIGN.md, section 10).

The server is the Temporal server for admissions, and the catalog's database for whoever watches: heartbeats, leases and sweeps.
"""

import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import structlog

from activities.findings import Findings
from horarium.schedule.findings import Finding

TOLERANCE = timedelta(seconds=1)
RECENT = 20
"""How many stamps are kept: enough that one slow answer does not look like a wrong clock."""
FRESH = timedelta(minutes=5)
"""How old a stamp may be, except for the newest. The monotonic clock drifts by some 15 ms in that time. It stands still while
a machine sleeps; then the next stamp is further and counts at once. A server whose clock was set back is believed after it."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_logger = structlog.get_logger(__name__)


def machine_time() -> datetime:
    """What this machine's clock says."""
    return datetime.now(UTC)


class WorkerClock:
    """The time as a worker should take it: never ahead of the server's by more than the tolerance.

    `machine` is the clock that is doubted, and `server` names, in the warning, whose time is taken instead of it.
    """

    def __init__(
        self,
        *,
        recent: int = RECENT,
        machine: Callable[[], datetime] = machine_time,
        server: str = "the server's time",
        findings: Findings | None = None,
    ) -> None:
        self._machine = machine
        self._server = server
        self._findings = findings
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
        ahead = servers - self._machine()
        return ahead if abs(ahead) > TOLERANCE else timedelta(0)

    def now(self) -> datetime:
        """The time, aware, UTC."""
        skew = self.skew
        if not skew:
            self._warned = None
        elif self._warned is None or abs(self._warned - skew) > TOLERANCE:
            self._warned = skew
            _logger.warning("clock_skew", skew_seconds=round(skew.total_seconds(), 3), taken=self._server)
            if self._findings is not None:
                self._findings.note(Finding.CLOCK_SKEW)
        return self._machine() + skew


def _monotonic() -> timedelta:
    return timedelta(seconds=time.monotonic())
