"""The `temporal` gateway's far end: an agent runner's activity, and its host on the catalog of the same machine."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.clock import WorkerClock, machine_time
from activities.failures import translated
from activities.giving_way import GivingWay
from activities.messages import RUN_AGENT, AgentDone, RunAgent
from horarium import traces
from horarium.agents.discovery import AgentDiscovery
from horarium.agents.events import RunBrief, ScheduleReference
from horarium.agents.host import AgentHost, Claim
from horarium.agents.report import AgentReport, Outcome, kept_cost, kept_outputs, kept_summary
from horarium.agents.runner import AgentRunner
from horarium.authority.asking import Authority
from horarium.authority.content import ContentFolder
from horarium.catalog import Catalog, presence
from horarium.catalog.clock import catalog_time
from horarium.control import reading, running
from horarium.errors import NotFound, Unavailable
from horarium.schedule.identity import Scope

HEARTBEAT_EVERY = timedelta(seconds=2)
"""The runner says by itself that it lives, whether or not the agent does."""
CLAIM_WITHIN = timedelta(seconds=8)
"""How long a claim is tried while the catalog does not answer; then the run is given up before it began."""
ON_ITS_WAY = timedelta(seconds=5)
"""What is left of a run's time limit for its report to arrive: one that would have less gives way to nobody."""


class CatalogHost:
    """An `AgentHost` on the catalog and the content folder, for runners that can reach both.

    Two runners may serve one agent version, as in a rolling restart. A runner notices the other by its renewals of the
    shared lease, and then leaves without stopping the agent under it. Leases are by the catalog's clock: a machine whose own
    is ahead does not vouch for an agent for longer than it lives.
    """

    def __init__(
        self,
        catalog: Catalog,
        authority: Authority,
        content: ContentFolder,
        scope: Scope,
        now: Callable[[], datetime] = machine_time,
    ) -> None:
        self._now = now
        self._catalog = catalog
        self._authority = authority
        self._content = content
        self._scope = scope
        self._ours: dict[str, datetime] = {}
        """The lease that this runner has written last."""
        self._others: dict[str, datetime] = {}
        """The latest lease that was found and is another runner's."""

    async def register(self, discovery: Sequence[AgentDiscovery], *, lease: timedelta) -> None:
        """See `AgentHost.register`."""
        now = await self._catalog.read(catalog_time)
        for each in discovery:
            await self._look_for_others(each.agent_version)
            await self._catalog.write(
                presence.register_agent,
                self._scope,
                each.agent_version,
                each.model_dump(mode="json"),
                lease_until=now + lease,
                now=now,
            )
            self._ours[each.agent_version] = now + lease

    async def renew(self, agent_versions: Sequence[str], *, lease: timedelta) -> None:
        """See `AgentHost.renew`."""
        now = await self._catalog.read(catalog_time)
        for each in agent_versions:
            await self._look_for_others(each)
            if not await self._catalog.write(presence.renew_lease, self._scope, each, lease_until=now + lease, now=now):
                raise NotFound("agent_missing", f"Agent {each!r} is not registered.", next_step="Register it first.")
            self._ours[each] = now + lease

    async def release(self, agent_versions: Sequence[str]) -> None:
        """See `AgentHost.release`."""
        now = await self._catalog.read(catalog_time)
        for each in agent_versions:
            await self._look_for_others(each)
            if each not in self._others or self._others[each] <= now:
                await self._catalog.write(presence.release_agent, self._scope, each, now=now)

    async def _look_for_others(self, agent_version: str) -> None:
        found = await self._catalog.read(presence.find_agent, self._scope, agent_version)
        if found is not None and found.lifecycle == "ready" and found.lease_until != self._ours.get(agent_version):
            self._others[agent_version] = found.lease_until

    async def begin(self, run_id: str, *, at: datetime, again: bool = False) -> Claim:
        """See `AgentHost.begin`."""
        begun = await self._catalog.write(running.begin, run_id, again=again, now=at)
        schedule, request = begun.key.activation.schedule, begun.version.configuration.run
        brief = RunBrief(
            run_id=run_id,
            schedule=ScheduleReference(
                org_id=schedule.org_id,
                environment_id=schedule.environment_id,
                schedule_id=schedule.schedule_id,
                revision=begun.version.revision,
                digest=begun.version.digest,
            ),
            trigger=begun.key.trigger,
            nominal_time=begun.key.nominal_time,
            actual_time=begun.begun_at,
            previous_success=begun.previous_success,
            agent_version=request.agent_version,
            input=request.input,
            output_target=request.output_target,
        )
        return Claim(
            brief=brief,
            token=begun.token,
            start_event=begun.start_event,
            event=begun.event,
            config=begun.config,
            tenant_id=begun.tenant_id,
        )

    async def read_input(self, run_id: str, token: str) -> bytes:
        """See `AgentHost.read_input`."""
        return await reading.read_input(self._catalog, self._authority, run_id, token, now=self._now())

    async def write_output(self, run_id: str, token: str, name: str, data: bytes) -> str:
        """See `AgentHost.write_output`."""
        opened = await self._catalog.read(running.opened, run_id, token)
        write = self._content.of(opened.scope).write_output
        return await asyncio.to_thread(write, opened.output_target, opened.folder, name, data)


