"""Running agents: which there are, what they can do, and one run of one of them."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import structlog
from pydantic_core import to_jsonable_python

from horarium.agents.agent import Agent, check_agent
from horarium.agents.config import AgentConfig, published_view
from horarium.agents.context import RunContext, no_heartbeat
from horarium.agents.discovery import AgentDiscovery
from horarium.agents.event_schemas import event_schemas
from horarium.agents.events import CronStartEvent, StartEvent, UserMessageEvent
from horarium.agents.host import AgentHost, Claim
from horarium.agents.report import AgentReport, shortened
from horarium.agents.starting import calendar_event_of, configuration_of, start_event_of
from horarium.errors import Misconfigured, NotFound, Refused

TASK_QUEUES = "horarium-agents"
"""Where runs for agents wait, unless a runner names another place; each agent version has its own queue below it."""
MAX_ERROR_LENGTH = 500
"""Characters of an error in a report; the traceback is in the log."""
MAX_PUBLISHED: Final = 64 * 1024
"""Bytes of an agent's form, of its submission schema, and of the schemas of all its start events: each is kept for every agent
version, and shown to people.
"""

_log = structlog.get_logger(__name__)


class AgentRunner:
    """A set of agents that one process runs.

    What an agent can do is derived from the start events that it handles and stated nowhere else, so the two cannot
    drift apart. `configs` are configurations by agent version, in form mode or plain; an agent without one has its class's
    form. What is published of them stands beside them, and nothing is written into what was handed over. Raises
    `Misconfigured` where an agent is declared badly, or two have the same name and version.
    """

    def __init__(
        self,
        agents: Iterable[Agent],
        *,
        task_queues: str = TASK_QUEUES,
        configs: Mapping[str, AgentConfig] | None = None,
    ) -> None:
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
        self._configs = {each.agent_version: _handed(each, configs or {}) for each in self._agents.values()}
        self._published = {
            each.agent_version: published_view(
                self._configs[each.agent_version], schedulable=_handles_any(each, CronStartEvent)
            )
            for each in self._agents.values()
        }
        self._discovery = tuple(self._discovered(agent) for agent in self._agents.values())

    @property
    def agent_versions(self) -> tuple[str, ...]:
        """What run requests may name, in the order given."""
        return tuple(self._agents)

    def task_queue_of(self, agent_version: str) -> str:
        """Where the runs of one agent version wait.

        Each version has a queue of its own, so that a run never reaches a runner that does not have its agent.
        """
        return f"{self._task_queues}/{agent_version}"

    def config_of(self, agent_version: str) -> AgentConfig:
        """The configuration that was handed over for an agent version, as it was; `NotFound` (`agent_missing`)."""
        return self._configs[self._require(agent_version).agent_version]

    def published_of(self, agent_version: str) -> AgentConfig:
        """The same as it is published: with the schedule's form element for a schedulable agent, and without for others.

        Raises `NotFound` (`agent_missing`).
        """
        return self._published[self._require(agent_version).agent_version]

    def discovery(self) -> tuple[AgentDiscovery, ...]:
        """What there is to know about each agent, in the order given."""
        return self._discovery

    def _discovered(self, agent: Agent) -> AgentDiscovery:
        published = self._published[agent.agent_version]
        by_calendar = calendar_event_of(agent)
        return AgentDiscovery(
            agent_class=type(agent).__name__,
            version=agent.version,
            agent_version=agent.agent_version,
            description=agent.description,
            start_events=tuple(event.__name__ for event in agent.handlers),
            is_conversational=_handles_any(agent, UserMessageEvent),
            is_schedulable=by_calendar is not None,
            calendar_event=None if by_calendar is None else by_calendar.__name__,
            max_run_seconds=agent.max_run_seconds,
            idempotent=agent.idempotent,
            task_queue=self.task_queue_of(agent.agent_version),
            form=tuple(_publishable(agent.config, "form", published.published_form)),
            submission_schema=_publishable(
                agent.config, "submission schema", lambda: published.submission_model().model_json_schema()
            ),
            event_schemas=_publishable(type(agent), "schema of the start events", lambda: event_schemas(agent)),
        )

    def _require(self, agent_version: str) -> Agent:
        agent = self._agents.get(agent_version)
        if agent is None:
            raise NotFound(
                "agent_missing",
                f"This runner has no agent {agent_version!r}; it has {', '.join(map(repr, self._agents))}.",
            )
        return agent

    async def serve(
        self, agent_version: str, claim: Claim, host: AgentHost, *, heartbeat: Callable[..., None] = no_heartbeat
    ) -> AgentReport:
        """Do a run that was claimed, by the start event and the configuration of its claim.

        Where one of the two does not fit the agent, the run has failed, and its report says in which fields. Otherwise as
        `run`, and raises `NotFound` (`agent_missing`) alone.
        """
        agent = self._require(agent_version)
        context = RunContext(claim.brief, host, claim.token, heartbeat=heartbeat, tenant_id=claim.tenant_id)
        try:
            event = start_event_of(agent, claim)
            context = context.with_config(configuration_of(agent, claim.config))
        except Refused as error:
            return _unstarted(agent_version, context, error)
        return await self.run(agent_version, event, context)

    async def run(self, agent_version: str, event: StartEvent, context: RunContext) -> AgentReport:
        """Run one agent once, by its handler for the most specific declared class of the event.

        A context without a configuration is given the defaults of the agent; where it needs more, the run has failed. A
        handler that raises is a failed run: its report says `type: message`, and names what was written before.
        Cancelling the call cancels the handler, and there is no report. Raises `NotFound` (`agent_missing`) for an
        agent version that is not here, and `Refused` (`event_not_handled`) for an event that the agent does not
        handle. No time limit is kept here.
        """
        agent = self._require(agent_version)
        method_name = next((agent.handlers[kind] for kind in type(event).__mro__ if kind in agent.handlers), None)
        if method_name is None:
            handled = ", ".join(kind.__name__ for kind in agent.handlers)
            raise Refused(
                "event_not_handled", f"{agent_version!r} does not handle {type(event).__name__}; it handles {handled}."
            )
        if not context.is_configured:
            try:
                context = context.with_config(configuration_of(agent, {}))
            except Refused as error:
                return _unstarted(agent_version, context, error)
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


def _handed(agent: Agent, configs: Mapping[str, AgentConfig]) -> AgentConfig:
    handed: object  # what a person's own `as_form` returns need not have the type that was asked for
    try:
        handed = configs[agent.agent_version] if agent.agent_version in configs else agent.config.as_form()
    except Misconfigured:
        raise
    except Exception as error:
        raise Misconfigured(f"{agent.config.__name__}.as_form raised {_words(error)[:300]}") from error
    if agent.agent_version not in configs and len(agent.config.model_fields) > 1 and not _has_form(agent.config):
        advice = f"No profile can set anything of {agent.config.__name__}. Name its settings in `as_form`."
        _log.warning("settings_without_a_form", agent_version=agent.agent_version, next_step=advice)
    if not isinstance(handed, agent.config):
        raise Misconfigured(
            f"{type(agent).__name__} was handed {type(handed).__name__} as its configuration; "
            f"it must be a {agent.config.__name__}."
        )
    return handed


def _has_form(kind: type[AgentConfig]) -> bool:
    """Whether its author said what can be set, be it nothing."""
    return any("as_form" in vars(each) for each in kind.__mro__ if each is not AgentConfig)


def _unstarted(agent_version: str, context: RunContext, error: Refused) -> AgentReport:
    _log.error("agent_not_started", agent_version=agent_version, run_id=context.brief.run_id, code=error.code)
    # It has done nothing, and without a cost all that is reserved for it would count as spent.
    return AgentReport.failed(shortened(error.sentence, MAX_ERROR_LENGTH), cost=0)


def _publishable(of: type[Agent | AgentConfig], what: str, made: Callable[[], Any]) -> Any:
    """What is to be published of a class of the agent's author, as JSON holds it."""
    called = of.__name__
    try:
        plain = to_jsonable_python(made())
        size = len(json.dumps(plain, allow_nan=False).encode())
    except Exception as error:  # an author's own types may fail in any way
        raise Misconfigured(f"The {what} of {called} cannot be published: {_words(error)[:300]}") from error
    if size > MAX_PUBLISHED:
        raise Misconfigured(f"The {what} of {called} has {size:,} bytes; at most {MAX_PUBLISHED:,} are published.")
    return plain


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
