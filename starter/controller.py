"""The controller: makes Temporal agree with the catalog, and writes down what it observed.

A reconciler: the catalog says what should be, Temporal says what is. Any number may run, any may be killed, and no
message has to arrive. It also finds what nobody reports: a workflow that was ended by hand, a run that closed in silence.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import structlog
from sqlalchemy import Connection
from temporalio.client import Client
from temporalio.service import RPCError

from activities.temporal import RunStarter, nudge
from horarium.catalog import Catalog, sweeping
from horarium.catalog.presence import observe
from horarium.catalog.schedules import find_live, require_version
from horarium.catalog.sweeping import Unsettled, Watched
from horarium.control import seals
from horarium.control.sweeping import review_if_live, settle_lost
from horarium.errors import HorariumError
from horarium.schedule.identity import ActivationKey, Scope
from horarium.schedule.ledger import Disposition
from starter.temporal import Found, Temporal
from worker.connection import connect
from worker.processes import WAIT_FOR_TEMPORAL_SECONDS, open_catalog, until_told
from worker.settings import Settings

TICK = timedelta(milliseconds=500)
"""How soon a change of activation is taken up."""
SWEEP_EVERY = timedelta(seconds=5)
"""How often every live activation and every overdue run is looked at, and audit events are sealed if there are new ones."""
OVERDUE = timedelta(seconds=10)
"""How long after its nominal time a run without an answer is looked at."""
SWEPT_RUNS = 500
AT_ONCE = 20
"""Calls to Temporal at the same time; a development server answers about 900 a second."""
SIGNALS = {"paused": "pause", "retired": "retire", "review": "review", "superseded": "pause"}

_logger = structlog.get_logger(__name__)
Item = TypeVar("Item")


async def control(settings: Settings) -> None:
    """Run a controller until SIGTERM or SIGINT."""
    catalog = open_catalog(settings)
    client = await connect(wait_seconds=WAIT_FOR_TEMPORAL_SECONDS)
    serving = asyncio.create_task(Controller(catalog, client, settings.scope).serve())
    told = asyncio.create_task(until_told())
    try:
        done, _ = await asyncio.wait([serving, told], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            await task
    finally:
        for task in (serving, told):
            task.cancel()
        await asyncio.gather(serving, told, return_exceptions=True)
        catalog.close()


@dataclass(slots=True)
class Controller:
    """One controller of one environment."""

    catalog: Catalog
    client: Client
    scope: Scope
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    temporal: Temporal = field(init=False)
    runs: RunStarter = field(init=False)

    def __post_init__(self) -> None:
        self.temporal = Temporal(self.client)
        self.runs = RunStarter(self.client)

    async def serve(self) -> None:
        """Tick until cancelled. A tick that fails is logged, and the next one tries again."""
        swept = datetime.min.replace(tzinfo=UTC)
        while True:
            sweep = self.now() - swept >= SWEEP_EVERY
            try:
                await self.tick(sweep=sweep)
            except (HorariumError, RPCError, RuntimeError) as error:
                _logger.warning("tick_failed", error=str(error))
            if sweep:
                swept = self.now()
            await asyncio.sleep(TICK.total_seconds())

    async def tick(self, *, sweep: bool) -> None:
        """Take up what changed; with `sweep` also look at everything that should be as it is."""
        lingering = await self.catalog.read(sweeping.lingering, self.scope)
        still = set()
        for row, key, ended_as in lingering:
            if not await self._is_gone(row, key, ended_as):
                still.add(key.schedule)
        watched = await self.catalog.read(sweeping.watched, self.scope, all_live=sweep)
        await self._each(watched, lambda each: self._reconcile(each, lingers=each.key.schedule in still))
        if sweep:
            before = self.now() - OVERDUE
            unsettled = await self.catalog.read(sweeping.unsettled_runs, self.scope, before=before, limit=SWEPT_RUNS)
            await self._each(unsettled, self._look_after)
            await self._seal()

    async def _seal(self) -> None:
        now = self.now()
        if await self.catalog.read(seals.is_due, self.scope, now=now):
            await self.catalog.write(seals.seal_due, self.scope, now=now)

    async def _each(self, items: Iterable[Item], act: Callable[[Item], Awaitable[None]]) -> None:
        """One by one as far as errors go: a schedule that makes trouble starves no other."""
        slots = asyncio.Semaphore(AT_ONCE)

        async def one(item: Item) -> None:
            async with slots:
                try:
                    await act(item)
                except (HorariumError, RPCError, RuntimeError) as error:
                    _logger.warning("not_reconciled", item=repr(item), error=str(error))

        await asyncio.gather(*(one(item) for item in items))

    async def _is_gone(self, row: int, key: ActivationKey, ended_as: str) -> bool:
        """Whether the workflow of an ended activation is closed; if not, it is told to look."""
        if await self.temporal.describe(key.workflow_id) is Found.RUNNING:
            await self.temporal.signal(key, SIGNALS[ended_as])
            return False
        await self.catalog.write(sweeping.mark_closed, row)
        return True

    async def _reconcile(self, each: Watched, *, lingers: bool) -> None:
        try:
            state, reason = await self._established(each) if each.is_live else _ended(each, lingers=lingers)
        except RPCError as error:
            state, reason = "error", f"Temporal: {error.message}"
        await self.catalog.write(
            observe, each.row, generation=each.key.generation, state=state, reason=reason, now=self.now()
        )

    async def _established(self, each: Watched) -> tuple[str, str | None]:
        found = await self.temporal.describe(each.key.workflow_id)
        if found is Found.RUNNING:
            return "active", None
        if found is Found.ABSENT:
            started = await self.temporal.start_schedule(each.key)
            return ("active", None) if started else ("pending", "Another controller is starting it.")
        because = f"Its workflow was found {found} while the activation was enabled."
        if await self.catalog.write(review_if_live, each.key, because=because, now=self.now()):
            _logger.warning("workflow_closed_under_activation", workflow_id=each.key.workflow_id, found=found)
            return "review", because
        return "stopping", None

    async def _look_after(self, run: Unsettled) -> None:
        found = await self.temporal.describe(run.workflow_id)
        if found is Found.RUNNING:
            return
        if found is Found.ABSENT and run.disposition is Disposition.STAGED and await self._may_still_start(run):
            await self.runs.start(run.key)
            return
        waiting = await self.catalog.write(settle_lost, run, closed_as=found.value, now=self.now())
        _logger.warning("run_settled_for_its_workflow", workflow_id=run.workflow_id, found=found)
        await nudge(self.client, waiting)

    async def _may_still_start(self, run: Unsettled) -> bool:
        window = await self.catalog.read(_window, run.key.activation)
        return window is not None and self.now() - run.window_from <= window


def _ended(each: Watched, *, lingers: bool) -> tuple[str, str | None]:
    if each.ended_as == "review":
        return "review", each.ended_reason
    return ("stopping", None) if lingers else ("paused", None)


def _window(connection: Connection, key: ActivationKey) -> timedelta | None:
    found = find_live(connection, key)
    if found is None:
        return None
    schedule, activation = found
    return require_version(connection, schedule, activation.revision).configuration.policy.catchup_window
