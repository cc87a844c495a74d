"""`authority …`: what operators declare and do, each change with a receipt."""

import shlex
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from horarium.authority.file import MAX_FILE_BYTES, Declarations, read_declarations
from horarium.control.declaring import require_scope_of
from horarium.schedule.identity import Scope, instant_text
from starter.cli.archived import say_archived
from starter.cli.finding import find
from starter.cli.place import Document, Where, reach, scope_of
from starter.cli.printing import Output, json_text, print_fields, print_table, program, show
from starter.cli.review import Review, send_once
from starter.cli.timings import brief
from starter.documents import read_checked

_SHOW = "authority show"
_COMMANDS = {"advance_epoch": "epoch"}
"""Acts whose command has another name."""


async def apply(file: str, *, dry_run: bool, review: Review, where: Where, output: Output | None) -> int:
    """Apply a file of declarations and show what changed, or what would."""
    scope = scope_of(where)
    document, _ = read_checked(file, lambda read: _read(read, scope), most=MAX_FILE_BYTES)
    async with reach(where) as place:
        answer = await send_once(
            lambda request, key: place.apply_authority(request, key, dry_run=dry_run),
            document,
            review,
            where,
            look=_SHOW,
            again=f"authority apply {shlex.quote(file)}",
        )

    def table() -> None:
        if answer["changes"]:
            rows = [(each["action"], each["kind"], each["name"], _difference(each)) for each in answer["changes"]]
            print_table(("Change", "Kind", "Name", "What"), rows, wraps={"Name", "What"})
        name = f"{scope.org_id}/{scope.environment_id}"
        count = len(answer["changes"])
        if not count:
            print(f"Nothing changes: {name} is what the file says.")
        elif dry_run:
            print(f"{_counted(count)} would be made in {name}. Nothing was changed.")
        else:
            print(f"{_counted(count)} made in {name}.")
        _print_note(answer)

    show(answer, output, table)
    return 0


async def show_overview(*, where: Where, output: Output | None) -> int:
    """Show an environment as operators see it."""
    async with reach(where) as place:
        answer = await place.authority()
    show(answer, output, lambda: _print_overview(answer))
    return 0


async def operate(
    act: str, request: Mapping[str, Any], *, review: Review, where: Where, output: Output | None, again: str = ""
) -> int:
    """Do something that operators may, and show the receipt."""
    command = _COMMANDS.get(act, act)
    async with reach(where) as place:
        receipt = await send_once(
            lambda asked, key: place.operate(act, asked, key),
            request,
            review,
            where,
            look=_SHOW,
            again=again or f"authority {command}{_options(request)}",
        )
    show(receipt, output, lambda: _print_receipt(receipt))
    return 0


async def renew(act: str, because: str, *, review: Review, where: Where, output: Output | None) -> int:
    """Begin a new epoch or a reset, of the environment as it was reviewed, or as it is now."""
    epoch, generation = review.environment_epoch, review.reset_generation
    if epoch is None or generation is None:
        async with reach(where) as place:
            found = await place.authority()
        epoch = found["authority_epoch"] if epoch is None else epoch
        generation = found["reset_generation"] if generation is None else generation
    request = {
        "because": because,
        "expected_environment_epoch": epoch,
        "expected_reset_generation": generation,
    }
    again = (
        f"authority {_COMMANDS.get(act, act)} --because {shlex.quote(because)} --environment-epoch {epoch} "
        f"--reset-generation {generation}"
    )
    return await operate(act, request, review=review, where=where, output=output, again=again)


async def approve(written: str, *, until: datetime, review: Review, where: Where, output: Output | None) -> int:
    """Approve one exact version of a schedule."""
    async with reach(where) as place:
        schedule_id = await find(place, written)
        version = (await place.record(schedule_id, revision=review.revision))["reference"]
    if review.digest is not None:
        version = {**version, "digest": review.digest}
    expires_at = instant_text(until)
    named = f"--revision {version['revision']} --digest {shlex.quote(version['digest'])}"
    again = f"authority approve {schedule_id} {named} --until {expires_at}"
    request = {"version": version, "expires_at": expires_at}
    return await operate("approve", request, review=review, where=where, output=output, again=again)


async def show_acts(*, after: int, limit: int, where: Where, output: Output | None) -> int:
    """Show what operators did, oldest first."""
    async with reach(where) as place:
        found = await place.acts(after=after, limit=limit)
        gone = [] if after else await place.archived(None)
    cursor = found[-1]["id"] if len(found) == limit else None

    def table() -> None:
        _print_acts(found)
        if cursor is not None:
            print(f"There may be more: {program()} authority events --after {cursor}{where.options}")

    show({"events": found, "next_cursor": cursor}, output, table, lines=found)
    say_archived(gone)
    return 0


def _read(document: object, scope: Scope) -> Declarations:
    read = read_declarations(document)
    require_scope_of(read, scope)
    return read


def _options(request: Mapping[str, Any]) -> str:
    """What a command is repeated with."""
    if "wallet" in request:
        return f" {shlex.quote(request['wallet'])} {request['amount']}"
    organization = " --organization" if request["everywhere"] else ""
    return organization + (f" --because {shlex.quote(request['because'])}" if "because" in request else "")


