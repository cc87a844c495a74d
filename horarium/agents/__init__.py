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

What an administrator may set for each of its profiles is a class of its own, and the run is given its values::

    class GreetingConfig(AgentConfig):
        words: str = "Good morning."

        @classmethod
        def as_form(cls) -> Self:
            return cls.form_of(words=TextInput(label="What to say"))

The agent names it as its `config`, and reads `context.config`. When it runs is no setting of its own: the form of every
agent that handles a `CronStartEvent` ends with the schedule.

`AgentTestRunner` runs it in your own tests, without server, catalog or network; `InMemoryHost` is the host beneath.
"""

from horarium.agents.agent import Agent, handles
from horarium.agents.config import AgentConfig
from horarium.agents.context import RunContext
from horarium.agents.cron import CronInput, CronSchedule, presets_in
from horarium.agents.discovery import AgentDiscovery
from horarium.agents.events import CronStartEvent, RunBrief, ScheduleReference, StartEvent, UserMessageEvent
from horarium.agents.forms import ChoiceInput, FormElement, NumberInput, SwitchInput, TextInput
from horarium.agents.host import AgentHost, Claim
from horarium.agents.lease import LeaseKeeper
from horarium.agents.memory import InMemoryHost
from horarium.agents.report import AgentReport, Outcome
from horarium.agents.runner import AgentRunner
from horarium.agents.testing import AgentTestRunner

__all__ = [
    "Agent",
    "AgentConfig",
    "AgentDiscovery",
    "AgentHost",
    "AgentReport",
    "AgentRunner",
    "AgentTestRunner",
    "ChoiceInput",
    "Claim",
    "CronInput",
    "CronSchedule",
    "CronStartEvent",
    "FormElement",
    "InMemoryHost",
    "LeaseKeeper",
    "NumberInput",
    "Outcome",
    "RunBrief",
    "RunContext",
    "ScheduleReference",
    "StartEvent",
    "SwitchInput",
    "TextInput",
    "UserMessageEvent",
    "handles",
    "presets_in",
]
