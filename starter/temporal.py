"""The control plane's hand on Temporal: start, signal and describe the workflows of activations and runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import Priority, VersioningBehavior, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from activities.messages import SCHEDULE_WORKFLOW, SCHEDULES_QUEUE
from activities.search_attributes import ENVIRONMENT, of_activation
from activities.temporal import RunStarter, nudge
from horarium.schedule.identity import ActivationKey, RunKey, Scope, instant_text
from starter.deployments import working_builds
from worker.settings import Deployment


class Found(StrEnum):
    """What Temporal says of a workflow."""

    ABSENT = "absent"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TERMINATED = "terminated"
    TIMED_OUT = "timed_out"


_STATUS = {
    WorkflowExecutionStatus.RUNNING: Found.RUNNING,
    WorkflowExecutionStatus.CONTINUED_AS_NEW: Found.RUNNING,
    WorkflowExecutionStatus.COMPLETED: Found.COMPLETED,
    WorkflowExecutionStatus.FAILED: Found.FAILED,
    WorkflowExecutionStatus.CANCELED: Found.CANCELLED,
    WorkflowExecutionStatus.TERMINATED: Found.TERMINATED,
    WorkflowExecutionStatus.TIMED_OUT: Found.TIMED_OUT,
}


_CLOSED = "'Completed', 'Failed', 'Canceled', 'Terminated', 'TimedOut'"
"""As lists of workflows are asked for them; not those that were continued as new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a workflow stands, and the build that alone may go on with it; None where any may."""

    found: Found
    pinned_to: Deployment | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedSchedule:
    """A workflow of a schedule that the server lists as closed."""

    workflow_id: str
    closed_at: datetime

    @property
    def schedule_id(self) -> str:
        """The UUID of its schedule; some other text where the id is none that we give."""
        return self.workflow_id.rpartition("/")[0].rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Temporal:
    """The calls that the controller makes. Errors of the connection are the caller's."""

    client: Client

    async def describe(self, workflow_id: str) -> Found:
        """How a workflow stands, by its id."""
        return (await self.look_at(workflow_id)).found

    async def look_at(self, workflow_id: str) -> Standing:
        """How a workflow stands, and who may go on with it, by its id."""
        request = DescribeWorkflowExecutionRequest(
            namespace=self.client.namespace, execution=WorkflowExecution(workflow_id=workflow_id)
        )
        try:
            # A handle would read summary, memo and search attributes too: a quarter of what a look costs here.
            answer = await self.client.workflow_service.describe_workflow_execution(request, retry=True)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return Standing(found=Found.ABSENT)
            raise
        info = answer.workflow_execution_info
        return Standing(found=_STATUS[WorkflowExecutionStatus(info.status)], pinned_to=_pinned_to(info))

    async def closed_schedules(self, scope: Scope, *, since: datetime, limit: int) -> Sequence[ClosedSchedule]:
        """Workflows of an environment's schedules that are listed as closed since then, so many at the most, in one call.

        The list lags behind, and what it tells is a hint.
        """
        query = (
            f"WorkflowType = '{SCHEDULE_WORKFLOW}' AND {ENVIRONMENT.name} = '{scope.org_id}/{scope.environment_id}' "
            f"AND ExecutionStatus IN ({_CLOSED}) AND CloseTime >= '{instant_text(since)}'"
        )
        page = self.client.list_workflows(query, page_size=limit, limit=limit)
        await page.fetch_next_page(page_size=limit)
        return [
            ClosedSchedule(workflow_id=each.id, closed_at=each.close_time)
            for each in page.current_page or ()
            if each.close_time is not None
        ]

    async def working_builds(self) -> frozenset[Deployment]:
        """The builds of which both workers poll."""
        return await working_builds(self.client)

    async def start_schedule(self, key: ActivationKey) -> bool:
        """Start the workflow of an activation; False where it was started before, and may even have ended."""
        try:
            await self.client.start_workflow(
                SCHEDULE_WORKFLOW,
                key,
                id=key.workflow_id,
                task_queue=SCHEDULES_QUEUE,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                search_attributes=of_activation(key),
                static_summary=f"{key.schedule.schedule_id}, generation {key.generation}",
                priority=Priority(fairness_key=key.schedule.org_id),
            )
        except WorkflowAlreadyStartedError:
            return False
        return True

    async def start_run(self, key: RunKey) -> None:
        """Start a run that Temporal has just said it does not know, whatever was started before."""
        await RunStarter(self.client, remembers=0).start(key)

    async def nudge(self, key: ActivationKey | None) -> None:
        """Tell a schedule that waits that a slot was freed; errors are logged and cost time only."""
        await nudge(self.client, key)

    async def signal(self, key: ActivationKey, signal: str) -> None:
        """Tell an activation's workflow to look now; one that is gone has nothing to look at."""
        try:
            await self.client.get_workflow_handle(key.workflow_id).signal(signal)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise


def _pinned_to(info: WorkflowExecutionInfo) -> Deployment | None:
    versioning = info.versioning_info
    behavior, version = versioning.behavior, versioning.deployment_version
    if versioning.HasField("versioning_override"):
        # Somebody moved it by hand.
        override = versioning.versioning_override
        if override.WhichOneof("override") != "pinned":
            return None
        behavior, version = VersioningBehavior.PINNED.value, override.pinned.version
    if behavior != VersioningBehavior.PINNED.value or not version.build_id:
        return None
    return Deployment(name=version.deployment_name, build_id=version.build_id)
