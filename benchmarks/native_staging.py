"""What a native run needs before its admission: the catalog has to know of it."""

from temporalio import activity

from benchmarks.due_schedules import stage
from horarium.catalog import Catalog
from horarium.schedule.identity import RunKey


class Staging:
    """Stages runs for whoever starts them natively."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    @activity.defn
    async def stage_run(self, run: RunKey) -> None:
        """Stage one; one that was staged before stays as it is."""
        await self._catalog.write(stage, run.activation, run.nominal_time)
