"""One measured figure: ours, a peer's, and whether it keeps to its budget."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The least ratio peer / ours, or a bound of ours in its unit: `greatest` is not reached, and `at_most` may be."""

    least_ratio: float | None = None
    greatest: float | None = None
    at_most: float | None = None

    def __str__(self) -> str:
        if self.least_ratio is not None:
            return f">= {self.least_ratio:g}x"
        return f"< {self.greatest:g}" if self.at_most is None else f"<= {self.at_most:g}"

    def holds(self, ours: float, ratio: float | None) -> bool:
        """Tell if the measured values keep to the budget."""
        if self.least_ratio is not None:
            return ratio is not None and ratio >= self.least_ratio
        if self.at_most is not None:
            return ours <= self.at_most
        assert self.greatest is not None, "a budget bounds something"
        return ours < self.greatest


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Ours beside a peer's, both medians of `runs` rounds; `spread` is (greatest - least) / median of ours.

    `plot` is a line of blocks where the figure says how something grows, and `points` are the sizes and costs behind it.
    """

    name: str
    unit: str
    ours: float
    peer: str | None = None
    peer_value: float | None = None
    budget: Budget | None = None
    runs: int
    spread: float
    plot: str = ""
    points: tuple[tuple[float, float], ...] = ()

    @property
    def ratio(self) -> float | None:
        """How many times the peer's value is ours; None without a peer, and where ours is nothing."""
        return self.peer_value / self.ours if self.peer_value is not None and self.ours else None

    @property
    def holds(self) -> bool | None:
        """Tell if the budget is kept; None if there is none."""
        return self.budget.holds(self.ours, self.ratio) if self.budget else None

    def line(self) -> dict[str, Any]:
        """The figure as one line of JSON tells it: first the keys that every figure has, then what helps to read it."""
        return {
            "name": self.name,
            "ours": self.ours,
            "peer": self.peer,
            "peer_value": self.peer_value,
            "ratio": self.ratio,
            "budget": str(self.budget) if self.budget else None,
            "holds": self.holds,
            "runs": self.runs,
            "spread": self.spread,
            "unit": self.unit,
            "plot": self.plot,
            "points": self.points,
        }


def interleave(contenders: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Let all contenders take turns, so that what else the machine does meets them alike. Each returns its value."""
    values: dict[str, list[float]] = {name: [] for name in contenders}
    for each in contenders.values():
        each()  # the first turn fills caches and is thrown away
    for _ in range(rounds):
        for name, each in contenders.items():
            values[name].append(each())
    return values


def compare(
    name: str,
    unit: str,
    values: Mapping[str, list[float]],
    budgets: Mapping[str, Budget],
    *,
    ours: str = "ours",
) -> list[Figure]:
    """Make one figure for each peer. The budget under the name of ours becomes a figure without a peer."""
    mine = values[ours]
    middle = median(mine)
    spread = (max(mine) - min(mine)) / middle
    figures = []
    if ours in budgets or len(values) == 1:
        alone = Figure(name=name, unit=unit, ours=middle, budget=budgets.get(ours), runs=len(mine), spread=spread)
        figures.append(alone)
    for peer, theirs in values.items():
        if peer != ours:
            beside = Figure(
                name=name,
                unit=unit,
                ours=middle,
                peer=peer,
                peer_value=median(theirs),
                budget=budgets.get(peer),
                runs=len(mine),
                spread=spread,
            )
            figures.append(beside)
    return figures


def plain_names(names: Iterable[str]) -> list[str]:
    """Names, each once, without the count that some have in brackets at their end: that is a circumstance."""
    return list(dict.fromkeys(re.sub(r" \([\d,]+\)$", "", name) for name in names))
