"""Goes round the live activations of an environment, a page at a time: what nobody reports is found in the end.

So the steady load of a controller is the same for however many schedules, and only the time of a round grows: at
`LOOKS_AT_ONCE` a sweep, two hundred live schedules are looked at in each sweep, and ten thousand in about four minutes. Where
most schedules are paused or ended a round takes longer, since a page goes by no more than `VISITED_AT_ONCE` for each of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from horarium.catalog import Catalog, watching
from horarium.catalog.presence import note_sweep
from horarium.catalog.watching import Watched
from horarium.schedule.identity import Scope

LOOKS_AT_ONCE = 200
"""Live activations that a sweep looks at, because it is their turn: 40 a second, which is some hundredths of a core here and
at the server."""


@dataclass(slots=True)
class Rotation:
    """Where a round stands. A round that is clean to its end is when each schedule was looked at last, at the latest."""

    catalog: Catalog
    scope: Scope
    _after: str | None = None
    _began_at: datetime | None = None
    _clean: bool = True
    _is_out: bool = False

    async def page(self, *, now: datetime, limit: int) -> Sequence[Watched]:
        """Those whose turn it is. `done` has to be called once they were looked at."""
        if self._began_at is None:
            self._began_at, self._clean = now, True
        if self._is_out:
            # Whoever had the last page came to no end with it.
            self._clean = False
        self._is_out = True
        live, self._after = await self.catalog.read(watching.live_page, self.scope, after=self._after, limit=limit)
        return live

    async def done(self, *, clean: bool, now: datetime) -> bool:
        """What was seen of the last page is written down, unless it was not `clean`; whether that was the end of the round."""
        self._is_out = False
        self._clean &= clean
        if self._after is not None:
            return False
        began_at, self._began_at = self._began_at, None
        if self._clean and began_at is not None:
            await self.catalog.write(note_sweep, self.scope, began_at=began_at, now=now)
        return True
