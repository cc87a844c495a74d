"""How answers look: tables for a person at a terminal, JSON lines for a pipe, and what `-o` asks for."""

import itertools
import json
import re
import shlex
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

PIPE_WIDTH = 240
"""Columns of a table that is written to a file, where nothing wraps."""
MIN_WRAPPED = 10
"""Columns that a text which may wrap has at the least."""
SHORT_ID = 8
"""Characters of an id that a table shows where the whole is too long for it."""

_STEERING = re.compile("[\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]")
"""Controls, and marks that turn the direction of writing, which JSON lets stand as they are."""


class Output(StrEnum):
    """A form of output that a person may ask for."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def show(
    document: Any, output: Output | None, table: Callable[[], None], *, lines: Iterable[Any] | None = None
) -> None:
    """Print one answer. `lines` are its parts, where a pipe that asked for nothing is better given one a line."""
    match output:
        case Output.JSON:
            print(json_text(document, indent=2 if sys.stdout.isatty() else None))
        case Output.YAML:
            text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
            # YAML escapes such characters only together with all others that are not ASCII.
            print(yaml.safe_dump(document, sort_keys=False) if _STEERING.search(text) else text, end="")
        case None if not sys.stdout.isatty():
            for each in [document] if lines is None else lines:
                print(json_text(each))
        case _:
            table()


def wants_table(output: Output | None) -> bool:
    """Whether `show` will call for a table."""
    return output is Output.TABLE or (output is None and sys.stdout.isatty())


def json_text(document: Any, *, indent: int | None = None) -> str:
    """A document as JSON, in one line unless indented. What could steer a terminal is escaped in it."""
    text = json.dumps(document, ensure_ascii=False, indent=indent)
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]], *, wraps: Collection[str] = ()) -> None:
    """Print rows below their headers; only the columns that `wraps` names may take several lines.

    What people copy stands in one line, also where the terminal is too narrow for the table. Texts may come from anybody, so
    nothing in them is obeyed as control.
    """
    told = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(_cells, column)) for column in zip(headers, *told, strict=True)]
    bends = [index for index, header in enumerate(headers) if header in wraps]
    room = columns() - sum(width for index, width in enumerate(widths) if index not in bends) - 2 * (len(headers) - 1)
    for left, index in enumerate(sorted(bends, key=lambda index: widths[index])):
        # The narrow ones take what they need; the others share what is left.
        widths[index] = min(widths[index], max(room // (len(bends) - left), MIN_WRAPPED))
        room -= widths[index]
    print(_row(headers, widths))
    print("  ".join("─" * width for width in widths))
    for row in told:
        parts = [
            (textwrap.wrap(cell, width) or [""]) if index in bends else [cell]
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        for line in itertools.zip_longest(*parts, fillvalue=""):
            print(_row(line, widths))


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell + " " * (width - _cells(cell)) for cell, width in zip(cells, widths, strict=True))
    return "  ".join(padded).rstrip()


def _cells(text: str) -> int:
    """How many columns of a terminal a text takes: two for a wide character, none for one that joins another."""
    return sum(0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in "WF") for each in text)


def columns() -> int:
    """How many columns a table has."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH


def short_ids(ids: Sequence[str]) -> list[str]:
    """The beginnings of ids, long enough to tell them from one another; commands take them for the whole."""
    for length in range(SHORT_ID, 36):
        if len({each[:length] for each in ids}) == len(set(ids)):
            return [each[:length] for each in ids]
    return list(ids)


def print_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Print names with their values, one pair a line."""
    told = [(name, printable(value)) for name, value in fields]
    width = max(len(name) for name, _ in told)
    before = None
    for name, value in told:
        # A name that has several values is told once.
        print(f"{'' if name == before else name:<{width}}  {value}")
        before = name


def program() -> str:
    """How a person calls this program from where they are: its name where PATH finds it, else its path."""
    here = Path(sys.executable).with_name("horarium")
    found = shutil.which("horarium")
    if found is not None and here.exists() and Path(found).samefile(here):
        return "horarium"
    return near(here) if here.exists() else "python -m starter"


def near(path: Path) -> str:
    """A path as a person in this working folder writes it: relative where it lies below, else absolute; for a shell."""
    absolute, folder = path.absolute(), Path.cwd()
    return shlex.quote(str(absolute.relative_to(folder) if absolute.is_relative_to(folder) else absolute))


def shorten(text: str, width: int) -> str:
    """A text in at most so many columns, with a mark where something was left out."""
    return text if len(text) <= width else text[: width - 1] + "…"


def printable(value: object) -> str:
    """A value as text of one line that cannot steer a terminal."""
    if value is None:
        return "-"
    text = str(value)
    return "".join(
        each if each.isprintable() else " " if each.isspace() else "\N{REPLACEMENT CHARACTER}" for each in text
    )
