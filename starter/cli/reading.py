"""`get`, `list` and `events`: what is stored of schedules."""

import re
import shlex
import uuid
from datetime import UTC, datetime
from typing import Any

from horarium.schedule.identity import instant_text
from starter.cli.archived import say_archived
from starter.cli.finding import find
from starter.cli.place import Document, Lines, Place, Where, reach
from starter.cli.printing import (
    Output,
    columns,
    json_text,
    print_fields,
    print_table,
    printable,
    program,
    short_ids,
    shorten,
    show,
    wants_table,
)
from starter.cli.timings import ago, brief, when

WIDE = 110
"""Columns from which on a table has room for whole ids."""
LONGEST_DETAIL = 16
"""Characters of one word in the details of an event: enough to tell two digests apart."""
_INSTANT = re.compile(r"\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


async def get(written: str, *, revision: int | None, where: Where, output: Output | None) -> int:
    """Show the record of a schedule, at its head or at one revision."""
    async with reach(where) as place:
        schedule_id = await find(place, written)
        answer = await place.record(schedule_id, revision=revision)
        outlook = await _outlook(place, schedule_id) if wants_table(output) else (None, None)
        silent, stopped = (await _silence(place), await _stopped(place)) if wants_table(output) else (None, [])
    show(answer, output, lambda: _print_record(answer, outlook, silent, stopped))
    return 0


async def _outlook(place: Place, schedule_id: str) -> tuple[str | None, Document | None]:
    """What a person asks next: when it is due, and how the newest occurrence stands."""
    before = uuid.UUID(schedule_id).int - 1
    after = None if before < 0 else str(uuid.UUID(int=before))
    page = await place.directory(limit=1, after=after, include_retired=True)
    # A run that is staged a few seconds ahead is not yet what became of anything.
    newest = await place.occurrences(schedule_id, Lines(until=datetime.now(UTC)), limit=1)
    due = next((each["next_due"] for each in page["schedules"] if each["schedule_id"] == schedule_id), None)
    return due, next(iter(newest), None)


def _print_record(
    answer: Document, outlook: tuple[str | None, Document | None], silent: str | None, stopped: list[str]
) -> None:
    configuration = answer["configuration"]
    reference, policy, run = answer["reference"], configuration["policy"], configuration["run"]
    due, newest = outlook
    now = datetime.now(UTC)
    zone, rules = when(configuration)
    print_fields(
        [
            ("Name", configuration["name"]),
            ("Schedule", answer["schedule_id"] + (" (retired)" if answer["retired"] else "")),
            ("Revision", f"{reference['revision']} of {answer['head']['revision']}"),
            ("Digest", reference["digest"]),
            ("Published", f"{answer['published_at']} by {answer['published_by']}"),
            ("Zone", zone),
            *rules,
            ("Policy", ", ".join(f"{name} {json_text(value)}" for name, value in policy.items())),
            ("Agent", run["agent_version"]),
            ("Input", run["input"]),
            ("Output target", run["output_target"]),
            ("Usage class", run["usage_class"]),
            ("Activation", _activation_text(answer)),
            ("Runtime", _runtime_text(answer["runtime"], now)),
            ("Workers", "ready" if answer["execution_ready"] else silent or "not ready"),
            ("Next due", due),
            ("Newest", None if newest is None else f"{newest['last_at']} {newest['disposition']}"),
            *(("Stopped", each) for each in stopped),
        ]
    )


def _activation_text(answer: Document) -> str:
    activation = answer["activation"]
    if activation is None:
        return "never enabled"
    state = "enabled" if activation["enabled"] else "retired" if answer["retired"] else "paused"
    return (
        f"{state} by {activation['changed_by']} at {activation['changed_at']} "
        f"(generation {activation['generation']}, revision {activation['version']['revision']})"
    )


def _runtime_text(runtime: Document, now: datetime) -> str:
    reason = f" ({runtime['reason']})" if "reason" in runtime else ""
    if "observed_at" not in runtime:
        return f"{runtime['state']}{reason}"
    age = ago(runtime["observed_at"], now=now)
    return f"{runtime['state']}{reason}, observed at {runtime['observed_at']}{f', {age}' if age else ''}"


async def _silence(place: Place) -> str | None:
    """Since when no worker is there, in words; None where that is not known, as of a server."""
    seen = await place.last_beat()
    return (
        None
        if seen is None
        else f"none since {brief(instant_text(seen.replace(microsecond=0)), now=datetime.now(UTC))}"
    )


async def _stopped(place: Place) -> list[str]:
    """What keeps everything from running, in sentences: each due instant is refused as long."""
    return [
        f"Everything in {_what(each, place)} was stopped at {each['since']} by {each['by']}: {each['because']} "
        f"Nothing runs until `{program()} authority lift{' --organization' if each['everywhere'] else ''}`."
        for each in await place.kill_switches()
    ]


def _what(stop: Document, place: Place) -> str:
    return (
        f"organization {place.scope.org_id!r}" if stop["everywhere"] else f"environment {place.scope.environment_id!r}"
    )


async def list_schedules(
    *, limit: int, after: str | None, include_retired: bool, where: Where, output: Output | None
) -> int:
    """Show a page of the schedules, by UUID."""
    async with reach(where) as place:
        answer = await place.directory(limit=limit, after=after, include_retired=include_retired)
        silent, stopped = (await _silence(place), await _stopped(place)) if wants_table(output) else (None, [])
    show(answer, output, lambda: _print_directory(answer, silent, stopped, where), lines=answer["schedules"])
    return 0


def _print_directory(answer: Document, silent: str | None, stopped: list[str], where: Where) -> None:
    found, now = answer["schedules"], datetime.now(UTC)
    if not found:
        print(f"There are no schedules here. Next: {program()} publish FILE{where.options}")
        return
    ids = [each["schedule_id"] for each in found]
    shown = ids if columns() >= WIDE else short_ids(ids)
    rows = [
        (
            each_id,
            each["name"],
            _state_text(each, now),
            _enabled_text(each["activation"]),
            each["head"]["revision"],
            None if each["next_due"] is None else brief(each["next_due"], now=now),
        )
        for each_id, each in zip(shown, found, strict=True)
    ]
    print_table(("Schedule", "Name", "State", "Enabled", "Head", "Next due"), rows, wraps={"Name", "State"})
    if shown != ids:
        print("Ids are shown by their beginnings, which every command takes; -o json has them whole.")
    if silent is not None and not any(each["execution_ready"] for each in found):
        print(f"Nothing is running here. Workers: {silent}. The states are those that were seen last.")
    print(*map(printable, stopped), sep="\n", end="\n" if stopped else "")
    if answer["next_cursor"]:
        # It goes into a shell, and is what a server said.
        after = shlex.quote(printable(answer["next_cursor"]))
        print(f"There are more: {program()} list --after {after}{where.options}")


def _state_text(entry: Document, now: datetime) -> str:
    if entry["retired"]:
        return "retired"
    if entry["activation"] is None:
        return "new"
    runtime = entry["runtime"]
    age = ago(runtime["observed_at"], now=now) if "observed_at" in runtime else ""
    return str(runtime["state"]) if not age else f"{runtime['state']}, {age}"


def _enabled_text(activation: Document | None) -> str:
    """Which revision fires."""
    if activation is None:
        return "never enabled"
    return str(activation["version"]["revision"]) if activation["enabled"] else "none"


async def events(written: str, *, after: int, limit: int, where: Where, output: Output | None) -> int:
    """Show who changed what about a schedule."""
    async with reach(where) as place:
        schedule_id = await find(place, written)
        found = await place.events(schedule_id, after=after, limit=limit)
        gone = [] if after else await place.archived(schedule_id)
    show_events(found, limit=limit, again=f"events {schedule_id}", where=where, output=output)
    say_archived(gone)
    return 0


def show_events(found: list[Document], *, limit: int, again: str, where: Where, output: Output | None) -> None:
    """Show a page of audit events, of which `limit` were asked for; `again` is the command that goes on behind them."""
    cursor = found[-1]["id"] if len(found) == limit else None
    answer = {"events": found, "next_cursor": cursor}

    def table() -> None:
        now = datetime.now(UTC)
        rows = [
            (
                each["id"],
                brief(each["at"], now=now),
                each["kind"],
                each["actor"],
                each["generation"],
                each["revision"],
                _details_text(each["details"]),
            )
            for each in found
        ]
        print_table(("Id", "At", "Event", "By", "Gen", "Rev", "Details"), rows, wraps={"By", "Details"})
        if cursor is not None:
            print(f"There may be more: {program()} {again} --after {cursor}{where.options}")

    show(answer, output, table, lines=found)


def _details_text(details: Document) -> str:
    """Details of an event in little space. What the other columns say, and the rest of long ids, is in the other forms."""
    before, after = details.get("from") or {}, details.get("to") or {}
    told = [_side_text("from", before)] if before else []
    if "reference" in after:
        told.append(f"digest {shorten(after['reference']['digest'], LONGEST_DETAIL)}")
    told += [
        f"{name} {_word(value)}" for name, value in details.items() if name not in {"from", "to"} and value is not None
    ]
    return "; ".join(told)


def _side_text(name: str, side: Document) -> str:
    revision = [f"revision {side['reference']['revision']}"] if "reference" in side else []
    rest = [f"{key} {_word(value)}" for key, value in side.items() if key != "reference" and value is not None]
    return f"{name} {', '.join([*revision, *rest])}"


def _word(value: Any) -> str:
    text = value if isinstance(value, str) else json_text(value)
    # An id can be known by its beginning, an instant cannot.
    return text if " " in text or _INSTANT.fullmatch(text) else shorten(text, LONGEST_DETAIL)
