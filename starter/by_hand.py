"""Runs that people asked for, started soon: whoever took the request may not have had a hand on Temporal, or may have died."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from horarium.catalog import Catalog
from horarium.catalog.unsettled import staged_by_hand
from horarium.schedule.identity import RunKey, Scope
from starter.apart import each_apart
from starter.temporal import Temporal

LOOKED_FOR = timedelta(minutes=1)
"""How old a request may be that is looked for at each tick. Older ones are the sweep's, which looks at Temporal first."""


@dataclass(slots=True)
class ByHand:
    """Starts what is staged by hand, once each as long as this process lives. What was started already is left alone."""

    catalog: Catalog
    temporal: Temporal
    scope: Scope
    now: Callable[[], datetime]
    _started: set[str] = field(default_factory=set)

    async def look(self) -> None:
        """Start what was asked for since the last look."""
        found = await self.catalog.read(staged_by_hand, self.scope, since=self.now() - LOOKED_FOR)
        fresh = [run for run in found if run.run_id not in self._started]
        begun = {run.run_id for run, done in await each_apart(fresh, self._start) if done}
        self._started = begun | {run.run_id for run in found if run.run_id in self._started}

    async def _start(self, run: RunKey) -> bool:
        await self.temporal.start_run(run)
        return True
