"""How much is measured: all that the budgets are about, or just enough to see whether it runs."""

from collections.abc import Mapping
from typing import Final

from horarium.errors import Misconfigured

SIZE: Final = "HORARIUM_BENCH"
"""In the environment: `short`, or `full`, which is what is meant where it is not set."""
FULL: Final = "full"
SHORT: Final = "short"
"""Figures of this size are none."""


def chosen(environ: Mapping[str, str]) -> str:
    """`FULL` or `SHORT`. Raises `Misconfigured` where the environment names what there is not."""
    name = environ.get(SIZE) or FULL
    if name not in (FULL, SHORT):
        raise Misconfigured(f"{SIZE} is {name[:40]!r}; it is one of {FULL}, {SHORT}.")
    return name
