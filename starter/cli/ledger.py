"""`occurrences`: what became of every due instant, once or as it happens."""

import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

from horarium.errors import Unavailable
from horarium.schedule.ledger import Disposition
from starter.cli.archived import say_archived
from starter.cli.finding import find
from starter.cli.place import Lines, Place, Where, reach
from starter.cli.printing import (
    SHORT_ID,
    Output,
    columns,
    json_text,
    print_table,
    printable,
    shorten,
    show,
    wants_table,
)
from starter.cli.timings import brief

LOOK_BACK = timedelta(seconds=60)
"""How far behind its clock a look asks again: a transaction is stamped some seconds before it is seen, by another clock."""
MOST_TOUCHED = 10_000
"""Entries that one look takes at the most: those that changed within `LOOK_BACK`, and all that are open."""
LISTED = 1_000
"""Entries that are shown where nobody says how many."""
FOLLOWED_FROM = 10
"""Entries that a follower is shown of the past where neither a time nor a number is given."""

Row = dict[str, Any]


async def show_occurrences(
    written: str,
    wanted: Lines,
    *,
    limit: int | None,
    follow: bool,
    where: Where,
    output: Output | None,
) -> int:
    """Show the newest entries of a schedule's ledger by nominal time; with `follow`, go on until Ctrl-C."""
    async with reach(where) as place:
        schedule_id = await find(place, written)
        most = limit or (FOLLOWED_FROM if follow and wanted.since is None else LISTED)
        # One more than is shown tells whether there are more.
        found = await place.occurrences(schedule_id, wanted, limit=most + 1)
        rows, more = found[-most:], len(found) > most
        gone = [] if follow or more else await place.archived(schedule_id, wanted)
        if follow:
            await _follow(place, schedule_id, rows, wanted, output)
        else:
            answer = {"occurrences": rows, "truncated": more, "archived": gone}
            show(answer, output, lambda: _print(rows), lines=rows)
            if more:
                print(f"Only the newest {most} entries are shown; --limit or --until shows others.", file=sys.stderr)
            say_archived(gone)
    return 0


def _print(rows: Sequence[Row]) -> None:
    if not rows:
        print("The ledger holds nothing of that.")
        return
    now = datetime.now(UTC)
    shown = [
        (brief(row["first_at"], now=now), row["count"], row["disposition"], _late(row), _run(row), _why(row, now))
        for row in rows
    ]
    print_table(("Due", "Count", "Outcome", "Late", "Run", "Why"), shown, wraps={"Why"})


def _is_wanted(row: Row, wanted: Lines) -> bool:
    """Whether a follower asked for an entry."""
    first, last = datetime.fromisoformat(row["first_at"]), datetime.fromisoformat(row["last_at"])
    return (
        (wanted.since is None or last >= wanted.since)
        and (wanted.until is None or first <= wanted.until)
        and (not wanted.dispositions or Disposition(row["disposition"]) in wanted.dispositions)
        and wanted.generation in {None, row["generation"]}
    )


async def _follow(place: Place, schedule_id: str, shown: Sequence[Row], wanted: Lines, output: Output | None) -> None:
    """Print entries as they appear, and again when they stand otherwise. What was before the first look is not told again."""
    if wants_table(output):
        print(_line("Due", "Outcome", "Late", "Run", "Why"), flush=True)
    for row in shown:
        _tell(row, None, output)
    before: dict[tuple[str, str, int], str] | None = None
    while True:
        try:
            touched = await place.occurrences(
                schedule_id, Lines(touched_since=datetime.now(UTC) - LOOK_BACK), limit=MOST_TOUCHED
            )
        except Unavailable as error:
            print(error, file=sys.stderr)
        else:
            now = {(row["first_at"], row["trigger"], row["generation"]): row for row in touched}
            if before is None:
                # Between the listing and this look something may have happened; those entries were shown otherwise.
                listed = {(row["first_at"], row["trigger"], row["generation"]): row for row in shown}
                oldest = shown[0]["first_at"] if shown else ""
                before = {
                    each: listed.get(each, row)["disposition"]
                    for each, row in now.items()
                    if each in listed or each[0] < oldest
                }
            for each, row in now.items():
                was = before.get(each)
                if was != row["disposition"] and _is_wanted(row, wanted):
                    _tell(row, was, output)
            before = {each: row["disposition"] for each, row in now.items()}
        await asyncio.sleep(place.look_every.total_seconds())


def _tell(row: Row, was: str | None, output: Output | None) -> None:
    """Print one entry. `was` is how it stood when it was printed before; a document then has it, too."""
    told = row if was is None else {**row, "was": was}
    if output is Output.YAML:
        text = "---\n" + yaml.safe_dump(told, sort_keys=False, allow_unicode=True).rstrip("\n")
    elif wants_table(output):
        now = datetime.now(UTC)
        count = "" if row["count"] == 1 else f" ({row['count']} instants)"
        why = ("" if was is None else f"(was {was}) ") + _why(row, now) + count
        text = shorten(
            _line(brief(row["first_at"], now=now), row["disposition"], _late(row), _run(row), why).rstrip(), columns()
        )
    else:
        text = json_text(told)
    print(text, flush=True)


def _line(due: str, outcome: str, late: str, run: str, why: str) -> str:
    return f"{due:<15}  {outcome:<11}  {late:>9}  {run:<8}  {why}"


def _run(row: Row) -> str:
    return (row["run_id"] or "-")[:SHORT_ID]


def _late(row: Row) -> str:
    return "" if row["lateness_ms"] is None else f"{row['lateness_ms']} ms"


def _why(row: Row, now: datetime) -> str:
    """Until when a span reaches, who asked for a run by hand, the reason's code, what it means, and what the agent said."""
    span = "" if row["first_at"] == row["last_at"] else f"until {brief(row['last_at'], now=now)}:"
    by_hand = "" if row["triggered_by"] is None else f"(by hand, {row['triggered_by']})"
    code = "" if row["reason"] is None else f"[{row['reason']}]"
    return printable(" ".join(part for part in (span, by_hand, code, row["sentence"], row["summary"]) if part))
