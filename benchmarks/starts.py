"""How late agents begin, of our schedules and of native ones that start the same runs on the same workers.

Lateness is from the nominal second to the moment at which the agent's handler begins, by the clock of the machine that
everything runs on. At a rate of 10 a second, ten schedules are due in each second: the same ten again and again, or others each
time, as where many are due now and then. The budget was written for the first, where a native schedule was seen to fall behind
by some 15 ms more each time, up to a second. Both are measured, named apart, and held to the same budget. A herd is due in one
second; its figure is the lateness of its last run. A herd after a restart is due within the first minute after both runtime
workers are back.

Ours and the native schedules take turns on one installation, and who begins changes with each round. A turn makes its
schedules, waits until all of them sleep, lets them fire, and takes them down when every run is settled. The first turn of
each is small, fills caches, and is thrown away. Every figure is the median of the rounds' values. A load of which a run was
lost has no figure: that is told, the other loads are measured on a new installation, and the suite fails at its end. With
`HORARIUM_BENCH=short` there is one round of a few runs, which shows that it works and whose figures are none.
"""

import asyncio
import math
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from statistics import median
from typing import Any, Final, Protocol

from benchmarks import native_worker
from benchmarks.due_schedules import Instants, now
from benchmarks.figures import Budget, Figure, compare
from benchmarks.installed import Installation, installation
from benchmarks.native_schedules import NAME, START_LIMIT, NativeEverySecond, NativeOnce
from benchmarks.our_schedules import OurSchedules
from benchmarks.progress import tell
from benchmarks.size import FULL, SHORT, chosen
from benchmarks.start_log import LostRuns
from horarium.schedule.identity import RunKey, Scope

MEDIAN_BUDGETS: Final[Mapping[int, float]] = {1: 20, 10: 4, 25: 2}
"""How many times ours is to be in the median of native, at so many runs a second (DESIGN.md, section 15)."""
HERD_BUDGET: Final = 6
LIFTED: Final = 10_000
"""Starts a second of native schedules that no herd here comes near."""

_MARGIN = timedelta(seconds=12)
"""Between the last schedule's coming to rest and the first second that is due: the longest lead of a staged run."""
_RESTART = timedelta(seconds=45)
"""How long before a herd the workers are stopped: they are to be back in time, and not a minute before it."""
_FIRST_MINUTE = timedelta(seconds=60)
_TRIES = 4
_WARM_UP = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is measured. The default is what the budgets are about.

    `rates` are runs a second, each measured for so many `seconds` in a round. Where the same ones are due in each of them,
    they have been so for `settling` seconds before: such schedules stand for years, and a native one falls behind for about a
    minute before it is as late as it gets, so a shorter time is in its favour. Every run has to have begun `begin_within`
    seconds after the last nominal time, otherwise it counts as lost. With an even number of rounds each contender is first as
    often as the other. A herd has `herd_rounds`, which are more: its figure is that of a single run, and one moment in which
    the machine does something else would show in the median of two.
    """

    rates: tuple[int, ...] = (1, 10, 25)
    seconds: int = 12
    settling: int = 30
    herd: int = 300
    rounds: int = 2
    herd_rounds: int = 4
    begin_within: float = 180


SIZES: Final[Mapping[str, Size]] = {
    FULL: Size(),
    SHORT: Size(seconds=4, settling=4, herd=20, rounds=1, herd_rounds=1),
}


class Contender(Protocol):
    """Whoever fires schedules."""

    @property
    def name(self) -> str:
        """As the figure calls it."""

    @property
    def scope(self) -> Scope:
        """The environment in which its runs are."""

    async def set_up(self, due: Sequence[Instants]) -> list[RunKey]:
        """Make a schedule for each of these, all at rest when this returns; the runs that will begin, in their order."""

    async def take_down(self) -> None:
        """Take away what the last `set_up` made, also where nothing has fired yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """When schedules are due: `per_second` in each of so many `seconds`.

    With `again` it is the same ones in each second, otherwise each is due once. They are so for `settling` seconds before any
    is counted. With `restart` they are due soon after one of the workers.
    """

    per_second: int
    seconds: int = 1
    settling: int = 0
    again: bool = False
    restart: bool = False

    @property
    def count(self) -> int:
        """How many schedules there are."""
        return self.per_second * (1 if self.again else self.settling + self.seconds)

    def due(self, first: datetime) -> list[Instants]:
        """The instants of each schedule, where the first of all is then."""
        instants = tuple(first + timedelta(seconds=second) for second in range(self.settling + self.seconds))
        several = [instants] if self.again else [(instant,) for instant in instants]
        return [each for each in several for _ in range(self.per_second)]


