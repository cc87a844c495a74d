"""Builds of the two workers, as Temporal tells them apart while one replaces the other (DESIGN.md, section 10).

A schedule moves to the current build with its next workflow task; a run ends on the build that it began on.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from temporalio.api.deployment.v1 import WorkerDeploymentInfo
from temporalio.api.enums.v1 import RoutingConfigUpdateState, TaskQueueType, WorkerDeploymentVersionStatus
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    DescribeWorkerDeploymentRequest,
    SetWorkerDeploymentCurrentVersionRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.messages import RUNS_QUEUE, SCHEDULES_QUEUE
from horarium.errors import NotFound, Unavailable
from worker.settings import Deployment

POLLED_WITHIN = timedelta(seconds=75)
"""How long ago a worker that is there polled last, at the most: a poll is answered within a minute."""
LOOK_EVERY = timedelta(milliseconds=200)
ROUTED_WITHIN = timedelta(seconds=30)
"""How long it takes until every task queue knows the current build. It was seen to take a fraction of a second."""

_QUEUES = (
    (SCHEDULES_QUEUE, TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW),
    (RUNS_QUEUE, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY),
)
_STANDINGS = {
    WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_CURRENT: "current",
    WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_RAMPING: "ramping",
    WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_DRAINING: "draining",
    WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_DRAINED: "drained",
}
INACTIVE = "inactive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """One build of a deployment.

    `standing` is `current`, `ramping`, `draining` (runs that began on it are not known to have ended), `drained` (its
    workers may be stopped) or `inactive` (it never was current). The numbers are those of the workers that poll.
    """

    build_id: str
    standing: str
    schedule_workers: int
    run_workers: int


async def builds(client: Client, name: str) -> Sequence[Build]:
    """The builds of a deployment that Temporal knows, the newest first. Raises `NotFound`, `Unavailable`."""
    info = (await _described(client, name)).version_summaries
    schedules, runs = [await polling(client, queue, kind) for queue, kind in _QUEUES]
    return [
        Build(
            build_id=each.deployment_version.build_id,
            standing=_STANDINGS.get(each.status, INACTIVE),
            schedule_workers=schedules.get(Deployment(name=name, build_id=each.deployment_version.build_id), 0),
            run_workers=runs.get(Deployment(name=name, build_id=each.deployment_version.build_id), 0),
        )
        for each in sorted(info, key=lambda each: each.create_time.ToDatetime(), reverse=True)
    ]


async def make_current(client: Client, deployment: Deployment, *, wait: timedelta) -> str | None:
    """Let a build have the schedules and every new run; returns the build that had them, None for workers without one.

    Waits so long for both workers of the build, then raises `Unavailable`: without either of them nothing would run.
    Returns once every task queue knows.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + wait.total_seconds()
    while missing := await _missing(client, deployment):
        if loop.time() >= until:
            raise Unavailable(
                "workers_missing",
                f"No {' and no '.join(missing)} of build {deployment.build_id!r} polls for deployment {deployment.name!r}.",
                next_step=f"Start them with HORARIUM_DEPLOYMENT={deployment.name} and HORARIUM_BUILD_ID={deployment.build_id}, "
                "then try again.",
            )
        await asyncio.sleep(LOOK_EVERY.total_seconds())
    try:
        before = await client.workflow_service.set_worker_deployment_current_version(
            SetWorkerDeploymentCurrentVersionRequest(
                namespace=client.namespace,
                deployment_name=deployment.name,
                build_id=deployment.build_id,
                identity=client.identity,
            )
        )
    except RPCError as error:
        raise _unanswered(error) from error
    until = loop.time() + ROUTED_WITHIN.total_seconds()
    while not await _is_routed(client, deployment):
        if loop.time() >= until:
            raise Unavailable(
                "still_routing",
                f"Build {deployment.build_id!r} is current, and not every task queue of Temporal knows it yet.",
                next_step="Ask again with `horarium deployment show`; keep the other build's workers until then.",
            )
        await asyncio.sleep(LOOK_EVERY.total_seconds())
    return before.previous_deployment_version.build_id or None


async def working_builds(client: Client) -> frozenset[Deployment]:
    """The builds of which both workers poll, whatever the deployment. Raises `Unavailable`."""
    schedules, runs = [await polling(client, queue, kind) for queue, kind in _QUEUES]
    return frozenset(schedules.keys() & runs.keys())


async def polling(client: Client, queue: str, kind: TaskQueueType.ValueType) -> dict[Deployment, int]:
    """How many workers of each build poll a task queue; those of no build are left out."""
    try:
        answer = await client.workflow_service.describe_task_queue(
            DescribeTaskQueueRequest(namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind)
        )
    except RPCError as error:
        raise _unanswered(error) from error
    since = datetime.now(UTC) - POLLED_WITHIN
    found: dict[Deployment, int] = {}
    for poller in answer.pollers:
        options = poller.deployment_options
        if options.build_id and poller.last_access_time.ToDatetime(UTC) >= since:
            deployment = Deployment(name=options.deployment_name, build_id=options.build_id)
            found[deployment] = found.get(deployment, 0) + 1
    return found


async def _missing(client: Client, deployment: Deployment) -> list[str]:
    words = ("schedule worker", "run worker")
    return [
        word
        for word, (queue, kind) in zip(words, _QUEUES, strict=True)
        if deployment not in await polling(client, queue, kind)
    ]


async def _is_routed(client: Client, deployment: Deployment) -> bool:
    info = await _described(client, deployment.name)
    state = RoutingConfigUpdateState.ROUTING_CONFIG_UPDATE_STATE_IN_PROGRESS
    return info.routing_config_update_state != state


async def _described(client: Client, name: str) -> WorkerDeploymentInfo:
    try:
        answer = await client.workflow_service.describe_worker_deployment(
            DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=name)
        )
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise NotFound(
                "deployment_unknown",
                f"Temporal knows no worker deployment {name!r} in namespace {client.namespace!r}.",
                next_step="Start workers with HORARIUM_DEPLOYMENT and HORARIUM_BUILD_ID, or correct the name.",
            ) from error
        raise _unanswered(error) from error
    return answer.worker_deployment_info


def _unanswered(error: RPCError) -> Unavailable:
    return Unavailable(
        "temporal_unavailable", f"Temporal answers with {error.message}.", next_step="Try the same again."
    )
