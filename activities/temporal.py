"""The activities' own hand on Temporal: starting runs, and telling a schedule that a slot is free."""

from collections import OrderedDict
from contextlib import suppress
from datetime import timedelta

import structlog
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from activities.messages import RUN_CLOSED, RUN_WORKFLOW, SCHEDULES_QUEUE, RunScheduled
from activities.search_attributes import of_run
from horarium.schedule.identity import ActivationKey, RunKey, instant_text

REMEMBERED_STARTS = 10_000
ANSWERS_WITHIN = timedelta(milliseconds=500)
"""For a look before a nominal second, which waits for nobody."""

_logger = structlog.get_logger(__name__)


class RunStarter:
    """Starts the workflows of runs. A run that was started before counts as started now: its id admits only one.

    `remembers` so many starts, so that it does not ask the server about each again at every step.
    """

    def __init__(self, client: Client, *, remembers: int = REMEMBERED_STARTS) -> None:
        self._client = client
        self._remembers = remembers
        self._started: OrderedDict[str, None] = OrderedDict()

    async def start(self, key: RunKey) -> None:
        """Start one run; errors of the connection are the caller's to retry."""
        if key.workflow_id in self._started:
            return
        with suppress(WorkflowAlreadyStartedError):
            await self._client.start_workflow(
                RUN_WORKFLOW,
                RunScheduled(key=key),
                id=key.workflow_id,
                task_queue=SCHEDULES_QUEUE,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                search_attributes=of_run(key),
                static_summary=f"{key.activation.schedule.schedule_id} at {instant_text(key.nominal_time)}",
                priority=Priority(fairness_key=key.activation.schedule.org_id),
                # The worker that staged it takes its first task from the answer, where it has room: a request and a write of
                # the server less. In any other case the run is started as usual.
                request_eager_start=True,
            )
        self._started[key.workflow_id] = None
        while len(self._started) > self._remembers:
            self._started.popitem(last=False)


async def has_ended(client: Client, workflow_id: str, run_id: str) -> bool:
    """Whether an execution is over, or deleted. Where the server does not say, it is taken to go on."""
    request = DescribeWorkflowExecutionRequest(
        namespace=client.namespace, execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id)
    )
    try:
        answer = await client.workflow_service.describe_workflow_execution(request, timeout=ANSWERS_WITHIN)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return True
        _logger.warning("run_not_looked_at", workflow_id=workflow_id, error=str(error))
        return False
    return answer.workflow_execution_info.status != WorkflowExecutionStatus.RUNNING.value


async def nudge(client: Client, key: ActivationKey | None) -> None:
    """Tell a waiting schedule that a slot was freed. A nudge that is lost costs time and nothing else."""
    if key is None:
        return
    try:
        await client.get_workflow_handle(key.workflow_id).signal(RUN_CLOSED)
    except RPCError as error:
        level = "info" if error.status is RPCStatusCode.NOT_FOUND else "warning"
        getattr(_logger, level)("nudge_not_delivered", workflow_id=key.workflow_id, error=str(error))
