"""Running agents: which there are, what they can do, and one run of one of them."""

import asyncio
from collections.abc import Iterable

import structlog

from horarium.agents.agent import Agent, check_agent
from horarium.agents.context import RunContext
from horarium.agents.discovery import AgentDiscovery
from horarium.agents.events import CronStartEvent, StartEvent, UserMessageEvent
from horarium.agents.report import AgentReport, shortened
from horarium.errors import Misconfigured, NotFound, Refused

TASK_QUEUES = "horarium-agents"
"""Where runs for agents wait, unless a runner names another place; each agent version has its own queue below it."""
MAX_ERROR_LENGTH = 500
"""Characters of an error in a report; the traceback is in the log."""

_log = structlog.get_logger(__name__)


class AgentRunner:
    """A set of agents that one process runs.

    What an agent can do is derived from the start events that it handles and stated nowhere else, so the two cannot
    drift apart. Raises `Misconfigured` where an agent is declared badly, or two have the same name and version.
    """

    def __init__(self, agents: Iterable[Agent], *, task_queues: str = TASK_QUEUES) -> None:
        self._task_queues = task_queues
        self._agents: dict[str, Agent] = {}
        for agent in agents:
            check_agent(agent)
            other = self._agents.get(agent.agent_version)
            if other is not None:
                raise Misconfigured(
                    f"Two agents are called {agent.agent_version!r}: {type(other).__name__} and "
                    f"{type(agent).__name__}. Give one of them another name or version."
                )
            self._agents[agent.agent_version] = agent
        if not self._agents:
            raise Misconfigured("There is no agent to run. Name at least one.")

    @property
    def agent_versions(self) -> tuple[str, ...]:
        """What run requests may name, in the order given."""
        return tuple(self._agents)

    def task_queue_of(self, agent_version: str) -> str:
        """Where the runs of one agent version wait.

        Each version has a queue of its own, so that a run never reaches a runner that does not have its agent.
        """
        return f"{self._task_queues}/{agent_version}"

    def discovery(self) -> tuple[AgentDiscovery, ...]:
        """What there is to know about each agent, in the order given."""
        return tuple(
            AgentDiscovery(
                agent_class=type(agent).__name__,
                version=agent.version,
                agent_version=agent.agent_version,
                description=agent.description,
                start_events=tuple(event.__name__ for event in agent.handlers),
                is_conversational=_handles_any(agent, UserMessageEvent),
                is_schedulable=_handles_any(agent, CronStartEvent),
                max_run_seconds=agent.max_run_seconds,
                idempotent=agent.idempotent,
                task_queue=self.task_queue_of(agent.agent_version),
            )
            for agent in self._agents.values()
        )

    async def run(self, agent_version: str, event: StartEvent, context: RunContext) -> AgentReport:
        """Run one agent once, by its handler for the most specific declared class of the event.

        A handler that raises is a failed run: its report says `type: message`, and names what was written before.
        Cancelling the call cancels the handler, and there is no report. Raises `NotFound` (`agent_missing`) for an
        agent version that is not here, and `Refused` (`event_not_handled`) for an event that the agent does not
        handle. No time limit is kept here.
        """
        agent = self._agents.get(agent_version)
        if agent is None:
            raise NotFound(
                "agent_missing",
                f"This runner has no agent {agent_version!r}; it has {', '.join(map(repr, self._agents))}.",
            )
        method_name = next((agent.handlers[kind] for kind in type(event).__mro__ if kind in agent.handlers), None)
        if method_name is None:
            handled = ", ".join(kind.__name__ for kind in agent.handlers)
            raise Refused(
                "event_not_handled", f"{agent_version!r} does not handle {type(event).__name__}; it handles {handled}."
            )
        try:
            report = await getattr(agent, method_name)(event, context)
        except BaseException as error:  # whatever an agent raises is the outcome of its run, not ours
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # somebody cancelled the run; one that an agent raises by itself is a failure like any other
            _log.error(
                "agent_raised", agent_version=agent_version, run_id=context.brief.run_id, exc_info=_loggable(error)
            )
            return AgentReport.failed(shortened(_words(error), MAX_ERROR_LENGTH), outputs=context.outputs)
        if not isinstance(report, AgentReport):
            sentence = (
                f"{type(agent).__name__}.{method_name} returned {type(report).__name__}; it must return an AgentReport."
            )
            return AgentReport.failed(sentence, outputs=context.outputs)
        return report


def _handles_any(agent: Agent, kind: type[StartEvent]) -> bool:
    return any(issubclass(event, kind) for event in agent.handlers)


def _words(error: BaseException) -> str:
    """`type: message`, also of an error that cannot even say what it is."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception as worse:  # noqa: BLE001 - an agent's own `__str__` is the agent's code
        return f"{type(error).__name__}, whose text raised {type(worse).__name__}"


def _loggable(error: BaseException) -> BaseException | None:
    """The error, if the log can write it; a traceback asks each error for its text."""
    return error if "whose text raised" not in _words(error) else None
