"""Figures as tables: aligned for a terminal, and as Markdown for the README."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from benchmarks.machine import told
from benchmarks.records import Line
from horarium.errors import Misconfigured

BEGIN: Final = "<!-- figures: python -m benchmarks --table build/bench.jsonl --into README.md -->"
END: Final = "<!-- end of figures -->"
"""What is between the two in the README is not written by hand."""
FULL: Final = "full"

_HEAD: Final = ("figure", "unit", "ours", "peer", "peer's", "ratio", "budget", "holds", "runs", "spread", "growth")
_HOLDS: Final = {True: "yes", False: "NO", None: ""}


def text_table(lines: Iterable[Line]) -> str:
    """A table for a terminal. The columns that nothing is in are left out."""
    rows = [_HEAD, *(_row(line) for line in lines)]
    used = [column for column in range(len(_HEAD)) if any(row[column] for row in rows[1:])]
    widths = {column: max(len(row[column]) for row in rows) for column in used}
    return "".join("  ".join(row[column].ljust(widths[column]) for column in used).rstrip() + "\n" for row in rows)


def markdown(lines: Sequence[Line]) -> str:
    """What a page shows: for each suite its table, and the machine and the day on which it was measured.

    A suite that was measured at another size than the full one says that its figures are none.
    """
    parts = []
    for suite, of_suite in groupby(lines, key=lambda line: line["suite"]):
        several = list(of_suite)
        parts.append(f"**{suite}**, {_measured(several)}\n\n{_markdown_table(several)}")
    return "\n".join(parts)


def put_into(page: str, table: str) -> str:
    """A page with this table between its markers. Raises `Misconfigured` where it has not both of them once."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in after:
        raise Misconfigured(f"The page has not both of the lines {BEGIN!r} and {END!r}, once each.")
    return f"{before}{BEGIN}\n\n{table}\n{END}{after}"


def _measured(lines: Sequence[Line]) -> str:
    """When, where and how much, each told once."""
    days = " and ".join(sorted({line["day"] for line in lines}))
    machines = "; ".join(dict.fromkeys(told(line["machine"]) for line in lines))
    short = "" if all(line["size"] == FULL for line in lines) else ", *a short run, whose figures are none*"
    return f"{days}{short} ({machines}):"


def _markdown_table(lines: Sequence[Line]) -> str:
    rows = [_row(line) for line in lines]
    used = [column for column in range(len(_HEAD)) if any(row[column] for row in rows)]
    rule = ["---"] * len(used)
    shown = [[row[column] for column in used] for row in (_HEAD, *rows)]
    return "".join(f"| {' | '.join(row)} |\n" for row in (shown[0], rule, *shown[1:]))


def _row(line: Line) -> tuple[str, ...]:
    return (
        line["name"],
        line["unit"],
        number(line["ours"]),
        line["peer"] or "",
        "" if line["peer_value"] is None else number(line["peer_value"]),
        "" if line["ratio"] is None else f"{line['ratio']:.1f}x",
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
