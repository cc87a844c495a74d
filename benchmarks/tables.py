"""Every figure in a table: aligned for a terminal, and as Markdown for a page."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_DOWN, Decimal
from itertools import groupby
from types import MappingProxyType
from typing import Final

from benchmarks.figures import plain_names
from benchmarks.machine import told
from benchmarks.records import Line
from benchmarks.size import FULL

NOT_MEASURED: Final = "Not measured: "
"""Before what was lost."""
_HEAD: Final = ("figure", "unit", "ours", "peer", "peer's", "ratio", "budget", "holds", "runs", "spread", "growth")
_HOLDS: Final = {True: "yes", False: "NO", None: ""}


def text_table(lines: Iterable[Line]) -> str:
    """A table for a terminal. The columns that nothing is in are left out."""
    rows = [_HEAD, *(_row(line) for line in lines)]
    used = [column for column in range(len(_HEAD)) if any(row[column] for row in rows[1:])]
    widths = {column: max(len(row[column]) for row in rows) for column in used}
    return "".join("  ".join(row[column].ljust(widths[column]) for column in used).rstrip() + "\n" for row in rows)


def markdown(lines: Sequence[Line], names: Mapping[str, Sequence[str]] = MappingProxyType({})) -> str:
    """What a page of all figures shows: the machine and the day, and a table for each suite.

    A suite that was measured elsewhere than the others, or on another day, says so by itself; one that was not measured at full
    size says that its figures are none. `names` are all figures of each suite: those that were lost are told.
    """
    suites = {suite: list(several) for suite, several in groupby(lines, key=lambda line: line["suite"])}
    each = {suite: measured(several) for suite, several in suites.items()}
    together = len(set(each.values())) == 1
    parts = [f"Measured {next(iter(each.values()))}.\n"] if together else []
    for suite, several in suites.items():
        about = "" if together else f", measured {each[suite]}"
        parts.append(f"## {suite}\n\n{_kept(several)}{about}.\n\n{_markdown_table(several)}")
        if lost := _lost(several, names.get(suite, ())):
            parts.append(f"{NOT_MEASURED}{'; '.join(lost)}.\n")
    return "\n".join(parts)


def measured(lines: Sequence[Line]) -> str:
    """When, where and how much, each told once."""
    days = " and ".join(sorted({line["day"] for line in lines}))
    short = "" if all(line["size"] == FULL for line in lines) else ", *in a short run, whose figures are none*"
    return f"on {days}{short} ({told(line['machine'] for line in lines)})"


def _lost(lines: Sequence[Line], names: Sequence[str]) -> list[str]:
    there = plain_names(line["name"] for line in lines)
    return [name for name in plain_names(names) if name not in there]


def _kept(lines: Sequence[Line]) -> str:
    held = [line["holds"] for line in lines if line["holds"] is not None]
    budgets = f", {sum(held)} of {len(held)} budgets kept" if held else ""
    return f"{len({line['name'] for line in lines})} figures{budgets}"


def _markdown_table(lines: Sequence[Line]) -> str:
    rows = [_row(line) for line in lines]
    used = [column for column in range(len(_HEAD)) if any(row[column] for row in rows)]
    head, *shown = ([row[column] for column in used] for row in (_HEAD, *rows))
    return pipes(head, shown)


def pipes(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown."""
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *rows))


def _row(line: Line) -> tuple[str, ...]:
    return (
        line["name"],
        line["unit"],
        number(line["ours"]),
        line["peer"] or "",
        "" if line["peer_value"] is None else number(line["peer_value"]),
        "" if line["ratio"] is None else times(line["ratio"]),
        line["budget"] or "",
        _HOLDS[line["holds"]],
        f"{line['runs']:,}",
        f"{line['spread']:.0%}",
        line["plot"],
    )


def number(value: float) -> str:
    """Three digits that count, all of those before the point, and never an exponent."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 or not value else f"{value:.6f}"


def times(ratio: float) -> str:
    """A ratio, cut and not rounded: one that misses its budget by little must not be shown as what it misses."""
    digits = Decimal("0.1") if ratio >= 1 else Decimal("0.001")
    return f"{Decimal(str(ratio)).quantize(digits, rounding=ROUND_DOWN)}x"
