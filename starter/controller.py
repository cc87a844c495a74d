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
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

import structlog
from sqlalchemy import Connection
from temporalio.service import RPCError, RPCStatusCode

from activities.clock import WorkerClock, machine_time
from activities.findings import Findings
from activities.gateway import HttpGateway
from horarium.authority.asking import Authority
from horarium.catalog import Catalog, moved_on, unsettled, watching
from horarium.catalog.clock import catalog_time
from horarium.catalog.presence import UNSETTLED, Seen, observe_all
from horarium.catalog.schedules import find_live, require_version
from horarium.catalog.unsettled import Unsettled
from horarium.catalog.watching import Watched
from horarium.control import seals
from horarium.control.sweeping import REVIEWED_AT_ONCE, review_enabled_before, review_if_live, settle_lost
from horarium.errors import HorariumError, Unavailable
from horarium.schedule.findings import Finding
from horarium.schedule.identity import ActivationKey, ScheduleKey, Scope
from horarium.schedule.ledger import Disposition
from starter import tallies
from starter.apart import each_apart, log_failure
from starter.by_hand import ByHand
from starter.closures import Closures
from starter.lingering import Lingering
from starter.notifying import Notifier, Post
from starter.pruning import PRUNE_EVERY, Pruning
from starter.punctuality import Punctuality
from starter.reservations import Reservations
from starter.rotation import LOOKS_AT_ONCE, Rotation
from starter.stranded import Stranded
from starter.temporal import ClosedSchedule, Found, Temporal
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
OVERDUE = timedelta(seconds=10)
"""How long after its nominal time a run without an answer is looked at."""
SWEEP_LIMIT = timedelta(seconds=15)
"""How long a sweep may take before it is told. It has a few hundred looks to take, so then Temporal or the catalog is slow."""
ERRORS_AT_ONCE = 500
"""Activations in error that a sweep looks at. Where they are more, they take turns."""
RUNS_AT_ONCE = 200
"""Runs without an answer that a sweep looks at. Where they are more, they take turns."""
CONFIRM_PAGE = 1_000
"""Live activations that are read at once where all are looked at."""
BATCH = 200
"""Schedules that are looked at before what was seen of them is written down, in one transaction."""

_LOST = frozenset({RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED})
"""What a call ends with where no server answers."""

