"""What threads of cron profiles remember, for as long as an operator has said, and for good where none has."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from horarium.catalog import Catalog
from horarium.control.threads import prune
from horarium.schedule.identity import Scope

PRUNE_EVERY = timedelta(hours=1)
"""How often old events are looked for: they are counted in days."""

_logger = structlog.get_logger(__name__)


@dataclass(slots=True)
class Pruning:
    """The old thread events of one environment. `older_than_days` is None where they are kept."""

    catalog: Catalog
    scope: Scope
    now: Callable[[], datetime]
    older_than_days: int | None = None

    async def prune(self) -> None:
        """Delete all that is too old, a page of profiles at a time: no other writer waits for longer than one takes."""
        if self.older_than_days is None:
            return
        deleted = 0
        after: int | None = 0
        while after is not None:
            pruned = await self.catalog.write(
                prune, now=self.now(), older_than_days=self.older_than_days, after=after, scope=self.scope
            )
            deleted, after = deleted + pruned.count, pruned.after
        if deleted:
            _logger.info("thread_events_pruned", count=deleted, older_than_days=self.older_than_days)