def _counted(count: int) -> str:
    return "1 change" if count == 1 else f"{count} changes"


def _print_note(receipt: Document) -> None:
    for warning in receipt["warnings"]:
        print(f"Warning: {warning}")
    if receipt.get("replayed"):
        print("Note: this had been done before, by the same key; nothing was done now.")


_TITLES = {
    "stop": "Stopped",
    "lift": "Lifted",
    "advance_epoch": "Authority epoch",
    "reset": "Reset generation",
    "collect": "Collected",
    "approve": "Approved",
}


def _print_receipt(receipt: Document) -> None:
    print_fields(
        [(_TITLES[receipt["operation"]], _what(receipt)), *_about(receipt), ("Receipt", receipt["receipt_id"])]
    )
    _print_note(receipt)


def _what(receipt: Document) -> str:
    match receipt["operation"]:
        case "stop":
            return _whose(receipt) + ("" if receipt["changed"] else ", which was stopped already")
        case "lift":
            return _whose(receipt) + ("" if receipt["changed"] else ", which was not stopped")
        case "collect":
            return f"{receipt['amount']} from {receipt['wallet']}"
        case "approve":
            return f"{receipt['schedule_id']}, revision {receipt['reference']['revision']}"
        case _:
            return f"{receipt['to']}, after {receipt['from']}"


def _about(receipt: Document) -> Iterator[tuple[str, object]]:
    match receipt["operation"]:
        case "stop":
            yield "Since", f"{receipt['since']} by {receipt['by']}"
            yield "Because", receipt["because"]
        case "collect":
            yield "Owes now", receipt["owed"]
        case "approve":
            yield "Digest", receipt["reference"]["digest"]
            yield "By", receipt["by"]
            yield "Until", receipt["expires_at"]
        case "advance_epoch" | "reset":
            yield "To review", f"{receipt['to_review']} activations, in the seconds from now"


def _whose(receipt: Document) -> str:
    return "the whole organization" if receipt["everywhere"] else "the environment"


def _print_overview(answer: Document) -> None:
    counted = {kind: len(declared) for kind, declared in answer["declared"].items()}
    print_fields(
        [
            ("Environment", f"{answer['org_id']}/{answer['environment_id']}"),
            ("Mode", answer["mode"] + (" (development)" if answer["development"] else "")),
            ("Runtime profile", answer["runtime_profile"] or "none, so nothing runs"),
            ("Live runs", "need an approval" if answer["live_needs_approval"] else "need no approval"),
            ("Authority epoch", answer["authority_epoch"]),
            ("Reset generation", answer["reset_generation"]),
            *(("Stopped", _stop_text(each)) for each in answer["stops"]),
            ("Declared", ", ".join(f"{kind} {count}" for kind, count in counted.items() if count) or "nothing"),
        ]
    )
    rows = [
        (kind, name, each["version"], json_text(each["facts"]))
        for kind, declared in answer["declared"].items()
        for name, each in declared.items()
    ]
    if rows:
        print()
        print_table(("Kind", "Name", "Version", "Facts"), rows, wraps={"Name", "Facts"})
    if answer["budgets"]:
        print()
        columns = ("limit", "reserved", "spent", "room")
        _print_money("Budget", answer["budgets"], columns)
    if answer["wallets"]:
        print()
        _print_money("Wallet", answer["wallets"], ("unpaid_limit", "owed"))
    if answer["acts"]:
        print()
        _print_acts(answer["acts"][::-1])


def _stop_text(stop: Document) -> str:
    return f"{_whose(stop)}, since {stop['since']} by {stop['by']}: {stop['because']}"


def _print_money(title: str, counted: Mapping[str, Document], columns: tuple[str, ...]) -> None:
    rows = [(name, each["currency"], *(each[column] for column in columns)) for name, each in counted.items()]
    headers = (column.replace("_", " ").capitalize() for column in columns)
    print_table((title, "Currency", *headers), rows)


def _print_acts(acts: list[Document]) -> None:
    now = datetime.now(UTC)
    rows = [
        (
            each["id"],
            brief(each["at"], now=now),
            each["kind"],
            each["actor"],
            _scope_text(each),
            _details(each["details"]),
        )
        for each in acts
    ]
    print_table(("Id", "At", "Act", "By", "For", "Details"), rows, wraps={"By", "Details"})


def _scope_text(act: Document) -> str:
    return "organization" if act["everywhere"] else "environment"


def _details(details: Document) -> str:
    """Details in little space. The receipt, and each change of a file, is in the other forms."""
    told = []
    for name, value in details.items():
        if name == "changes":
            told.append(", ".join(f"{each['kind']} {each['name']} {each['action']}" for each in value))
        elif name not in {"receipt_id", "environment_id", "resource_id"} and value is not None:
            told.append(f"{name} {_word(value)}")
    return "; ".join(told)


def _word(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_word(inner)}" for name, inner in value.items() if inner is not None)
    return value if isinstance(value, str) else json_text(value)


def _difference(change: Document) -> str:
    """What a change is about: all of what is new, and of the rest the fields that differ."""
    before, after = change["from"], change["to"]
    if before is None or after is None:
        return json_text(after if before is None else before)
    parts = [
        f"{name}: {json_text(before.get(name))} → {json_text(after.get(name))}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]
    return "; ".join(parts)
