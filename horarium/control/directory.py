"""The directory as people look at it: each schedule with what it does next, what came of it last, and what runs or waits."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection

from horarium.catalog import directory as catalog
from horarium.catalog import ledger
from horarium.catalog.directory import Standing
from horarium.catalog.environments import Environment, require_environment
from horarium.catalog.schedules import Schedule, find_schedules, find_versions
from horarium.catalog.standings import standings
from horarium.catalog.versions import Version
from horarium.control.records import UNREADABLE, directory_entries, last_outcome
from horarium.schedule.identity import Scope
from horarium.schedule.ledger import HOLDING, Disposition

MAX_TEXT: Final = 100
"""Characters that are looked for in the directory."""
_WINDOW: Final = 5_000
"""Schedules that one page looks through at the most, so that a rare text costs no more than a frequent one."""
_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """Which schedules a page of the directory lists. `text` is looked for in name, id, agent version and input, in any case."""

    standing: Standing | None = None
    text: str = ""


def directory(
    connection: Connection, scope: Scope, sought: Sought, *, after: str | None, limit: int, now: datetime
) -> dict[str, Any]:
    """A page of an environment's schedules by UUID: `{"schedules": […], "next_cursor": UUID or None}`. Raises `NotFound`.

    An entry is that of `horarium.control.records.directory`, with `state` (enabled, paused, review, retired), `timezone`,
    `agent_version`, `last_outcome`, `lateness_ms` where that was a run, `running` and `waiting`. A page may
    hold fewer than `limit`, and none, with more behind it: so many were looked through.
    """
    environment = require_environment(connection, scope)
    found, last = _found(connection, scope, sought, after=after, limit=limit)
    return {"schedules": _entries(connection, environment, found, now=now), "next_cursor": last}


def names(connection: Connection, scope: Scope, ids: Collection[str]) -> dict[str, dict[str, str]]:
    """The `name` and the `timezone` of some schedules at their heads, by id, in two queries for any number of them."""
    found = find_schedules(connection, scope, ids)
    heads = find_versions(connection, {(each.row, each.head_revision) for each in found})
    return {
        each.key.schedule_id: {"name": name_of(head), "timezone": zone_of(head)}
        for each in found
        if (head := heads.get((each.row, each.head_revision))) is not None
    }


def name_of(version: Version) -> str:
    """What a version is called."""
    return UNREADABLE if version.is_damaged else version.configuration.name


def zone_of(version: Version) -> str:
    """The zone of a version's calendar; UTC where this release cannot evaluate it."""
    return "UTC" if version.fault else version.configuration.calendar.timezone


def _found(
    connection: Connection, scope: Scope, sought: Sought, *, after: str | None, limit: int
) -> tuple[list[Schedule], str | None]:
    text = sought.text.strip()
    if not text:
        part = catalog.list_part(connection, scope, after=after, limit=limit, window=_WINDOW, standing=sought.standing)
        return list(part.schedules), part.last
    found: list[Schedule] = []
    looked, last = 0, after
    while looked < _WINDOW:
        part = catalog.list_part(
            connection,
            scope,
            after=last,
            limit=_AT_ONCE,
            window=_WINDOW,
            standing=sought.standing,
            holding=text,
        )
        heads = find_versions(connection, {(each.row, each.head_revision) for each in part.schedules})
        for each in part.schedules:
            head = heads.get((each.row, each.head_revision))
            if head is not None and _holds(each, head, text):
                found.append(each)
                if len(found) == limit:
                    return found, each.key.schedule_id
        last = part.last
        if last is None:
            return found, None
        # A part that is full was cut by its limit, and more of the same window is behind it.
        looked += len(part.schedules) if len(part.schedules) == _AT_ONCE else _WINDOW
    return found, last


def _holds(schedule: Schedule, head: Version, text: str) -> bool:
    sought = text.casefold()
    told = [schedule.key.schedule_id]
    if not head.is_damaged:
        run = head.configuration.run
        told += [head.configuration.name, run.agent_version, run.input]
    return any(sought in each.casefold() for each in told)


def _entries(
    connection: Connection, environment: Environment, of: list[Schedule], *, now: datetime
) -> list[dict[str, Any]]:
    if not of:
        return []
    closed, opened = ledger.newest_closed(connection, of), catalog.count_open(connection, of)
    begun = catalog.begun_of(connection, [each.row for each in closed.values()])
    found = []
    standing_of = standings(connection, of)
    for standing, entry in zip(
        standing_of, directory_entries(connection, environment, standing_of, now=now), strict=True
    ):
        row = standing.schedule.row
        shown = standing.activated or standing.head
        last = closed.get(row)
        found.append(
            {
                **entry,
                "state": "retired" if standing.schedule.retired_at is not None else standing.state[0],
                "timezone": zone_of(shown),
                "agent_version": None if shown.is_damaged else shown.configuration.run.agent_version,
                "last_outcome": last_outcome(last),
                "lateness_ms": _lateness(last, begun),
                **_now(opened.get(row, {})),
            }
        )
    return found


def _lateness(last: ledger.Entry | None, begun: Mapping[int, datetime]) -> int | None:
    if last is None or last.row not in begun:
        return None
    return (begun[last.row] - last.first_at) // timedelta(milliseconds=1)


def _now(opened: Mapping[Disposition, int]) -> dict[str, int]:
    return {
        "running": sum(count for each, count in opened.items() if each in HOLDING),
        "waiting": opened.get(Disposition.BUFFERED, 0),
    }
