"""Agent classes that reported themselves, and profiles of them, for the tests of the API."""

from datetime import UTC, datetime, timedelta
from typing import Any

from horarium.agents import Agent, AgentReport, AgentRunner, CronStartEvent, RunContext, UserMessageEvent, handles
from horarium.agents.config import AgentConfig
from horarium.agents.events import StartEvent
from horarium.agents.forms import TextInput
from horarium.catalog import Catalog, presence
from horarium.schedule.identity import Scope
from tests.control.desk import FAR, SCOPE
from tests.control.operators import Operator

ROOT = "!/v1/agent-classes"
HERE = "environment_id=test"
CRON = {
    "minute": "30",
    "hour": "7",
    "day_of_month": "*",
    "month": "*",
    "day_of_week": "1-5",
    "timezone": "Europe/Zurich",
}
RUN = {
    "agent_version": "triage@1",
    "input": "in",
    "output_target": "out",
    "grants": [],
    "budget_id": None,
    "usage_class": "test_simulation",
}


class Sweep(StartEvent):
    """Somebody wants a folder looked through again."""

    folder: str


class TriageConfig(AgentConfig):
    folder: str = "INBOX"

    @classmethod
    def as_form(cls):
        return cls.form_of(folder=TextInput(label="Folder"))


class Triage(Agent):
    """Sorts what came in."""

    name = "triage"
    version = "1"
    description = "Sorts what came in."
    config = TriageConfig

    @handles(CronStartEvent)
    async def sort(self, _event: CronStartEvent, _context: RunContext) -> AgentReport:
        return AgentReport.succeeded("Sorted.")

    @handles(Sweep)
    async def sweep(self, _event: Sweep, _context: RunContext) -> AgentReport:
        return AgentReport.succeeded("Swept.")


class Assistant(Agent):
    """Answers people."""

    name = "assistant"
    version = "1"

    @handles(UserMessageEvent)
    async def answer(self, _event: UserMessageEvent, _context: RunContext) -> AgentReport:
        return AgentReport.succeeded("Answered.")


def report(catalog: Catalog, agent: Agent, scope: Scope = SCOPE, *, lease_until: datetime = FAR) -> None:
    """A runner says that it has this agent."""
    (discovery,) = AgentRunner([agent]).discovery()
    with catalog.writing() as connection:
        presence.register_agent(
            connection,
            scope,
            agent.agent_version,
            discovery.model_dump(mode="json"),
            lease_until=lease_until,
            now=datetime.now(UTC),
        )


def let_go_offline(catalog: Catalog, agent: Agent, scope: Scope = SCOPE, *, ago: timedelta) -> None:
    """The lease of its runner ended so long ago."""
    report(catalog, agent, scope, lease_until=datetime.now(UTC) - ago)


def furnish_profiles(catalog: Catalog, scope: Scope = SCOPE) -> None:
    """Two classes that are there, and bindings of the profiles `support`, `sales` and `other` of the schedulable one."""
    report(catalog, Triage(), scope)
    report(catalog, Assistant(), scope)
    for agent_id in ("support", "sales", "other"):
        Operator(catalog, scope).declare("binding", f"cron:Triage/{agent_id}", run=RUN)


def submission(*, cron: Any = CRON, tenant_id: str | None = "acme-support", **config: Any) -> dict[str, Any]:
    """What is saved of a profile of `Triage`."""
    return {"config": {"folder": "INBOX", "cron": cron, **config}, "tenant_id": tenant_id}


def at(agent_id: str, end: str = "", *, agent_class: str = "Triage", query: str = "") -> str:
    """The address of a profile, or of what is below it."""
    return f"{ROOT}/{agent_class}/profiles/{agent_id}{end}?{HERE}{query}"
