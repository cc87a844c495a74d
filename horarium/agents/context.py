"""What a handler gets to do its work with."""

import asyncio
import copy
from collections.abc import Callable
from typing import Any, Self

import structlog

from horarium.agents.config import AgentConfig
from horarium.agents.events import RunBrief
from horarium.agents.host import AgentHost
from horarium.authority.outputs import check_output


def no_heartbeat(*_details: Any) -> None:
    """Nobody waits for a sign of life."""


class RunContext:
    """One run, seen from inside: its brief, its input, its outputs.

    Made by whoever runs the agent, inside the running event loop. `heartbeat` is where signs of life go; without one
    they go nowhere. The run's token stays in here and is shown nowhere, in no log and no `repr`.
    Without a `config`, the runner gives the run the defaults of its agent.
    """

    def __init__(
        self,
        brief: RunBrief,
        host: AgentHost,
        token: str,
        *,
        heartbeat: Callable[..., None] = no_heartbeat,
        config: AgentConfig | None = None,
        tenant_id: str | None = None,
    ) -> None:
        self._brief = brief
        self._host = host
        self._token = token
        self._heartbeat = heartbeat
        self._config = config
        self._tenant_id = tenant_id
        self._loop = asyncio.get_running_loop()
        self._outputs: list[str] = []
        self.logger: structlog.stdlib.BoundLogger = structlog.get_logger("horarium.agents").bind(
            run_id=brief.run_id,
            agent_version=brief.agent_version,
            schedule_id=brief.schedule.schedule_id,
            nominal_time=brief.nominal_time.isoformat(),
        )

    def __repr__(self) -> str:
        return f"RunContext(run_id={self._brief.run_id!r}, agent_version={self._brief.agent_version!r})"

    @property
    def brief(self) -> RunBrief:
        """What the run is about."""
        return self._brief

    @property
    def config(self) -> AgentConfig:
        """What is set for this run: values of the agent's own class, and never form elements."""
        return AgentConfig() if self._config is None else self._config

    @property
    def tenant_id(self) -> str | None:
        """The tenant that an administrator has set for the profile, whoever started the run; None where none is set."""
        return self._tenant_id

    @property
    def is_configured(self) -> bool:
        """Whether it was given a configuration."""
        return self._config is not None

    def with_config(self, config: AgentConfig) -> Self:
        """The same run, with a configuration: what one of the two writes, the other names too."""
        configured = copy.copy(self)
        configured._config = config  # noqa: SLF001 - our own copy
        return configured

    @property
    def outputs(self) -> tuple[str, ...]:
        """References to what the run has written so far, in order and each once."""
        return tuple(self._outputs)

    async def read_input(self) -> bytes:
        """The content of the run's input. The authority is asked each time, so access that was lost is refused.

        Raises `Refused` where the input may not be read or has expired, `Unavailable` where the host does not answer.
        """
        return await self._host.read_input(self._brief.run_id, self._token)

    async def write_output(self, name: str, data: bytes | str) -> str:
        """Write one output to the run's output target, and return a reference to it. A text is written in UTF-8.

        `name` is a file name: letters, digits and `. _ -`, beginning with a letter or digit, at most 200 characters.
        The same name again replaces what was written. Raises `Refused`: code `output_name` for another name,
        `output_too_large` beyond 16 MiB, and whatever the host refuses.
        """
        content = data.encode() if isinstance(data, str) else data
        check_output(name, len(content))
        reference = await self._host.write_output(self._brief.run_id, self._token, name, content)
        if reference not in self._outputs:
            self._outputs.append(reference)
        return reference

    def heartbeat(self, *details: Any) -> None:
        """Say that the run is alive and how far it is. May be called from any thread, and as often as one likes."""
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._heartbeat(*details)
        else:
            # Temporal's heartbeats belong to the event loop of their activity; the thread's context goes along.
            self._loop.call_soon_threadsafe(self._heartbeat, *details)
