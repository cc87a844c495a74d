"""A run that a person asks for, with the real workflows: started at once, or by whoever looks next where that was lost."""

import uuid
from datetime import timedelta

import pytest

from horarium.catalog.schedules import require_schedule, require_version
from horarium.control import operations
from horarium.control.principals import local_principal
from horarium.errors import Conflict
from horarium.schedule.identity import RunKey, ScheduleKey
from starter.controller import Controller
from starter.unsettled import OVERDUE
from tests.postgres.databases import KINDS
from tests.workflows.documents import every
from tests.workflows.house import SCOPE, House, workers_beat
from tests.workflows.lasting import LastingRun, Work

pytestmark = pytest.mark.parametrize("where", KINDS, indirect=True)


async def triggered(house: House, key: ScheduleKey) -> RunKey:
    """A person's request, answered; nothing is started yet."""

    def ask(connection, now):
        workers_beat(connection, at=now)
        schedule = require_schedule(connection, key)
        version = require_version(connection, schedule, schedule.head_revision)
        request = {
            "version": {"schedule_id": key.schedule_id, "revision": version.revision, "digest": version.digest},
            "expected_generation": schedule.generation,
            "expected_environment_epoch": 1,
            "expected_reset_generation": 1,
        }
        who = local_principal("local:tester", SCOPE)
        return operations.trigger(connection, who, SCOPE, request, str(uuid.uuid4()), now=now)

    receipt = await house.catalog.write(ask, now=await house.now())
    run = operations.run_to_start(SCOPE, receipt)
    assert run is not None
    return run


def told(house: House, key: ScheduleKey) -> list[tuple[str, str]]:
    return [(entry.trigger.partition(":")[0], str(entry.disposition)) for entry in house.entries(key)]


async def test_a_caller_that_starts_it_has_it_run_at_once(skipping):
    async with skipping() as house:
        key = await house.published(every(86_400 * 3))
        await house.enabled(key)
        await house.advance(timedelta(seconds=5))
        run = await triggered(house, key)
        await house.starter.start(run)
        await house.starter.start(run)
        await house.workflow(run).result()

        assert told(house, key) == [("manual", "succeeded")]
        assert [brief.trigger for brief in house.agent.begun] == [run.trigger]


async def test_the_controller_starts_what_its_caller_did_not_while_the_schedule_sleeps_for_days(skipping):
    async with skipping() as house:
        # A server that skips time lists no workflows, and the sweep goes on without.
        house.expected += ["run_started_again", "sweep_closed_failed"]
        key = await house.published(every(86_400 * 3))
        await house.enabled(key)
        await house.advance(timedelta(seconds=5))
        run = await triggered(house, key)
        await house.advance(OVERDUE + timedelta(seconds=2))
        assert told(house, key) == [("manual", "staged")]

        now = await house.now()
        await Controller(house.catalog, house.temporal, SCOPE, now=lambda: now).sweep()
        await house.workflow(run).result()

        assert told(house, key) == [("manual", "succeeded")]


async def test_the_next_step_of_its_schedule_starts_what_its_caller_did_not(skipping):
    async with skipping() as house:
        start = await house.on_the_minute()
        key = await house.published(every(60, overlap="allow"))
        await house.enabled(key)
        run = await triggered(house, key)
        await house.advance_to(start + timedelta(seconds=5))
        await house.workflow(run).result()

        assert told(house, key) == [("manual", "succeeded"), ("schedule", "succeeded")]


async def test_its_end_lets_a_waiting_instant_start(skipping):
    """An instant that falls due behind it waits, and the settlement nudges the schedule as it does after any run."""
    async with skipping(run_workflow=LastingRun) as house:
        house.script.usual = Work(lasts=timedelta(seconds=80))
        start = await house.on_the_minute(multiple=60)
        key = await house.published(every(3_600, overlap="buffer_one"))
        await house.enabled(key)
        run = await triggered(house, key)
        await house.starter.start(run)
        await house.advance_to(start + timedelta(seconds=10))
        assert told(house, key) == [("manual", "started"), ("schedule", "buffered")]
        with pytest.raises(Conflict, match="hold 1 of 1 slots"):
            await triggered(house, key)
        await house.advance_to(start + timedelta(seconds=200))

        assert told(house, key) == [("manual", "succeeded"), ("schedule", "succeeded")]


@pytest.mark.parametrize("end", ["paused", "retired"])
async def test_one_that_is_started_after_its_activation_has_ended_reaches_no_agent(skipping, end):
    """Its start was late, or its caller died: what the person asked for is told as dropped, and its workflow closes."""
    async with skipping() as house:
        key = await house.published(every(86_400 * 3))
        await house.enabled(key)
        await house.advance(timedelta(seconds=5))
        run = await triggered(house, key)
        await getattr(house, end)(key)

        await house.starter.start(run)
        assert (await house.workflow(run).result())["disposition"] == "withdrawn"

        assert [(entry.disposition, entry.reason) for entry in house.entries(key)] == [("dropped", end)]
        assert house.begun == []


async def test_its_failure_is_none_for_pause_on_failure(skipping):
    async with skipping(run_workflow=LastingRun) as house:
        house.script.usual = Work(fails=True)
        key = await house.published(every(86_400 * 3, pause_on_failure=True))
        changed = await house.enabled(key)
        await house.advance(timedelta(seconds=5))
        run = await triggered(house, key)
        await house.starter.start(run)
        await house.workflow(run).result()

        assert told(house, key) == [("manual", "failed")]
        assert house.activation(changed.key).is_live
