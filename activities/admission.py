"""Admission of a run at its nominal second."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta

import structlog
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.clock import WorkerClock
from activities.failures import translated
from activities.gateway import HttpGateway
from activities.handover import Handover
from activities.messages import AdmitRun
from activities.pace import SILENT_WAIT, share_of
from activities.temporal import has_ended, nudge
from activities.turns import Turns
from horarium import traces
from horarium.authority.asking import NOTHING_ASKED, Answers, Authority
from horarium.authority.rules import may_cost
from horarium.catalog import Catalog
from horarium.control import admission, dispatching
from horarium.control.admission import Admission, Pending
from horarium.control.dispatching import Decided, Ended
from horarium.errors import Unavailable
from horarium.schedule.ceilings import USUAL, Ceilings
from horarium.schedule.identity import RunKey

HEARTBEAT_EVERY = timedelta(milliseconds=800)
"""How often a decision that takes long says that it lives: two seconds after its nominal time a silent one is given to another
worker, by the server's clock, which may be a second ahead of this one's."""
LOOKED_AT_EVERY = timedelta(seconds=1)
"""How often a wait looks at the clock."""
LAST_LOOK = timedelta(seconds=0.5)
LAST_LOOK_SPREAD = timedelta(seconds=1)
"""How long before its second a run that has waited asks whether its workflow goes on: somebody may have ended it by hand, which
a wait that is silent is not told. To ask is no write of the server and not billed."""
WAITS = 1_600
"""How many may wait in a worker at the same time. A fifth of its slots is left for those that are due."""
FIRST_SILENCE = timedelta(milliseconds=100)
LONGEST_SILENCE = timedelta(seconds=5)
"""Between two questions to an authority that gives no answer: soon at first, then not a burden on what is coming up again."""
ATTEMPTS_IN_A_WINDOW = 20
"""Asked for at the least, where each gets no answer at once. In the shortest windows, of ten seconds, the server makes about
ten of them: it was seen to come back once a second, however short the pause."""
JUST_AFTER = timedelta(milliseconds=10)
BACK_BEFORE = timedelta(seconds=1)
"""How early a run that found no room to wait tries again: by then, those that waited for an earlier second are gone."""
DECIDED_AT_ONCE = 8
"""Decisions that a worker gives to its catalog at the same time: enough to share transactions of SQLite, and more than
PostgreSQL has writers, so that none waits for its next. No more stand before an organization that has few."""

_logger = structlog.get_logger(__name__)


class Admissions:
    """Waits for nominal seconds, then decides, and hands runs over to agents behind the gateway `http`.

    Safe to attempt twice: the catalog keeps the decision, its owner, and whether the run was sent.

    At most `waits` runs wait here. Another one is sent away, to come back a second before its time and then at its time, so
    that waiting never takes the slots of those that are due.

    Those that are due together are decided by turns of their organizations, `at_once` at the same time.
    """

    def __init__(
        self,
        catalog: Catalog,
        authority: Authority,
        client: Client,
        clock: WorkerClock,
        gateway: HttpGateway,
        *,
        waits: int = WAITS,
        at_once: int = DECIDED_AT_ONCE,
        ceilings: Ceilings = USUAL,
    ) -> None:
        self._catalog = catalog
        self._authority = authority
        self._client = client
        self._clock = clock
        self._gateway = gateway
        self._ceilings = ceilings
        self._handover = Handover(catalog, gateway, clock)
        self._room = asyncio.Semaphore(waits)
        self._turns = Turns(at_once)

    @activity.defn
    async def admit_run(self, request: AdmitRun) -> Admission:
        """Decide a run, never before its nominal time, on what is true then."""
        info = activity.info()
        self._clock.observe(info.started_time)
        with translated():
            pending = await self._catalog.read(admission.pending, request.key)
        owner = info.workflow_run_id
        assert owner is not None, "an admission belongs to a workflow"
        await self._wait_for(request)
        async with _heartbeats():
            decided = await self._decide(request.key, pending, owner=owner)
            await nudge(self._client, decided.admission.nudge)
            return await self._handed_over(request.key, decided)

    async def _decide(self, key: RunKey, pending: Pending | None, *, owner: str) -> Decided:
        with translated():
            answers = await self._asked(key, pending)
            try:
                async with self._turns.turn(key.activation.schedule.org_id):
                    return await self._catalog.write(
                        dispatching.decide,
                        key,
                        answers,
                        owner=owner,
                        now=self._clock.now(),
                        keys_of=self._gateway.keys_of,
                        ceilings=self._ceilings,
                    )
            except Unavailable as silence:
                if pending is None or answers.unanswered is None:
                    raise
                raise self._asked_again(pending, answers.unanswered, silence) from silence

    async def _handed_over(self, key: RunKey, decided: Decided) -> Admission:
        """The decision, with the run handed over where its agent is elsewhere."""
        admitted = decided.admission
        if decided.unusable is not None:
            _logger.error("destination_unusable", run_id=key.run_id, because=decided.unusable)
            # Another worker may have the secret, and a person may give it to this one, while the window lasts.
            raise ApplicationError(decided.unusable, type="destination_unusable")
        if decided.claimed is None or admitted.dispatch is None:
            return admitted
        with traces.span("agent begins"):
            result = await self._handover.hand_over(decided.claimed)
        if isinstance(result, Ended):
            await nudge(self._client, result.nudge)
            return Admission(outcome=result.outcome, reason=result.reason)
        return replace(admitted, dispatch=replace(admitted.dispatch, outcome=result.outcome))

    async def _asked(self, key: RunKey, pending: Pending | None) -> Answers:
        """What the authority says now; nothing where nothing is to be decided, and once the window has passed.

        Then it is told what the last attempt inside the window was told, if it got no answer.
        """
        question = None if pending is None else pending.question
        if pending is None or question is None:
            return NOTHING_ASKED
        if self._clock.now() > pending.until:
            told = activity.info().heartbeat_details
            return Answers(question=question, unanswered=str(told[0])) if told else NOTHING_ASKED
        if (
            self._authority.holds_money
            and may_cost(question.request)
            and not await self._catalog.write(admission.announce, key, question, now=self._clock.now())
        ):
            return NOTHING_ASKED
        return await self._authority.ask(question, run_id=key.run_id)

    def _asked_again(self, pending: Pending, unanswered: str, silence: Unavailable) -> ApplicationError:
        """Another attempt: often within a short window, and once more right behind its end, to say that there was no answer."""
        activity.heartbeat(unanswered)
        longest = min(LONGEST_SILENCE, (pending.until - pending.window_from) / ATTEMPTS_IN_A_WINDOW)
        pause = min(FIRST_SILENCE * 2 ** min(activity.info().attempt - 1, 10), max(longest, FIRST_SILENCE))
        return ApplicationError(
            str(silence),
            type=silence.code,
            # The adapter has logged it, once for all runs that met it.
            category=ApplicationErrorCategory.BENIGN,
            next_retry_delay=min(pause, max(pending.until - self._clock.now(), timedelta(0)) + JUST_AFTER),
        )

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
        heard = time.monotonic()
        last_look = LAST_LOOK + LAST_LOOK_SPREAD * share_of(request.key.activation)
        to_look = request.key.nominal_time - self._clock.now() > last_look
        try:
            while (left := request.key.nominal_time - self._clock.now()) > timedelta(0):
                if to_look and left <= last_look:
                    to_look = False
                    await self._require_workflow(request.key)
                    continue
                # In between the clock is looked at again: somebody may have set it.
                pause = min(left - last_look if to_look else left, LOOKED_AT_EVERY)
                await asyncio.wait([shutdown], timeout=pause.total_seconds())
                if shutdown.done():
                    # Another worker has time to take the wait over; holding on would make the run late.
                    raise ApplicationError(
                        "This worker is shutting down.",
                        type="worker_shutdown",
                        category=ApplicationErrorCategory.BENIGN,
                    )
                if time.monotonic() - heard >= SILENT_WAIT.total_seconds():
                    activity.heartbeat()
                    heard = time.monotonic()
        finally:
            shutdown.cancel()

    async def _require_workflow(self, key: RunKey) -> None:
        """Raise where nobody is left who could be given the decision."""
        owner = activity.info().workflow_run_id
        assert owner is not None, "an admission belongs to a workflow"
        if await has_ended(self._client, key.workflow_id, owner):
            raise ApplicationError(
                "The workflow of this run was ended while it waited.",
                type="workflow_ended",
                non_retryable=True,
                category=ApplicationErrorCategory.BENIGN,
            )


@asynccontextmanager
async def _heartbeats() -> AsyncIterator[None]:
    """Say that this attempt lives, where it takes longer than it should."""

    async def beat() -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_EVERY.total_seconds())
            activity.heartbeat()

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()
        with suppress(asyncio.CancelledError):
            await beating
