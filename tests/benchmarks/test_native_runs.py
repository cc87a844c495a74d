"""What native schedules start runs under the conditions of ours, so that what differs is the schedule."""

import asyncio
import re
from datetime import timedelta

import pytest
from temporalio.common import Priority

from activities.search_attributes import of_run
from benchmarks.native_schedules import every_second, once
from benchmarks.native_worker import native_worker
from horarium.catalog import Catalog
from horarium.schedule.identity import ActivationKey, RunKey, ScheduleKey
from tests.control.desk import NOON
from worker.composition import schedule_worker
from worker.connection import connect
from worker.settings import load

OWN = {"task_queue", "workflows", "activities"}
"""What each of the two workers has for itself: its queue, and what it serves."""
KEY = ActivationKey(schedule=ScheduleKey(org_id="acme", environment_id="test", schedule_id="schedule"), generation=1)


def told(value):
    """A setting as text, without the place in memory that some objects tell."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


@pytest.mark.server
def test_the_worker_of_native_runs_is_set_as_ours(temporal_server, tmp_path):
    async def configured():
        client = await connect(address=temporal_server.address, wait_seconds=10)
        catalog = Catalog.open(f"sqlite:///{tmp_path / 'catalog.db'}")
        try:
            ours = schedule_worker(client, catalog, load({}, data=tmp_path)).config()
            return ours, native_worker(client, catalog).config()
        finally:
            catalog.close()

    ours, native = asyncio.run(configured())
    plugins = [[type(each) for each in config.pop("plugins", ())] for config in (ours, native)]
    assert plugins[0] == plugins[1]
    differ = {name for name in ours if name not in OWN and told(ours[name]) != told(native[name])}
    assert {name: (ours[name], native[name]) for name in differ} == {}


def test_native_runs_have_the_attributes_and_the_fairness_key_of_ours():
    action = once(KEY, (NOON,)).action
    assert action.typed_search_attributes == of_run(RunKey(activation=KEY, nominal_time=NOON))
    again = every_second(KEY, (NOON, NOON + timedelta(seconds=1))).action
    for each in (action, again):
        assert each.priority == Priority(fairness_key="acme")
        assert each.static_summary
