"""Workflows of ended activations while no schedule worker is there to end them."""

import uuid
from datetime import timedelta

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from horarium.schedule.identity import ActivationKey, ScheduleKey, Scope
from starter.controller import TICK, Controller
from starter.lingering import LONGEST_LOOK, LONGEST_SIGNAL, Lingering
from starter.setup import prepare_temporal
from starter.temporal import Found, Temporal
from tests.control.desk import SCOPE, Desk, every
from tests.controller.known import Clock, Known, controller, runtime
from worker.plugin import horarium_plugin

MOST_SIGNALS = 10_000
"""Of one workflow, on a server as it comes."""


class Outage:
    """A catalog with activations that have ended, and no worker to end their workflows."""

    def __init__(self, count: int) -> None:
        self.rows = [(row, key(row), "paused") for row in range(count)]
        self.closed: list[int] = []

    async def read(self, _lingering, _scope):
        return [each for each in self.rows if each[0] not in self.closed]

    async def write(self, _mark_closed, rows):
        self.closed += rows


def key(number: int) -> ActivationKey:
    schedule = ScheduleKey(org_id="acme", environment_id="test", schedule_id=str(uuid.UUID(int=number)))
    return ActivationKey(schedule=schedule, generation=1)


async def test_a_pause_during_an_hour_without_schedule_workers_is_told_to_the_real_server_a_few_times(
    catalog, temporal_server
):
    """Each tick told it once: 7,200 times."""
    scope = Scope(org_id="acme", environment_id="test")
    client = await Client.connect(
        temporal_server.address, namespace=temporal_server.namespace, plugins=[horarium_plugin()]
    )
    await prepare_temporal(client)
    desk, clock = Desk(catalog), Clock()
    desk.key = ScheduleKey(org_id="acme", environment_id="test", schedule_id=str(uuid.uuid4()))
    ended = desk.enabled(every(60)).key
    one = Controller(catalog, Temporal(client), scope, now=clock)
    await one.tick()
    desk.pause()

    for _ in range(int(timedelta(hours=1) / TICK)):
        await one.tick()
        clock.now += TICK

    handle = client.get_workflow_handle(ended.workflow_id)
    events = [event.event_type for event in (await handle.fetch_history()).events]
    # At once, after one minute, two, four and eight, then every ten.
    assert events.count(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED) == 9
    assert runtime(catalog, desk.key) == ("stopping", None)
    await handle.terminate()
    clock.now += LONGEST_LOOK
    await one.tick()
    assert runtime(catalog, desk.key) == ("paused", None)


async def test_two_months_without_schedule_workers_do_not_use_up_a_workflows_signals():
    temporal, clock = Known(found={key(1).workflow_id: Found.RUNNING}), Clock()
    outage = Outage(2)
    lingering = Lingering(outage, temporal, SCOPE, clock)
    for _ in range(int(timedelta(days=60) / LONGEST_SIGNAL)):
        await lingering.look()
        clock.now += LONGEST_SIGNAL
    assert outage.closed == [0]
    assert 60 * 24 * 6 - 10 <= len(temporal.signals) < MOST_SIGNALS


async def test_a_workflow_that_lingers_is_looked_at_ever_more_rarely_and_forgotten_once_it_has_closed():
    temporal, clock = Known(found={key(0).workflow_id: Found.RUNNING}), Clock()
    lingering = Lingering(Outage(1), temporal, SCOPE, clock)
    for _ in range(int(timedelta(minutes=10) / TICK)):
        assert await lingering.look() == {key(0).schedule}
        clock.now += TICK
    assert temporal.described[key(0).workflow_id] <= 6 + timedelta(minutes=10) / LONGEST_LOOK

    temporal.found[key(0).workflow_id] = Found.COMPLETED
    clock.now += LONGEST_LOOK
    assert await lingering.look() == frozenset()
    assert await lingering.look() == frozenset()
    assert lingering._patience == {}


@pytest.mark.parametrize(
    "trouble",
    [
        RPCError("The workflow has exceeded the limit of signals.", RPCStatusCode.INVALID_ARGUMENT, b""),
        KeyError("superseded"),
        AssertionError("an entry has its activation"),
    ],
    ids=lambda trouble: type(trouble).__name__,
)
async def test_one_that_cannot_be_looked_at_hides_no_other_and_no_change(catalog, trouble):
    """What was refused is signalled again only as patience allows, so that the others are heard meanwhile."""
    bad, good, new = (Desk(catalog) for _ in range(3))
    temporal, clock = Known(), Clock()
    one = controller(catalog, temporal, clock)
    keys = [desk.enabled(every(60)).key for desk in (bad, good)]
    await one.tick()
    for desk in (bad, good):
        desk.pause()
    temporal.broken[keys[0].workflow_id] = trouble
    temporal.found[keys[1].workflow_id] = Found.COMPLETED
    enabled = new.enabled(every(60)).key

    await one.tick()

    assert runtime(catalog, good.key) == ("paused", None)
    assert runtime(catalog, bad.key) == ("stopping", None)
    assert runtime(catalog, new.key) == ("active", None)
    assert temporal.found[enabled.workflow_id] is Found.RUNNING
