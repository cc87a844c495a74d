"""What is asked of, and told to, agents behind the gateway `http` after a run was handed over."""

import random
from datetime import timedelta

import structlog
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.clock import WorkerClock
from activities.failures import translated
from activities.gateway import HttpGateway
from activities.messages import PollRun, RunStanding, TellCancelled
from activities.temporal import nudge
from horarium.authority.declared import Destination
from horarium.catalog import Catalog
from horarium.control import dispatching, outcomes, running
from horarium.control.dispatching import Handed
from horarium.control.running import Outcome
from horarium.errors import Conflict
from horarium.schedule.identity import RunKey
from horarium.schedule.ledger import Disposition, Reason

FIRST_PAUSE = timedelta(seconds=5)
LONGEST_PAUSE = timedelta(seconds=60)
"""Between polls: soon at first, and then so that a thousand long runs cost a destination some twenty requests a second."""
JITTER = 0.2
"""Of a pause, either way, so that runs of one second are not polled in one second."""

_logger = structlog.get_logger(__name__)


class HttpOutcomes:
    """Learns how runs end whose agents are polled, and tells agents of runs that were cancelled."""

    def __init__(self, catalog: Catalog, gateway: HttpGateway, client: Client, clock: WorkerClock) -> None:
        self._catalog = catalog
        self._gateway = gateway
        self._client = client
        self._clock = clock

    @activity.defn
    async def poll_run(self, request: PollRun) -> RunStanding:
        """Poll a run once; while it goes on this attempt fails, and the next one is due after a pause.

        So a run that takes hours holds no place in a worker, and none of its polls leaves an event in its history. An outcome
        is settled as a report is. Nothing is told once the time is up; the workflow settles that.
        """
        info = activity.info()
        self._clock.observe(info.started_time)
        handed, destination = await self._find(request.key)
        if handed is None:
            return RunStanding()
        if handed.entry.closed_at is not None:
            return RunStanding(disposition=handed.entry.disposition, reason=handed.entry.reason)
        if destination is not None:
            polled = await self._gateway.poll(destination, request.key.run_id)
            if polled.report is not None:
                return await self._settle(request.key, polled.report)
            if polled.gone:
                return await self._lost(request.key)
        left = request.until - self._clock.now()
        if left <= timedelta(0):
            return RunStanding()
        pause = min(FIRST_PAUSE * 2 ** min(info.attempt - 1, 10), LONGEST_PAUSE) * random.uniform(  # noqa: S311 - no secret
            1 - JITTER, 1 + JITTER
        )
        raise ApplicationError(
            "The run goes on.",
            type="run_goes_on",
            category=ApplicationErrorCategory.BENIGN,
            next_retry_delay=min(pause, left),
        )

    @activity.defn
    async def tell_cancelled(self, request: TellCancelled) -> bool:
        """Tell an agent that its run was cancelled, once and as well as it goes; False where that was not heard."""
        _, destination = await self._find(request.key)
        return destination is not None and await self._gateway.cancel(destination, request.key.run_id)

    async def _find(self, key: RunKey) -> tuple[Handed | None, Destination | None]:
        with translated():
            handed = await self._catalog.read(dispatching.find_handed, key, lock=False)
            if handed is None:
                return None, None
            scope = key.activation.schedule.scope
            return handed, await self._catalog.read(dispatching.find_destination, scope, handed.destination_name)

    async def _settle(self, key: RunKey, said: outcomes.OutcomeReport) -> RunStanding:
        scope = key.activation.schedule.scope
        with translated():
            try:
                settled = await self._catalog.write(outcomes.report, scope, key.run_id, said, now=self._clock.now())
            except Conflict as error:
                # It ended otherwise while the destination was asked.
                _logger.warning("polled_outcome_not_taken", run_id=key.run_id, because=error.sentence)
                handed, _ = await self._find(key)
                assert handed is not None, "a run that ended is there"
                return RunStanding(disposition=handed.entry.disposition, reason=handed.entry.reason)
        await nudge(self._client, settled.nudge)
        return RunStanding(disposition=settled.disposition, reason=settled.reason)

    async def _lost(self, key: RunKey) -> RunStanding:
        lost = Outcome(
            disposition=Disposition.FAILED,
            reason=Reason.AGENT_LOST,
            summary="The destination had taken the run, and says that it is gone.",
        )
        with translated():
            waiting = await self._catalog.write(running.settle, key, lost, now=self._clock.now())
        await nudge(self._client, waiting)
        return RunStanding(disposition=lost.disposition, reason=lost.reason)
