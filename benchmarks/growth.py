"""How the cost of what is done all day grows with what is stored: 1,000, 10,000 and 100,000 schedules, versions of one
schedule, and rows of one ledger.

Measured are the catalog's part of a step (gather, plan, commit) and of an admission, the first page of the schedules, the
newest page of a ledger, and what a controller does in each of its ticks while nothing changes. The sizes take turns, sample by
sample, so that what else the machine does meets all alike. A figure is the exponent `b` of `cost = a * size**b`, fitted to
the medians; its spread is that of the cost at the greatest size. The plot beside it has the cost at each size as a bar, and
tells the first and the last in milliseconds.

A cost has a part that does not grow, which makes its exponent less than that of the part that does: the bound of 0.1 means
that with a hundred times as much stored nothing takes 1.6 times as long.
"""

import asyncio
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TypeVar

from temporalio.client import Client

from benchmarks.apart import each_apart
from benchmarks.curves import bars, exponent
from benchmarks.figures import Budget, Figure
from benchmarks.filled_catalogs import FILLS, Fill
from benchmarks.occurrences import Life
from benchmarks.size import SHORT, chosen
from benchmarks.stored_schedules import ENGINES, SCOPE, Empty, Stored
from horarium.catalog import Catalog
from horarium.catalog.pages import Wanted
from horarium.control.pages import schedule_ledger
from horarium.control.records import directory
from horarium.schedule.ceilings import Ceilings
from horarium.schedule.identity import ActivationKey, schedule_key
from starter.controller import Controller
from starter.temporal import Temporal

T = TypeVar("T")

PAGE = 25
LOGARITHMIC = Budget(at_most=0.1)
"""Nothing grows faster than a logarithm, which from 1,000 to 100,000 is fitted as 0.11."""
KINDS = (
    "step",
    "admission",
    "admission under a total ceiling",
    "page of schedules",
    "newest page of a ledger",
    "tick",
)
"""What is measured, in the order of the figures."""
TOTAL = 10**12
"""A ceiling for all schedules together that is never reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How large, and how many samples at each size. Rounds are for the spread alone."""

    rows: tuple[int, ...] = (1_000, 10_000, 100_000)
    samples: int = 100
    rounds: int = 5
    engines: tuple[str, ...] = tuple(ENGINES)


WHOLE = Sizes()
TRIED = Sizes(rows=(200, 800, 3_200), samples=10, rounds=2, engines=("SQLite",))
"""For a minute, to see whether it runs: its figures are none."""


def chosen_sizes() -> Sizes:
    """How much is to be measured. Raises `Misconfigured` where the environment names what there is not."""
    return TRIED if chosen(os.environ) == SHORT else WHOLE


def names() -> list[str]:
    """The names of all figures, in their order."""
    return [_name(kind, fill, engine) for engine in chosen_sizes().engines for fill in FILLS for kind in KINDS]


def measure() -> Iterator[Figure]:
    """Measure each engine with each fill. With HORARIUM_BENCH=short in the environment only a little, to try it."""
    sizes = chosen_sizes()
    yield from each_apart(
        {f"by {fill} on {engine}": partial(_measure, engine, fill, sizes) for engine in sizes.engines for fill in FILLS}
    )


def _measure(engine: str, fill: str, sizes: Sizes) -> Iterator[Figure]:
    with ENGINES[engine]() as url, TemporaryDirectory(prefix="horarium-bench-") as folder:
        costs = _costs(url, FILLS[fill], Path(folder), sizes)
    for kind, taken in costs.items():
        yield figure(_name(kind, fill, engine), taken, rounds=sizes.rounds)


def _name(kind: str, fill: str, engine: str) -> str:
    return f"{kind} by {fill} on {engine}"


def figure(name: str, taken: Mapping[int, Sequence[float]], *, rounds: int) -> Figure:
    """The growth of one cost, from its samples in milliseconds by size."""
    sizes = sorted(taken)
    costs = [median(taken[size]) for size in sizes]
    largest = taken[sizes[-1]]
    each = len(largest) // rounds
    parts = [median(largest[turn * each : (turn + 1) * each]) for turn in range(rounds)]
    return Figure(
        name=name,
        unit="exponent",
        ours=exponent(sizes, costs),
        budget=LOGARITHMIC,
        runs=len(largest),
        spread=(max(parts) - min(parts)) / costs[-1],
        plot=f"{costs[0]:.3g} {bars(costs)} {costs[-1]:.3g} ms",
        points=tuple(zip(sizes, costs, strict=True)),
    )


def _costs(url: Empty, fill: Fill, folder: Path, sizes: Sizes) -> Mapping[str, Mapping[int, list[float]]]:
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        measured = []
        for size in sizes.rows:
            (folder / str(size)).mkdir()
            stored = fill(url, folder / str(size), size)
            catalog = Catalog.open(stored.url)
            stack.callback(catalog.close)
            measured.append((size, _Measured(catalog=catalog, stored=stored, runner=runner, seed=size)))
        costs: dict[str, dict[int, list[float]]] = {}
        # The first sample of each size fills caches, and is thrown away.
        for turn in range(sizes.samples + 1):
            for size, each in measured:
                for kind, taken in each.sample().items():
                    if turn:
                        costs.setdefault(kind, {}).setdefault(size, []).append(taken)
        return costs


@dataclass(slots=True, kw_only=True)
class _Measured:
    """One catalog, with all that is asked of it."""

    catalog: Catalog
    stored: Stored
    runner: asyncio.Runner
    seed: int
    controller: Controller = field(init=False)
    chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        # Nothing has changed, so that a tick has nothing to say to Temporal, and none has to be there.
        nobody = self.runner.run(Client.connect("127.0.0.1:1", lazy=True))
        self.controller = Controller(self.catalog, Temporal(nobody), SCOPE)

    def sample(self) -> dict[str, float]:
        """One of each kind, in milliseconds, about a schedule by chance."""
        key = schedule_key(SCOPE, self.chance.choice(self.stored.ids))
        activation = ActivationKey(schedule=key, generation=1)
        plain = Life(catalog=self.catalog, key=activation)
        bounded = Life(catalog=self.catalog, key=activation, ceilings=Ceilings(total=TOTAL))
        taken = dict.fromkeys(KINDS, 0.0)
        for admission, life in (("admission", plain), ("admission under a total ceiling", bounded)):
            taken["step"], run = _timed(partial(life.step, life.next_due()))
            taken[admission], _ = _timed(partial(life.admit, run))
            life.finish(run)
        taken["page of schedules"], _ = _timed(self._list)
        taken["newest page of a ledger"], _ = _timed(partial(self._ledger, activation))
        taken["tick"], _ = _timed(lambda: self.runner.run(self._tick()))
        return taken

    def _list(self) -> None:
        with self.catalog.reading() as connection:
            directory(connection, SCOPE, limit=PAGE, now=self.controller.now())

    def _ledger(self, activation: ActivationKey) -> None:
        with self.catalog.reading() as connection:
            schedule_ledger(connection, activation.schedule, Wanted(newest_first=True), after=None, limit=PAGE)

    async def _tick(self) -> None:
        await self.controller.tick()
        await self.controller.by_hand.look()


def _timed(act: Callable[[], T]) -> tuple[float, T]:
    begun = perf_counter()
    result = act()
    return (perf_counter() - begun) * 1e3, result
