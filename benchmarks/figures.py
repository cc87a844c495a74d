"""One measured figure, and how it is shown to people and to programs."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from statistics import median
from typing import TextIO


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

    `plot` is a line of blocks where the figure says how something grows.
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

    @property
    def ratio(self) -> float | None:
        """How many times the peer's value is ours; None without a peer, and where ours is nothing."""
        return self.peer_value / self.ours if self.peer_value is not None and self.ours else None

    @property
    def holds(self) -> bool | None:
        """Tell if the budget is kept; None if there is none."""
        return self.budget.holds(self.ours, self.ratio) if self.budget else None


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


def print_table(figures: Iterable[Figure], to: TextIO) -> None:
    """Print a table for people."""
    head = ("figure", "unit", "ours", "peer", "peer's", "ratio", "budget", "holds", "spread", "")
    rows = [head, *(_row(figure) for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(), file=to)


def print_json(figures: Iterable[Figure], to: TextIO) -> None:
    """Print one JSON object a line for programs."""
    for figure in figures:
        budget = str(figure.budget) if figure.budget else None
        line = asdict(figure) | {"ratio": figure.ratio, "budget": budget, "holds": figure.holds}
        print(json.dumps(line), file=to)


def _row(figure: Figure) -> tuple[str, ...]:
    holds = {True: "yes", False: "NO", None: ""}[figure.holds]
    return (
        figure.name,
        figure.unit,
        f"{figure.ours:.3g}",
        figure.peer or "",
        f"{figure.peer_value:.3g}" if figure.peer_value is not None else "",
        f"{figure.ratio:.1f}x" if figure.ratio is not None else "",
        str(figure.budget) if figure.budget else "",
        holds,
        f"{figure.spread:.0%}",
        figure.plot,
    )
