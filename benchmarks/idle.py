"""What enabled schedules cost while nothing is due: memory of the schedule worker and of the Temporal server, and CPU.

On an installation of real processes. First a few schedules, so that everything is loaded that is loaded once; then the others
in lots. Each is due once a day, and not for hours. Memory is what the resident set grows by, divided by the workflows that
the worker keeps in its cache: it keeps a limited number, and those beyond it take nothing. CPU is of all processes, two agent
runners among them.

At the end the schedule worker is started again, once as it was, to see that it does nothing about schedules that sleep, and
once with a small cache. Then everything is woken, a lot after the other, to see that those beyond the cache leave nothing.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from temporalio.client import WorkflowHandle

from activities.messages import RUN_CLOSED
from benchmarks.figures import Budget, Figure
from benchmarks.installed import OURS, Installation, each_of, installation, until
from benchmarks.processes import cpu_seconds, resident_kib
from horarium.schedule.identity import ActivationKey
from worker.composition import schedule_worker

MEMORY = Budget(at_most=120)
"""KiB (DESIGN.md, section 15)."""
_SERVER, _WORKER = "temporal", "schedules"
_A_STEP = 4
"""Events: a task scheduled, begun and completed, and what it brought."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """`few` schedules that are there before anything is measured, and then as many as make `enabled` in `lots`."""

    few: int = 200
    enabled: int = 2_000
    lots: int = 4
    settle_seconds: float = 15
    watch_seconds: float = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """How things stood at one time: enabled schedules, and KiB by process."""

    enabled: int
    resident: Mapping[str, int]


async def measure(sizes: Sizes) -> list[Figure]:
    """The figures of idle schedules."""
    async with installation() as it:
        capacity = _cache_of(it)
        started_with_none = await _started(it, sizes)
        keys = await _enable(it, sizes.few, already=0, sizes=sizes)
        cpu_few = await _cpu(it, sizes)
        seen = [_look(it, sizes.few)]
        for count in _lots(sizes):
            keys += await _enable(it, count, already=seen[-1].enabled, sizes=sizes)
            seen.append(_look(it, seen[-1].enabled + count))
        cpu_all = await _cpu(it, sizes)
        started_with_all = await _started(it, sizes)
        await _started(it, sizes, cache=sizes.few)
        beyond = await _woken_beyond(it, keys, sizes)
    kept, *others = memory(seen, capacity=capacity)
    return [
        kept,
        Figure(
            name=f"memory of the schedule worker per schedule beyond a full cache ({sizes.few})",
            unit="KiB",
            ours=beyond,
            peer="cached",
            peer_value=kept.ours,
            runs=1,
            spread=0,
        ),
        *others,
        *_cpu_figures(cpu_few, cpu_all, sizes),
        Figure(
            name=f"CPU of a schedule worker that starts, and {sizes.settle_seconds:g} s more, with {sizes.enabled:,} asleep",
            unit="s",
            ours=started_with_all,
            peer="with none",
            peer_value=started_with_none,
            runs=1,
            spread=0,
        ),
    ]


def memory(seen: list[Seen], *, capacity: int) -> Iterator[Figure]:
    """Memory per enabled schedule, from what was seen after each lot. `capacity` is that of the worker's cache."""
    enabled = seen[-1].enabled
    cached = min(enabled, capacity)
    for process, name, most, budget in (
        (_WORKER, f"memory of the schedule worker per cached idle schedule ({cached:,})", capacity, MEMORY),
        (_SERVER, f"memory of the Temporal server per idle schedule ({enabled:,})", enabled, None),
    ):
        lots = [
            _grown(before, after, process, most)
            for before, after in pairwise(seen)
            if min(after.enabled, most) > min(before.enabled, most)
        ]
        whole = _grown(seen[0], seen[-1], process, most)
        yield Figure(
            name=name,
            unit="KiB",
            ours=whole,
            budget=budget,
            runs=len(lots),
            spread=(max(lots) - min(lots)) / abs(whole) if whole else 0,
        )


def _grown(before: Seen, after: Seen, process: str, most: int) -> float:
    """KiB that a process grew by, per schedule that came, of which it keeps so many at the most."""
    return (after.resident[process] - before.resident[process]) / (min(after.enabled, most) - min(before.enabled, most))


