"""`validate` and `preview`: what is done with a configuration in a file. Neither needs an installation."""

import shlex
from datetime import UTC, datetime, timedelta
from typing import Any

from horarium.calendar.calendars import LAST_SECOND
from horarium.calendar.zones import local_time
from horarium.control import preview as previewing
from horarium.schedule.canonical import digest
from horarium.schedule.configuration import parse_configuration
from horarium.schedule.v0 import CONTRACT as V0
from starter.cli.place import Where, scope_of, served
from starter.cli.printing import Output, print_fields, print_table, printable, program, show, wants_table
from starter.cli.timings import in_words
from starter.documents import STANDARD_INPUT, read_checked

LISTED_IN_TABLE = 1_000
_MONTH = timedelta(days=30)
_LATEST = datetime.max.replace(tzinfo=UTC) - _MONTH
LISTED_BY_DEFAULT = 10
"""Instants that a preview without an end and without a count shows."""


async def validate(file: str, output: Output | None) -> int:
    """Check a configuration, or raise `InvalidSchedule` with every fault."""
    document, configuration = read_checked(file, parse_configuration)
    coming = previewing.preview(configuration.calendar, start=datetime.now(UTC), limit=1)
    answer = {
        "valid": True,
        "name": configuration.name,
        "digest": digest(document),
        "timezone": configuration.calendar.timezone,
        "next_due": next(iter(coming["occurrences"]), None),
        "warnings": coming["warnings"],
    }

    def table() -> None:
        print_fields(
            [
                ("Valid", file),
                ("Name", answer["name"]),
                ("Digest", answer["digest"]),
                ("Zone", answer["timezone"]),
                ("Next due", answer["next_due"]),
                *(("Warning", warning) for warning in coming["warnings"]),
            ]
        )

    show(answer, output, table)
    return 0


async def preview(
    file: str,
    *,
    since: datetime | None,
    until: datetime | None,
    count: int | None,
    where: Where,
    output: Output | None,
) -> int:
    """Show what is due between two instants, or a number of instants, from now on where nothing is said.

    Without a server this needs no installation.
    """
    document, spec = read_checked(file, previewing.read_spec)
    if count is None and until is None:
        count = LISTED_BY_DEFAULT
    most = LISTED_IN_TABLE if wants_table(output) else previewing.MAX_LISTED
    limit = min(count or most, most)
    start = since or datetime.now(UTC)
    if where.address is None:
        answer = previewing.preview(spec.calendar, start=start, until=until, limit=limit)
        answer["runs_per_30_days"] = spec.calendar.count(start, min(start, _LATEST) + _MONTH)
        answer |= previewing.about(spec, since=start)
    else:
        async with served(where.address, scope_of(where)) as server:
            answer = await server.preview(document, since=start, until=until, limit=limit)
    show(answer, output, lambda: _print(spec, answer, file))
    return 0


def _is_canonical(spec: previewing.Spec) -> bool:
    """Whether a document holds a canonical calendar as it stands, of which nobody has to be shown a translation."""
    return spec.contract != V0 and "calendar" in spec.timing


def _print(spec: previewing.Spec, answer: dict[str, Any], file: str) -> None:
    calendar, rows = spec.calendar, []
    for number, text in enumerate(answer["occurrences"], start=1):
        local = local_time(datetime.fromisoformat(text), calendar.timezone)
        rows.append((number, f"{local:%a %Y-%m-%d %H:%M:%S %z}", text))
    if rows:
        print_table(("", f"In {calendar.timezone}", "UTC"), rows)
    shown = f", of which the first {len(rows)} are shown" if answer["truncated"] else ""
    print(f"{answer['count']} due{shown}. Zone data {answer['tzdata']}.")
    translation = answer.get("translation")  # a server of an earlier release tells of none
    if translation is not None and _is_canonical(spec):
        translation = None
    for note in answer["notes"]:
        if translation is None or note.removesuffix(".") not in translation["sentence"]:
            print(f"Note: {note}")
    if translation is None:
        return
    print(translation["sentence"])
    if translation["calendar"] is None:
        print("Keep the cron, which does as listed here, or choose a time that no change of the clock touches.")
        return
    *rules, bounds = in_words(translation["calendar"])
    # Where nobody set bounds, they say how far back the zone data reach, which nobody asked.
    print(*(f"  {each}" for each in (rules if calendar.last == LAST_SECOND else [*rules, bounds])), sep="\n")
    named = "FILE" if file == STANDARD_INPUT else shlex.quote(printable(file))
    print(f"The calendar itself, to be copied: {program()} preview {named} -o yaml")
