"""Organizations take turns in the development server's queues: it heeds the fairness keys that our runs are started with."""

import asyncio
from datetime import timedelta
from uuid import uuid4

import pytest
from temporalio import activity, workflow
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import PollWorkflowTaskQueueRequest
from temporalio.client import Client
from temporalio.common import Priority
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from starter.temporal_server import TemporalServer

pytestmark = pytest.mark.server

MANY, FEW = 40, 3


@activity.defn
async def tell_key() -> str | None:
    """Whose turn this task was counted as."""
    return activity.info().priority.fairness_key


@workflow.defn
class Telling:
    """Says nothing about whose its activity is, as our run workflow does not."""

    @workflow.run
    async def run(self) -> str | None:
        return await workflow.execute_activity(tell_key, start_to_close_timeout=timedelta(seconds=60))


async def start(client: Client, queue: str, organization: str, number: int) -> None:
    await client.start_workflow(
        "Nobody",
        id=f"{queue}/{organization}/{number}",
        task_queue=queue,
        priority=Priority(fairness_key=organization),
    )


async def handed_out(client: Client, queue: str, count: int) -> list[str]:
    """Whose the first so many tasks are that the server hands out, in its order."""
    found = []
    while len(found) < count:
        task = await client.workflow_service.poll_workflow_task_queue(
            PollWorkflowTaskQueueRequest(
                namespace=client.namespace, task_queue=TaskQueue(name=queue), identity="a test"
            ),
            timeout=timedelta(seconds=70),
        )
        if task.task_token:
            found.append(task.workflow_execution.workflow_id.split("/")[1])
    return found


async def order_at(server: TemporalServer) -> list[str]:
    """What is handed out after a herd of one organization came, and then a few of another, while nobody was there to take it."""
    client = await Client.connect(server.address, namespace=server.namespace)
    queue = f"fairness-{uuid4()}"
    for number in range(MANY):
        await start(client, queue, "many", number)
    for number in range(FEW):
        await start(client, queue, "few", number)
    return await handed_out(client, queue, MANY + FEW)


def test_a_herd_of_one_organization_does_not_stand_before_a_few_of_another(temporal_server):
    order = asyncio.run(order_at(temporal_server))
    last_of_few = max(place for place, whose in enumerate(order) if whose == "few")
    assert order.count("few") == FEW
    assert last_of_few <= MANY // 2, order


def test_without_it_they_would_wait_for_the_whole_herd(tmp_path):
    """So that the test above can fail."""
    server = TemporalServer(tmp_path, port=0, headless=True, dynamic_config={"matching.enableFairness": False})

    async def story() -> list[str]:
        await server.start()
        order = await order_at(server)
        await server.stop()
        return order

    try:
        order = asyncio.run(story())
    finally:
        server.kill()
    # The server hands out nearly in the order of their coming, and now and then one of them a little later.
    assert order.index("few") > MANY // 2, order


def test_activities_are_their_workflow_s_organization_s(temporal_server):
    async def story() -> str | None:
        client = await Client.connect(temporal_server.address, namespace=temporal_server.namespace)
        queue = f"fairness-{uuid4()}"
        async with Worker(
            client,
            task_queue=queue,
            workflows=[Telling],
            activities=[tell_key],
            workflow_runner=UnsandboxedWorkflowRunner(),
            disable_eager_activity_execution=True,  # through the queue, as ours on a queue of its own
        ):
            found: str | None = await client.execute_workflow(
                Telling.run, id=queue, task_queue=queue, priority=Priority(fairness_key="acme")
            )
            return found

    assert asyncio.run(story()) == "acme"
