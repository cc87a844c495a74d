"""An agent's report that gives way to others of its second, through the activity that does its run."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from temporalio.testing import ActivityEnvironment

from activities.agents import ON_ITS_WAY, AgentActivities, CatalogHost
from activities.giving_way import GivingWay
from activities.messages import AgentDone, RunAgent
from horarium.agents import AgentRunner
from tests.agents.test_claims import Worked, admitted
from tests.control.desk import AGENT, SCOPE, Desk, at, every, open_catalog

LONG = timedelta(minutes=1)
LIMIT = timedelta(minutes=10)


@pytest.fixture
def desk(tmp_path) -> Iterator[Desk]:
    catalog = open_catalog(tmp_path)
    yield Desk(catalog)
    catalog.close()


def activity_of(left: timedelta) -> ActivityEnvironment:
    """An attempt that has so much of its time left."""
    environment = ActivityEnvironment()
    environment.info = replace(
        environment.info,
        started_time=at(61) + left - LIMIT,
        scheduled_time=datetime(2020, 1, 1, tzinfo=UTC),
        start_to_close_timeout=LIMIT,
        schedule_to_close_timeout=None,
    )
    return environment


def in_a_herd(desk: Desk, environment: ActivityEnvironment) -> asyncio.Task[AgentDone]:
    """A run whose agent has done at once, in a second in which others begin for as long as anybody waits for them."""
    run_id = admitted(desk, desk.enabled(every(60)))
    host = CatalogHost(desk.catalog, None, None, SCOPE)
    giving_way = GivingWay(many=1, quiet=LONG, longest=LONG)
    activities = AgentActivities(AgentRunner([Worked()]), host, now=lambda: at(61), giving_way=giving_way)
    request = RunAgent(run_id=run_id, agent_version=AGENT, idempotent=False)
    return asyncio.ensure_future(environment.run(activities.run_agent, request))


async def waiting(report: asyncio.Task[AgentDone]) -> bool:
    """Whether it is held back: an agent that has done at once would have been heard by now."""
    await asyncio.wait([report], timeout=2)
    return not report.done()


def test_a_report_waits_for_the_others_of_its_second_and_arrives_as_it_was(desk: Desk) -> None:
    async def told() -> AgentDone:
        environment = activity_of(LIMIT)
        report = in_a_herd(desk, environment)
        assert await waiting(report)
        environment.worker_shutdown()
        return await report

    assert asyncio.run(told()).succeeded, "a runner that leaves sends what it has"


def test_a_run_that_is_cancelled_when_its_agent_has_ended_has_ended(desk: Desk) -> None:
    async def told() -> AgentDone:
        environment = activity_of(LIMIT)
        report = in_a_herd(desk, environment)
        assert await waiting(report)
        environment.cancel()
        return await report

    assert asyncio.run(told()).succeeded


def test_a_report_that_is_near_the_limit_of_its_run_waits_for_nobody(desk: Desk) -> None:
    async def told() -> AgentDone:
        async with asyncio.timeout(LONG.total_seconds() / 2):
            return await in_a_herd(desk, activity_of(ON_ITS_WAY))

    assert asyncio.run(told()).succeeded
