"""What the server lists as closed: held against the real one, since whatever the list lacks is only found much later."""

import asyncio
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from temporalio.client import Client

from horarium.schedule.identity import ActivationKey, ScheduleKey, Scope
from starter.setup import prepare_temporal
from starter.temporal import ClosedSchedule, Temporal
from worker.plugin import horarium_plugin

pytestmark = pytest.mark.server
PATIENCE = 60.0


def activation_of(org_id: str, environment_id: str) -> ActivationKey:
    schedule = ScheduleKey(org_id=org_id, environment_id=environment_id, schedule_id=str(uuid.uuid4()))
    return ActivationKey(schedule=schedule, generation=3)


async def test_workflows_that_were_ended_by_hand_are_listed_and_those_that_run_or_are_elsewhere_are_not(
    temporal_server,
):
    client = await Client.connect(
        temporal_server.address, namespace=temporal_server.namespace, plugins=[horarium_plugin()]
    )
    await prepare_temporal(client)
    temporal, org = Temporal(client), f"org-{uuid.uuid4()}"
    scope, since = Scope(org_id=org, environment_id="test"), datetime.now(UTC) - timedelta(minutes=1)
    *ended, runs, elsewhere = (activation_of(org, environment) for environment in ("test", "test", "test", "other"))
    for each in (*ended, runs, elsewhere):
        assert await temporal.start_schedule(each)
    for each in (elsewhere, *ended):
        await client.get_workflow_handle(each.workflow_id).terminate("by hand")

    listed: Sequence[ClosedSchedule] = ()
    async with asyncio.timeout(PATIENCE):
        while len(listed) < len(ended):
            await asyncio.sleep(0.2)
            listed = await temporal.closed_schedules(scope, since=since, limit=10)

    assert {(each.workflow_id, each.schedule_id) for each in listed} == {
        (each.workflow_id, each.schedule.schedule_id) for each in ended
    }
    closed_at = max(each.closed_at for each in listed)
    assert since < closed_at
    assert len(await temporal.closed_schedules(scope, since=since, limit=1)) == 1
    assert await temporal.closed_schedules(scope, since=closed_at + timedelta(seconds=1), limit=10) == []
    await client.get_workflow_handle(runs.workflow_id).terminate()