@dataclass(slots=True)
class Allowance:
    """How long one contender is given to make so many schedules: generously at first, then by how long it took before."""

    least: timedelta = timedelta(seconds=4)
    each: timedelta = timedelta(seconds=0.06)
    _taken: dict[int, timedelta] = field(default_factory=dict)

    def of(self, count: int) -> timedelta:
        """For so many schedules: a quarter more than it took before, and some seconds."""
        taken = self._taken.get(count)
        return self.least + (self.each * count if taken is None else taken * 1.25)

    def learn(self, taken: timedelta, count: int) -> None:
        """It took so long to make so many, in time or not."""
        self._taken[count] = taken


@dataclass(slots=True)
class Turn:
    """The turns of one contender."""

    installation: Installation
    contender: Contender
    begin_within: float
    allowance: Allowance = field(default_factory=Allowance)

    async def take(self, load: Load) -> list[float]:
        """Let a load fire once; how late each run that counts began, in milliseconds. Raises `LostRuns`."""
        runs = await self._ready(load)
        last = max(run.nominal_time for run in runs)
        counted_from = min(run.nominal_time for run in runs) + timedelta(seconds=load.settling)
        within = (last - now()).total_seconds() + self.begin_within
        lateness = await self.installation.begun(runs, within=within)
        await self.installation.settled(self.contender.scope)
        await self.contender.take_down()
        return [seconds * 1e3 for run, seconds in zip(runs, lateness, strict=True) if run.nominal_time >= counted_from]

    async def _ready(self, load: Load) -> list[RunKey]:
        """Make the schedules, in time before they are due. What was not in time is made again, by how long it took.

        Raises `TimeoutError` where that does not help either.
        """
        for _ in range(_TRIES):
            began = now()
            before = _RESTART if load.restart else _MARGIN
            first = (began + self.allowance.of(load.count) + before).replace(microsecond=0) + timedelta(seconds=1)
            runs = await self.contender.set_up(load.due(first))
            ready = now()
            self.allowance.learn(ready - began, load.count)
            if ready <= first - before and (not load.restart or await self._restarted_before(first)):
                return runs
            tell(f"{self.contender.name}: {load.count} schedules were not ready in time; once more")
            await self.contender.take_down()
            await self.installation.settled(self.contender.scope)
        raise TimeoutError(f"{self.contender.name}: {load.count} schedules were not ready in time, {_TRIES} times.")

    async def _restarted_before(self, first: datetime) -> bool:
        """Whether the workers were back in time, and not too early."""
        await asyncio.sleep((first - _RESTART - now()).total_seconds())
        await self.installation.restart_workers()
        return _MARGIN <= first - now() <= _FIRST_MINUTE


Late = Mapping[str, Sequence[Sequence[float]]]
"""For each contender, how many milliseconds late every run was in every round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One load, and what is told of it."""

    name: str
    load: Load
    rounds: int
    figures: Callable[[str, Late], list[Figure]]


def parts(size: Size) -> list[Part]:
    """What is measured on a Temporal server as anybody has it."""
    rates = [
        Part(
            name=f"lateness at {rate} runs/s, {'the same each second' if again else 'others each second'}",
            load=Load(per_second=rate, seconds=size.seconds, settling=size.settling if again else 0, again=again),
            rounds=size.rounds,
            figures=partial(lateness_figures, budget=MEDIAN_BUDGETS.get(rate)),
        )
        for again in (True, False)
        for rate in size.rates
    ]
    herds = [
        Part(
            name=f"last of {size.herd} due in one second{' after a restart' if restart else ''}",
            load=Load(per_second=size.herd, restart=restart),
            rounds=size.herd_rounds,
            figures=partial(herd_figures, budget=Budget(least_ratio=HERD_BUDGET)),
        )
        for restart in (False, True)
    ]
    return [*rates, *herds]


def lifted_parts(size: Size) -> list[Part]:
    """The peer without its own limit on starts: what the machine could do, if somebody who runs a server had set it so."""
    return [
        Part(
            name=f"last of {size.herd} due in one second, native's limit on starts lifted",
            load=Load(per_second=size.herd),
            rounds=size.rounds,
            figures=partial(herd_figures, budget=None),
        )
    ]


def chosen_size(environ: Mapping[str, str]) -> Size:
    """How much is to be measured. Raises `Misconfigured` where the environment names what there is not."""
    return SIZES[chosen(environ)]


