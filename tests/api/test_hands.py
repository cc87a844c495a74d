"""The API's hand on a real Temporal server: it comes when there is one, and says so while there is none."""

import asyncio
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowExecutionStatus

from horarium.errors import Unavailable
from horarium.schedule.identity import ActivationKey, RunKey, ScheduleKey
from starter import hands as hands_module
from starter.hands import TemporalHands
from starter.setup import prepare_temporal
from worker.connection import connect


def a_run() -> RunKey:
    schedule = ScheduleKey(org_id="acme", environment_id="hands", schedule_id=str(uuid.uuid4()))
    nominal = datetime.now(UTC).replace(microsecond=0)
    return RunKey(activation=ActivationKey(schedule=schedule, generation=1), nominal_time=nominal, trigger="manual:x")


def test_without_a_server_every_call_says_so_and_none_waits():
    async def refused():
        raise Unavailable("temporal_unavailable", "None.")

    async def work():
        async with TemporalHands(connecting=refused) as hands:
            await asyncio.sleep(0)
            for call in (hands.start_run(a_run()), hands.cancel_run(a_run()), hands.nudge(a_run().activation, "pause")):
                with pytest.raises(Unavailable):
                    await asyncio.wait_for(call, 1)

    asyncio.run(work())


def test_it_connects_when_a_server_comes(monkeypatch):
    monkeypatch.setattr(hands_module, "CONNECT_EVERY", timedelta(seconds=0.01))
    tried = 0

    class Handle:
        async def cancel(self):
            return None

    class Server:
        def get_workflow_handle(self, _workflow_id):
            return Handle()

    async def later():
        nonlocal tried
        tried += 1
        if tried < 3:
            raise Unavailable("temporal_unavailable", "None.")
        return Server()

    async def work():
        async with TemporalHands(connecting=later) as hands:
            await asyncio.sleep(0.2)
            assert await hands.cancel_run(a_run()) is True
        assert tried == 3

    asyncio.run(work())


def test_a_server_that_hangs_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(hands_module, "ANSWER_WITHIN", timedelta(seconds=0.05))

    class Handle:
        async def cancel(self):
            await asyncio.sleep(60)

    class Server:
        def get_workflow_handle(self, _workflow_id):
            return Handle()

    async def at_once():
        return Server()

    async def work():
        async with TemporalHands(connecting=at_once) as hands:
            await asyncio.sleep(0.05)
            with pytest.raises(Unavailable):
                await asyncio.wait_for(hands.cancel_run(a_run()), 5)

    asyncio.run(work())


@pytest.mark.server
def test_on_a_real_server_runs_are_started_once_cancelled_and_those_that_are_gone_are_told_apart(temporal_server):
    async def work():
        client = await connect(address=temporal_server.address, namespace=temporal_server.namespace, wait_seconds=10)
        await prepare_temporal(client)

        async def connected() -> Client:
            return client

        run, unknown = a_run(), a_run()
        async with TemporalHands(connecting=connected) as hands:
            await asyncio.sleep(0.05)
            assert await hands.cancel_run(unknown) is False
            await hands.nudge(unknown.activation, "pause")
            await hands.start_run(run)
            await hands.start_run(run)
            handle = client.get_workflow_handle(run.workflow_id)
            assert (await handle.describe()).status is WorkflowExecutionStatus.RUNNING
            assert await hands.cancel_run(run) is True
            # Nobody runs workflows here, so what was asked stands in the history and is not carried out.
            asked = [event.event_type async for event in handle.fetch_history_events()]
            assert EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED in asked
            closed = a_run()
            await hands.start_run(closed)
            await client.get_workflow_handle(closed.workflow_id).terminate()
            assert await hands.cancel_run(closed) is True, "it is known, and there is nothing to end"
            await handle.terminate()

    asyncio.run(work())
