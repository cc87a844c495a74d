"""An agent's report that gives way to others of its second, through the activity that does its run."""

import asyncio
from collections.abc import Callable, Iterator
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

VERY_LONG = timedelta(hours=1)
LIMIT = timedelta(minutes=10)
PATIENCE, A_MOMENT = 60, 0.2
"""Seconds."""


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


class Herd:
    """A run whose agent has done at once, in a second in which others begin for as long as anybody waits for them."""

    def __init__(self, desk: Desk, environment: ActivityEnvironment) -> None:
        run_id = admitted(desk, desk.enabled(every(60)))
        host = CatalogHost(desk.catalog, None, None, SCOPE)
        giving_way = GivingWay(many=1, quiet=VERY_LONG, longest=VERY_LONG)
        self._agent = Worked()
        activities = AgentActivities(AgentRunner([self._agent]), host, now=lambda: at(61), giving_way=giving_way)
        request = RunAgent(run_id=run_id, agent_version=AGENT, idempotent=False)
        self.environment = environment
        self.report = asyncio.ensure_future(environment.run(activities.run_agent, request))

    async def ended(self) -> None:
        """Wait until the agent has done."""
        async with asyncio.timeout(PATIENCE):
            while not self._agent.seen:  # noqa: ASYNC110 - the agent keeps a list, and no event
                await asyncio.sleep(0.01)
        await asyncio.sleep(A_MOMENT)

    async def told(self) -> AgentDone:
        """What arrives, which it does before anybody has waited for long."""
        done, _ = await asyncio.wait([self.report], timeout=PATIENCE)
        assert done, "it still waits"
        return await self.report


@pytest.mark.parametrize("act", [ActivityEnvironment.worker_shutdown, ActivityEnvironment.cancel])
def test_a_report_waits_for_the_others_until_its_runner_leaves_or_its_run_is_cancelled(
    desk: Desk, act: Callable[[ActivityEnvironment], None]
) -> None:
    """And arrives as it was: what has ended is not cancelled any more."""

    async def story() -> AgentDone:
        herd = Herd(desk, activity_of(VERY_LONG))
        await herd.ended()
        assert not herd.report.done()
        act(herd.environment)
        return await herd.told()

    assert asyncio.run(story()).succeeded


@pytest.mark.parametrize("left", [ON_ITS_WAY, ON_ITS_WAY / 2, -ON_ITS_WAY], ids=str)
def test_a_report_that_is_near_the_limit_of_its_run_waits_for_nobody(desk: Desk, left: timedelta) -> None:
    async def story() -> tuple[AgentDone, float]:
        herd = Herd(desk, activity_of(left))
        await herd.ended()
        began = asyncio.get_running_loop().time()
        return await herd.told(), asyncio.get_running_loop().time() - began

    report, waited = asyncio.run(story())
    assert report.succeeded
    assert waited < ON_ITS_WAY.total_seconds() / 2
