"""Writing down how a run ended."""

from temporalio import activity
from temporalio.client import Client

from activities.failures import translated
from activities.messages import LookAtRun, RunSettled, RunStanding, SettleRun
from activities.temporal import nudge
from horarium.catalog import Catalog
from horarium.control import dispatching, running
from horarium.schedule.ledger import Disposition


class Settlements:
    """Settles runs in the catalog, then tells the schedule that waits for the slot."""

    def __init__(self, catalog: Catalog, client: Client) -> None:
        self._catalog = catalog
        self._client = client

    @activity.defn
    async def settle_run(self, request: SettleRun) -> RunSettled:
        """Close the run's entry, once. Repeating it changes nothing and nudges again."""
        with translated():
            waiting = await self._catalog.write(running.settle, request.key, request.outcome, now=request.ended_at)
            handed = None
            if request.outcome.disposition is Disposition.CANCELLED:
                handed = await self._catalog.read(dispatching.find_handed, request.key, lock=False)
        await nudge(self._client, waiting)
        return RunSettled(tell_agent=handed is not None and handed.was_cancelled_after_sending)

    @activity.defn
    async def look_at_run(self, request: LookAtRun) -> RunStanding:
        """How a run stands that is settled by whoever reports its outcome."""
        with translated():
            found = await self._catalog.read(dispatching.find_handed, request.key, lock=False)
        if found is None or found.entry.closed_at is None:
            return RunStanding()
        return RunStanding(disposition=found.entry.disposition, reason=found.entry.reason)
