"""`python -m benchmarks.native_worker`: a schedule worker for runs that native schedules start again and again.

It is set as ours is: as many workflow tasks at a time, as many in memory, the same sandbox, the same timeouts.
"""

from temporalio.client import Client
from temporalio.worker import Worker

from activities.ledger import Settlements
from benchmarks.native_run import NATIVE_QUEUE, NativeRun
from benchmarks.native_staging import Staging
from horarium.catalog import Catalog
from worker.composition import GRACE, STICKY_TIMEOUT, WORKFLOW_POLLS, workflow_tuner
from worker.connection import connect
from worker.exit import run
from worker.logs import configure
from worker.processes import WAIT_FOR_TEMPORAL_SECONDS, open_catalog, until_told
from worker.settings import DEFAULT_CACHED_WORKFLOWS, load


def native_worker(client: Client, catalog: Catalog) -> Worker:
    """What runs `NativeRun`, with what is set for our schedule worker."""
    settlements = Settlements(catalog, client)
    return Worker(
        client,
        task_queue=NATIVE_QUEUE,
        workflows=[NativeRun],
        activities=[Staging(catalog).stage_run, settlements.settle_run, settlements.look_at_run],
        tuner=workflow_tuner(),
        max_concurrent_workflow_task_polls=WORKFLOW_POLLS,
        max_cached_workflows=DEFAULT_CACHED_WORKFLOWS,
        sticky_queue_schedule_to_start_timeout=STICKY_TIMEOUT,
        graceful_shutdown_timeout=GRACE,
    )


async def _main() -> int:
    catalog = open_catalog(load())
    try:
        async with native_worker(await connect(wait_seconds=WAIT_FOR_TEMPORAL_SECONDS), catalog):
            await until_told()
    finally:
        catalog.close()
    return 0


if __name__ == "__main__":
    configure()
    run(_main())
