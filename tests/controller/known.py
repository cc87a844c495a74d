"""A Temporal that knows what it is told, and a controller of it whose clock the test turns."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from horarium.catalog import Catalog
from horarium.catalog.presence import observations
from horarium.catalog.schedules import require_schedule
from horarium.schedule.identity import ActivationKey, RunKey, ScheduleKey, Scope
from starter.controller import Controller
from starter.temporal import ClosedSchedule, Found, Standing
from tests.control.desk import NOON, SCOPE


@dataclass
class Known:
    """Workflows and how each stands. `broken` are those that cannot be described, `held` those that answer only once told, `listed` those that are
    listed as closed."""

    found: dict[str, Found] = field(default_factory=dict)
    broken: dict[str, Exception] = field(default_factory=dict)
    held: dict[str, asyncio.Event] = field(default_factory=dict)
    described: Counter[str] = field(default_factory=Counter)
    signals: list[tuple[str, str]] = field(default_factory=list)
    listed: list[ClosedSchedule] = field(default_factory=list)

    async def describe(self, workflow_id: str) -> Found:
        self.described[workflow_id] += 1
        if workflow_id in self.held:
            await self.held[workflow_id].wait()
        if workflow_id in self.broken:
            raise self.broken[workflow_id]
        return self.found.get(workflow_id, Found.ABSENT)

    async def look_at(self, workflow_id: str) -> Standing:
        return Standing(found=await self.describe(workflow_id))

    async def start_schedule(self, key: ActivationKey) -> bool:
        self.described[key.workflow_id] += 1  # in vain, where there is one
        if key.workflow_id in self.broken:
            raise self.broken[key.workflow_id]
        if key.workflow_id in self.found:
            return False
        self.found[key.workflow_id] = Found.RUNNING
        return True

    async def start_run(self, key: RunKey) -> None:
        self.found[key.workflow_id] = Found.RUNNING

    async def signal(self, key: ActivationKey, signal: str) -> None:
        self.signals.append((key.workflow_id, signal))

    async def nudge(self, key: ActivationKey | None) -> None:
        """Nobody waits."""

    async def closed_schedules(self, _scope: Scope, *, since: datetime, limit: int) -> Sequence[ClosedSchedule]:
        return [each for each in self.listed if each.closed_at >= since][:limit]


@dataclass
class Clock:
    now: datetime = NOON

    def __call__(self) -> datetime:
        return self.now


def controller(catalog: Catalog, temporal: Known, clock: Clock) -> Controller:
    return Controller(catalog, temporal, SCOPE, now=clock)


def runtime(catalog: Catalog, key: ScheduleKey) -> tuple[str, str | None] | None:
    """The state that was written down last, and its reason; None before the first."""
    with catalog.reading() as connection:
        schedule = require_schedule(connection, key)
        seen = observations(connection, [schedule]).get(schedule.row)
    return None if seen is None or seen.generation != schedule.generation else (seen.state, seen.reason)
