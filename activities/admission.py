"""Admission of a run at its nominal second."""

import asyncio
from datetime import timedelta

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.clock import WorkerClock
from activities.failures import translated
from activities.messages import AdmitRun
from activities.temporal import nudge
from horarium.authority.asking import NOTHING_ASKED, Authority
from horarium.catalog import Catalog
from horarium.control import admission
from horarium.control.admission import Admission

HEARTBEAT_EVERY = timedelta(milliseconds=500)
"""Well below the two seconds after which a silent worker's wait is given to another."""


WAITS = 1_600
"""How many may wait in a worker at the same time. A fifth of its slots is left for those that are due."""
BACK_BEFORE = timedelta(seconds=1)
"""How early a run that found no room to wait tries again: by then, those that waited for an earlier second are gone."""


class Admissions:
    """Waits for nominal seconds, then decides. Safe to attempt twice: the catalog keeps the decision and its owner.

    At most `waits` runs wait here. Another one is sent away, to come back a second before its time and then at its time, so
    that waiting never takes the slots of those that are due.
    """

    def __init__(
        self, catalog: Catalog, authority: Authority, client: Client, clock: WorkerClock, *, waits: int = WAITS
    ) -> None:
        self._catalog = catalog
        self._authority = authority
        self._client = client
        self._clock = clock
        self._room = asyncio.Semaphore(waits)

    @activity.defn
    async def admit_run(self, request: AdmitRun) -> Admission:
        """Decide a run, never before its nominal time, on what is true then."""
        info = activity.info()
        self._clock.observe(info.started_time)
        with translated():
            question = await self._catalog.read(admission.question_of, request.key)
        await self._wait_for(request)
        owner = info.workflow_run_id
        assert owner is not None, "an admission belongs to a workflow"
        answers = NOTHING_ASKED
        if question is not None:
            answers = await self._authority.ask(question, run_id=request.key.run_id)
        with translated():
            decided = await self._catalog.write(
                admission.decide, request.key, answers, owner=owner, now=self._clock.now()
            )
        await nudge(self._client, decided.nudge)
        return decided

    async def _wait_for(self, request: AdmitRun) -> None:
        left = request.key.nominal_time - self._clock.now()
        if left <= timedelta(0):
            return
        if self._room.locked():
            # Attempts that fail leave no events in the run's history.
            raise ApplicationError(
                "All places to wait are taken.",
                type="no_room_to_wait",
                category=ApplicationErrorCategory.BENIGN,
                next_retry_delay=left - BACK_BEFORE if left > 2 * BACK_BEFORE else left,
            )
        async with self._room:
            await self._wait_here(request)

    async def _wait_here(self, request: AdmitRun) -> None:
        shutdown = asyncio.ensure_future(activity.wait_for_worker_shutdown())
        try:
            while (left := request.key.nominal_time - self._clock.now()) > timedelta(0):
                activity.heartbeat()
                await asyncio.wait([shutdown], timeout=min(left, HEARTBEAT_EVERY).total_seconds())
                if shutdown.done():
                    # Another worker has time to take the wait over; holding on would make the run late.
                    raise ApplicationError(
                        "This worker is shutting down.",
                        type="worker_shutdown",
                        category=ApplicationErrorCategory.BENIGN,
                    )
        finally:
            shutdown.cancel()
