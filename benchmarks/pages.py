"""Where figures stand on pages: between two lines, and nothing between them is written by hand."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from benchmarks.headlines import short
from benchmarks.records import Line
from benchmarks.tables import markdown
from horarium.errors import Misconfigured

_COMMAND: Final = "python -m benchmarks --table build/bench.jsonl --into"
SHORT_BEGIN: Final = f"<!-- figures: {_COMMAND} README.md -->"
WHOLE_BEGIN: Final = f"<!-- all figures: {_COMMAND} deploy/FIGURES.md -->"
END: Final = "<!-- end of figures -->"
"""A page begins its figures with one of the first two, which says how many it wants, and ends them with this."""

Names = Mapping[str, Sequence[str]]
"""All figures of each suite."""

_SHOWN: Final[Mapping[str, Callable[[Sequence[Line], Names], str]]] = {
    SHORT_BEGIN: lambda lines, _names: short(lines),
    WHOLE_BEGIN: markdown,
}


def put_into(page: str, lines: Sequence[Line], names: Names) -> str:
    """A page with these figures between its lines. `names` are those that there are to be.

    Raises `Misconfigured` where the page has not one beginning and one end.
    """
    begins = [begin for begin in _SHOWN if begin in page]
    if len(begins) != 1:
        raise Misconfigured(f"The page has to have one of the lines {SHORT_BEGIN!r} and {WHOLE_BEGIN!r}.")
    [begin] = begins
    before, _, rest = page.partition(begin)
    _, end, after = rest.partition(END)
    if not end or begin in rest or END in after:
        raise Misconfigured(f"The page has not both of the lines {begin!r} and {END!r}, once each.")
    return f"{before}{begin}\n\n{_SHOWN[begin](lines, names)}\n{END}{after}"


def between(page: str) -> str:
    """What a page shows between its lines."""
    begin = SHORT_BEGIN if SHORT_BEGIN in page else WHOLE_BEGIN
    return page.partition(begin)[2].partition(END)[0]
