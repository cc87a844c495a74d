"""`profile …`: agent classes, their profiles, and what became of their runs."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from horarium.calendar.cron import POSITION_NAMES
from horarium.errors import Fault, HorariumError, InvalidSchedule
from horarium.schedule.document import load_json
from horarium.schedule.profiles import parse_profile
from starter.cli.place import LARGEST_PAGE, Document, Place, Where, reach
from starter.cli.printing import Output, json_text, print_fields, print_table, printable, program, show
from starter.cli.review import Review, send_once
from starter.cli.timings import brief, last_outcome
from starter.documents import read_checked


async def show_classes(*, where: Where, output: Output | None) -> int:
    """Show the agent classes that reported themselves, what each can do, and whether it is there."""
    async with reach(where) as place:
        found = await place.profiles.classes()

    def table() -> None:
        now = datetime.now(UTC)
        rows = [
            (
                each["agent_class"],
                ", ".join(_abilities(each)) or "-",
                ", ".join(each["start_events"]),
                ", ".join(version["agent_version"] for version in each["agent_versions"]),
                "there" if each["offline_since"] is None else f"offline since {brief(each['offline_since'], now=now)}",
            )
            for each in found
        ]
        if not rows:
            print(f"No agent has reported itself here. Next: {program()} worker agents MODULE")
            return
        print_table(("Class", "Is", "Start events", "Versions", "Runner"), rows, wraps={"Start events", "Versions"})

    show({"agent_classes": found}, output, table, lines=found)
    return 0


def _abilities(found: Document) -> Iterator[str]:
    if found["is_schedulable"]:
        yield "schedulable"
    if found["is_conversational"]:
        yield "conversational"


async def show_profiles(agent_class: str, *, limit: int, after: str | None, where: Where, output: Output | None) -> int:
    """Show a page of the profiles of a class."""
    async with reach(where) as place:
        answer = await place.profiles.directory(agent_class, after=after, limit=limit)

    def table() -> None:
        found, now = answer["profiles"], datetime.now(UTC)
        if not found:
            print(
                f"{printable(agent_class)} has no profiles here. {_next(f'save {shlex.quote(agent_class)} ID FILE', where)}"
            )
            return
        rows = [
            (
                each["agent_id"],
                each["state"],
                each["fault"] or _cron_text(each["cron"]),
                None if each["next_due"] is None else brief(each["next_due"], now=now),
                each["tenant_id"],
            )
            for each in found
        ]
        print_table(("Profile", "State", "Cron", "Next due", "Tenant"), rows, wraps={"Cron"})
        if answer["next_cursor"]:
            after = shlex.quote(printable(answer["next_cursor"]))
            print(f"There are more: {program()} profile list {shlex.quote(agent_class)} --after {after}{where.options}")

    show(answer, output, table, lines=answer["profiles"])
    return 0


async def show_profile(agent_class: str, agent_id: str, *, where: Where, output: Output | None) -> int:
    """Show a profile, how its schedule stands, and when it is due next."""
    async with reach(where) as place:
        answer = await place.profiles.show(agent_class, agent_id)
    show(answer, output, lambda: _print_profile(answer))
    return 0


def _print_profile(answer: Document) -> None:
    config = answer["config"] or {}
    fields: list[tuple[str, object]] = [
        ("Profile", f"{answer['agent_class']}/{answer['agent_id']}"),
        ("Tenant", answer["tenant_id"]),
        ("State", answer["state"] + (f" ({answer['reason']})" if answer["reason"] else "")),
        ("Cron", _cron_text(answer["cron"])),
        ("Next due", answer["next_due"]),
        *last_outcome(answer),
        *(("Config", f"{name} {json_text(value)}") for name, value in config.items() if name != "cron"),
        ("Schedule", answer["schedule_id"]),
        ("Thread", answer["thread_id"]),
        ("Saved", f"{answer['changed_at']} by {answer['changed_by']}"),
    ]
    if answer["fault"] is not None:
        fields.insert(1, ("Fault", answer["fault"]))
    print_fields(fields)


async def save(
    agent_class: str, agent_id: str, file: str, *, review: Review, where: Where, output: Output | None
) -> int:
    """Save a profile from a file, and show the receipt."""
    document = await _checked(file, agent_class, where)
    async with reach(where) as place:
        receipt = await send_once(
            lambda request, key: place.profiles.save(agent_class, agent_id, request, key),
            document,
            review,
            where,
            look=_command("get", agent_class, agent_id),
            again=f"{_command('save', agent_class, agent_id)} {shlex.quote(file)}",
        )
    show(receipt, output, lambda: _print_receipt("Saved", receipt))
    return 0


async def _checked(file: str, agent_class: str, where: Where) -> Any:
    """The document in a file; `InvalidSchedule` with all of its faults, those that only its class knows of among them.

    Whoever wrote a bad document need not have an installation to be told so.
    """
    read: list[Any] = []

    def check(document: Any) -> None:
        read.append(document)
        parse_profile(document)

    try:
        return read_checked(file, check)[0]
    except InvalidSchedule as error:
        if not read:
            raise
        schema: Mapping[str, Any] = {}
        with suppress(HorariumError):
            async with reach(where) as place:
                known = {each["agent_class"]: each["submission_schema"] for each in await place.profiles.classes()}
            schema = known.get(agent_class, {})
        raise InvalidSchedule(_with_those_of_the_class(error.faults, read[0], schema)) from None


def _with_those_of_the_class(faults: Sequence[Fault], document: Any, schema: Mapping[str, Any]) -> list[Fault]:
    """Faults of a document, and beside them those that its class alone knows of, where nothing else is wrong."""
    try:
        parse_profile(document, schema)
    except InvalidSchedule as more:
        places = {each.pointer for each in faults}
        return [*faults, *(each for each in more.faults if each.pointer not in places)]
    return list(faults)


async def clear(agent_class: str, agent_id: str, *, review: Review, where: Where, output: Output | None) -> int:
    """Take the cron out of a profile, so that it fires no more, and leave the rest as it is."""
    async with reach(where) as place:
        receipt = await send_once(
            lambda _, key: place.profiles.clear(agent_class, agent_id, key),
            {},
            review,
            where,
            look=_command("get", agent_class, agent_id),
            again=_command("clear", agent_class, agent_id),
        )
    show(receipt, output, lambda: _print_receipt("Cleared", receipt))
    return 0


async def delete(agent_class: str, agent_id: str, *, review: Review, where: Where, output: Output | None) -> int:
    """Delete a profile, and show the receipt."""
    async with reach(where) as place:
        receipt = await send_once(
            lambda _, key: place.profiles.delete(agent_class, agent_id, key),
            {},
            review,
            where,
            look=_command("get", agent_class, agent_id),
            again=_command("delete", agent_class, agent_id),
        )
    show(receipt, output, lambda: _print_receipt("Deleted", receipt))
    return 0


async def trigger(
    agent_class: str,
    agent_id: str,
    *,
    start_event: str,
    fields: str | None,
    review: Review,
    where: Where,
    output: Output | None,
) -> int:
    """Ask for one run of a profile now, and show the receipt."""
    event: Any = {} if fields is None else load_json(fields)
    again = f"{_command('trigger', agent_class, agent_id)} --event {shlex.quote(start_event)}"
    async with reach(where) as place:
        receipt = await send_once(
            lambda request, key: place.profiles.trigger(agent_class, agent_id, start_event, request, key),
            {"event": event},
            review,
            where,
            look=_command("thread", agent_class, agent_id),
            again=again if fields is None else f"{again} --fields {shlex.quote(fields)}",
        )

    def table() -> None:
        _print_receipt("Triggered", receipt)
        print("It is started at once, and admission then decides on it.")
        print(_next(_command("thread", agent_class, agent_id).removeprefix("profile "), where))

    show(receipt, output, table)
    return 0


async def show_thread(
    agent_class: str, agent_id: str, *, after: int, limit: int, where: Where, output: Output | None
) -> int:
    """Show what the runs of a profile did, oldest first."""
    async with reach(where) as place:
        answer = await _thread(place, agent_class, agent_id, after=after, limit=limit)

    def table() -> None:
        now = datetime.now(UTC)
        print_fields(
            [
                ("Thread", answer["thread_id"]),
                ("Profile", f"{answer['agent_class']}/{answer['agent_id']}"),
                ("Tenant", answer["tenant_id"]),
                ("Since", answer["created_at"]),
            ]
        )
        rows = [
            (
                each["id"],
                None if each["at"] is None else brief(each["at"], now=now),
                each["kind"],
                each["run_id"],
                json_text(each["data"]),
            )
            for each in answer["events"]
        ]
        print_table(("Id", "At", "Event", "Run", "Data"), rows, wraps={"Data"})
        if answer["next_cursor"] is not None:
            more = f"{_command('thread', agent_class, agent_id)} --after {answer['next_cursor']}{where.options}"
            print(f"There are more: {program()} {more}")

    show(answer, output, table, lines=answer["events"])
    return 0


async def _thread(place: Place, agent_class: str, agent_id: str, *, after: int, limit: int) -> Document:
    """The thread with so many of its events, from as many pages as that takes."""
    found = await place.profiles.thread(agent_class, agent_id, after=after, limit=min(limit, LARGEST_PAGE))
    while found["next_cursor"] is not None and len(found["events"]) < limit:
        most = min(limit - len(found["events"]), LARGEST_PAGE)
        page = await place.profiles.thread(agent_class, agent_id, after=found["next_cursor"], limit=most)
        found = {**page, "events": [*found["events"], *page["events"]]}
    return found


def _command(name: str, agent_class: str, agent_id: str) -> str:
    return f"profile {name} {shlex.quote(agent_class)} {shlex.quote(agent_id)}"


def _next(command: str, where: Where) -> str:
    return f"Next: {program()} profile {command}{where.options}"


def _cron_text(cron: Document | None) -> str | None:
    if cron is None:
        return None
    return f"{' '.join(str(cron[name]) for name in POSITION_NAMES)} {cron['timezone']}"


def _print_receipt(what: str, receipt: Document) -> None:
    fields: list[tuple[str, object]] = [(what, f"{receipt['agent_class']}/{receipt['agent_id']}")]
    if "run_id" in receipt:
        fields += [("Event", receipt.get("start_event")), ("Run", receipt["run_id"])]
    else:
        fields += [("Fires", "yes" if receipt.get("enabled") else "no"), ("Schedule", receipt.get("schedule_id"))]
    fields += [("Warning", each) for each in receipt["warnings"]]
    if receipt["replayed"]:
        fields.append(("Note", "This had been done before, by the same key; nothing was done now."))
    print_fields([*fields, ("Receipt", receipt["receipt_id"])])
