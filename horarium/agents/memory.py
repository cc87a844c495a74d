"""A host in memory: for the tests of people who write agents, and for our own."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from horarium.agents.discovery import AgentDiscovery
from horarium.agents.events import RunBrief
from horarium.agents.host import Claim
from horarium.errors import NotFound, Refused


@dataclass(slots=True)
class _Run:
    brief: RunBrief
    content: bytes
    start_event: str | None = None
    event: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    tenant_id: str | None = None
    token: str | None = None
    begun_at: datetime | None = None
    outputs: dict[str, bytes] = field(default_factory=dict)


class InMemoryHost:
    """Keeps the contract of `AgentHost` within one process.

    `offer` sets up a run; `outputs` shows what it wrote. `clock` gives the present instant, aware; tests that look at
    leases give their own.
    """

    def __init__(self, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        self._agents: dict[str, AgentDiscovery] = {}
        self._leases: dict[str, datetime] = {}
        self._runs: dict[str, _Run] = {}

    def offer(
        self,
        brief: RunBrief,
        *,
        content: bytes = b"",
        start_event: str | None = None,
        event: Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
        tenant_id: str | None = None,
    ) -> None:
        """Make a run known that nobody has begun yet; `content` is what its input reference names.

        `start_event`, `event`, `config` and `tenant_id` are what its `Claim` says.
        """
        self._runs[brief.run_id] = _Run(
            brief=brief,
            content=content,
            start_event=start_event,
            event=event or {},
            config=config or {},
            tenant_id=tenant_id,
        )

    def outputs(self, run_id: str) -> dict[str, bytes]:
        """What a run has written so far, by name."""
        return dict(self._runs[run_id].outputs)

    def known(self) -> tuple[AgentDiscovery, ...]:
        """All agent versions that were ever registered, in that order."""
        return tuple(self._agents.values())

    def is_ready(self, agent_version: str) -> bool:
        """True while the version's lease lasts."""
        return agent_version in self._leases and self._clock() < self._leases[agent_version]

    async def register(self, discovery: Sequence[AgentDiscovery], *, lease: timedelta) -> None:
        for each in discovery:
            self._agents[each.agent_version] = each
            self._leases[each.agent_version] = self._clock() + lease

    async def renew(self, agent_versions: Sequence[str], *, lease: timedelta) -> None:
        for each in agent_versions:
            if each not in self._agents:
                raise NotFound("agent_missing", f"No agent {each!r} is registered.", next_step="Register it first.")
            self._leases[each] = self._clock() + lease

    async def release(self, agent_versions: Sequence[str]) -> None:
        for each in agent_versions:
            self._leases.pop(each, None)

    async def begin(self, run_id: str, *, at: datetime, again: bool = False) -> Claim:
        run = self._runs.get(run_id)
        if run is None:
            raise NotFound("run_not_found", f"There is no run {run_id!r}.")
        if run.begun_at is not None and not again:
            raise Refused("already_begun", f"The run {run_id!r} was begun at {run.begun_at.isoformat()}.")
        run.begun_at = run.begun_at or at
        run.token = secrets.token_urlsafe(16)
        return Claim(
            brief=run.brief,
            token=run.token,
            start_event=run.start_event,
            event=run.event,
            config=run.config,
            tenant_id=run.tenant_id,
        )

    async def read_input(self, run_id: str, token: str) -> bytes:
        return self._begun(run_id, token).content

    async def write_output(self, run_id: str, token: str, name: str, data: bytes) -> str:
        run = self._begun(run_id, token)
        run.outputs[name] = data
        return f"{run.brief.output_target}/{run_id}/{name}"

    def _begun(self, run_id: str, token: str) -> _Run:
        run = self._runs.get(run_id)
        if run is None or run.token is None or not secrets.compare_digest(run.token.encode(), token.encode()):
            raise NotFound("run_not_found", f"There is no run {run_id!r} that this token opens.")
        return run