class AgentActivities:
    """Does runs that were admitted, each claimed in the catalog before the agent sees it.

    `now` is when a run begins; a `clock` is told of the server's stamp first, where it is what `now` goes by. `giving_way` says
    how long the report of a run waits for others.
    """

    def __init__(
        self,
        runner: AgentRunner,
        host: AgentHost,
        now: Callable[[], datetime] = machine_time,
        clock: WorkerClock | None = None,
        *,
        giving_way: GivingWay | None = None,
    ) -> None:
        self._runner = runner
        self._host = host
        self._now = now
        self._clock = clock
        self._giving_way = giving_way or GivingWay()

    @activity.defn(name=RUN_AGENT)
    async def run_agent(self, request: RunAgent) -> AgentDone:
        """Claim the run, then let its agent do it. An attempt that cannot claim the run does nothing.

        Failures before the claim have the types of `horarium.errors`; `claim_failed` means that the catalog did not answer
        in time. An agent that fails has not failed this activity: its report says so.

        In a herd the report waits, a few seconds at the most, until the others have begun.
        """
        if self._clock is not None:
            self._clock.observe(activity.info().started_time)
        with self._giving_way.taking_room():
            report = await self._reported(request)
        return AgentDone(
            succeeded=report.outcome is Outcome.SUCCEEDED,
            # A report can be made past its own rules, and a workflow that cannot read one would hold its slot for good.
            summary=kept_summary(report.summary),
            outputs=kept_outputs(report.outputs),
            cost=kept_cost(report.cost),
        )

    async def _reported(self, request: RunAgent) -> AgentReport:
        """Claim the run, have it done, and give way to those that have not begun."""
        heartbeats = asyncio.create_task(_heartbeats())
        try:
            with traces.span("agent begins"):
                claim = await self._claim(request)
            second = claim.brief.nominal_time
            self._giving_way.began(second)
            report = await self._runner.serve(request.agent_version, claim, self._host, heartbeat=activity.heartbeat)
            await self._giving_way.give_way(
                second, at_most=_left(self._now()) - ON_ITS_WAY, until=activity.wait_for_worker_shutdown
            )
        finally:
            heartbeats.cancel()
            with suppress(asyncio.CancelledError):
                await heartbeats
        return report

    async def _claim(self, request: RunAgent) -> Claim:
        deadline = asyncio.get_running_loop().time() + CLAIM_WITHIN.total_seconds()
        while True:
            try:
                with translated():
                    return await self._host.begin(request.run_id, at=self._now(), again=request.idempotent)
            except ApplicationError as error:
                if not isinstance(error.__cause__, Unavailable):
                    raise
                if asyncio.get_running_loop().time() > deadline:
                    raise ApplicationError(str(error), type="claim_failed", non_retryable=True) from error
                await asyncio.sleep(0.2)


def _left(now: datetime) -> timedelta:
    """How much of its time this attempt still has."""
    info = activity.info()
    ends = [
        since + limit
        for since, limit in (
            (info.started_time, info.start_to_close_timeout),
            (info.scheduled_time, info.schedule_to_close_timeout),
        )
        if limit is not None
    ]
    return min(ends, default=now) - now


async def _heartbeats() -> None:
    """Say that the run goes on. That it has begun is known: a beat for each of a herd would be a write more."""
    while True:
        await asyncio.sleep(HEARTBEAT_EVERY.total_seconds())
        activity.heartbeat()
