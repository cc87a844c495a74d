"""`v0 …`: schedules in the words of scheduler v0, each change with a receipt."""

import shlex
from datetime import UTC, datetime
from typing import Any

from horarium.calendar import Calendar
from horarium.errors import InvalidSchedule
from horarium.schedule.identity import instant_text
from horarium.schedule.v0 import parse_v0
from starter.cli import reading
from starter.cli.archived import say_archived
from starter.cli.changes import told
from starter.cli.finding import find
from starter.cli.place import Document, Where, reach
from starter.cli.printing import (
    Output,
    columns,
    json_text,
    print_fields,
    print_table,
    printable,
    program,
    short_ids,
    show,
)
from starter.cli.review import Review, send_once
from starter.cli.timings import brief, last_outcome
from starter.documents import read_checked

_TITLES = {
    "v0_create": "Created",
    "v0_update": "Updated",
    "v0_pause": "Paused",
    "v0_resume": "Resumed",
    "v0_disable": "Disabled",
}


async def create(file: str, *, review: Review, where: Where, output: Output | None) -> int:
    """Create a schedule from a file, enabled, and show the receipt."""
    # Whoever wrote a bad document need not have an installation to be told so.
    document, schedule = read_checked(file, parse_v0)
    async with reach(where) as place:
        receipt = await send_once(
            place.v0.create, document, review, where, look="v0 list", again=f"v0 create {shlex.quote(file)}"
        )

    def table() -> None:
        _print_receipt(receipt, schedule.calendar)
        print(f"Next: {program()} v0 get {receipt['schedule_id']}{where.options}")

    show(receipt, output, table)
    return 0


async def update(written: str, file: str, *, review: Review, where: Where, output: Output | None) -> int:
    """Replace what a schedule does by what a file says, and show the receipt."""
    document, schedule = read_checked(file, parse_v0)
    async with reach(where) as place:
        schedule_id = await find(place, written)
        receipt = await send_once(
            lambda request, key: place.v0.update(schedule_id, request, key),
            document,
            review,
            where,
            look=f"v0 get {schedule_id}",
            again=f"v0 update {schedule_id} {shlex.quote(file)}",
        )
    show(receipt, output, lambda: _print_receipt(receipt, schedule.calendar))
    return 0


async def move(act: str, written: str, *, review: Review, where: Where, output: Output | None) -> int:
    """Pause, resume or disable a schedule, and show the receipt."""
    async with reach(where) as place:
        schedule_id = await find(place, written)
        receipt = await send_once(
            lambda _, key: place.v0.move(act, schedule_id, key),
            {},
            review,
            where,
            look=f"v0 get {schedule_id}",
            again=f"v0 {act} {schedule_id}",
        )
    show(receipt, output, lambda: _print_receipt(receipt, None))
    return 0


async def get(written: str, *, where: Where, output: Output | None) -> int:
    """Show a schedule: its document as it came, and whether it fires."""
    async with reach(where) as place:
        answer = await place.v0.show(await find(place, written))
    show(answer, output, lambda: _print_schedule(answer))
    return 0


async def list_schedules(*, limit: int, after: str | None, where: Where, output: Output | None) -> int:
    """Show a page of the schedules, by UUID."""
    async with reach(where) as place:
        answer = await place.v0.directory(after=after, limit=limit)

    def table() -> None:
        found, now = answer["schedules"], datetime.now(UTC)
        if not found:
            print(f"There are no schedules of scheduler v0 here. Next: {program()} v0 create FILE{where.options}")
            return
        ids = [each["schedule_id"] for each in found]
        shown = ids if columns() >= reading.WIDE else short_ids(ids)
        rows = [
            (each_id, each["state"], *_in_words(each["schedule"]), _brief_due(each, now))
            for each_id, each in zip(shown, found, strict=True)
        ]
        print_table(("Schedule", "State", "Type", "When", "Target", "Next due"), rows, wraps={"When", "Target"})
        if answer["next_cursor"]:
            # It goes into a shell, and is what a server said.
            cursor = shlex.quote(printable(answer["next_cursor"]))
            print(f"There are more: {program()} v0 list --after {cursor}{where.options}")

    show(answer, output, table, lines=answer["schedules"])
    return 0


async def events(written: str, *, after: int, limit: int, where: Where, output: Output | None) -> int:
    """Show what happened to a schedule, in the contract's events and in ours."""
    async with reach(where) as place:
        schedule_id = await find(place, written)
        found = await place.v0.events(schedule_id, after=after, limit=limit)
        gone = [] if after else await place.archived(schedule_id)
    reading.show_events(found, limit=limit, again=f"v0 events {schedule_id}", where=where, output=output)
    say_archived(gone)
    return 0


def _print_receipt(receipt: Document, calendar: Calendar | None) -> None:
    reference = receipt["reference"]
    print_fields(
        [
            (_TITLES[receipt["operation"]], receipt["schedule_id"]),
            ("Revision", reference["revision"]),
            ("Digest", reference["digest"]),
            ("Generation", receipt["generation"]),
            ("Fires", "yes" if receipt["enabled"] else "no"),
            *([("Next due", _next_due(calendar))] if receipt["enabled"] and calendar is not None else []),
            *told(receipt),
        ]
    )


def _print_schedule(answer: Document) -> None:
    kind, when, target = _in_words(answer["schedule"])
    policy = answer["schedule"].get("policy") or {}
    print_fields(
        [
            ("Schedule", answer["schedule_id"]),
            ("State", answer["state"] + (f" ({answer['reason']})" if answer["reason"] else "")),
            ("Type", kind),
            ("When", when),
            ("Target", target),
            ("Policy", ", ".join(f"{name} {json_text(value)}" for name, value in policy.items()) or "-"),
            ("Next due", _due(answer)),
            *last_outcome(answer),
            ("Revision", answer["reference"]["revision"]),
            ("Digest", answer["reference"]["digest"]),
            ("Generation", answer["generation"]),
            *([("Problem", answer["problem"])] if "problem" in answer else []),
        ]
    )


def _in_words(document: Document) -> tuple[Any, str, str]:
    """What a document says, in three cells. A damaged one says what it can."""
    spec, target = document.get("spec") or {}, document.get("target") or {}
    when = ", ".join(f"{name} {value}" for name, value in spec.items())
    agent = [str(target[name]) for name in ("workspace_id", "agent_id") if name in target]
    return document.get("type"), when or "-", "/".join(agent) or "-"


def _due(entry: Document) -> str | None:
    """When a schedule that fires is due next, by its document."""
    if entry["state"] != "enabled":
        return None
    try:
        return _next_due(parse_v0(entry["schedule"]).calendar)
    except InvalidSchedule:  # another release accepted it; its `problem` says what is wrong
        return None


def _brief_due(entry: Document, now: datetime) -> str | None:
    due = _due(entry)
    return None if due is None else brief(due, now=now)


def _next_due(calendar: Calendar) -> str | None:
    following = calendar.after(datetime.now(UTC))
    return None if following is None else instant_text(following)
