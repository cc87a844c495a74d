"""Agents: what they are told, how they are declared, and how they are run.

An agent is a class with a handler for each kind of start event that it takes. What it can do follows from its
handlers::

    class Greeting(Agent):
        name = "greeting"
        version = "1"

        @handles(CronStartEvent)
        async def greet(self, event: CronStartEvent, context: RunContext) -> AgentReport:
            reference = await context.write_output("greeting.txt", "Good morning.")
            return AgentReport.succeeded("Greeted.", outputs=[reference])

`InMemoryHost` is a host for your own tests: a run without server, catalog or network.
"""

from horarium.agents.agent import Agent, handles
from horarium.agents.context import RunContext
from horarium.agents.discovery import AgentDiscovery
from horarium.agents.events import CronStartEvent, RunBrief, ScheduleReference, StartEvent, UserMessageEvent
from horarium.agents.host import AgentHost, Claim
from horarium.agents.lease import LeaseKeeper
from horarium.agents.memory import InMemoryHost
from horarium.agents.report import AgentReport, Outcome
from horarium.agents.runner import AgentRunner

__all__ = [
    "Agent",
    "AgentDiscovery",
    "AgentHost",
    "AgentReport",
    "AgentRunner",
    "Claim",
    "CronStartEvent",
    "InMemoryHost",
    "LeaseKeeper",
    "Outcome",
    "RunBrief",
    "RunContext",
    "ScheduleReference",
    "StartEvent",
    "UserMessageEvent",
    "handles",
]