def _lots(sizes: Sizes) -> list[int]:
    each, rest = divmod(sizes.enabled - sizes.few, sizes.lots)
    return [each + (lot < rest) for lot in range(sizes.lots)]


async def _enable(it: Installation, count: int, *, already: int, sizes: Sizes) -> list[ActivationKey]:
    # Twelve hours away, and each at a second of its own.
    first = (datetime.now(UTC) + timedelta(hours=12)).replace(second=0, microsecond=0)
    keys = await it.enabled(OURS, [first + timedelta(seconds=already + number) for number in range(count)])
    await it.asleep([key.workflow_id for key in keys])
    await asyncio.sleep(sizes.settle_seconds)
    return keys


async def _started(it: Installation, sizes: Sizes, *, cache: int | None = None) -> float:
    """Start the schedule worker again; the seconds of CPU that this took, and what it did in the time to settle."""
    worker = it.workers[_WORKER]
    await worker.stop()
    if cache is not None:
        environment = {**worker.program.environment, "HORARIUM_CACHED_WORKFLOWS": str(cache)}
        worker.program = replace(worker.program, environment=environment)
    await worker.start()
    await asyncio.sleep(sizes.settle_seconds)
    return cpu_seconds(worker.pid)


async def _woken_beyond(it: Installation, keys: Sequence[ActivationKey], sizes: Sizes) -> float:
    """Wake all, in halves, each more than the cache holds; KiB that the worker grew by for each of the second half.

    The first half is there for what left the cache and was not collected yet: it is some 20 MiB, however many come.
    """
    pid, half = it.workers[_WORKER].pid, len(keys) // 2
    assert half > sizes.few, "the cache is full when it is looked at first"
    await _wake(it, keys[:half])
    full = resident_kib(pid)
    await _wake(it, keys[half:])
    return (resident_kib(pid) - full) / (len(keys) - half)


async def _wake(it: Installation, keys: Sequence[ActivationKey]) -> None:
    """Nudge schedules, and wait until each has looked, and found that nothing is due."""
    handles = [it.client.get_workflow_handle(key.workflow_id) for key in keys]

    async def length(handle: WorkflowHandle[Any, Any]) -> int:
        return (await handle.describe()).history_length

    before = await each_of(handles, length)
    await each_of(handles, lambda handle: handle.signal(RUN_CLOSED))

    async def all_have_looked() -> bool:
        now = await each_of(handles, length)
        return all(after >= first + _A_STEP for first, after in zip(before, now, strict=True))

    await until(all_have_looked, lambda: "schedules do not wake")


def _pids(it: Installation) -> dict[str, int]:
    return {_SERVER: it.server.pid, **{name: child.pid for name, child in {**it.workers, **it.others}.items()}}


def _look(it: Installation, enabled: int) -> Seen:
    return Seen(enabled=enabled, resident={name: resident_kib(pid) for name, pid in _pids(it).items()})


async def _cpu(it: Installation, sizes: Sizes) -> dict[str, float]:
    """Percent of one core that each process takes."""
    pids, loop = _pids(it), asyncio.get_running_loop()
    begun, before = loop.time(), {name: cpu_seconds(pid) for name, pid in pids.items()}
    await asyncio.sleep(sizes.watch_seconds)
    took = loop.time() - begun
    return {name: 100 * (cpu_seconds(pid) - before[name]) / took for name, pid in pids.items()}


def _cpu_figures(few: Mapping[str, float], every: Mapping[str, float], sizes: Sizes) -> Iterator[Figure]:
    """CPU of an idle installation with all its schedules, beside that with few."""
    parts = {"all processes": tuple(every), "Temporal server": (_SERVER,), "controller": ("controller",)}
    parts["both workers"] = ("schedules", "runs")
    for name, members in parts.items():
        yield Figure(
            name=f"idle CPU with {sizes.enabled:,} enabled, {name}",
            unit="% of a core",
            ours=sum(every[each] for each in members),
            peer=f"with {sizes.few} enabled",
            peer_value=sum(few[each] for each in members),
            runs=1,
            spread=0,
        )


def _cache_of(it: Installation) -> int:
    """How many workflows the schedule worker keeps."""
    return int(schedule_worker(it.client, it.catalog, it.settings).config()["max_cached_workflows"])
