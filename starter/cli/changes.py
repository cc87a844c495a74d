"""`publish`, `apply`, `enable`, `pause`, `retire` and `trigger`: the changes that a person makes, each with a receipt."""

import shlex
import uuid
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

from horarium.errors import Conflict, NotFound
from horarium.schedule.canonical import digest
from horarium.schedule.configuration import parse_configuration, read_stored
from horarium.schedule.identity import instant_text, schedule_key
from starter.cli.finding import find
from starter.cli.place import Document, Place, Where, reach, scope_of
from starter.cli.printing import Output, print_fields, program, show
from starter.cli.review import Review, change, publication, send
from starter.documents import read_checked

_PAGE = 50


async def publish(
    file: str,
    *,
    schedule: str | None,
    expected_revision: int | None,
    review: Review,
    where: Where,
    output: Output | None,
) -> int:
    """Store a configuration as the next version of a schedule, or of a new one."""
    # Whoever wrote a bad document need not have an installation to be told so.
    document, _ = read_checked(file, parse_configuration)
    schedule_id = schedule_key(scope_of(where), schedule or str(uuid.uuid4())).schedule_id
    async with reach(where) as place:
        head = None if schedule is None else await _head(place, schedule_id)
        if expected_revision is None:
            expected_revision = 0 if head is None else head["reference"]["revision"]
        request = await publication(
            place, review, schedule_id=schedule_id, expected_revision=expected_revision, configuration=document
        )
        receipt = await send(f"publish {shlex.quote(file)}", place.publish, request, review, where)
    noticed = [] if head is None or receipt["replayed"] else _beside(head, document)
    _show_published({**receipt, "warnings": [*receipt["warnings"], *noticed]}, document, where, output)
    return 0


def _beside(head: Document, document: Any) -> Iterator[str]:
    """What a person may not have meant who publishes beside versions that are there."""
    revision, activation = head["reference"]["revision"], head["activation"]
    if head["reference"]["digest"] == digest(document):
        yield f"This is the same configuration as revision {revision}, which was the head; `apply` would have left it at that."
    if activation is not None and activation["enabled"]:
        yield f"Revision {activation['version']['revision']} stays enabled until another one is."


async def apply(file: str, *, schedule: str | None, review: Review, where: Where, output: Output | None) -> int:
    """Publish a configuration where it differs from the head. It enables nothing, ever.

    Without an id it means the one schedule of that name that is not retired, or a new one.
    """
    document, configuration = read_checked(file, parse_configuration)
    name = configuration.name
    async with reach(where) as place:
        if schedule is None:
            schedule_id = await _named(place, name) or str(uuid.uuid4())
        else:
            schedule_id = schedule_key(scope_of(where), schedule).schedule_id
        head = await _head(place, schedule_id)
        if head is not None and head["reference"]["digest"] == digest(document):
            answer = {"result": "unchanged", "schedule_id": schedule_id, "reference": head["reference"]}
            show(answer, output, lambda: print(f"Unchanged: {schedule_id}, revision {head['reference']['revision']}."))
            return 0
        expected = 0 if head is None else head["reference"]["revision"]
        request = await publication(
            place, review, schedule_id=schedule_id, expected_revision=expected, configuration=document
        )
        receipt = await send(f"publish {shlex.quote(file)}", place.publish, request, review, where)
    _show_published({"result": "published", **receipt}, document, where, output)
    return 0


async def set_activation(kind: str, written: str, *, review: Review, where: Where, output: Output | None) -> int:
    """Enable, pause or retire a schedule, and show its record."""
    async with reach(where) as place:
        schedule_id = await find(place, written)
        request = await change(place, review, schedule_id, of_activation=kind != "enable")
        if kind == "retire":
            receipt = await send(f"retire {schedule_id}", place.retire, request, review, where)
        else:
            request["enabled"] = kind == "enable"
            receipt = await send(f"{kind} {schedule_id}", place.set_enabled, request, review, where)
        answer = await place.record(schedule_id, revision=receipt["reference"]["revision"])
    show(answer, output, lambda: _print_change(kind, receipt, answer))
    return 0


async def trigger(written: str, *, allow_overlap: bool, review: Review, where: Where, output: Output | None) -> int:
    """Ask for one run of the enabled version now, and show the receipt."""
    async with reach(where) as place:
        schedule_id = await find(place, written)
        request = await change(place, review, schedule_id, of_activation=True)
        if allow_overlap:
            request["overlap"] = "allow"
        receipt = await send(f"trigger {schedule_id}", place.trigger, request, review, where)

    def table() -> None:
        print_fields(
            [
                ("Triggered", schedule_id),
                ("Revision", receipt["reference"]["revision"]),
                ("Generation", receipt["generation"]),
                ("Run", receipt["run_id"]),
                *told(receipt),
            ]
        )
        print("It is started at once, and admission then decides on it.")
        print(f"Next: {program()} occurrences {schedule_id}{where.options}")

    show(receipt, output, table)
    return 0


async def _head(place: Place, schedule_id: str) -> Document | None:
    try:
        return await place.record(schedule_id)
    except NotFound as error:
        if error.code != "schedule_not_found":
            raise
        return None


async def _named(place: Place, name: str) -> str | None:
    """The one schedule of a name; None where there is none."""
    found = [each["schedule_id"] async for each in _entries(place) if each["name"] == name]
    if len(found) > 1:
        raise Conflict(
            "ambiguous_name",
            f"{len(found)} schedules are called {name!r}: {', '.join(found[:5])}{' and more' if len(found) > 5 else ''}.",
            next_step="Name the one that is meant with --schedule.",
        )
    return found[0] if found else None


async def _entries(place: Place) -> AsyncIterator[Document]:
    after: str | None = None
    while True:
        page = await place.directory(limit=_PAGE, after=after, include_retired=False)
        for entry in page["schedules"]:
            yield entry
        after = page["next_cursor"]
        if after is None:
            return


def _show_published(receipt: Document, document: Any, where: Where, output: Output | None) -> None:
    def table() -> None:
        print_fields(
            [
                ("Published", document["name"]),
                ("Schedule", receipt["schedule_id"]),
                ("Revision", receipt["reference"]["revision"]),
                ("Digest", receipt["reference"]["digest"]),
                *told(receipt),
            ]
        )
        print(f"Nothing is enabled by that. Next: {program()} enable {receipt['schedule_id']}{where.options}")

    show(receipt, output, table)


def _print_change(kind: str, receipt: Document, record: Document) -> None:
    fields: list[tuple[str, object]] = [
        (f"{kind.capitalize()}d", record["configuration"]["name"]),
        ("Schedule", record["schedule_id"]),
        ("Revision", receipt["reference"]["revision"]),
        ("Generation", receipt["generation"]),
        ("By", record["activation"]["changed_by"]),
    ]
    if kind == "enable":
        following = read_stored(record["configuration"]).calendar.after(datetime.now(UTC))
        due = "nothing is due from now on" if following is None else instant_text(following)
        fields.append(("Next due", due))
    print_fields([*fields, *told(receipt)])


def told(receipt: Document) -> list[tuple[str, object]]:
    """What a person has to know of a receipt beside what it is about."""
    again = (
        [("Note", "This had been done before, by the same key; nothing was done now.")] if receipt["replayed"] else []
    )
    return [*(("Warning", warning) for warning in receipt["warnings"]), *again]
