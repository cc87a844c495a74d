"""Workflows of ended activations: each is told to look, with patience, and watched until it has closed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from horarium.catalog import Catalog, lingering
from horarium.schedule.identity import ActivationKey, ScheduleKey, Scope
from starter.apart import each_apart
from starter.temporal import Found, Temporal

SIGNALS = {"paused": "pause", "retired": "retire", "review": "review", "superseded": "pause"}
FIRST_LOOK = timedelta(seconds=0.5)
LONGEST_LOOK = timedelta(seconds=30)
"""How long a workflow that does not close is left alone: it has nothing to do with how soon it closes."""
FIRST_SIGNAL = timedelta(minutes=1)
LONGEST_SIGNAL = timedelta(minutes=10)
"""Temporal keeps a signal until there is a worker, so the first is enough, unless somebody resets the workflow to before it.
The server refuses a workflow's 10,001st signal, which would come after 69 days without a schedule worker."""

Lingerer = tuple[int, ActivationKey, str]
"""The row of an activation, its key, and what it ended as."""


@dataclass(slots=True)
class _Patience:
    """When a workflow is looked at next, and when it is told again."""

    look_at: datetime
    signal_at: datetime
    look_pause: timedelta = FIRST_LOOK
    signal_pause: timedelta = FIRST_SIGNAL


@dataclass(slots=True)
class Lingering:
    """The ended activations of one environment whose workflows are not known to have closed."""

    catalog: Catalog
    temporal: Temporal
    scope: Scope
    now: Callable[[], datetime]
    _patience: dict[int, _Patience] = field(default_factory=dict)

    async def look(self) -> frozenset[ScheduleKey]:
        """Tell and close what is due for a look; returns the schedules of which something lingers still.

        One that cannot be looked at lingers still, and hides no other.
        """
        listed = await self.catalog.read(lingering.lingering, self.scope)
        now = self.now()
        self._patience = {row: self._patience.get(row) or _Patience(look_at=now, signal_at=now) for row, _, _ in listed}
        due = [each for each in listed if self._patience[each[0]].look_at <= now]
        closed = [row for (row, _, _), gone in await each_apart(due, self._is_gone) if gone]
        if closed:
            await self.catalog.write(lingering.mark_closed, closed)
        return frozenset(key.schedule for row, key, _ in listed if row not in closed)

    async def _is_gone(self, lingerer: Lingerer) -> bool:
        row, key, ended_as = lingerer
        patience, now = self._patience[row], self.now()
        patience.look_at = now + patience.look_pause
        patience.look_pause = min(2 * patience.look_pause, LONGEST_LOOK)
        if await self.temporal.describe(key.workflow_id) is not Found.RUNNING:
            return True
        if patience.signal_at <= now:
            await self.temporal.signal(key, SIGNALS[ended_as])
            patience.signal_at = now + patience.signal_pause
            patience.signal_pause = min(2 * patience.signal_pause, LONGEST_SIGNAL)
        return False
