"""`python -m benchmarks [SUITE …] [--json]`: run the suites, print the figures, exit 1 if a budget is not kept."""

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import Final

from benchmarks import api_speed, calendar_speed, cost, growth, starts
from benchmarks.figures import Figure, print_json, print_table

SUITES: Final[dict[str, Callable[[], Iterator[Figure]]]] = {
    "calendar": calendar_speed.measure,
    "api": api_speed.measure,
    "starts": starts.measure,
    "cost": cost.measure,
    "growth": growth.measure,
}
"""A suite is a function that yields figures as it measures them."""
USUAL: Final = ("calendar", "api")
"""What runs where none is named. The others take from minutes to an hour at full size, and ask for a quiet machine."""


def main(arguments: list[str] | None = None) -> int:
    """Run the suites that are named, or the usual ones."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "suites", nargs="*", metavar="SUITE", help=f"which to run: {', '.join(SUITES)} (default: {', '.join(USUAL)})"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object a figure")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.suites if name not in SUITES]
    if unknown:
        parser.error(f"there is no suite {unknown[0]!r}; there are {', '.join(SUITES)}")
    figures: list[Figure] = []
    for name in options.suites or USUAL:
        for figure in SUITES[name]():
            figures.append(figure)
            if options.json:
                print_json([figure], sys.stdout)
    if not options.json:
        print_table(figures, sys.stdout)
    return int(any(figure.holds is False for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
