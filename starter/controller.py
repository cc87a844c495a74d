"""The controller: makes Temporal agree with the catalog, and writes down what it observed.

A reconciler: the catalog says what should be, Temporal says what is. Any number may run, any may be killed, and no
message has to arrive. It also finds what nobody reports: a workflow that was ended by hand, a run that closed in silence.

Its steady load is flat: a tick and a sweep do a bounded amount of work, however many schedules are enabled. What changed, what
is late and what was in error is found by indexes, what was ended by hand by the server's list of closed workflows, and
whatever nobody tells of when its turn comes (see `starter.rotation`). Only a controller that has just started, or has just
found its server again, looks at everything at once.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import structlog

from activities.clock import WorkerClock, machine_time
from activities.findings import Findings
from activities.gateway import HttpGateway
from horarium.authority.asking import Authority
from horarium.catalog import Catalog, watching
from horarium.catalog.clock import catalog_time
from horarium.catalog.watching import Watched
from horarium.control import seals
from horarium.schedule.findings import Finding
from horarium.schedule.identity import Scope
from starter import tallies
from starter.apart import log_failure
from starter.by_hand import ByHand
from starter.closures import Closures
from starter.lingering import Lingering
from starter.looks import Looks, batches
from starter.moved_on import MovedOn
from starter.notifying import Notifier, Post
from starter.pruning import PRUNE_EVERY, Pruning
from starter.punctuality import Punctuality
from starter.reservations import Reservations
from starter.rotation import LOOKS_AT_ONCE, Rotation
from starter.temporal import ClosedSchedule, Temporal
from starter.unsettled import UnsettledRuns
from worker.connection import connect
from worker.metrics import ProcessMetrics
from worker.processes import CATALOGS_TIME, WAIT_FOR_TEMPORAL_SECONDS, open_catalog, until_told
from worker.settings import Settings
from worker.starts import totals_told
from worker.tracing import traced

TICK = timedelta(milliseconds=500)
"""How soon a change of activation is taken up."""
SWEEP_EVERY = timedelta(seconds=5)
"""How often what may be wrong is looked at, and some of everything else; audit events are sealed if there are new ones."""
SWEEP_LIMIT = timedelta(seconds=15)
"""How long a sweep may take before it is told. It has a few hundred looks to take, so then Temporal or the catalog is slow."""
ERRORS_AT_ONCE = 500
"""Activations in error that a sweep looks at. Where they are more, they take turns."""
CONFIRM_PAGE = 1_000
"""Live activations that are read at once where all are looked at."""

_logger = structlog.get_logger(__name__)


@traced("controller")
@totals_told()
async def control(settings: Settings, *, machine: Callable[[], datetime] = machine_time) -> None:
    """Run a controller until SIGTERM or SIGINT. `machine` is the machine's clock, which no setting changes."""
    catalog = open_catalog(settings)
    metrics = ProcessMetrics(settings.metrics)
    client = await connect(wait_seconds=WAIT_FOR_TEMPORAL_SECONDS, runtime=metrics.runtime)
    authority = settings.authority
    findings = Findings()
    clock = WorkerClock(machine=machine, server=CATALOGS_TIME, findings=findings)
    controller = Controller(
        catalog,
        Temporal(client),
        settings.scope,
        now=clock.now,
        authority=authority,
        clock=clock,
        findings=findings,
        event_retention_days=settings.event_retention_days,
        post=HttpGateway(settings.public_url).tell,
    )
    async with AsyncExitStack() as stack:
        stack.callback(catalog.close)
        stack.push_async_callback(authority.aclose)
        await stack.enter_async_context(metrics.served())
        serving = asyncio.create_task(controller.serve())
        told = asyncio.create_task(until_told())
        try:
            done, _ = await asyncio.wait([serving, told], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                await task
        finally:
            for task in (serving, told):
                task.cancel()
            await asyncio.gather(serving, told, return_exceptions=True)


@dataclass(slots=True)
class Controller:
    """One controller of one environment. Ticks, sweeps and the looks at money go on side by side: none waits for another.

    `clock` is told the catalog's time before each sweep; a controller whose machine's clock is wrong would take runs for
    missed that are yet to come. What it finds is counted in `findings`, and written down with each sweep.
    Thread events are deleted once they are older than `event_retention_days`, and kept where that is None.
    Notifications go out by `post`; without it they stay where they are written down.
    """

    catalog: Catalog
    temporal: Temporal
    scope: Scope
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    authority: Authority | None = None
    clock: WorkerClock | None = None
    findings: Findings = field(default_factory=Findings)
    event_retention_days: int | None = None
    post: Post | None = None
    lingering: Lingering = field(init=False)
    closures: Closures = field(init=False)
    rotation: Rotation = field(init=False)
    by_hand: ByHand = field(init=False)
    reservations: Reservations = field(init=False)
    punctuality: Punctuality = field(init=False)
    unsettled: UnsettledRuns = field(init=False)
    moved_on: MovedOn = field(init=False)
    looks: Looks = field(init=False)
    pruning: Pruning = field(init=False)
    _unconfirmed: bool = field(init=False, default=True)
    _in_hand: frozenset[int] = field(init=False, default=frozenset())
    _after_error: int | None = field(init=False, default=None)
    _looked_at: set[int] = field(init=False, default_factory=set)
    _clean: bool = field(init=False, default=True)

    def __post_init__(self) -> None:
        self.by_hand = ByHand(self.catalog, self.temporal, self.scope, self.now)
        self.lingering = Lingering(self.catalog, self.temporal, self.scope, self.now)
        self.closures = Closures(self.temporal, self.scope, self.now)
        self.rotation = Rotation(self.catalog, self.scope)
        self.punctuality = Punctuality(self.catalog, self.scope, self.findings)
        self.unsettled = UnsettledRuns(self.catalog, self.temporal, self.scope, self.now, self.findings)
        self.moved_on = MovedOn(self.catalog, self.scope, self.now)
        self.looks = Looks(self.catalog, self.temporal, self.now, self._confirm_again)
        self.reservations = Reservations(self.catalog, self.authority, self.scope, self.now)
        self.pruning = Pruning(self.catalog, self.scope, self.now, self.event_retention_days)

    async def serve(self) -> None:
        """Tick and sweep until cancelled. Whatever fails is logged, and the next one tries again."""
        await _guarded(self._set_clock)
        await asyncio.gather(
            _repeat(self.tick, every=TICK),
            _repeat(self.by_hand.look, every=TICK),
            _repeat(self.sweep, every=SWEEP_EVERY),
            _repeat(self.confirm, every=SWEEP_EVERY),
            # By itself, since it waits for a platform's service.
            _repeat(self.reservations.look, every=SWEEP_EVERY),
            _repeat(self.pruning.prune, every=PRUNE_EVERY),
            self._notify(),
        )

    async def _notify(self) -> None:
        if self.post is not None:
            await Notifier(self.catalog, self.scope, self.now, self.post).serve()

    async def tick(self) -> None:
        """Take up what changed."""
        still = await self.lingering.look()
        watched = await self.catalog.read(watching.watched, self.scope)
        self._in_hand = frozenset(each.row for each in watched)
        try:
            for some in batches(watched):
                await self.looks.take_up(some, lingering=still)
        finally:
            self._in_hand = frozenset()

    async def confirm(self) -> None:
        """Look at every live activation once, if that was not done since this controller started, or lost its server.

        What a tick has in hand is left to it. A server or catalog that is lost meanwhile ends this, and it begins again later.
        """
        if not self._has_to_confirm():
            return
        self._unconfirmed = False
        try:
            await self._look_at_all()
        except BaseException:
            # The catalog is as likely as not to be busy when a controller starts.
            self._unconfirmed = True
            raise

    async def _look_at_all(self) -> None:
        looked_at, began, once = 0, time.monotonic(), Rotation(self.catalog, self.scope)
        over = False
        while not over:
            page = await once.page(now=self.now(), limit=CONFIRM_PAGE)
            clean = True
            for some in batches([each for each in page if each.row not in self._in_hand]):
                clean &= await self._look_at(some)
                looked_at += len(some)
                if self._has_to_confirm():
                    return
            over = await once.done(clean=clean, now=self.now())
        _logger.info("all_looked_at", schedules=looked_at, seconds=round(time.monotonic() - began, 3))

    def _has_to_confirm(self) -> bool:
        return self._unconfirmed

    def _confirm_again(self) -> None:
        self._unconfirmed = True

    async def sweep(self) -> None:
        """Look at what may not be as it should be, and at some of what should."""
        began = time.monotonic()
        self._looked_at, self._clean = set(), True
        for part in (
            self._set_clock,
            self._review_enabled_before,
            self._sweep_doubtful,
            self._sweep_closed,
            self._sweep_in_turn,
            self._sweep_runs,
            self._seal,
            self._store_findings,
        ):
            await _guarded(part)
        took = timedelta(seconds=time.monotonic() - began)
        tallies.swept(took)
        if took > SWEEP_LIMIT:
            self.findings.note(Finding.STEP_OUTRAN_LIMIT)
            limit = SWEEP_LIMIT.total_seconds()
            _logger.warning("sweep_outran_limit", seconds=round(took.total_seconds(), 3), limit_seconds=limit)

    async def _set_clock(self) -> None:
        if self.clock is not None:
            self.clock.observe(await self.catalog.read(catalog_time))

    async def _store_findings(self) -> None:
        await self.findings.store(self.catalog, self.scope, now=self.now())

    async def _sweep_doubtful(self) -> None:
        """Look at what nobody has accounted for in time, and whether what was in error still is."""
        late = await self.punctuality.late(now=self.now())
        failing, self._after_error = await self.catalog.read(
            watching.in_error, self.scope, after=self._after_error, limit=ERRORS_AT_ONCE
        )
        doubtful = {each.row: each for each in (*failing, *late)}
        self.punctuality.forget([each for each in doubtful.values() if not each.is_live])
        await self._look_once([each for each in doubtful.values() if each.is_live])

    async def _sweep_closed(self) -> None:
        """Look at those whose workflows are listed as closed: somebody may have ended them by hand."""
        news, there_are_more = await self.closures.look()
        self._unconfirmed |= there_are_more
        try:
            await self._look_at_closed(news)
        except BaseException:
            self.closures.tell_again(news)
            raise

    async def _look_at_closed(self, news: Sequence[ClosedSchedule]) -> None:
        if news:
            closed = {each.workflow_id for each in news}
            found = await self.catalog.read(watching.current, self.scope, {each.schedule_id for each in news})
            await self._look_once([each for each in found if each.is_live and each.key.workflow_id in closed])

    async def _sweep_in_turn(self) -> None:
        """Look at those whose turn it is, whatever is known of them."""
        await self._look_once(await self.rotation.page(now=self.now(), limit=LOOKS_AT_ONCE))
        await self.rotation.done(clean=self._clean, now=self.now())

    async def _look_once(self, live: Sequence[Watched]) -> None:
        """Look at those that this sweep has not looked at yet."""
        fresh = [each for each in live if each.row not in self._looked_at]
        self._clean &= await self._look_at(fresh)
        self._looked_at.update(each.row for each in fresh)

    async def _look_at(self, live: Sequence[Watched]) -> bool:
        """Look at live activations, and write down what is not as it was; False where something could not be written."""
        clean = True
        for some in batches(live):
            overdue = await self.punctuality.overdue(some, now=self.now())
            clean &= await self.looks.at_live(some, overdue=overdue)
        await self.moved_on.review_late(live)
        return clean

    async def _review_enabled_before(self) -> None:
        await self.moved_on.review_all()

    async def _sweep_runs(self) -> None:
        await self.unsettled.look()

    async def _seal(self) -> None:
        now = self.now()
        if await self.catalog.read(seals.is_due, self.scope, now=now):
            await self.catalog.write(seals.seal_due, self.scope, now=now)


async def _repeat(act: Callable[[], Awaitable[None]], *, every: timedelta) -> None:
    loop = asyncio.get_running_loop()
    while True:
        began = loop.time()
        await _guarded(act)
        await asyncio.sleep(max(TICK.total_seconds(), began + every.total_seconds() - loop.time()))


async def _guarded(act: Callable[[], Awaitable[None]]) -> None:
    try:
        await act()
    except Exception as error:  # noqa: BLE001 - the boundary: a controller outlives whatever it meets
        log_failure(f"{act.__name__.strip('_')}_failed", error)
