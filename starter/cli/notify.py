"""`notify …`: who is told of what happens, and what nobody heard; each change with a receipt."""

import shlex
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from horarium.schedule.notifications import ASKED_FOR, Kind
from starter.cli.finding import find
from starter.cli.place import Document, Where, reach
from starter.cli.printing import SHORT_ID, Output, print_fields, print_table, program, show
from starter.cli.review import Review, send_once
from starter.cli.timings import brief

HEARTBEAT = Kind.HEARTBEAT.value
_WRAPPED = {"Address", "State"}
_LOOK = "notify list"
_TITLES = {
    "notify_add": "Told from now on",
    "notify_heartbeat": "Heartbeat",
    "notify_remove": "Told nothing more",
    "notify_test": "A test is on its way to",
    "notify_again": "On its way again to",
}


def kinds(text: str) -> list[str]:
    """What a person wrote after `--on`. What is unknown is refused where the request is read."""
    if text == "all":
        return [each.value for each in ASKED_FOR]
    return [each.strip() for each in text.split(",") if each.strip()]


async def declare(
    what: str,
    request: Mapping[str, Any],
    schedule: str | None,
    *,
    review: Review,
    where: Where,
    output: Output | None,
) -> int:
    """Declare an endpoint or a heartbeat, of the schedule that a person named in full or by its beginning."""
    told = dict(request)
    if schedule is not None:
        async with reach(where) as place:
            told["schedule_id"] = await find(place, schedule)
    return await act(what, told, review=review, where=where, output=output)


async def act(what: str, request: Mapping[str, Any], *, review: Review, where: Where, output: Output | None) -> int:
    """Do something about notifications, and show the receipt."""
    async with reach(where) as place:
        receipt = await send_once(
            lambda asked, key: place.notify(what, asked, key),
            request,
            review,
            where,
            look=_LOOK,
            again=f"notify {what}{_options(what, request)}",
        )
    show(receipt, output, lambda: _print_receipt(receipt))
    return 0


async def show_endpoints(*, where: Where, output: Output | None) -> int:
    """Show every endpoint and heartbeat."""
    async with reach(where) as place:
        found = await place.endpoints()
    show({"endpoints": found}, output, lambda: print_endpoints(found), lines=found)
    return 0


async def show_dead(*, after: int, limit: int, where: Where, output: Output | None) -> int:
    """Show what was given up, oldest first."""
    async with reach(where) as place:
        found = await place.dead_letters(after=after, limit=limit)
    cursor = found[-1]["id"] if len(found) == limit else None

    def table() -> None:
        _print_dead(found)
        if cursor is not None:
            print(f"There may be more: {program()} notify dead --after {cursor}{where.options}")

    show({"dead": found, "next_cursor": cursor}, output, table, lines=found)
    return 0


def _options(what: str, request: Mapping[str, Any]) -> str:
    """What a command is repeated with."""
    match what:
        case "again":
            return f" {request['id']}"
        case "remove" | "test":
            return f" {shlex.quote(request['name'])}"
    said = f" --url {shlex.quote(request['url'])} --secret {shlex.quote(request['secret'])}"
    said += " --private" if request["private"] else ""
    if what == "heartbeat":
        return f" {request['schedule_id']}{said}"
    of = f" --schedule {request['schedule_id']}" if "schedule_id" in request else ""
    return f" {shlex.quote(request['name'])}{said} --on {shlex.quote(','.join(request['on']))}{of}"


def _print_receipt(receipt: Document) -> None:
    print_fields(
        [(_TITLES[receipt["operation"]], receipt["name"]), *_about(receipt), ("Receipt", receipt["receipt_id"])]
    )
    if receipt.get("replayed"):
        print("Note: this had been done before, by the same key; nothing was done now.")


def _about(receipt: Document) -> Iterator[tuple[str, object]]:
    if "on" in receipt:
        yield "Of", ", ".join(receipt["on"])
        yield "At", receipt["url"]
        yield "Secret in", f"{receipt['secret']}, in the environment of the controller"
        yield "Schedule", receipt["schedule_id"] or "all"
    if receipt.get("message_id"):
        yield "Message", receipt["message_id"]


def print_endpoints(found: list[Document]) -> None:
    """Endpoints in a table, and heartbeats in one of their own."""
    if not found:
        print(f"Nobody is told of anything. {program()} notify add --help says how.")
        return
    now = datetime.now(UTC)
    beats = [each for each in found if each["on"] == [HEARTBEAT]]
    others = [each for each in found if each not in beats]
    if others:
        _print_others(others, now)
    if others and beats:
        print()
    if beats:
        _print_beats(beats, now)


def _print_others(found: list[Document], now: datetime) -> None:
    rows = [
        (
            each["name"],
            ", ".join(each["on"]),
            each["url"],
            "all" if each["schedule_id"] is None else each["schedule_id"][:SHORT_ID],
            *_post(each, now),
        )
        for each in found
    ]
    headers = ("Name", "Told of", "Address", "Schedule", "Heard last", "Waiting", "Dead", "State")
    print_table(headers, rows, wraps={"Told of", *_WRAPPED})


def _print_beats(found: list[Document], now: datetime) -> None:
    """A heartbeat's name ends in its id, and is so long that nothing else has room beside both."""
    headers = ("Heartbeat of", "Address", "Heard last", "Waiting", "Dead", "State")
    print_table(headers, [(each["schedule_id"], each["url"], *_post(each, now)) for each in found], wraps=_WRAPPED)
    print(f"Each ends by `{program()} notify remove {HEARTBEAT}:ID`.")


def _post(endpoint: Document, now: datetime) -> tuple[object, ...]:
    """What became of what was posted."""
    return _brief(endpoint["delivered_at"], now), endpoint["waiting"], endpoint["dead"], _standing(endpoint, now)


def _standing(endpoint: Document, now: datetime) -> str:
    if endpoint["stopped_at"] is not None:
        return f"stopped {brief(endpoint['stopped_at'], now=now)}: {endpoint['stopped_because']}"
    if endpoint["silent_since"] is not None:
        return f"silent since {brief(endpoint['silent_since'], now=now)}"
    return "told" if endpoint["last_error"] is None else f"not heard: {endpoint['last_error']}"


def _print_dead(found: list[Document]) -> None:
    if not found:
        print("Nothing was given up.")
        return
    now = datetime.now(UTC)
    rows = [
        (
            each["id"],
            brief(each["given_up_at"], now=now),
            each["endpoint"],
            each["message"]["type"],
            each["message"]["data"].get("name") or each["message"]["data"].get("schedule_id") or "",
            each["message"]["data"].get("nominal_time") or "",
            each["attempts"],
            each["last_error"] or "",
        )
        for each in found
    ]
    headers = ("Id", "Given up", "Endpoint", "Told of", "Schedule", "Due", "Attempts", "Why")
    print_table(headers, rows, wraps={"Schedule", "Why"})


def _brief(text: str | None, now: datetime) -> str:
    return "never" if text is None else brief(text, now=now)
