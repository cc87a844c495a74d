"""Running an agent in the tests of its author."""

from datetime import UTC, datetime
from typing import Final

from horarium.agents.agent import Agent
from horarium.agents.config import AgentConfig
from horarium.agents.context import RunContext
from horarium.agents.events import RunBrief, ScheduleReference, StartEvent
from horarium.agents.memory import InMemoryHost
from horarium.agents.report import AgentReport
from horarium.agents.runner import AgentRunner
from horarium.agents.starting import configuration_of, start_event_of
from horarium.errors import Misconfigured, Refused

_SCHEDULE: Final = ScheduleReference(
    org_id="test", environment_id="test", schedule_id="test", revision=1, digest="sha256:" + "0" * 64
)


class AgentTestRunner:
    """Runs one agent without server, catalog or network, each time as a new run::

        runner = AgentTestRunner(Triage(), config=TriageConfig(mailbox="inbox"))
        report = await runner.run(content=b"a letter")
        assert runner.outputs == {"sorted.txt": b"A LETTER"}

    Its runs are given `config` itself, or the defaults of the agent's class, and `tenant_id`. A configuration in form mode is
    refused, since no run works with form elements: `Misconfigured`, also where the class has no defaults and none is given.
    """

    def __init__(self, agent: Agent, *, config: AgentConfig | None = None, tenant_id: str | None = None) -> None:
        self._agent = agent
        self._config = _plain(agent, config)
        self._tenant_id = tenant_id
        self._runner = AgentRunner([agent], configs={agent.agent_version: self._config})
        self._host = InMemoryHost()
        self._runs = 0

    @property
    def runner(self) -> AgentRunner:
        """The runner as it stands in production, for tests of what it publishes."""
        return self._runner

    @property
    def config(self) -> AgentConfig:
        """What its runs are given."""
        return self._config

    @property
    def outputs(self) -> dict[str, bytes]:
        """What the last run has written, by name; nothing before the first."""
        return self._host.outputs(f"run-{self._runs}") if self._runs else {}

    async def run(
        self, event: StartEvent | None = None, *, content: bytes = b"", at: datetime | None = None
    ) -> AgentReport:
        """Run the agent once; without an `event`, by an occurrence of a schedule at `at`, or now.

        `content` is what its input reference names. Otherwise as `AgentRunner.run`.
        """
        self._runs += 1
        instant = at or datetime.now(UTC).replace(microsecond=0)
        brief = RunBrief(
            run_id=f"run-{self._runs}",
            schedule=_SCHEDULE,
            trigger="schedule",
            nominal_time=instant,
            actual_time=instant,
            agent_version=self._agent.agent_version,
            input="test-input",
            output_target="test-outputs",
        )
        self._host.offer(brief, content=content)
        claim = await self._host.begin(brief.run_id, at=instant)
        context = RunContext(brief, self._host, claim.token, config=self._config, tenant_id=self._tenant_id)
        return await self._runner.run(self._agent.agent_version, event or start_event_of(self._agent, claim), context)


def _plain(agent: Agent, config: AgentConfig | None) -> AgentConfig:
    called = type(agent).__name__
    if config is None:
        try:
            return configuration_of(agent, {})
        except Refused as error:
            raise Misconfigured(f"{called} needs a configuration: {error.sentence} Give one as `config`.") from error
    if config.is_form:
        raise Misconfigured(f"{called} was handed its own form. Give it a {agent.config.__name__} that holds values.")
    return config
