"""What is drawn or laid out for the page of one schedule: a strip of what became of due instants, and the days to come."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from horarium.api.pages.moments import wall
from horarium.api.pages.words import DISPOSITIONS, Badge
from horarium.schedule.ledger import Disposition

CELL: Final = 16
"""The width of one cell of the strip, with the room between it and the next."""
_TIMES_IN_A_CELL: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One line of the ledger in the strip: its badge, where it stands, and what it says to whoever points at it."""

    badge: Badge
    left: int
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """The lines of a page, oldest first. `label` says the same without a picture."""

    cells: tuple[Cell, ...]
    width: int
    label: str


def strip(lines: Sequence[Mapping[str, Any]], zone: str) -> Strip:
    """Draw lines of the ledger that come newest first."""
    oldest_first = list(reversed(lines))
    cells = tuple(
        Cell(badge=_badge(line), left=number * CELL, title=_title(line, zone))
        for number, line in enumerate(oldest_first)
    )
    counted = Counter(_badge(line).text for line in oldest_first)
    parts = ", ".join(f"{count} {text}" for text, count in counted.most_common())
    return Strip(cells=cells, width=max(len(cells) * CELL, 1), label=f"Oldest first: {parts}")


def _badge(line: Mapping[str, Any]) -> Badge:
    return DISPOSITIONS[Disposition(line["disposition"])]


def _title(line: Mapping[str, Any], zone: str) -> str:
    count = f", and {line['count'] - 1:,} more" if line["count"] > 1 else ""
    return f"{wall(line['first_at'], zone)}{count}: {_badge(line).text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDay:
    """A day to come. `brief` is what has room in a small cell, `due` the whole."""

    number: str
    name: str
    weekday: int
    brief: tuple[str, ...]
    due: str
    clock: str | None
    notes: tuple[str, ...]


def shown_days(days: Sequence[Mapping[str, Any]]) -> list[ShownDay]:
    """Lay out the days of an outlook. The first one and each first of a month tell their month."""
    shown = []
    for number, day in enumerate(days):
        on = date.fromisoformat(day["date"])
        shown.append(
            ShownDay(
                number=on.strftime("%-d %b") if number == 0 or on.day == 1 else str(on.day),
                name=f"{on:%A} {on.day} {on:%B} {on.year}",
                weekday=on.weekday(),
                brief=_brief(day),
                due=_due(day),
                clock=day["clock"],
                notes=tuple(day["notes"]),
            )
        )
    return shown


def _brief(day: Mapping[str, Any]) -> tuple[str, ...]:
    if day["count"] <= _TIMES_IN_A_CELL:
        return tuple(day["times"])
    return (f"{day['count']:,} \N{MULTIPLICATION SIGN}",)


def _due(day: Mapping[str, Any]) -> str:
    if not day["count"]:
        return ""
    told = ", ".join(day["times"])
    return f"{told} and {day['more']:,} more until {day['last']}" if day["more"] else told
