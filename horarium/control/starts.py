"""Runs that were to start and did not, in the log: each by its name, and a burst of them readable all the same.

In an outage all fail in one way. So the first of a burst carries the traceback, the others who they are, and a total follows.
"""

import threading
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

    `now` is the clock, and `later` does something after a while. Both are a test's to give.
    """

    def __init__(
        self,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        later: Callable[[timedelta, Callable[[], None]], None] | None = None,
    ) -> None:
        self._now = now
        self._later = later or _in_a_thread
        self._lock = threading.Lock()
        self._burst: _Burst | None = None
        self._looks = False

    def note(self, *, trace: str = "", **identity: object) -> None:
        """Log one failure. `identity` is what names the run; `trace` the traceback, empty where there is none."""
        with self._lock:
            now = self._now()
            self._end_if_over(now)
            if self._burst is None:
                self._burst = _Burst(now)
                self._look_later()
            burst = self._burst
            burst.total, burst.until = burst.total + 1, now
            tells = bool(trace) and not burst.traced
            burst.traced = burst.traced or tells
            _logger.error("run_not_started", **identity, **({"exception": trace[-MAX_TRACE:]} if tells else {}))

    def _look(self) -> None:
        """Tell the total once the burst is over."""
        with self._lock:
            self._looks = False
            self._end_if_over(self._now())
            if self._burst is not None:
                self._look_later()

    def _look_later(self) -> None:
        if not self._looks:
            self._looks = True
            self._later(QUIET, self._look)

    def _end_if_over(self, now: datetime) -> None:
        burst = self._burst
        if burst is None or (now - burst.until < QUIET and now - burst.since < LONGEST):
            return
        self._burst = None
        _logger.error(
            "starts_failed", total=burst.total, since=instant_text(burst.since), until=instant_text(burst.until)
        )


class _Burst:
    def __init__(self, since: datetime) -> None:
        self.since = self.until = since
        self.total = 0
        self.traced = False


def _in_a_thread(after: timedelta, act: Callable[[], None]) -> None:
    timer = threading.Timer(after.total_seconds(), act)
    # Whoever leaves does not wait for it.
    timer.daemon = True
    timer.start()


STARTS: Final = StartFailures()
"""Those of this process: it has one log."""
