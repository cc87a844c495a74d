"""Native Temporal schedules of an interval, and what their own workflow on the server writes.

Each starts a workflow that has done at once, which is less than a run of ours: what is compared is the schedule alone.
"""

import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from temporalio import workflow
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleHandle,
    ScheduleIntervalSpec,
    ScheduleSpec,
)
from temporalio.worker import Worker

from benchmarks.histories import Chain, chain_of

_QUEUE = "bench-native"
_SYSTEM = "temporal-sys-scheduler:"


@workflow.defn(name="BenchNothing", sandboxed=False)
class NothingToDo:
    """Does nothing."""

    @workflow.run
    async def run(self) -> None:
        """Have done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Native:
    """Some native schedules that are firing."""

    client: Client
    handles: Sequence[ScheduleHandle]

    async def started(self) -> list[int]:
        """How many workflows each has started."""
        return [(await handle.describe()).info.num_actions for handle in self.handles]

    async def chains(self) -> list[Chain]:
        """The histories of their own workflows on the server."""
        return [await chain_of(self.client, f"{_SYSTEM}{handle.id}") for handle in self.handles]


@asynccontextmanager
async def native(address: str, count: int, *, every: int) -> AsyncIterator[Native]:
    """So many schedules, spread over the interval, that skip what overlaps, as ours do; deleted at the end."""
    client = await Client.connect(address)
    async with Worker(client, task_queue=_QUEUE, workflows=[NothingToDo]):
        handles = []
        for number in range(count):
            spec = ScheduleIntervalSpec(
                every=timedelta(seconds=every), offset=timedelta(seconds=number * every / count)
            )
            action = ScheduleActionStartWorkflow(NothingToDo.run, id=f"native-{number}", task_queue=_QUEUE)
            schedule = Schedule(action=action, spec=ScheduleSpec(intervals=[spec]))
            handles.append(await client.create_schedule(f"native-{uuid.uuid4()}", schedule))
        try:
            yield Native(client=client, handles=handles)
        finally:
            for handle in handles:
                await handle.delete()
