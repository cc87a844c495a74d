"""What nobody reports is found, and put right or told: by the real controller, on a real server."""

from datetime import timedelta

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest

from horarium.catalog import findings
from horarium.schedule.findings import Finding
from horarium.schedule.ledger import Disposition
from tests.end_to_end.installation import installation, now, until
from tests.end_to_end.stories import Stories
from tests.workflows.known import known

pytestmark = pytest.mark.server

stories = Stories()


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory, request):
    return stories.told(tmp_path_factory.mktemp("watched"), request, installation)


def found(it, kind):
    with it.catalog.reading() as connection:
        return findings.totals(connection)[kind]


async def counted(it, kind):
    """Wait until something was counted. Other stories may count the same, so no more is said."""
    await until(lambda: found(it, kind) > 0, f"{kind} to be counted")


async def deleted(it, workflow_id):
    """Delete a workflow, and with it all that Temporal knows of it."""
    await known(it.client.get_workflow_handle(workflow_id))
    request = DeleteWorkflowExecutionRequest(
        namespace=it.client.namespace, workflow_execution=WorkflowExecution(workflow_id=workflow_id)
    )
    await it.client.workflow_service.delete_workflow_execution(request)


async def run_that(it, key, disposition, *, for_seconds=-3600.0):
    """A run that stands so, with some time left until its second."""
    rows = []

    def look():
        rows[:] = [
            entry
            for entry, _ in it.rows(key)
            if entry.disposition is disposition and entry.first_at - now() >= timedelta(seconds=for_seconds)
        ]
        return bool(rows)

    await until(look, lambda: f"a run that is {disposition}; the ledger says {it.told(key)}")
    return rows[0].run_key(key)


@stories.story
async def test_a_schedule_whose_workflow_is_terminated_goes_to_review_and_is_counted(it):
    key = await it.published(every=5)
    activation = (await it.enabled(key)).key
    await it.until_closed(key, 1)
    await it.client.get_workflow_handle(activation.workflow_id).terminate("by hand")
    await until(lambda: it.runtime(key)[0] == "review", lambda: f"review, not {it.runtime(key)}")
    await counted(it, Finding.SCHEDULE_WORKFLOW_CLOSED)
    await it.enabled(key)
    answered = len(it.rows(key))
    await it.until_closed(key, answered + 1)
    await it.proven(key)


@stories.story
async def test_a_schedule_whose_workflow_is_deleted_has_another_one_and_misses_nothing(it):
    key = await it.published(every=5, overlap="allow")
    activation = (await it.enabled(key)).key
    await it.until_closed(key, 1)
    await deleted(it, activation.workflow_id)
    answered = len(it.rows(key))
    await it.until_closed(key, answered + 3)
    assert set(it.told(key)) <= {"succeeded", "staged", "admitted", "started"}
    await it.proven(key)


@stories.story
async def test_a_staged_run_whose_workflow_is_terminated_is_lost_and_counted(it):
    key = await it.published(every=15)
    await it.enabled(key)
    run = await run_that(it, key, Disposition.STAGED, for_seconds=3)
    await (await known(it.client.get_workflow_handle(run.workflow_id))).terminate("by hand")
    await until(lambda: "not_started run_lost" in it.told(key), lambda: f"run_lost, not {it.told(key)}")
    await counted(it, Finding.RUN_NEVER_DECIDED)
    await it.proven(key)


@stories.story
async def test_a_staged_run_that_is_deleted_is_started_again_and_counted(it):
    key = await it.published(every=30, window=60)
    await it.enabled(key)
    run = await run_that(it, key, Disposition.STAGED, for_seconds=3)
    await deleted(it, run.workflow_id)
    await until(lambda: it.told(key)[:1] == ["succeeded"], lambda: f"a success, not {it.told(key)}")
    await counted(it, Finding.RUN_STARTED_AGAIN)
    await it.proven(key)


@stories.story
async def test_a_started_run_whose_workflow_is_deleted_ends_without_an_outcome_and_is_counted(it):
    key = await it.published(every=10, seconds=60)
    await it.enabled(key)
    run = await run_that(it, key, Disposition.STARTED)
    await deleted(it, run.workflow_id)
    await until(lambda: "failed outcome_lost" in it.told(key), lambda: f"outcome_lost, not {it.told(key)}")
    await counted(it, Finding.RUN_NEVER_SETTLED)
    await it.paused(key)


@stories.later
async def test_a_due_time_that_passes_without_a_schedule_worker_is_an_error_until_there_is_one(it):
    key = await it.published(every=20, window=600, overlap="allow")
    await it.enabled(key)
    await it.until_closed(key, 1)
    await it.kill("schedules")
    await until(lambda: it.runtime(key)[0] == "error", lambda: f"an error, not {it.runtime(key)}", within=120)
    assert "has passed and no worker has accounted for it" in (it.runtime(key)[1] or "")
    await counted(it, Finding.DUE_TIME_PASSED)
    await it.start("schedules")
    await until(lambda: it.runtime(key) == ("active", None), lambda: f"active again, not {it.runtime(key)}")
    assert set(it.told(key)) <= {"succeeded", "staged", "admitted", "started"}
    await it.proven(key)
