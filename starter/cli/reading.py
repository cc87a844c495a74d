"""`get`, `list` and `events`: what is stored of schedules."""

import uuid
from datetime import UTC, datetime
from typing import Any

from starter.cli.place import Document, Lines, Place, Where, reach
from starter.cli.printing import Output, json_text, print_fields, print_table, show, wants_table


async def get(written: str, *, revision: int | None, where: Where, output: Output | None) -> int:
    """Show the record of a schedule, at its head or at one revision."""
    async with reach(where) as place:
        schedule_id = await place.find(written)
        answer = await place.record(schedule_id, revision=revision)
        outlook = await _outlook(place, schedule_id) if wants_table(output) else (None, None)
    show(answer, output, lambda: _print_record(answer, outlook))
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


def _print_record(answer: dict[str, Any], outlook: tuple[str | None, Document | None]) -> None:
    configuration, activation, runtime = answer["configuration"], answer["activation"], answer["runtime"]
    reference, policy, run = answer["reference"], configuration["policy"], configuration["run"]
    due, newest = outlook
    print_fields(
        [
            ("Name", configuration["name"]),
            ("Schedule", answer["schedule_id"] + (" (retired)" if answer["retired"] else "")),
            ("Revision", f"{reference['revision']} of {answer['head']['revision']}"),
            ("Digest", reference["digest"]),
            ("Published", f"{answer['published_at']} by {answer['published_by']}"),
            ("Zone", configuration["calendar"]["timezone"]),
            ("Policy", ", ".join(f"{name} {json_text(value)}" for name, value in policy.items())),
            ("Agent", run["agent_version"]),
            ("Input", run["input"]),
            ("Output target", run["output_target"]),
            ("Usage class", run["usage_class"]),
            ("Activation", _activation_text(activation)),
            ("Runtime", _runtime_text(runtime)),
            ("Workers ready", "yes" if answer["execution_ready"] else "no"),
            ("Next due", due),
            ("Newest", None if newest is None else f"{newest['last_at']} {newest['disposition']}"),
        ]
    )


def _activation_text(activation: dict[str, Any] | None) -> str:
    if activation is None:
        return "never enabled"
    state = "enabled" if activation["enabled"] else "not enabled"
    return (
        f"{state}, generation {activation['generation']}, revision {activation['version']['revision']}, "
        f"since {activation['changed_at']} by {activation['changed_by']}"
    )


def _runtime_text(runtime: dict[str, Any]) -> str:
    reason = f" ({runtime['reason']})" if "reason" in runtime else ""
    seen = f", observed at {runtime['observed_at']}" if "observed_at" in runtime else ""
    return f"{runtime['state']}{reason}{seen}"


async def list_schedules(
    *, limit: int, after: str | None, include_retired: bool, where: Where, output: Output | None
) -> int:
    """Show a page of the schedules, by UUID."""
    async with reach(where) as place:
        answer = await place.directory(limit=limit, after=after, include_retired=include_retired)
    show(answer, output, lambda: _print_directory(answer, where), lines=answer["schedules"])
    return 0


def _print_directory(answer: Document, where: Where) -> None:
    if not answer["schedules"]:
        print(f"There are no schedules here. Next: horarium publish FILE{where.options}")
        return
    rows = [
        (
            each["schedule_id"],
            each["name"],
            "retired" if each["retired"] else each["runtime"]["state"],
            each["head"]["revision"],
            each["runtime"]["generation"],
            each["next_due"],
        )
        for each in answer["schedules"]
    ]
    print_table(("Schedule", "Name", "State", "Head", "Generation", "Next due"), rows)
    if answer["next_cursor"]:
        print(f"There are more: horarium list --after {answer['next_cursor']}{where.options}")


async def events(written: str, *, after: int, limit: int, where: Where, output: Output | None) -> int:
    """Show who changed what about a schedule."""
    async with reach(where) as place:
        schedule_id = await place.find(written)
        found = await place.events(schedule_id, after=after, limit=limit)
    cursor = found[-1]["id"] if len(found) == limit else None
    answer = {"events": found, "next_cursor": cursor}

    def table() -> None:
        columns = ("id", "at", "kind", "actor", "generation", "revision")
        rows = [(*(each[column] for column in columns), json_text(each["details"])) for each in found]
        print_table(("Id", "At", "Event", "By", "Generation", "Revision", "Details"), rows)
        if cursor is not None:
            print(f"There may be more: horarium events {schedule_id} --after {cursor}{where.options}")

    show(answer, output, table, lines=found)
    return 0
