"""What a reader of the README is told first: what was promised and not kept, and a row for each promise or for what it costs.

A row sums up all figures that ask the same, from the least to the greatest, and how many of them keep to their budget. Every
figure for itself is on another page.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.records import Line
from benchmarks.tables import measured, number, pipes, times

TOLD_AT_MOST: Final = 10
"""Figures beyond their budget that are told one by one. More of them are counted, and each is in its own table anyway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """What is asked, and which figures of a suite answer it: those whose whole names match, beside any peer or the one named.

    The peer "" is of figures that stand alone.
    """

    asked: str
    suite: str
    figures: str
    peer: str | None = None

    def answers(self, line: Line) -> bool:
        """Whether a figure is one of these."""
        is_one = line["suite"] == self.suite and re.fullmatch(self.figures, line["name"]) is not None
        return is_one and (self.peer is None or (line["peer"] or "") == self.peer)


_NEXT: Final = r"after: (every .*|weekdays at 07:30)"
_LATE: Final = "An agent begins late by: {rate} due a second, {which}"
HEADLINES: Final = (
    *(
        Headline(
            asked=_LATE.format(rate=rate, which="the same each time" if same else "others each time"),
            suite="starts",
            figures=rf"lateness at {rate} runs/s, {'the same' if same else 'others'} each second, median",
        )
        for same in (True, False)
        for rate in (1, 10, 25)
    ),
    Headline(asked="Last of 300 due in one second", suite="starts", figures="last of 300 due in one second"),
    Headline(asked="… right after a restart", suite="starts", figures="last of 300 due in one second after a restart"),
    Headline(asked="… of 5 beside a herd of another organization", suite="fairness", figures="herd of .*"),
    Headline(asked="10,000 enabled at once: all run", suite="scale", figures=r"10,000 .*: established"),
    Headline(asked="… a new controller has looked at all", suite="scale", figures=r"10,000 .*: confirmed .*"),
    Headline(asked="… all due at once after a restart: all woken", suite="scale", figures=r"10,000 .*: all woken .*"),
    Headline(
        asked="… problems that the audit finds then", suite="scale", figures=r"10,000 .*: what the audit finds .*"
    ),
    Headline(
        asked="… the controller while nothing changes", suite="scale", figures=r"10,000 .*: CPU of the controller"
    ),
    *(
        Headline(asked=f"Growth with what is stored, on {engine}", suite="growth", figures=rf".* on {engine}")
        for engine in ("SQLite", "PostgreSQL")
    ),
    *(
        Headline(
            asked=f"API with 100,000 schedules on {engine}, 99 of 100 answers",
            suite="api",
            figures=rf".* on {engine}, p99",
        )
        for engine in ("SQLite", "PostgreSQL")
    ),
    Headline(asked="API, requests a second of one core", suite="api", figures="requests a second on one core: .*"),
    *(
        Headline(asked=f"Next instant of a calendar, beside {peer}", suite="calendar", figures=_NEXT, peer=peer)
        for peer in ("croniter", "cronsim")
    ),
    Headline(
        asked="… of a rare one, and of one that never comes",
        suite="calendar",
        figures=r"after: \d+ February.*",
        peer="",
    ),
    Headline(asked="History events of a schedule, an occurrence", suite="cost", figures="history events, schedule .*"),
    Headline(asked="History events of a run", suite="cost", figures="history events, run workflow"),
    Headline(asked="Billable actions of an occurrence", suite="cost", figures="billable actions in all"),
    Headline(asked="Database statements of an occurrence", suite="cost", figures="database statements"),
    Headline(
        asked="Memory of a schedule that a worker keeps", suite="cost", figures="memory .* per cached idle schedule.*"
    ),
)
"""In their order. A budget that no row tells would be kept or broken without anybody being told: a test sees to that."""
_HEAD: Final = ("", "ours", "peer", "ratio", "budget", "kept")


def short(lines: Sequence[Line]) -> str:
    """The head of it all as Markdown: when and where it was measured, what is not kept, and a row for each headline."""
    rows = [_row(headline, [line for line in lines if headline.answers(line)]) for headline in HEADLINES]
    return "\n".join([f"Measured {measured(lines)}.\n", *_promises(lines), pipes(_HEAD, rows)])


def _promises(lines: Sequence[Line]) -> Iterator[str]:
    held = [line["holds"] for line in lines if line["holds"] is not None]
    broken = [line for line in lines if line["holds"] is False]
    if not broken:
        yield f"**All {len(held)} budgets are kept.**\n"
        return
    yield f"**{len(broken)} of {len(held)} budgets are not kept:**\n"
    yield "\n".join(f"- {_told(line)}" for line in broken[:TOLD_AT_MOST])
    if len(broken) > TOLD_AT_MOST:
        yield f"- and {len(broken) - TOLD_AT_MOST} more, each marked with NO in its table"
    yield ""


def _told(line: Line) -> str:
    beside = "" if line["ratio"] is None else f", {times(line['ratio'])} beside {line['peer']}"
    return f"{line['name']}: {number(line['ours'])} {line['unit']}{beside}; the budget is {line['budget']}"


def _row(headline: Headline, lines: Sequence[Line]) -> tuple[str, ...]:
    if not lines:
        return (headline.asked, "not measured", "", "", "", "")
    held = [line["holds"] for line in lines if line["holds"] is not None]
    kept = "" if not held else "yes" if all(held) else "**NO**"
    if len(held) > 1:
        kept = f"{kept}, {sum(held)} of {len(held)}"
    return (
        headline.asked,
        f"{_range(line['ours'] for line in lines)} {_one(line['unit'] for line in lines)}",
        _one(line["peer"] for line in lines),
        _range((line["ratio"] for line in lines), times),
        _one(line["budget"] for line in lines),
        kept,
    )


def _range(values: Iterable[float | None], shown: Callable[[float], str] = number) -> str:
    there = [value for value in values if value is not None]
    told = [shown(value) for value in (min(there), max(there))] if there else []
    return " to ".join(dict.fromkeys(told))


def _one(texts: Iterable[Any]) -> str:
    return ", ".join(dict.fromkeys(text for text in texts if text))