def names() -> list[str]:
    """The names of all figures, in their order."""
    size, nothing = chosen_size(os.environ), {OurSchedules.name: [[1.0]], NAME: [[1.0]]}
    every = (*parts(size), *lifted_parts(size))
    return [figure.name for part in every for figure in part.figures(part.name, nothing)]


def measure() -> Iterator[Figure]:
    """Measure every rate, and the herds. Values are milliseconds.

    Raises an `ExceptionGroup` at the end, where loads were lost.
    """
    size = chosen_size(os.environ)
    with asyncio.Runner() as runner:
        for several, config in ((parts(size), None), (lifted_parts(size), {START_LIMIT: LIFTED})):
            yield from _stepped(runner, measured(several, partial(_turns, size, config)))


Turns = Callable[[], AbstractAsyncContextManager[Mapping[bool, Sequence["Turn"]]]]
"""Starts an installation: the turns of both contenders, for what is due once (False) and again and again (True)."""


async def measured(several: Sequence[Part], turns: Turns) -> AsyncIterator[Figure]:
    """The figures of each part, as they come. What is lost with one is told at the end, and the others have a new installation.

    Raises an `ExceptionGroup` of what was lost.
    """
    left, lost = deque(several), list[Exception]()
    while left:
        before = len(left)
        try:
            async with turns() as kinds:
                while left:
                    part = left.popleft()
                    late = await _rounds(kinds[part.load.again], part.load, part.rounds, part.name)
                    for figure in part.figures(part.name, late):
                        yield figure
        except (LostRuns, TimeoutError) as error:
            if len(left) == before:  # none was begun: there is no installation to be had
                raise
            tell(f"{part.name}: no figure. {error}")
            lost.append(error)
    if lost:
        raise ExceptionGroup(f"{len(lost)} of {len(several)} loads have no figure", lost)


def _stepped(runner: asyncio.Runner, figures: AsyncIterator[Figure]) -> Iterator[Figure]:
    async def following() -> Figure | None:
        return await anext(figures, None)

    while (figure := runner.run(following())) is not None:
        yield figure


@asynccontextmanager
async def _turns(
    size: Size, dynamic_config: Mapping[str, Any] | None = None
) -> AsyncIterator[Mapping[bool, Sequence[Turn]]]:
    """All contenders on one installation, each after a small turn that fills caches and is thrown away."""
    async with installation(dynamic_config=dynamic_config, beside=[native_worker.__name__]) as installed:
        kinds = {}
        for again, native in ((True, NativeEverySecond), (False, NativeOnce)):
            contenders: Sequence[Contender] = (OurSchedules(installed), native(installed))
            kinds[again] = [Turn(installed, contender, size.begin_within) for contender in contenders]
            for turn in kinds[again]:
                await turn.take(Load(per_second=_WARM_UP, seconds=2 if again else 1, again=again))
        yield kinds


async def _rounds(turns: Sequence[Turn], load: Load, rounds: int, what: str) -> Late:
    """For each contender, the lateness of every run in every round."""
    late: dict[str, list[list[float]]] = {turn.contender.name: [] for turn in turns}
    for number in range(rounds):
        for turn in turns if number % 2 == 0 else reversed(turns):
            name, taken = turn.contender.name, await turn.take(load)
            late[name].append(taken)
            told = f"median {median(taken):,.0f} ms, last {max(taken):,.0f} ms"
            tell(f"{what}, round {number + 1} of {rounds}, {name}: {told}")
    return late


def lateness_figures(name: str, late: Late, budget: float | None) -> list[Figure]:
    """The median and the 99th percentile, from the lateness of every run in every round of each contender.

    `budget` is how many times ours is to be in native's median.
    """
    budgets = {} if budget is None else {NAME: Budget(least_ratio=budget)}
    return [
        *compare(f"{name}, median", "ms", _of_rounds(late, median), budgets),
        *compare(f"{name}, p99", "ms", _of_rounds(late, p99), {}),
    ]


def herd_figures(name: str, late: Late, budget: Budget | None) -> list[Figure]:
    """The last of a herd, from the lateness of every run in every round of each contender."""
    return compare(name, "ms", _of_rounds(late, max), {} if budget is None else {NAME: budget})


def p99(values: Sequence[float]) -> float:
    """The least value that 99 of 100 do not exceed: one that was measured, and of fewer than 100 the greatest."""
    return sorted(values)[math.ceil(len(values) * 99 / 100) - 1]


def _of_rounds(late: Late, value: Callable[[Sequence[float]], float]) -> dict[str, list[float]]:
    return {name: [value(each) for each in rounds] for name, rounds in late.items()}
