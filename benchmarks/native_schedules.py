"""Temporal's own schedules as contenders: on the same calendar they start the same runs on the same workers.

What is the same: the processes; the run workflow with its search attributes and its fairness key; the admission, with all that
it reads and writes; the agent; and the settlement. The calendar, the policy for overlaps and the catch-up window are those of
our schedules, in Temporal's words. What is not:

`NativeOnce`, for schedules that are due once, each time in favour of the native schedules:

* The run is in the catalog before its schedule is made, so that admission finds it. Ours write it down while they are measured.
* A native schedule starts a workflow with the same input every time, and cannot know the run that ours names by its nominal
  time. So the input is made for the one occurrence that is measured.
* The controller has nothing to look after.

`NativeEverySecond`, for schedules that are due again and again: the run workflow finds out which run it is, and writes it down,
in a local activity before its admission (see native_run.py), which is not in its favour. It runs in a worker process of its
own, set as ours, which is: ours has the steps of schedules to do beside its runs.

The server starts 30 workflows a second for all schedules of a namespace, where nobody sets
`worker.schedulerNamespaceStartWorkflowRPS`. A herd is measured with that and, beside it, with a limit that it does not meet.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from typing import ClassVar, Final

from sqlalchemy import Connection
from temporalio.client import (
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleCalendarSpec,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleRange,
    ScheduleSpec,
)
from temporalio.common import Priority

from activities.messages import RUN_WORKFLOW, SCHEDULES_QUEUE, RunScheduled
from activities.search_attributes import of_activation, of_run
from benchmarks.due_schedules import WINDOW, Instants, configuration, stage
from benchmarks.installed import PEERS, Installation, batches, each_of
from benchmarks.native_run import NATIVE_QUEUE, NATIVE_RUN
from horarium.schedule.identity import ActivationKey, RunKey, Scope, instant_text

NAME: Final = "native schedules"
START_LIMIT: Final = "worker.schedulerNamespaceStartWorkflowRPS"
"""The server's setting for how many workflows a second the native schedules of a namespace start."""

Timed = tuple[ActivationKey, Instants]
"""A schedule, and when it is due."""


class _Native(ABC):
    """One native schedule for each of what is due."""

    name: ClassVar[str] = NAME
    scope: ClassVar[Scope] = PEERS

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._keys: list[ActivationKey] = []
        self._made: list[str] = []

    async def set_up(self, due: Sequence[Instants]) -> list[RunKey]:
        """Make the schedules, and wait until each one's workflow sleeps; the runs in the order of `due`."""
        self._keys = await self._installation.enabled_as(PEERS, [configuration(*each) for each in due])
        several = list(zip(self._keys, due, strict=True))
        await self._prepare(several)
        self._made = await each_of(several, self._make)
        await self._installation.asleep([_scheduler_of(each) for each in self._made])
        return [RunKey(activation=key, nominal_time=instant) for key, instants in several for instant in instants]

    async def take_down(self) -> None:
        """Delete the schedules, and wait until nothing of them runs."""
        await each_of(self._made, self._delete)
        await self._installation.paused(self._keys)
        await self._installation.gone([_scheduler_of(each) for each in self._made])
        self._keys, self._made = [], []

    @abstractmethod
    async def _prepare(self, several: Sequence[Timed]) -> None:
        """Do what has to be there before the schedules are made."""

    @abstractmethod
    def _schedule(self, timed: Timed) -> Schedule:
        """The native schedule of what is due."""

    async def _make(self, timed: Timed) -> str:
        schedule_id = f"native-{timed[0].schedule.schedule_id}"
        await self._installation.client.create_schedule(schedule_id, self._schedule(timed))
        return schedule_id

    async def _delete(self, schedule_id: str) -> None:
        await self._installation.client.get_schedule_handle(schedule_id).delete()


class NativeOnce(_Native):
    """Schedules that start `RunWorkflow` itself, each once while it is measured."""

    async def _prepare(self, several: Sequence[Timed]) -> None:
        for some in batches(several):
            await self._installation.catalog.write(_stage, some)

    def _schedule(self, timed: Timed) -> Schedule:
        return once(*timed)


class NativeEverySecond(_Native):
    """Schedules that start a run in each of several consecutive seconds."""

    async def _prepare(self, several: Sequence[Timed]) -> None:
        """Nothing: its runs are written down when they begin."""

    def _schedule(self, timed: Timed) -> Schedule:
        return every_second(*timed)


def once(key: ActivationKey, instants: Instants) -> Schedule:
    """The native schedule that starts the run of one instant, every day at its time."""
    (due,) = instants
    run = RunKey(activation=key, nominal_time=due)
    return Schedule(
        action=ScheduleActionStartWorkflow(
            RUN_WORKFLOW,
            RunScheduled(key=run),
            id=f"native/{key.schedule.schedule_id}",
            task_queue=SCHEDULES_QUEUE,
            typed_search_attributes=of_run(run),
            static_summary=f"{key.schedule.schedule_id} at {instant_text(due)}",
            priority=Priority(fairness_key=key.schedule.org_id),
        ),
        spec=ScheduleSpec(
            calendars=[
                ScheduleCalendarSpec(
                    second=[ScheduleRange(due.second)],
                    minute=[ScheduleRange(due.minute)],
                    hour=[ScheduleRange(due.hour)],
                )
            ],
            time_zone_name="Etc/UTC",
        ),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=WINDOW),
    )


def every_second(key: ActivationKey, instants: Instants) -> Schedule:
    """The native schedule that starts a run in each second from the first instant to the last."""
    between = timedelta(seconds=0.5)
    return Schedule(
        action=ScheduleActionStartWorkflow(
            NATIVE_RUN,
            key,
            id=f"native/{key.schedule.schedule_id}",
            task_queue=NATIVE_QUEUE,
            typed_search_attributes=of_activation(key),
            static_summary=key.schedule.schedule_id,
            priority=Priority(fairness_key=key.schedule.org_id),
        ),
        spec=ScheduleSpec(
            intervals=[ScheduleIntervalSpec(every=timedelta(seconds=1))],
            # Whether these are inclusive does not matter in the middle of a second.
            start_at=instants[0] - between,
            end_at=instants[-1] + between,
        ),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.ALLOW_ALL, catchup_window=WINDOW),
    )


def _stage(connection: Connection, several: Sequence[Timed]) -> None:
    for key, instants in several:
        for instant in instants:
            stage(connection, key, instant)


def _scheduler_of(schedule_id: str) -> str:
    """The workflow of the server's own that is behind a native schedule."""
    return f"temporal-sys-scheduler:{schedule_id}"
