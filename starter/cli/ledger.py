"""`occurrences`: what became of every due instant, once or as it happens."""

import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

from horarium.errors import Unavailable
from horarium.schedule.ledger import Disposition
from starter.cli.place import Lines, Place, Where, reach
from starter.cli.printing import Output, json_text, print_table, printable, show, wants_table

LOOK_BACK = timedelta(seconds=60)
"""How far behind its clock a look asks again: a transaction is stamped some seconds before it is seen, by another clock."""
MOST_TOUCHED = 10_000
"""Entries that one look takes at the most: those that changed within `LOOK_BACK`, and all that are open."""
FOLLOWED_FROM = 10
"""Entries that a follower is shown of the past where no time is given."""

Row = dict[str, Any]


async def show_occurrences(
    written: str,
    wanted: Lines,
    *,
    limit: int,
    follow: bool,
    where: Where,
    output: Output | None,
) -> int:
    """Show the newest entries of a schedule's ledger by nominal time; with `follow`, go on until Ctrl-C."""
    async with reach(where) as place:
        schedule_id = await place.find(written)
        most = FOLLOWED_FROM if follow and wanted.since is None else limit
        # One more than is shown tells whether there are more.
        found = await place.occurrences(schedule_id, wanted, limit=most + 1)
        rows, more = found[-most:], len(found) > most
        if follow:
            await _follow(place, schedule_id, rows, wanted, output)
        else:
            answer = {"occurrences": rows, "truncated": more}
            show(answer, output, lambda: _print(rows), lines=rows)
            if more:
                print(f"Only the newest {most} entries are shown; --limit or --until shows others.", file=sys.stderr)
    return 0


def _print(rows: Sequence[Row]) -> None:
    if not rows:
        print("The ledger holds nothing of that.")
        return
    shown = [(_due(row), row["count"], row["disposition"], _late(row), row["run_id"], _why(row)) for row in rows]
    print_table(("Due", "Count", "Outcome", "Began late", "Run", "Why"), shown)


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
    """Print entries as they appear and change. What stood before the first look is not told again."""
    for row in shown:
        _tell(row, output)
    before: dict[tuple[str, str, int], Row] | None = None
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
                    each: listed.get(each, row) for each, row in now.items() if each in listed or each[0] < oldest
                }
            for each, row in now.items():
                if before.get(each) != row and _is_wanted(row, wanted):
                    _tell(row, output)
            before = now
        await asyncio.sleep(place.look_every.total_seconds())


def _tell(row: Row, output: Output | None) -> None:
    if output is Output.YAML:
        text = "---\n" + yaml.safe_dump(row, sort_keys=False, allow_unicode=True).rstrip("\n")
    elif wants_table(output):
        count = "" if row["count"] == 1 else f" ({row['count']} instants)"
        text = f"{_due(row):<20}  {row['disposition']:<11}  {_late(row):>9}  {_why(row)}{count}".rstrip()
    else:
        text = json_text(row)
    print(text, flush=True)


def _due(row: Row) -> str:
    first, last = row["first_at"], row["last_at"]
    return str(first) if first == last else f"{first} to {last}"


def _late(row: Row) -> str:
    return "" if row["lateness_ms"] is None else f"{row['lateness_ms']} ms"


def _why(row: Row) -> str:
    return printable(row["sentence"] or row["summary"] or "")
