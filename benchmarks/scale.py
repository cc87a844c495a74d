"""Ten thousand enabled schedules on one machine: how soon all of them run, what they cost while little is due, and all at once.

On an installation of real processes, with schedules from hourly to weekly in many zones. They are enabled while no controller
is there; then it is started, and established is what runs and has come to rest. A controller is confirmed once it has looked at
everything that it finds enabled, from the start of its process on. Then come some minutes as any others, in whose middle both
workers are restarted. At the end all schedules are due in one second of the minute after another restart; all are woken once
each of them has accounted for that second. Last, the audit has to find nothing amiss.

Beside it stands the CPU of a controller of a tenth as many, on an installation of its own.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import ColumnElement, Connection, func, select

from benchmarks.due_schedules import now
from benchmarks.figures import Budget, Figure
from benchmarks.installed import OURS, Installation, batches, installation, until
from benchmarks.mixed_schedules import mixed
from benchmarks.processes import cpu_seconds, resident_kib
from benchmarks.progress import tell
from benchmarks.size import FULL, SHORT, chosen
from horarium.catalog.tables import activations, entries, runtime, schedules, sweeps
from horarium.control.audit import audit
from horarium.errors import NotAdmissible
from horarium.schedule.identity import ActivationKey, Scope

ESTABLISHED: Final = Budget(at_most=300)
CONFIRMED: Final = Budget(at_most=15)
WOKEN: Final = Budget(at_most=240)
"""Seconds (DESIGN.md, section 15)."""
CLEAN: Final = Budget(at_most=0)
PARTS: Final = ("schedules", "runs", "controller", "temporal")
"""Whose memory is told."""
_CONTROLLER = "controller"
_LOOK_EVERY = 0.5
_TRIES = 60
_RESTART_BEFORE = timedelta(seconds=45)
"""How long before the herd both workers are stopped: they are to be back in time, and not a minute before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How many schedules, and for how long they are watched, and how often in that. The default is what the budgets are about.

    Before anything is enabled it has to be known when all are due together: `each` is how many seconds are allowed for one.
    """

    count: int = 10_000
    watch_seconds: float = 600
    sample_seconds: float = 15
    few_seconds: float = 120
    settle_seconds: float = 20
    each: float = 0.06


SIZES: Final[Mapping[str, Size]] = {
    FULL: Size(),
    SHORT: Size(count=200, watch_seconds=60, sample_seconds=5, few_seconds=20, settle_seconds=10, each=0.25),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What the processes had taken at one time: seconds of CPU since they began, and KiB of memory."""

    at: float
    cpu: Mapping[str, float]
    resident: Mapping[str, int]


def names() -> list[str]:
    """The names of all figures, in their order."""
    return _names(SIZES[chosen(os.environ)])


def measure() -> Iterator[Figure]:
    """Measure all of it. With HORARIUM_BENCH=short in the environment only a little, to try it."""
    yield from measured(SIZES[chosen(os.environ)])


def measured(size: Size) -> Iterator[Figure]:
    """Measure at one size."""
    few = asyncio.run(_few(size))
    figures: list[Figure] = []
    lost: Exception | None = None
    try:
        asyncio.run(_all(size, few, figures))
    except Exception as error:  # noqa: BLE001 - raised below: what was measured until then took half an hour
        lost = error
    yield from figures
    if lost is not None:
        raise lost


