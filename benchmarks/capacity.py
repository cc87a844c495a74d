"""The arithmetic of deploy/CAPACITY.md: its derived numbers follow from the table at its top, and from nothing else.

The page has two kinds of rows. A given one says what a symbol stands for, its value, and whether it was measured, is set, or is
assumed. A derived one says by which formula its value follows, for each number of schedules (`n`) that its table's head names.
Whoever changes a value lets `python -m benchmarks --table FILE --capacity deploy/CAPACITY.md` put in what follows; the same
command takes measured values from what was kept of `make bench`.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from benchmarks.figures import plain_names
from benchmarks.records import Line
from benchmarks.tables import number
from horarium.errors import Misconfigured

SCHEDULES: Final = (1_000, 100_000, 1_000_000)
"""The numbers of schedules that the derived columns are for."""
MEASURED: Final = "measured"

_GIVEN: Final = re.compile(
    r"^\| `(?P<symbol>\w+)` \| (?P<what>[^|]+) \| (?P<value>[\d,.]+) \| (?P<kind>measured|set|assumed): (?P<source>[^|]+) \|$"
)
_DERIVED: Final = re.compile(
    r"^\| `(?P<symbol>\w+)` \| (?P<what>[^|]+) \| `(?P<formula>[^`]+)` \|(?P<values>( [\d,.]+ \|)+)$"
)
_OPERATIONS: Final[Mapping[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_FUNCTIONS: Final[Mapping[str, Callable[..., float]]] = {"ceil": math.ceil, "min": min, "max": max}


def refreshed(page: str, lines: Iterable[Line] = ()) -> str:
    """The page with measured values as these lines have them, and with all that follows.

    A measured row names its figure, whose value is taken where there is one of that name. Raises `Misconfigured` where a
    formula cannot be computed.
    """
    figures = {name: float(line["ours"]) for line in lines for name in plain_names([line["name"]])}
    given = [_measured(row, figures) for row in page.splitlines()]
    known = {found["symbol"]: _value(found["value"]) for found in map(_GIVEN.match, given) if found}
    symbols = [{**known, "n": float(count)} for count in SCHEDULES]
    return "\n".join(_derived(row, symbols) for row in given) + "\n"


def sources(page: str) -> Mapping[str, str]:
    """For each symbol that was measured, the name of its figure."""
    found = filter(None, map(_GIVEN.match, page.splitlines()))
    return {each["symbol"]: each["source"] for each in found if each["kind"] == MEASURED}


def _measured(row: str, figures: Mapping[str, float]) -> str:
    found = _GIVEN.match(row)
    if found is None or found["kind"] != MEASURED or found["source"] not in figures:
        return row
    return f"| `{found['symbol']}` | {found['what']} | {number(figures[found['source']])} | {MEASURED}: {found['source']} |"


def _derived(row: str, symbols: Sequence[dict[str, float]]) -> str:
    """The row with its values, which the symbols know from here on."""
    found = _DERIVED.match(row)
    if found is None:
        return row
    for known in symbols:
        known[found["symbol"]] = computed(found["formula"], known)
    values = " | ".join(number(known[found["symbol"]]) for known in symbols)
    return f"| `{found['symbol']}` | {found['what']} | `{found['formula']}` | {values} |"


def computed(formula: str, known: Mapping[str, float]) -> float:
    """The value of a formula of known symbols, `+ - * /`, brackets, `ceil`, `min` and `max`. Raises `Misconfigured`."""
    try:
        return _of(ast.parse(formula, mode="eval").body, known)
    except (SyntaxError, KeyError, TypeError, ZeroDivisionError) as error:
        raise Misconfigured(f"{formula!r} cannot be computed: {error!r}.") from None


def _of(node: ast.expr, known: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.Name(id=name):
            return known[name]
        case ast.BinOp(left=left, op=operation, right=right):
            return _OPERATIONS[type(operation)](_of(left, known), _of(right, known))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return float(_FUNCTIONS[name](*(_of(each, known) for each in arguments)))
        case _:
            raise TypeError(f"{ast.unparse(node)} is not understood")


def _value(text: str) -> float:
    return float(text.replace(",", ""))
