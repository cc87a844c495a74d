"""What a run of a cron profile is begun with, from the catalog to the handler, through the activity that does it."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import Field
from temporalio.testing import ActivityEnvironment

from activities.agents import AgentActivities, CatalogHost
from activities.messages import AgentDone, RunAgent
from horarium.agents import (
    Agent,
    AgentConfig,
    AgentReport,
    AgentRunner,
    CronSchedule,
    CronStartEvent,
    RunContext,
    StartEvent,
    UserMessageEvent,
    handles,
    presets_in,
)
from horarium.catalog import Catalog, ledger_changes
from horarium.catalog.schedules import require_schedule
from horarium.control.publication import publish
from horarium.schedule.configuration import read_stored
from horarium.schedule.identity import RunKey
from horarium.schedule.profiles import CONTRACT, parse_profile, stored_document
from tests.control.desk import AGENT, SCOPE, Desk, Loop, at, every, open_catalog

HOURLY = presets_in("UTC")["Every hour"]


class WorkedConfig(AgentConfig):
    mailbox: str = "inbox"
    most: int = Field(default=100, ge=1)


class Worked(Agent):
    name = "worked"
    version = "1"
    config = WorkedConfig

    def __init__(self) -> None:
        self.seen: list[tuple[StartEvent, AgentConfig]] = []
        self.tenants: list[str | None] = []

    @handles(CronStartEvent)
    @handles(UserMessageEvent)
    async def work(self, event: StartEvent, context: RunContext) -> AgentReport:
        self.seen.append((event, context.config))
        self.tenants.append(context.tenant_id)
        return AgentReport.succeeded(f"{context.brief.trigger} in {context.brief.schedule.schedule_id}")


@pytest.fixture
def desk(tmp_path) -> Iterator[Desk]:
    catalog = open_catalog(tmp_path)
    yield Desk(catalog)
    catalog.close()


def profile(desk: Desk, config: dict[str, Any]) -> Loop:
    """A profile of the agent's class as it is enabled once it was saved."""
    document = stored_document(
        parse_profile({"config": config, "tenant_id": "acme"}), every(60)["run"], agent_class="Worked", agent_id="mail"
    )
    desk.write(
        publish,
        desk.key,
        document,
        expected_revision=None,
        by="ada",
        now=desk.now,
        configuration=read_stored(document),
        contract=CONTRACT,
    )
    return Loop(desk, desk.enable().key)


def admitted(desk: Desk, loop: Loop, **started: Any) -> str:
    """A run that a person asked for; the id of it."""
    desk.now = at(60)
    run = RunKey(activation=loop.key, nominal_time=desk.now, trigger="manual:r1")
    desk.write(
        lambda c: ledger_changes.stage(
            c, require_schedule(c, desk.key, lock=True), run, now=desk.now, triggered_by="ada", **started
        )
    )
    assert desk.admit(run).outcome == "admitted"
    return run.run_id


async def done(catalog: Catalog, agent: Agent, run_id: str) -> AgentDone:
    # No input is read and no output written here, so nobody is asked and no folder needed.
    host = CatalogHost(catalog, None, None, SCOPE)
    activities = AgentActivities(AgentRunner([agent]), host, now=lambda: at(61))
    request = RunAgent(run_id=run_id, agent_version=AGENT, idempotent=False)
    return await ActivityEnvironment().run(activities.run_agent, request)


def do(desk: Desk, agent: Agent, run_id: str) -> AgentDone:
    return asyncio.run(done(desk.catalog, agent, run_id))


def test_an_occurrence_is_started_by_the_calendars_event_with_the_settings_of_its_profile(desk: Desk) -> None:
    agent = Worked()
    loop = profile(desk, {"cron": HOURLY.model_dump(), "mailbox": "post"})
    report = do(desk, agent, admitted(desk, loop))
    assert (report.succeeded, report.summary) == (True, f"manual:r1 in {desk.key.schedule_id}")
    ((event, config),) = agent.seen
    assert isinstance(event, CronStartEvent)
    assert event.run.actual_time == at(61)
    assert config == WorkedConfig(cron=CronSchedule(**HOURLY.model_dump()), mailbox="post", most=100)
    assert agent.tenants == ["acme"]


def test_a_run_by_another_event_is_started_by_that_with_its_own_fields(desk: Desk) -> None:
    agent = Worked()
    loop = profile(desk, {"cron": HOURLY.model_dump()})
    run_id = admitted(desk, loop, start_event="UserMessageEvent", event_data={"text": "Once more."})
    assert do(desk, agent, run_id).succeeded
    assert agent.seen == [(UserMessageEvent(text="Once more."), WorkedConfig(cron=HOURLY))]


def test_a_canonical_schedule_runs_with_the_defaults_of_its_agent(desk: Desk) -> None:
    agent = Worked()
    assert do(desk, agent, admitted(desk, desk.enabled(every(60)))).succeeded
    assert [config for _, config in agent.seen] == [WorkedConfig()]
    assert agent.tenants == [None]


@pytest.mark.parametrize(
    ("settings", "started", "said"),
    [
        ({"most": 0}, {}, "The configuration does not fit WorkedConfig: most: Input should be greater than"),
        (
            {},
            {"start_event": "UserMessageEvent"},
            "The start event does not fit UserMessageEvent: text: Field required",
        ),
        ({}, {"start_event": "Gone"}, "'worked@1' does not handle 'Gone'"),
    ],
)
def test_what_does_not_fit_is_the_end_of_the_run_and_no_failure_of_the_activity(
    desk: Desk, settings: dict[str, Any], started: dict[str, Any], said: str
) -> None:
    agent = Worked()
    loop = profile(desk, {"cron": HOURLY.model_dump(), **settings})
    report = do(desk, agent, admitted(desk, loop, **started))
    assert (report.succeeded, report.outputs, report.cost) == (False, (), 0)
    assert report.summary.startswith(said)
    assert agent.seen == []
