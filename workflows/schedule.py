"""One activation: a durable timer around one idempotent step.

This module is executed anew for each workflow, so that nothing but the workflow is defined in it.
"""

from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.exceptions import FailureError, is_cancelled_exception

from activities.failures import cause_of, is_silence
from activities.messages import RUN_CLOSED, SCHEDULE_WORKFLOW, CommitPlan, GatherFacts, StepFacts
from activities.timetable import Timetable
from horarium.control.stepping import Status
from horarium.errors import HorariumError
from horarium.schedule.identity import ActivationKey, instant_text
from horarium.schedule.plan import Plan, plan
from workflows import options
from workflows.description import ScheduleDescription


@workflow.defn(name=SCHEDULE_WORKFLOW, failure_exception_types=[HorariumError])
class ScheduleWorkflow:
    """The clock and the judge of one activation; the catalog holds what was decided (DESIGN.md, sections 5 and 10).

    Correctness needs no signal. Each step reads its activation, and one that has ended ends this workflow.

    It says nothing about versioning, since the server then accepts nothing from a worker without a build (SDK 1.35.0). Workers
    of a named build say it for their workflows.
    """

    @workflow.init
    def __init__(self, key: ActivationKey) -> None:
        self._key = key
        self._nudged = False
        self._state = "starting"
        self._plan: Plan | None = None
        self._waiting = 0
        self._next_look: datetime | None = None
        self._trouble: str | None = None
        self._pause = options.FIRST_PAUSE
        self._look_after: timedelta | None = None
        self._looked_by_itself = False
        self._steps = 0
        self._steps_per_run: int | None = None

    @workflow.run
    async def run(self, key: ActivationKey) -> str:
        """Step, sleep until the next step is due or somebody nudges, and again, until the activation has ended."""
        while not await self._has_ended():
            # Everything that the next run of this workflow needs is in the catalog, so it may begin anywhere. It begins with
            # a step, so this one sleeps first.
            if self._history_is_long():
                await workflow.wait_condition(workflow.all_handlers_finished)
                workflow.continue_as_new(key)
        self._tell("ended", wake_at=None)
        await workflow.wait_condition(workflow.all_handlers_finished)
        return "ended"

    @workflow.signal
    def pause(self) -> None:
        """The activation was paused: look now."""
        self._nudged = True

    @workflow.signal
    def review(self) -> None:
        """The activation was sent to review: look now."""
        self._nudged = True

    @workflow.signal
    def retire(self) -> None:
        """The schedule was retired: look now."""
        self._nudged = True

    @workflow.signal(name=RUN_CLOSED)
    def run_closed(self) -> None:
        """A slot was freed: look now."""
        self._nudged = True

    @workflow.query
    def describe(self) -> ScheduleDescription:
        """Where this activation stands."""
        return ScheduleDescription(
            key=self._key,
            state=self._state,
            accounted_through=None if self._plan is None else self._plan.accounted_through,
            next_look=self._next_look,
            waiting=self._waiting,
            blocked=self._plan is not None and self._plan.blocked,
            trouble=self._trouble,
        )

    async def _has_ended(self) -> bool:
        """Take a step, and sleep until the next one unless the activation has ended."""
        self._nudged = False
        try:
            status = await self._step()
        except FailureError as error:  # what a local activity raises is not wrapped in an ActivityError
            if is_cancelled_exception(error):
                raise
            await self._wait_out(error)
            return False
        self._pause = options.FIRST_PAUSE
        self._looked_by_itself = await self._sleep() if status is Status.DONE else False
        return status is Status.ENDED

    async def _step(self) -> Status:
        found = await self._gather()
        self._trouble = None
        if found.facts is None:
            return Status.ENDED
        decided = plan(found.facts)
        look_after = self._look_later(decided, first=found.look_after)
        status = await self._commit(found, decided, look_after)
        self._steps += 1
        self._steps_per_run = found.steps_per_run
        if status is Status.DONE:
            self._plan = decided
            self._waiting = found.facts.waiting + len(decided.waits) - len(decided.promotions)
            self._told(decided, look_after)
        return status

    async def _gather(self) -> StepFacts:
        return await workflow.execute_local_activity_method(
            Timetable.gather_facts,
            GatherFacts(key=self._key, now=workflow.now()),
            schedule_to_close_timeout=options.CATALOG_ANSWERS_WITHIN,
            retry_policy=options.LOCAL_RETRY,
        )

    async def _commit(self, found: StepFacts, decided: Plan, look_after: timedelta | None) -> Status:
        assert found.facts is not None
        nothing_to_write = decided.changes_nothing and not (decided.blocked or found.waiting or decided.exhausted)
        if nothing_to_write and found.facts.undecided == 0:
            return Status.DONE
        now = workflow.now()
        return await workflow.execute_local_activity_method(
            Timetable.commit_plan,
            CommitPlan(
                key=self._key, plan=decided, now=now, attended_until=None if look_after is None else now + look_after
            ),
            schedule_to_close_timeout=options.CATALOG_ANSWERS_WITHIN,
            retry_policy=options.LOCAL_RETRY,
        )

    def _look_later(self, decided: Plan, *, first: timedelta) -> timedelta | None:
        """How long a blocked schedule waits before it looks by itself: longer each time that it looked in vain.

        A nudge does not make it wait longer, and a run that starts lets it begin anew.
        """
        if decided.starts or decided.promotions:
            self._look_after = None
        if decided.blocked and self._look_after is None:
            self._look_after = first
        elif decided.blocked and self._look_after is not None and self._looked_by_itself:
            self._look_after = min(self._look_after * 2, options.LONGEST_LOOK)
        return self._look_after

    async def _wait_out(self, error: FailureError) -> None:
        """Sleep on a timer, which holds no worker, until the step that failed is tried again."""
        workflow.logger.warning("the step is tried again in %s: %s", self._pause, error.cause or error)
        self._trouble = cause_of(error)
        state = "the catalog does not answer" if is_silence(error) else "its steps fail"
        self._tell(state, wake_at=workflow.now() + self._pause)
        await workflow.sleep(self._pause, summary=state)
        self._pause = min(self._pause * 2, options.LONGEST_PAUSE)

    async def _sleep(self) -> bool:
        """Until the next look, which is True, or a nudge. A timer may fire early, so the step itself checks what is due."""
        if self._next_look is None:
            await workflow.wait_condition(lambda: self._nudged)
            return False
        left = self._next_look - workflow.now()
        if left <= timedelta(0):
            return True
        try:
            await workflow.wait_condition(
                lambda: self._nudged, timeout=left, timeout_summary=f"next look {instant_text(self._next_look)}"
            )
        except TimeoutError:
            return True
        return False

    def _history_is_long(self) -> bool:
        if self._steps_per_run is not None and self._steps >= self._steps_per_run:
            return True
        info = workflow.info()
        return info.is_continue_as_new_suggested() or info.get_current_history_length() >= options.HISTORY_EVENTS

    def _told(self, decided: Plan, look_after: timedelta | None) -> None:
        if decided.blocked:
            assert look_after is not None
            self._tell("waits for a run to end", wake_at=workflow.now() + look_after)
        else:
            self._tell("waits for the next instant", wake_at=decided.wake_at)

    def _tell(self, state: str, *, wake_at: datetime | None) -> None:
        """Keep the page of this schedule in the Temporal UI current."""
        self._state = state
        self._next_look = wake_at
        schedule = self._key.schedule
        name = f"`{schedule.schedule_id}` of {schedule.org_id}/{schedule.environment_id}"
        lines = [f"Schedule {name}, generation {self._key.generation}: **{state}**"]
        if self._trouble is not None:
            lines.append(f"Its last step failed: {self._trouble}")
        if wake_at is not None:
            lines.append(f"Next look: {instant_text(wake_at)}")
        if self._plan is not None:
            lines.append(f"Accounted through: {instant_text(self._plan.accounted_through)}")
        if self._waiting:
            lines.append(f"Waiting for a slot: {self._waiting}")
        workflow.set_current_details("\n\n".join(lines))
