"""One run: admitted at its nominal second, done by its agent, and settled before this workflow completes."""

import asyncio
from contextlib import suppress
from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, FailureError, TimeoutType, is_cancelled_exception
from temporalio.exceptions import TimeoutError as ActivityTimeoutError

from activities.admission import Admissions
from activities.failures import cause_of, trace_of
from activities.ledger import Settlements
from activities.messages import (
    OUTCOME_REPORTED,
    RUN_AGENT,
    RUN_WORKFLOW,
    RUNS_QUEUE,
    AdmitRun,
    AgentDone,
    LookAtRun,
    PollRun,
    RunAgent,
    RunClosed,
    RunScheduled,
    RunSettled,
    RunStanding,
    SettleRun,
    TellCancelled,
)
from activities.outcomes import HttpOutcomes
from horarium.control.admission import ADMITTED, Dispatch
from horarium.control.dispatching import HTTP
from horarium.control.running import Outcome
from horarium.errors import HorariumError
from horarium.schedule.identity import instant_text
from horarium.schedule.ledger import Disposition, Reason
from workflows import options


@workflow.defn(name=RUN_WORKFLOW, failure_exception_types=[HorariumError])
class RunWorkflow:
    """Lives independently of the schedule's workflow, and has no time limit of its own."""

    @workflow.init
    def __init__(self, run: RunScheduled) -> None:
        self._key = run.key
        self._closed_as = ""
        self._closed_for: str | None = None
        self._reported = False
        self._tell("waits for its nominal time")

    @workflow.run
    async def run(self, _run: RunScheduled) -> RunClosed:
        """Take the run from staged to its one answer."""
        outcome: Outcome | None
        try:
            outcome = await self._admitted_and_done()
        except (ActivityError, asyncio.CancelledError) as error:
            if not is_cancelled_exception(error):
                raise
            outcome = Outcome(disposition=Disposition.CANCELLED, reason=Reason.CANCELLED_BY_OPERATOR)
        if outcome is None:
            return RunClosed(disposition=self._closed_as, reason=self._closed_for)
        settlement = asyncio.create_task(self._settle(outcome))
        while not settlement.done():
            # A cancellation comes too late here: it must not leave the outcome unwritten.
            with suppress(asyncio.CancelledError):
                await asyncio.shield(settlement)
        self._tell(f"{outcome.disposition}", outcome.reason)
        return RunClosed(disposition=outcome.disposition, reason=outcome.reason)

    @workflow.signal(name=OUTCOME_REPORTED)
    def outcome_reported(self) -> None:
        """The run has been settled by whoever reported its outcome. Only a nudge: the catalog is asked."""
        self._reported = True

    async def _admitted_and_done(self) -> Outcome | None:
        """What to settle; None where admission has already closed the run, or it is not ours."""
        admission = await workflow.execute_activity_method(
            Admissions.admit_run,
            AdmitRun(key=self._key),
            task_queue=RUNS_QUEUE,
            start_to_close_timeout=options.ADMISSION_TIME,
            heartbeat_timeout=options.admission_heartbeat(self._key.nominal_time - workflow.now()),
            retry_policy=options.ADMISSION_RETRY,
            summary=f"admission at {instant_text(self._key.nominal_time)}",
        )
        if admission.outcome != ADMITTED:
            self._closed_as = admission.outcome
            self._closed_for = admission.reason
            self._tell(admission.outcome, admission.reason)
            return None
        assert admission.dispatch is not None, "an admitted run has somewhere to go"
        self._tell("admitted, with its agent")
        if admission.dispatch.gateway == HTTP:
            return await self._until_it_ended_elsewhere(admission.dispatch)
        return await self._with_its_agent(admission.dispatch)

    async def _with_its_agent(self, dispatch: Dispatch) -> Outcome:
        """Hand the run to its agent, and say how it ended."""
        pick_up, limit = timedelta(seconds=dispatch.pick_up_seconds), timedelta(seconds=dispatch.max_run_seconds)
        try:
            done: AgentDone = await workflow.execute_activity(
                RUN_AGENT,
                RunAgent(run_id=dispatch.run_id, agent_version=dispatch.agent_version, idempotent=dispatch.idempotent),
                result_type=AgentDone,
                task_queue=dispatch.task_queue,
                # Over all attempts: a repeated run is the same run, and its limit begins with the first.
                schedule_to_close_timeout=pick_up + limit,
                schedule_to_start_timeout=pick_up,
                start_to_close_timeout=limit,
                heartbeat_timeout=options.AGENT_HEARTBEAT,
                retry_policy=options.IDEMPOTENT_AGENT_RETRY if dispatch.idempotent else options.AGENT_RETRY,
                # A cancelled agent is waited for, so that its end is recorded and its slot is not given away too early.
                cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
                summary=f"agent {dispatch.agent_version}",
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            return _undone(error.cause)
        return Outcome(
            disposition=Disposition.SUCCEEDED if done.succeeded else Disposition.FAILED,
            reason=None if done.succeeded else Reason.AGENT_REPORTED_FAILURE,
            summary=done.summary,
            outputs=done.outputs,
            cost=done.cost,
        )

    async def _until_it_ended_elsewhere(self, dispatch: Dispatch) -> Outcome | None:
        """Wait for the end of a run whose agent is behind the gateway http; None where it was settled by then."""
        until = workflow.now() + timedelta(seconds=dispatch.max_run_seconds)
        ended = await (self._polled(until) if dispatch.outcome == "poll" else self._called_back(until))
        if ended.disposition is None:
            return Outcome(
                disposition=Disposition.TIMED_OUT, reason=Reason.TIME_LIMIT, summary="No outcome came in time."
            )
        self._closed_as, self._closed_for = ended.disposition, ended.reason
        self._tell(ended.disposition, ended.reason)
        return None

    async def _called_back(self, until: datetime) -> RunStanding:
        """Look at the catalog when told to, and now and then in case nobody was heard."""
        pause = options.FIRST_LOOK
        while True:
            left = until - workflow.now()
            with suppress(TimeoutError):
                await workflow.wait_condition(
                    lambda: self._reported,
                    timeout=max(min(pause, left), timedelta(0)),
                    timeout_summary="until the outcome is looked for",
                )
            self._reported = False
            standing = await self._standing()
            if standing.disposition is not None or workflow.now() >= until:
                return standing
            pause = min(pause * 2, options.LONGEST_LOOK)

    async def _standing(self) -> RunStanding:
        try:
            return await workflow.execute_local_activity_method(
                Settlements.look_at_run,
                LookAtRun(key=self._key),
                schedule_to_close_timeout=options.CATALOG_ANSWERS_WITHIN,
                retry_policy=options.LOCAL_RETRY,
            )
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
            # Whatever is concluded without an answer is settled in the catalog, which knows better then.
            workflow.logger.warning("the run could not be looked at: %s", error.cause or error)
            return RunStanding()

    async def _polled(self, until: datetime) -> RunStanding:
        try:
            return await workflow.execute_activity_method(
                HttpOutcomes.poll_run,
                PollRun(key=self._key, until=until),
                task_queue=RUNS_QUEUE,
                schedule_to_close_timeout=until - workflow.now() + options.POLL_MARGIN,
                start_to_close_timeout=options.POLL_TIME,
                retry_policy=options.POLL_RETRY,
                summary="polls the agent for its outcome",
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            workflow.logger.warning("polling ended: %s", error.cause or error)
            return await self._standing()

    async def _tell_its_agent(self) -> None:
        """Once, and as well as it goes: an agent elsewhere cannot be made to stop."""
        try:
            await workflow.execute_activity_method(
                HttpOutcomes.tell_cancelled,
                TellCancelled(key=self._key),
                task_queue=RUNS_QUEUE,
                schedule_to_close_timeout=options.CANCELLATION_TIME,
                retry_policy=options.ONCE,
                summary="tells the agent that the run was cancelled",
            )
        except ActivityError as error:
            workflow.logger.warning("the agent was not told of the cancellation: %s", error.cause or error)

    async def _settle(self, outcome: Outcome) -> None:
        """Write the outcome down, however long the catalog is away: a run that is not settled holds its slot."""
        pause = options.FIRST_PAUSE
        while True:
            try:
                settled: RunSettled | None = await workflow.execute_local_activity_method(
                    Settlements.settle_run,
                    SettleRun(key=self._key, outcome=outcome, ended_at=workflow.now()),
                    schedule_to_close_timeout=options.CATALOG_ANSWERS_WITHIN,
                    retry_policy=options.LOCAL_RETRY,
                )
            except FailureError as error:  # what a local activity raises is not wrapped in an ActivityError
                workflow.logger.warning("settlement is tried again in %s: %s", pause, error.cause or error)
                self._tell(f"{outcome.disposition}, not written down yet", cause_of(error))
                await workflow.sleep(pause, summary="until the settlement is tried again")
                pause = min(pause * 2, options.LONGEST_SETTLING_PAUSE)
            else:
                # Releases before runs went elsewhere returned nothing.
                if settled is not None and settled.tell_agent:
                    await self._tell_its_agent()
                return

    def _tell(self, state: str, reason: str | None = None) -> None:
        """Keep the page of this run in the Temporal UI current."""
        key = self._key
        workflow.set_current_details(
            f"Run `{key.run_id}` of schedule `{key.activation.schedule.schedule_id}`, generation "
            f"{key.activation.generation}, nominal time **{instant_text(key.nominal_time)}**: "
            f"**{state}**{f' ({reason})' if reason else ''}"
        )


_HALTS = frozenset({Reason.STOPPED_BY_OPERATOR, Reason.ENVIRONMENT_EPOCH_CHANGED, Reason.ENVIRONMENT_RESET})
"""Why a run that was admitted a moment ago may not be begun any more."""


def _undone(cause: BaseException | None) -> Outcome:
    """What it means that an agent's activity brought no report."""
    summary, trace = str(cause), trace_of(cause)
    match cause:
        case ActivityTimeoutError(type=TimeoutType.SCHEDULE_TO_START):
            return Outcome(disposition=Disposition.NOT_STARTED, reason=Reason.NOT_PICKED_UP, summary=summary)
        case ActivityTimeoutError(type=TimeoutType.START_TO_CLOSE | TimeoutType.SCHEDULE_TO_CLOSE):
            return Outcome(disposition=Disposition.TIMED_OUT, reason=Reason.TIME_LIMIT, summary=summary)
        case ApplicationError(type="claim_failed"):
            return Outcome(
                disposition=Disposition.NOT_STARTED, reason=Reason.CLAIM_FAILED, summary=summary, trace=trace
            )
        case ApplicationError(type=str(halted)) if halted in _HALTS:
            return Outcome(disposition=Disposition.NOT_STARTED, reason=Reason(halted), summary=summary, trace=trace)
        case ApplicationError(type="not_admitted" | "run_not_found"):
            return Outcome(disposition=Disposition.NOT_STARTED, reason=Reason.RUN_LOST, summary=summary, trace=trace)
        case _:
            return Outcome(disposition=Disposition.FAILED, reason=Reason.AGENT_LOST, summary=summary, trace=trace)
