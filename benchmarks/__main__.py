"""`python -m benchmarks [SUITE …]`: run the suites and print the figures; exit 1 if a budget is not kept or a suite fails.

Every figure is kept as a line of JSON in build/bench.jsonl as it comes (of a short run in build/bench-short.jsonl), where it
replaces what its suite had there.
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks import api_speed, calendar_speed, cost, fairness, growth, scale, starts
from benchmarks.capacity import refreshed
from benchmarks.growth_plot import drawn
from benchmarks.machine import machine
from benchmarks.pages import put_into
from benchmarks.progress import tell
from benchmarks.records import Line, Records, read
from benchmarks.session import Session, Suite
from benchmarks.size import FULL, SHORT, chosen
from benchmarks.tables import markdown, text_table
from horarium.errors import Misconfigured

SUITES: Final[Mapping[str, Suite]] = {
    "calendar": Suite(measure=calendar_speed.measure, names=calendar_speed.names, minutes=1),
    "api": Suite(measure=api_speed.measure, names=api_speed.names, minutes=4),
    "starts": Suite(measure=starts.measure, names=starts.names, minutes=41),
    "fairness": Suite(measure=fairness.measure, names=fairness.names, minutes=8),
    "cost": Suite(measure=cost.measure, names=cost.names, minutes=10),
    "growth": Suite(measure=growth.measure, names=growth.names, minutes=7),
    "scale": Suite(measure=scale.measure, names=scale.names, minutes=32),
}
"""In the order in which they run. All of them are what runs where none is named."""
KEPT: Final = {FULL: Path("build/bench.jsonl"), SHORT: Path("build/bench-short.jsonl")}
"""Where figures are kept by the size that was measured: those of a short run never stand among the others."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suites that are named, or all; or show what was kept of an earlier run."""
    parser = _parser()
    options = parser.parse_args(arguments)
    unknown = [name for name in options.suites if name not in SUITES]
    if unknown:
        parser.error(f"there is no suite {unknown[0]!r}; there are {', '.join(SUITES)}")
    try:
        return _show(options) if options.table else _measure(options)
    except Misconfigured as error:
        print(error, file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"any of {', '.join(SUITES)} (default: all of them)")
    parser.add_argument("--json", action="store_true", help="print one JSON object a figure, as it comes")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep the figures there")
    parser.add_argument("--table", type=Path, metavar="FILE", help="measure nothing; show what is kept there")
    parser.add_argument("--markdown", action="store_true", help="with --table: as Markdown")
    into = "with --table: between the markers of that page, which say how much; as often as there are pages"
    parser.add_argument("--into", type=Path, metavar="PAGE", action="append", default=[], help=into)
    parser.add_argument("--capacity", type=Path, metavar="PAGE", help="with --table: into the arithmetic of that page")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="with --table: draw how costs grow")
    return parser


def _measure(options: argparse.Namespace) -> int:
    size = chosen(os.environ)
    records = Records(options.keep or KEPT[size], size=size, machine=machine())
    session = Session(suites=SUITES, records=records, each=_print_json if options.json else _print_nothing)
    session.run(options.suites or list(SUITES), full=size == FULL)
    if not options.json:
        print(text_table(session.lines), end="")
    unkept = [line["name"] for line in session.lines if line["holds"] is False]
    for kind, names in (("Budgets not kept", unkept), ("Suites that failed", session.failed)):
        if names:
            tell(f"{kind}: {'; '.join(names)}.")
    tell(f"The figures are kept in {records.path}.")
    return int(bool(unkept or session.failed))


def _show(options: argparse.Namespace) -> int:
    lines = sorted(read(options.table), key=lambda line: list(SUITES).index(line["suite"]))
    names = {suite: each.names() for suite, each in SUITES.items()}
    for page in options.into:
        page.write_text(put_into(page.read_text(), lines, names))
    if options.capacity:
        options.capacity.write_text(refreshed(options.capacity.read_text(), lines))
    if options.plot:  # the last one, since there may be nothing to draw
        options.plot.write_text(drawn(lines))
    if not options.plot and not options.into and not options.capacity:
        print(markdown(lines) if options.markdown else text_table(lines), end="")
    return 0


def _print_json(line: Line) -> None:
    print(json.dumps(line), flush=True)


def _print_nothing(_line: Line) -> None:
    """The table at the end has it."""


if __name__ == "__main__":
    sys.exit(main())
