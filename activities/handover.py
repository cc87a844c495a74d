"""The last part of an admission: handing the run to an agent behind the gateway `http`."""

import asyncio
from datetime import timedelta

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.clock import WorkerClock
from activities.gateway import HttpGateway, Told
from horarium.catalog import Catalog
from horarium.control import dispatching
from horarium.control.dispatching import Again, Begun, Claim, Ended
from horarium.errors import Unavailable
from horarium.schedule.ledger import Disposition

FIRST_PAUSE = timedelta(milliseconds=250)
LONGEST_PAUSE = timedelta(seconds=5)
"""Between attempts to reach a destination: soon at first, then not a burden on what is coming up again."""
WRITTEN_WITHIN = timedelta(seconds=30)
"""How long an answer is held while the catalog does not take it. What is forgotten then is a start that nobody can confirm."""


class Handover:
    """Hands admitted runs over. Part of an activity: what is to be tried again fails the attempt, and leaves no event."""

    def __init__(self, catalog: Catalog, gateway: HttpGateway, clock: WorkerClock) -> None:
        self._catalog = catalog
        self._gateway = gateway
        self._clock = clock

    async def hand_over(self, claimed: Claim | Begun | Ended) -> Begun | Ended:
        """Send a run that was claimed to its agent.

        Raises `ApplicationError` where another attempt is due, inside the run's window.
        """
        if not isinstance(claimed, Claim):
            return claimed
        told = await self._gateway.post(claimed)
        result = await self._conclude(claimed, told)
        match result:
            case Again():
                raise self._again(result, told.sentence)
            case Ended(outcome=Disposition.CANCELLED):
                # Its workflow has told the agent, but that may have been before the agent had the run.
                await self._gateway.cancel(claimed.destination, claimed.run_id)
        return result

    async def _conclude(self, claim: Claim, told: Told) -> Begun | Ended | Again:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + WRITTEN_WITHIN.total_seconds()
        while True:
            try:
                return await self._catalog.write(
                    dispatching.conclude,
                    claim,
                    told.answer,
                    sentence=told.sentence,
                    trace=told.trace,
                    now=self._clock.now(),
                )
            except Unavailable as error:
                if loop.time() > deadline or activity.is_worker_shutdown():
                    raise ApplicationError(str(error), type=error.code) from error
                await asyncio.sleep(FIRST_PAUSE.total_seconds())

    def _again(self, again: Again, sentence: str) -> ApplicationError:
        left = max(again.until - self._clock.now(), timedelta(0))
        pause = min(FIRST_PAUSE * 2 ** min(activity.info().attempt - 1, 10), LONGEST_PAUSE)
        return ApplicationError(
            sentence,
            type="not_handed_over",
            category=ApplicationErrorCategory.BENIGN,
            # One attempt more right at the end of the window, or its verdict would come late.
            next_retry_delay=min(pause, left),
        )
