"""How an agent is declared: a class with handlers for start events."""

import inspect
import re
from collections.abc import Callable, Coroutine, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from horarium.agents.config import AgentConfig
from horarium.agents.context import RunContext
from horarium.agents.events import StartEvent
from horarium.agents.report import AgentReport
from horarium.errors import Misconfigured

MAX_RUN_SECONDS = 86_400
"""The longest time limit that an agent may declare: one day."""

_WORD = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){0,62}(?<!\.)")
_Event = TypeVar("_Event", bound=StartEvent)
_Self = TypeVar("_Self", bound="Agent")
_Handler = Callable[[_Self, _Event, RunContext], Coroutine[Any, Any, AgentReport]]


def handles(event: type[_Event]) -> Callable[[_Handler[_Self, _Event]], _Handler[_Self, _Event]]:
    """Declare that an async method `(self, event, context)` handles a kind of start event, and everything derived
    from it.

    Raises `Misconfigured`, while the class is being defined, where `event` is no class derived from `StartEvent` or the
    method is not `async`.
    """
    found: object = event  # what a person wrote need not have the type that was asked for
    if not (isinstance(found, type) and issubclass(found, StartEvent)):
        raise Misconfigured(f"@handles takes a class derived from StartEvent; found {event!r}.")

    def declare(method: _Handler[_Self, _Event]) -> _Handler[_Self, _Event]:
        name = getattr(method, "__qualname__", repr(method))
        if not inspect.iscoroutinefunction(method):
            raise Misconfigured(f"{name} handles {event.__name__}, so it is an async method. Write `async def`.")
        if len(inspect.signature(method).parameters) != 3:
            raise Misconfigured(f"{name} handles {event.__name__}, so it takes (self, event, context).")
        method.__handles__ = (*getattr(method, "__handles__", ()), event)  # type: ignore[attr-defined] # our own mark
        return method

    return declare


class Agent:
    """The base of all agents.

    A subclass sets `name` and `version` and has at least one handler. The two together are the agent version that
    schedules name: changing what the agent does means a new version. Handlers are inherited; a subclass that handles
    the same event again replaces its parent's handler. One instance serves all runs, several at the same time: keep a
    run's state in its handler.
    """

    name: ClassVar[str]
    """What the agent is called: 1 to 64 letters, digits and `. _ -`."""
    version: ClassVar[str]
    """Which one it is, in the same letters; `name@version` is never used for something else again."""
    description: ClassVar[str] = ""
    """One sentence for people who choose among agents."""
    max_run_seconds: ClassVar[int] = 600
    """How long a run may take, in seconds; whoever dispatches it ends it then."""
    idempotent: ClassVar[bool] = False
    """Whether a second attempt of the same run does no harm. Say so only when it is true."""
    config: ClassVar[type[AgentConfig]] = AgentConfig
    """What a profile of the agent can set; a class of your own where there are settings of your own."""

    handlers: ClassVar[Mapping[type[StartEvent], str]] = MappingProxyType({})
    """The declared start events and the names of the methods that handle them. Derived; do not set it."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        handlers: dict[type[StartEvent], str] = {}
        for parent in reversed(cls.__mro__[1:]):
            handlers.update(vars(parent).get("handlers", {}))
        own: dict[type[StartEvent], str] = {}
        for method_name, method in vars(cls).items():
            for event in getattr(method, "__handles__", ()):
                if event in own:
                    raise Misconfigured(
                        f"{cls.__name__} handles {event.__name__} twice, in {own[event]} and {method_name}. Keep one."
                    )
                own[event] = method_name
        cls.handlers = MappingProxyType(handlers | own)

    @property
    def agent_version(self) -> str:
        """What a run request names: `name@version`."""
        return f"{self.name}@{self.version}"


def check_agent(agent: object) -> None:
    """Raise `Misconfigured` with one sentence where an agent cannot be run as it is declared."""
    if not isinstance(agent, Agent):
        hint = " Did you mean an instance of it?" if isinstance(agent, type) else ""
        raise Misconfigured(f"{agent!r} is no agent: an agent is an instance of a class derived from Agent.{hint}")
    called = type(agent).__name__
    for field in ("name", "version"):
        value = getattr(agent, field, None)
        if not isinstance(value, str) or not _WORD.fullmatch(value):
            raise Misconfigured(
                f"{called}.{field} is {value!r}; it must be 1 to 64 letters, digits and . _ -, as in 'inbox-triage'."
            )
    if not agent.handlers:
        raise Misconfigured(
            f"{called} handles no start event, so nothing could start it. "
            "Mark an async method with @handles(CronStartEvent)."
        )
    names = [event.__name__ for event in agent.handlers]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise Misconfigured(
            f"{called} handles two start events of the name {twice!r}, and a run is started by that name. Rename one of them."
        )
    config: object = agent.config
    if not (isinstance(config, type) and issubclass(config, AgentConfig)):
        raise Misconfigured(f"{called}.config is {config!r}; it must be a class derived from AgentConfig.")
    limit: object = agent.max_run_seconds
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MAX_RUN_SECONDS:
        raise Misconfigured(
            f"{called}.max_run_seconds is {limit!r}; it must be an integer from 1 to {MAX_RUN_SECONDS:,}."
        )
    for field, kind in (("idempotent", bool), ("description", str)):
        if not isinstance(getattr(agent, field), kind):
            raise Misconfigured(f"{called}.{field} is {getattr(agent, field)!r}; it must be a {kind.__name__}.")
