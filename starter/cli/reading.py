"""`get`, `list` and `events`: what is stored of schedules."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from horarium.catalog.schedules import require_schedule
from horarium.control import records
from horarium.schedule.identity import ScheduleKey, instant_text
from starter.cli.installation import catalog_of, find
from starter.cli.printing import Output, json_text, print_fields, print_table, show, where
from worker.settings import load


async def get(written: str, *, revision: int | None, data: Path | None, output: Output | None) -> int:
    """Show the record of a schedule, at its head or at one revision."""
    settings, now = load(data=data), datetime.now(UTC)
    async with catalog_of(settings) as catalog:
        key = await find(catalog, settings, written)
        answer = await catalog.read(records.record, key, revision=revision, now=now)
        outlook = await catalog.read(_outlook, key, now)
    show(answer, output, lambda: _print_record(answer, outlook))
    return 0


def _outlook(connection: Connection, key: ScheduleKey, now: datetime) -> tuple[datetime | None, dict[str, Any] | None]:
    """What a person asks next: when it is due, and how the newest occurrence stands."""
    newest = records.occurrences(connection, key, until=now, limit=1, newest_first=True)
    return records.next_due(connection, require_schedule(connection, key), now=now), next(iter(newest), None)


def _print_record(answer: dict[str, Any], outlook: tuple[datetime | None, dict[str, Any] | None]) -> None:
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
            ("Next due", None if due is None else instant_text(due)),
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
    *, limit: int, after: str | None, include_retired: bool, data: Path | None, output: Output | None
) -> int:
    """Show a page of the schedules, by UUID."""
    settings, now = load(data=data), datetime.now(UTC)
    async with catalog_of(settings) as catalog:
        answer = await catalog.read(
            records.directory, settings.scope, after=after, limit=limit, include_retired=include_retired, now=now
        )
    show(answer, output, lambda: _print_directory(answer, data), lines=answer["schedules"])
    return 0


def _print_directory(answer: dict[str, Any], data: Path | None) -> None:
    if not answer["schedules"]:
        print(f"There are no schedules here. Next: horarium publish FILE{where(data)}")
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
        print(f"There are more: horarium list --after {answer['next_cursor']}{where(data)}")


async def events(written: str, *, after: int, limit: int, data: Path | None, output: Output | None) -> int:
    """Show who changed what about a schedule."""
    settings = load(data=data)
    async with catalog_of(settings) as catalog:
        key = await find(catalog, settings, written)
        found = await catalog.read(records.events, key, after=after, limit=limit)
    cursor = found[-1]["id"] if len(found) == limit else None
    answer = {"events": found, "next_cursor": cursor}

    def table() -> None:
        columns = ("id", "at", "kind", "actor", "generation", "revision")
        rows = [(*(each[column] for column in columns), json_text(each["details"])) for each in found]
        print_table(("Id", "At", "Event", "By", "Generation", "Revision", "Details"), rows)
        if cursor is not None:
            print(f"There may be more: horarium events {key.schedule_id} --after {cursor}{where(data)}")

    show(answer, output, table, lines=found)
    return 0