async def _few(size: Size) -> float:
    """Percent of a core that the controller of a tenth as many takes."""
    async with installation() as it:
        keys = await _enabled(it, size.count // 10, together_at=_far(now()))
        await it.asleep([key.workflow_id for key in keys])
        await asyncio.sleep(size.settle_seconds)
        return cpu_percent(await _watched(it, size.few_seconds, size.sample_seconds), _CONTROLLER)


async def _all(size: Size, few: float, figures: list[Figure]) -> None:
    """Add the figures as they are measured."""
    name = iter(_names(size))

    def add(value: float, unit: str, budget: Budget | None = None, peer: float | None = None) -> None:
        told = None if peer is None else f"with {size.count // 10:,} enabled"
        figure = Figure(
            name=next(name), unit=unit, ours=value, budget=budget, peer=told, peer_value=peer, runs=1, spread=0
        )
        tell(f"{figure.name}: {value:.3g} {unit}")
        figures.append(figure)

    async with installation() as it:
        begun = now()
        allowed = timedelta(seconds=size.each * size.count + size.watch_seconds + 4 * size.settle_seconds)
        together_at = (begun + allowed + 2 * _RESTART_BEFORE).replace(microsecond=0)
        add(await _establish(it, size, together_at), "s", ESTABLISHED)
        add(await _confirm(it), "s", CONFIRMED)
        await asyncio.sleep(size.settle_seconds)
        calm = await _watched(it, size.watch_seconds / 2, size.sample_seconds)
        await it.restart_workers()
        await asyncio.sleep(size.settle_seconds)
        restarted = await _watched(it, size.watch_seconds / 2, size.sample_seconds)
        add(cpu_percent([*calm, *restarted], _CONTROLLER), "% of a core", peer=few)
        for part in PARTS:
            add(restarted[-1].resident[part] / 1024, "MiB")
            add(growth(restarted, part) / 1024, "MiB/min")
        woken, ended = await _wake_all(it, size, together_at)
        add(woken, "s", WOKEN)
        add(ended, "s")
        add(await it.catalog.read(_amiss, OURS), "problems", CLEAN)


def _names(size: Size) -> list[str]:
    many = f"{size.count:,} enabled schedules"
    return [
        f"{many}: established",
        f"{many}: confirmed by a new controller",
        f"{many}: CPU of the controller",
        *(
            f"{many}: {what} of {'the Temporal server' if part == 'temporal' else part}"
            for part in PARTS
            for what in ("memory", "growth of the memory")
        ),
        f"{many}: all woken after a restart",
        f"{many}: all runs of that ended",
        f"{many}: what the audit finds amiss",
    ]


async def _establish(it: Installation, size: Size, together_at: datetime) -> float:
    """Seconds from the start of a controller until everything that was enabled before runs, and has come to rest."""
    await it.others[_CONTROLLER].stop()
    began = _clock()
    keys = await _enabled(it, size.count, together_at=together_at)
    tell(f"published and enabled {size.count:,} in {_clock() - began:.0f} s")
    began = _clock()
    await it.others[_CONTROLLER].start()
    await _until_counted(it, _count_active, size.count, "are not active")
    tell(f"all are active after {_clock() - began:.0f} s")
    await it.asleep([key.workflow_id for key in keys])
    return _clock() - began


async def _confirm(it: Installation) -> float:
    """Seconds from the start of a controller until it has looked at everything."""
    await it.others[_CONTROLLER].stop()
    began, started_at = _clock(), now()
    await it.others[_CONTROLLER].start()

    async def all_looked_at() -> bool:
        swept_at = await it.catalog.read(_swept_at, OURS)
        return swept_at is not None and swept_at >= started_at

    await until(all_looked_at, lambda: "the controller has not looked at everything")
    return _clock() - began


async def _wake_all(it: Installation, size: Size, together_at: datetime) -> tuple[float, float]:
    """Seconds after the instant at which all are due: until each has accounted for it, and until all runs have ended."""
    left = (together_at - _RESTART_BEFORE - now()).total_seconds()
    if left < 0:
        raise TimeoutError(f"All were due together {-left:.0f} s too early: {size.each} s for each were not enough.")
    await asyncio.sleep(left)
    await it.restart_workers()
    await asyncio.sleep((together_at - now()).total_seconds())
    await _until_counted(it, lambda c: _count_accounted(c, together_at), size.count, "have not accounted for it")
    woken = (now() - together_at).total_seconds()
    await _until_counted(it, lambda c: _count_answered(c, together_at), size.count, "have no answer to it")
    return woken, (now() - together_at).total_seconds()


async def _enabled(it: Installation, count: int, *, together_at: datetime) -> Sequence[ActivationKey]:
    begins_at = now().replace(microsecond=0)
    keys: list[ActivationKey] = []
    for some in batches(mixed(count, together_at=together_at, begins_at=begins_at)):
        for tries_left in reversed(range(_TRIES)):
            try:
                keys += await it.enabled_as(OURS, some)
                break
            except NotAdmissible:  # a lease of the agent can be renewed late on a busy machine
                if not tries_left:
                    raise
                await asyncio.sleep(_LOOK_EVERY)
    return keys


async def _until_counted(it: Installation, count: Callable[[Connection], int], wanted: int, what: str) -> None:
    found = 0

    async def all_counted() -> bool:
        nonlocal found
        found = await it.catalog.read(count)
        return found >= wanted

    await until(all_counted, lambda: f"{wanted - found} of {wanted} {what}", within=1_200)


async def _watched(it: Installation, seconds: float, every: float) -> list[Sample]:
    """Look at the processes every so many seconds, for so many seconds."""
    pids = {"temporal": it.server.pid, **{name: each.pid for name, each in {**it.workers, **it.others}.items()}}
    began = _clock()
    samples = [_sample(pids)]
    while samples[-1].at < began + seconds:
        await asyncio.sleep(every)
        samples.append(_sample(pids))
    return samples


def _sample(pids: Mapping[str, int]) -> Sample:
    return Sample(
        at=_clock(),
        cpu={name: cpu_seconds(pid) for name, pid in pids.items()},
        resident={name: resident_kib(pid) for name, pid in pids.items()},
    )


def cpu_percent(samples: Sequence[Sample], process: str) -> float:
    """The share of one core that a process took, from the first to the last of these samples, which it outlived."""
    first, last = samples[0], samples[-1]
    return 100 * (last.cpu[process] - first.cpu[process]) / (last.at - first.at)


def growth(samples: Sequence[Sample], process: str) -> float:
    """KiB a minute by which a process grew: the slope of the line that is nearest to all samples."""
    at = [each.at / 60 for each in samples]
    kib = [each.resident[process] for each in samples]
    middle, usual = sum(at) / len(at), sum(kib) / len(kib)
    steep = sum((x - middle) * (y - usual) for x, y in zip(at, kib, strict=True))
    return steep / sum((x - middle) ** 2 for x in at)


def _count_active(connection: Connection) -> int:
    query = (
        select(func.count())
        .select_from(runtime.join(schedules, schedules.c.id == runtime.c.schedule))
        .where(*_in(OURS), runtime.c.generation == schedules.c.generation, runtime.c.state == "active")
    )
    return connection.execute(query).scalar_one()


def _count_accounted(connection: Connection, instant: datetime) -> int:
    query = (
        select(func.count())
        .select_from(activations.join(schedules, schedules.c.id == activations.c.schedule))
        .where(*_in(OURS), activations.c.accounted_through >= instant)
    )
    return connection.execute(query).scalar_one()


def _count_answered(connection: Connection, instant: datetime) -> int:
    query = (
        select(func.count(func.distinct(entries.c.schedule)))
        .select_from(entries.join(schedules, schedules.c.id == entries.c.schedule))
        .where(
            *_in(OURS), entries.c.first_at <= instant, entries.c.last_at >= instant, entries.c.closed_at.is_not(None)
        )
    )
    return connection.execute(query).scalar_one()


def _swept_at(connection: Connection, scope: Scope) -> datetime | None:
    here = (sweeps.c.org_id == scope.org_id, sweeps.c.environment_id == scope.environment_id)
    found: datetime | None = connection.execute(select(sweeps.c.swept_at).where(*here)).scalar_one_or_none()
    return found


def _in(scope: Scope) -> tuple[ColumnElement[bool], ...]:
    return (schedules.c.org_id == scope.org_id, schedules.c.environment_id == scope.environment_id)


def _amiss(connection: Connection, scope: Scope) -> int:
    """How many problems and broken seals the audit tells."""
    result = audit(connection, scope, now=now())
    faults = () if result.seals is None else result.seals.faults
    return len(faults) + sum(len(each.problems) for each in result.schedules)


def _far(instant: datetime) -> datetime:
    return (instant + timedelta(days=300)).replace(microsecond=0)


def _clock() -> float:
    return asyncio.get_running_loop().time()
