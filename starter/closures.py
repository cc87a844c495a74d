"""Finds schedule workflows that somebody has ended by hand soon, however many schedules there are.

The server's list of closed workflows is a hint and no more: it lags, and it can be wrong. So whoever it names is looked at by
its id, and whom it does not name is looked at when its turn comes (see `starter.rotation`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from horarium.schedule.identity import Scope
from starter.temporal import ClosedSchedule, Temporal

LAG = timedelta(minutes=1)
"""How long after it has closed a workflow is looked for in the list."""
LISTED_AT_ONCE = 500
"""Closed workflows that are read at once. Where more have closed than that since the last look, everything is looked at."""


@dataclass(slots=True)
class Closures:
    """The schedule workflows of one environment that have closed, each told once unless `tell_again` asks for it."""

    temporal: Temporal
    scope: Scope
    now: Callable[[], datetime]
    _newest: datetime | None = None
    _told: frozenset[ClosedSchedule] = frozenset()

    async def look(self) -> tuple[Sequence[ClosedSchedule], bool]:
        """Those that are newly listed, and whether there may be more than these."""
        if self._newest is None:
            self._newest = self.now()
        listed = await self.temporal.closed_schedules(self.scope, since=self._newest - LAG, limit=LISTED_AT_ONCE)
        # By the server's clock from the first one on.
        self._newest = max([self._newest, *(each.closed_at for each in listed)])
        news = [each for each in listed if each not in self._told]
        self._told = frozenset(listed)
        return news, len(news) == LISTED_AT_ONCE

    def tell_again(self, news: Sequence[ClosedSchedule]) -> None:
        """Whoever was told of these could not look at them. Those are told that are still listed at the next look."""
        self._told -= frozenset(news)