State = tuple[str, str | None]
"""A runtime state and its reason."""

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
    stranded: Stranded = field(init=False)
    pruning: Pruning = field(init=False)
    _unconfirmed: bool = field(init=False, default=True)
    _in_hand: frozenset[int] = field(init=False, default=frozenset())
    _after_error: int | None = field(init=False, default=None)
    _after_run: tuple[int, datetime, int] | None = field(init=False, default=None)
    _reviewed_under: tuple[int, int] | None = field(init=False, default=None)
    _looked_at: set[int] = field(init=False, default_factory=set)
    _clean: bool = field(init=False, default=True)

    def __post_init__(self) -> None:
        self.by_hand = ByHand(self.catalog, self.temporal, self.scope, self.now)
        self.lingering = Lingering(self.catalog, self.temporal, self.scope, self.now)
        self.closures = Closures(self.temporal, self.scope, self.now)
        self.rotation = Rotation(self.catalog, self.scope)
        self.punctuality = Punctuality(self.catalog, self.scope, self.findings)
        self.stranded = Stranded(self.temporal)
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
            for some in _batches(watched):
                await self._observe(some, partial(self._taken_up, still))
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
            for some in _batches([each for each in page if each.row not in self._in_hand]):
                clean &= await self._look_at(some)
                looked_at += len(some)
                if self._has_to_confirm():
                    return
            over = await once.done(clean=clean, now=self.now())
        _logger.info("all_looked_at", schedules=looked_at, seconds=round(time.monotonic() - began, 3))

    def _has_to_confirm(self) -> bool:
        return self._unconfirmed

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
        for some in _batches(live):
            overdue = await self.punctuality.overdue(some, now=self.now())
            clean &= await self._observe(some, partial(self._swept, overdue))
        moved = [each.key for each in live if self._has_moved_on(each)]
        if moved:
            # Enabled while the environment moved on, so that who went through all of them then did not meet it.
            await self._review(moved)
        return clean

    def _has_moved_on(self, each: Watched) -> bool:
        under = self._reviewed_under
        return under is not None and any(
            was is not None and was != now for was, now in zip(each.enabled_under, under, strict=True)
        )

    async def _review_enabled_before(self) -> None:
        """Finish what a new epoch or a reset has begun: whoever gave that command may have died in the middle.

        All are gone through once after each. One that is enabled meanwhile is found when its turn comes.
        """
        under = await self.catalog.read(moved_on.state_of_environment, self.scope)
        if under == self._reviewed_under:
            return
        after, clean = 0, True
        while page := await self.catalog.read(moved_on.enabled_before, self.scope, limit=REVIEWED_AT_ONCE, after=after):
            keys, after = [key for _, key in page], page[-1][0]
            clean &= await self._review(keys)
        self._reviewed_under = under if clean else None

    async def _review(self, keys: Sequence[ActivationKey]) -> bool:
        try:
            await self.catalog.write(review_enabled_before, keys, now=self.now())
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary: one that cannot be ended hides no other
            log_failure("reviewed_one_by_one", error)
            return all(done is not None for _, done in await each_apart(keys, self._review_one, at_once=1))
        return True

    async def _review_one(self, key: ActivationKey) -> int:
        return await self.catalog.write(review_enabled_before, [key], now=self.now())

    async def _sweep_runs(self) -> None:
        """Look at some of the runs without an answer, and at the end of each round tell which of them are stranded."""
        before = self.now() - OVERDUE
        page = await self.catalog.read(
            unsettled.unsettled_runs, self.scope, before=before, limit=RUNS_AT_ONCE, after=self._after_run
        )
        await each_apart(page, self._look_after)
        self._after_run = page[-1].place if len(page) == RUNS_AT_ONCE else None
        if self._after_run is None:
            for _ in range(await self.stranded.report()):
                self.findings.note(Finding.PINNED_WITHOUT_POLLERS)

    async def _seal(self) -> None:
        now = self.now()
        if await self.catalog.read(seals.is_due, self.scope, now=now):
            await self.catalog.write(seals.seal_due, self.scope, now=now)

    async def _observe(self, watched: Sequence[Watched], look: Callable[[Watched], Awaitable[State]]) -> bool:
        """Look at some schedules and write down what is not as it was; False where something could not be written."""
        now = self.now()
        found = await each_apart(watched, lambda each: self._or_error(look, each))
        seen = [
            Seen(row=each.row, generation=each.key.generation, state=state[0], reason=state[1])
            for each, state in found
            if state is not None and not _is_known(each, state)
        ]
        if not seen:
            return True
        try:
            await self.catalog.write(observe_all, seen, now=now)
        except HorariumError:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary: one row that cannot be written hides no other
            log_failure("written_down_one_by_one", error)
            written = await each_apart(seen, lambda each: self._write_down(each, now=now), at_once=1)
            return all(done for _, done in written)
        return True

    async def _or_error(self, look: Callable[[Watched], Awaitable[State]], each: Watched) -> State:
        """What is seen of a schedule. That it could not be looked at is seen too, and the next sweep tries again."""
        try:
            return await look(each)
        except RPCError as error:
            # What the server knew may be lost with it, or have changed meanwhile.
            self._unconfirmed |= error.status in _LOST
            return "error", f"Temporal: {error.message}"
        except Exception as error:  # noqa: BLE001 - the boundary: whatever is wrong with one schedule, the others go on
            log_failure("not_reconciled", error, workflow_id=each.key.workflow_id)
            return "error", f"The controller could not look at it: {type(error).__name__}. Its log says more."

    async def _write_down(self, seen: Seen, *, now: datetime) -> bool:
        await self.catalog.write(observe_all, [seen], now=now)
        return True

    async def _taken_up(self, still: frozenset[ScheduleKey], each: Watched) -> State:
        if each.is_live:
            return await self._established(each)
        if each.ended_as == "review":
            return "review", each.ended_reason
        return ("stopping", None) if each.key.schedule in still else ("paused", None)

    async def _swept(self, overdue: Mapping[int, str], each: Watched) -> State:
        state, reason = await self._established(each)
        return ("error", overdue[each.row]) if state == "active" and each.row in overdue else (state, reason)

    async def _established(self, each: Watched) -> State:
        is_new = each.observed is None or each.observed[0] != each.key.generation
        # Whose first look this is has no workflow as a rule: to ask for it first would be a call more for each.
        if is_new and await self.temporal.start_schedule(each.key):
            return "active", None
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
        standing = await self.temporal.look_at(run.workflow_id)
        found = standing.found
        if found is Found.RUNNING:
            self.stranded.note(run.workflow_id, standing.pinned_to)
            return
        if found is Found.ABSENT and run.disposition is Disposition.STAGED and await self._may_still_start(run):
            await self.temporal.start_run(run.key)
            self.findings.note(Finding.RUN_STARTED_AGAIN)
            _logger.warning("run_started_again", workflow_id=run.workflow_id)
            return
        waiting = await self.catalog.write(settle_lost, run, closed_as=found.value, now=self.now())
        _logger.warning("run_workflow_is_closed", workflow_id=run.workflow_id, found=found)
        await self.temporal.nudge(waiting)

    async def _may_still_start(self, run: Unsettled) -> bool:
        window = await self.catalog.read(_window, run.key.activation)
        return window is not None and self.now() - run.window_from <= window


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


def _is_known(each: Watched, state: State) -> bool:
    """Whether it was written down already, and nobody waits for it to be written down again."""
    settled = state[0] not in UNSETTLED
    return each.observed == (each.key.generation, *state) and not (each.unobserved and settled)


def _batches(watched: Sequence[Watched]) -> Iterator[Sequence[Watched]]:
    """So many as are written down in one transaction."""
    for start in range(0, len(watched), BATCH):
        yield watched[start : start + BATCH]


def _window(connection: Connection, key: ActivationKey) -> timedelta | None:
    found = find_live(connection, key)
    if found is None:
        return None
    schedule, activation = found
    return require_version(connection, schedule, activation.revision).configuration.policy.catchup_window
