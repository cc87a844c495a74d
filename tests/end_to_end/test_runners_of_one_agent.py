"""Two runners of one agent version share its lease; one that leaves does not stop the agent under the other."""

import asyncio
from datetime import timedelta

import pytest

from activities.agents import CatalogHost
from horarium.agents import AgentRunner
from horarium.catalog import Catalog
from horarium.catalog.presence import find_agent
from starter.setup import prepare_data
from tests.end_to_end.agents import Scripted
from worker.settings import load

LEASE = timedelta(seconds=15)
DISCOVERY = AgentRunner([Scripted()]).discovery()
VERSIONS = [each.agent_version for each in DISCOVERY]


@pytest.fixture
def settings(tmp_path):
    settings = load({}, data=tmp_path)
    prepare_data(settings)
    return settings


def lifecycles(settings, *calls):
    """What is said of the agent after each call of one of two runners."""

    async def story():
        catalog = Catalog.open(settings.catalog_url)
        hosts = [CatalogHost(catalog, settings.authority, settings.content, settings.scope) for _ in range(2)]
        seen = []
        for number, call in calls:
            match call:
                case "register":
                    await hosts[number].register(DISCOVERY, lease=LEASE)
                case "renew":
                    await hosts[number].renew(VERSIONS, lease=LEASE)
                case "release":
                    await hosts[number].release(VERSIONS)
            seen.append((await catalog.read(find_agent, settings.scope, "scripted@1")).lifecycle)
        catalog.close()
        return seen

    return asyncio.run(story())


def test_the_only_runner_stops_its_agent_when_it_leaves(settings):
    assert lifecycles(settings, (0, "register"), (0, "renew"), (0, "release")) == ["ready", "ready", "stopped"]


@pytest.mark.parametrize(
    "calls",
    [
        [(0, "register"), (1, "register"), (0, "release")],
        [(0, "register"), (1, "register"), (1, "release")],
        [(0, "register"), (1, "register"), (0, "renew"), (0, "release")],
        [(0, "register"), (1, "register"), (0, "renew"), (1, "renew"), (0, "renew"), (0, "release")],
    ],
)
def test_one_of_two_runners_leaves_the_agent_ready(settings, calls):
    assert lifecycles(settings, *calls)[-1] == "ready"


def test_a_runner_that_comes_after_the_other_has_left_is_alone_again(settings):
    seen = lifecycles(settings, (0, "register"), (0, "release"), (1, "register"), (1, "renew"), (1, "release"))
    assert seen == ["ready", "stopped", "ready", "ready", "stopped"]
