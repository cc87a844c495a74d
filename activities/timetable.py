"""The two activities of a schedule's step: read what is known, and carry out what was planned."""

from temporalio import activity

from activities.failures import translated
from activities.messages import CommitPlan, GatherFacts, StepFacts
from activities.pace import Pace
from activities.temporal import RunStarter
from horarium.calendar import tzdata_version
from horarium.catalog import Catalog
from horarium.control import stepping


class Timetable:
    """Steps of schedules against the catalog. Both activities are local to the workflow's worker."""

    def __init__(self, catalog: Catalog, runs: RunStarter, pace: Pace) -> None:
        self._catalog = catalog
        self._runs = runs
        self._pace = pace

    @activity.defn
    async def gather_facts(self, request: GatherFacts) -> StepFacts:
        """Read the activation, its open entries, and what is due until `request.now` and shortly after.

        An activation whose version cannot be evaluated here goes to review; then it has no facts, and its workflow ends.
        """
        with translated():
            gathered = await self._catalog.read(
                stepping.gather, request.key, now=request.now, lead=self._pace.lead_of(request.key)
            )
            if gathered.unusable is not None:
                await self._catalog.write(stepping.give_up, request.key, because=gathered.unusable, now=request.now)
        return StepFacts(
            facts=gathered.facts,
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
        with translated():
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
