"""The guards that make a mistake in a workflow loud: the sandbox at start-up, and warnings as failures."""

import asyncio
from datetime import timedelta

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.worker import Worker

from tests.workflows.stray import StrayImport
from tests.workflows.unfinished import LeavesAnUpdate, LeavesASignal
from worker.plugin import VERSIONED_WORKFLOWS, WORKFLOWS


async def test_a_worker_does_not_start_with_a_workflow_that_imports_what_was_not_passed_through(skipping):
    async with skipping() as house:
        with pytest.raises(Exception, match="StrayImport") as refused:
            Worker(house.client, task_queue="stray", workflows=[StrayImport])

    causes = []
    error = refused.value
    while error is not None:
        causes.append(str(error))
        error = error.__cause__
    assert any("tests.workflows.documents" in cause for cause in causes), causes


@pytest.mark.parametrize("workflows", [WORKFLOWS, VERSIONED_WORKFLOWS], ids=["as they are", "of a build"])
async def test_our_own_workflows_pass_that_check(skipping, workflows):
    async with skipping() as house:
        Worker(house.client, task_queue="ours", workflows=workflows)


async def test_a_worker_of_activities_alone_is_given_no_workflows_by_the_plugin(skipping):
    async with skipping() as house:
        with pytest.raises(ValueError, match="At least one"):
            Worker(house.client, task_queue="nothing")


async def has_failed(handle) -> bool:
    """Whether a task of a workflow has failed."""
    history = await handle.fetch_history()
    return any(event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED for event in history.events)


async def leave_carelessly(skipping, workflow) -> None:
    async with skipping() as house, Worker(house.client, task_queue="careless", workflows=[workflow]):
        handle = await house.client.start_workflow(
            workflow.run, id="careless", task_queue="careless", task_timeout=timedelta(seconds=1)
        )
        update = None
        if workflow is LeavesASignal:
            await handle.signal(LeavesASignal.come)
        else:
            update = asyncio.ensure_future(handle.execute_update(LeavesAnUpdate.come))
        async with asyncio.timeout(60):  # the task fails each time, so the workflow never gets to its end
            while not await has_failed(handle):  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.1)
        if update is not None:
            update.cancel()
        await handle.terminate()


@pytest.mark.parametrize(
    ("workflow", "warning"),
    [(LeavesASignal, "UnfinishedSignalHandlersWarning"), (LeavesAnUpdate, "UnfinishedUpdateHandlersWarning")],
)
async def test_a_workflow_that_ends_with_an_unfinished_handler_makes_its_test_fail(skipping, workflow, warning):
    with pytest.raises(AssertionError, match=warning):
        await leave_carelessly(skipping, workflow)
