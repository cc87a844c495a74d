"""Runs that were to start and did not, in the log: each by its name, and a burst of them readable all the same.

In an outage all fail in one way. So the first of a burst carries the traceback, the others who they are, and a total follows.
Nothing here waits or looks by itself: a process looks from time to time, and tells what is left before it leaves.
"""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog

from horarium.schedule.identity import instant_text

QUIET: Final = timedelta(seconds=10)
"""How long nothing fails before a burst is over."""
LONGEST: Final = timedelta(minutes=1)
"""How long one burst lasts at the most: a long outage is told about again and again."""
MAX_TRACE: Final = 8_000
"""Characters of a traceback, from its end, where the error stands."""

_logger = structlog.get_logger(__name__)


class StartFailures:
    """The failures of one process, from whichever thread.

    `elapsed` counts seconds and never goes back: a burst lasts by it, whatever is done to the clock. `now` is the clock, for
    when a burst began. Both are a test's to give.
    """

    def __init__(
        self,
        *,
        elapsed: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._elapsed = elapsed
        self._now = now
        self._lock = threading.Lock()
        self._burst: _Burst | None = None

    def note(self, *, trace: str = "", **identity: object) -> None:
        """Log one failure. `identity` is what names the run; `trace` the traceback, empty where there is none."""
        with self._lock:
            elapsed = self._elapsed()
            self._end_if_over(elapsed)
            if self._burst is None:
                self._burst = _Burst(self._now(), elapsed)
            burst = self._burst
            burst.total, burst.last = burst.total + 1, elapsed
            tells = bool(trace) and not burst.traced
            burst.traced = burst.traced or tells
            _logger.error("run_not_started", **identity, **({"exception": trace[-MAX_TRACE:]} if tells else {}))

    def look(self) -> None:
        """Tell the total of a burst that is over; nothing where none is."""
        with self._lock:
            self._end_if_over(self._elapsed())

    def flush(self) -> None:
        """Tell the total of what there is, over or not: whoever asks will not be there to look again."""
        with self._lock:
            self._end()

    def _end_if_over(self, elapsed: float) -> None:
        burst = self._burst
        if burst is None:
            return
        if elapsed - burst.last >= QUIET.total_seconds() or elapsed - burst.first >= LONGEST.total_seconds():
            self._end()

    def _end(self) -> None:
        burst, self._burst = self._burst, None
        if burst is not None:
            until = burst.since + timedelta(seconds=burst.last - burst.first)
            _logger.error(
                "starts_failed", total=burst.total, since=instant_text(burst.since), until=instant_text(until)
            )


class _Burst:
    def __init__(self, since: datetime, elapsed: float) -> None:
        self.since = since
        self.first = self.last = elapsed
        self.total = 0
        self.traced = False


STARTS: Final = StartFailures()
"""Those of this process: it has one log."""
