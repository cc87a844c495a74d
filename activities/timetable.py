"""The two activities of a schedule's step: read what is known, and carry out what was planned."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta

import structlog
from temporalio import activity

from activities.clock import WorkerClock
from activities.failures import translated
from activities.findings import Findings
from activities.line import LONGEST, Line
from activities.messages import CommitPlan, GatherFacts, StepFacts
from activities.pace import Pace
from activities.temporal import RunStarter
from horarium.calendar import tzdata_version
from horarium.catalog import Catalog
from horarium.control import stepping
from horarium.errors import Unavailable
from horarium.schedule.facts import OVERDUE
from horarium.schedule.findings import Finding
from horarium.schedule.identity import ActivationKey, instant_text

LIMIT = timedelta(seconds=4)
"""How long either half of a step may take: as long as runs are staged ahead. Beyond that, what is due is late."""
AHEAD_AT_MOST = timedelta(minutes=1)
"""How far the server's clock may be ahead of the catalog's. What a step decides for the future cannot be taken back, so where
two servers differ by so much, nothing is decided until they agree."""

_logger = structlog.get_logger(__name__)


class Timetable:
    """Steps of schedules against the catalog. Both activities are local to the workflow's worker.

    `clock` is the catalog's, as far as it is known here. Without one the server's time is taken as it comes, which is for
    servers that skip time.
    """

    def __init__(
        self,
        catalog: Catalog,
        runs: RunStarter,
        pace: Pace,
        *,
        clock: WorkerClock | None = None,
        findings: Findings | None = None,
    ) -> None:
        self._catalog = catalog
        self._runs = runs
        self._pace = pace
        self._clock = clock
        self._findings = findings or Findings()
        self._line = Line()

    @activity.defn
    async def gather_facts(self, request: GatherFacts) -> StepFacts:
        """Read the activation, its open entries, and what is due until `request.now` and shortly after.

        An activation whose version cannot be evaluated here goes to review; then it has no facts, and its workflow ends.
        """
        with translated(), self._timed("gather", request.key):
            self._doubt(request.now)
            lead = self._pace.lead_of(request.key)
            gathered = await self._catalog.read(
                stepping.gather, request.key, now=request.now, lead=lead + self._line.extra_of(request.key)
            )
            if gathered.unusable is not None:
                await self._catalog.write(stepping.give_up, request.key, because=gathered.unusable, now=request.now)
        facts = gathered.facts
        if facts is None or facts.following is None:
            self._line.leave(request.key)
        else:
            # By this one it wakes for the next instant, and finds it within its lead then. Not before the last one is due: its
            # run would be found in the slot.
            last = max((facts.accounted_through, *facts.ahead))
            extra = self._line.stand(request.key, facts.following, at_most=facts.following - last - lead)
            facts = replace(facts, lead=lead + extra)
        if facts is not None:
            self._watch(request.key, facts.accounted_through, now=request.now)
        return StepFacts(
            facts=facts,
            waiting=gathered.waiting,
            look_after=self._pace.look_after,
            steps_per_run=self._pace.steps_per_run,
            tzdata=tzdata_version(),
        )

    @activity.defn
    async def commit_plan(self, request: CommitPlan) -> stepping.Status:
        """Write the plan down in one transaction, then start every staged run of the activation.

        The order matters: a run that is started is in the ledger. A crash in between leaves staged entries, which the next
        step, or the next attempt of this one, starts.
        """
        with translated(), self._timed("commit", request.key):
            committed = await self._catalog.write(
                stepping.commit,
                request.key,
                request.plan,
                now=request.now,
                attended_until=request.attended_until,
            )
        for run in committed.staged:
            await self._runs.start(run)
        return committed.status

    def _doubt(self, now: datetime) -> None:
        """Raise `Unavailable` where the server's clock is so far ahead that one of two servers is wrong."""
        if self._clock is None:
            return
        ahead = now - self._clock.now()
        if ahead > AHEAD_AT_MOST:
            self._findings.note(Finding.SERVER_CLOCK_AHEAD)
            raise Unavailable(
                "server_clock_ahead",
                f"The Temporal server's clock is {ahead.total_seconds():.0f} s ahead of the catalog's, so nothing is decided.",
                next_step="Set the clocks right (with NTP, say). What falls due meanwhile is caught up as the policy says.",
            )

    def _watch(self, key: ActivationKey, mark: datetime, *, now: datetime) -> None:
        """Tell of a mark that is ahead of the clock. It is never moved back, or its instants would be decided twice."""
        ahead = mark - now - self._pace.lead_of(key) - LONGEST
        if ahead > OVERDUE:
            self._findings.note(Finding.MARK_AHEAD)
            _logger.warning(
                "mark_ahead_of_clock",
                workflow_id=key.workflow_id,
                accounted_through=instant_text(mark),
                ahead_seconds=round((mark - now).total_seconds(), 3),
            )

    @contextmanager
    def _timed(self, what: str, key: ActivationKey) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            took = timedelta(seconds=time.monotonic() - began)
            if took > LIMIT:
                self._findings.note(Finding.STEP_OUTRAN_LIMIT)
                _logger.warning(
                    "step_outran_limit",
                    workflow_id=key.workflow_id,
                    half=what,
                    seconds=round(took.total_seconds(), 3),
                    limit_seconds=LIMIT.total_seconds(),
                )
