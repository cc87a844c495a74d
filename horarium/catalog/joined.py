"""Rows of several tables that were asked for at once, taken apart again: their columns have the same names."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Row, Table


def taken_apart(row: Row[Any] | tuple[Any, ...], tables: Sequence[Table]) -> list[Mapping[str, Any]]:
    """The columns of each table by their names there. The row is one of `select(*tables)`; of an outer join all may be None."""
    parts: list[Mapping[str, Any]] = []
    begin = 0
    for table in tables:
        names = table.c.keys()
        parts.append(dict(zip(names, row[begin : begin + len(names)], strict=True)))
        begin += len(names)
    return parts
