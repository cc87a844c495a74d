"""The directory as people look at it: each schedule with what it does next, what came of it last, and what runs or waits."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection

from horarium.catalog import directory as catalog
from horarium.catalog import ledger
from horarium.catalog.directory import LastRun, Standing
from horarium.catalog.environments import Environment, require_environment
from horarium.catalog.schedules import Schedule, find_schedules
from horarium.catalog.standings import Standing as Standings
from horarium.catalog.standings import standings
from horarium.catalog.unheard import MOST, Unheard, unheard
from horarium.catalog.versions import Version
from horarium.control.expectations import Overdue, overdue_among
from horarium.control.records import UNREADABLE, directory_entries, last_outcome
from horarium.schedule.identity import Scope, instant_text
from horarium.schedule.ledger import HOLDING, Disposition, Reason

MAX_TEXT: Final = 100
"""Characters that are looked for in the directory."""
SMALL: Final = 200
"""Schedules of an environment that is listed by name. A larger one is listed by id, which an index leads to."""
_WINDOW: Final = 5_000
"""Schedules that one page looks through at the most, so that a rare text costs no more than a frequent one."""
_AT_ONCE: Final = 500
"""Of them, those that one question is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """Which schedules a page of the directory lists. `text` is looked for in name, id, agent version and input, in any case."""

    standing: Standing | None = None
    text: str = ""


def directory(
    connection: Connection, scope: Scope, sought: Sought, *, after: str | None, limit: int, now: datetime
) -> dict[str, Any]:
    """A page of an environment's schedules: `{"schedules": […], "next_cursor": UUID or None, "unheard": …}`. Raises `NotFound`.

    By name in an environment of up to `SMALL` schedules, else by UUID. `after` is the UUID that the page before ended with.
    An entry is that of `horarium.control.records.directory`, with `state` (as `state_of` tells it), `timezone`,
    `agent_version`, `last_outcome`, `said` (what an agent that failed then said of it, else None), `lateness_ms` of its last
    run, `running` and `waiting`; `overdue` is the success that should have come by now. A page may hold fewer than `limit`, and
    none, with more behind it: so many were looked through.
    `unheard` is how much of what the environment was to be told was given up.
    """
    environment = require_environment(connection, scope)
    found, last = _found(connection, scope, sought, after=after, limit=limit)
    return {
        "schedules": _entries(connection, environment, found, now=now),
        "next_cursor": last,
        "unheard": unheard_document(unheard(connection, scope)),
    }


def names(connection: Connection, scope: Scope, ids: Collection[str]) -> dict[str, dict[str, str]]:
    """The `name` and the `timezone` of some schedules at their heads, by id, in two queries for any number of them."""
    found = find_schedules(connection, scope, ids)
    heads = catalog.heads_of(connection, found)
    return {
        each.key.schedule_id: {"name": name_of(heads[each.row]), "timezone": zone_of(heads[each.row])}
        for each in found
        if each.row in heads
    }


def name_of(version: Version) -> str:
    """What a version is called."""
    return UNREADABLE if version.is_damaged else version.configuration.name


def state_of(standing: Standings) -> str:
    """How a schedule stands: enabled, never_enabled, paused, review or retired."""
    if standing.schedule.retired_at is not None:
        return Standing.RETIRED
    return Standing.NEVER_ENABLED if standing.activation is None else standing.state[0]


def zone_of(version: Version) -> str:
    """The zone of a version's calendar; UTC where this release cannot evaluate it."""
    return "UTC" if version.fault else version.configuration.calendar.timezone


def overdue_document(overdue: Overdue | None) -> dict[str, str] | None:
    """A success that should have come by now; None where none should."""
    if overdue is None:
        return None
    return {"due_at": instant_text(overdue.due_at), "expected_by": instant_text(overdue.expected_by)}


def unheard_document(found: Unheard) -> dict[str, Any] | None:
    """How many messages nobody heard; None where there is none."""
    if not found.count or found.newest_at is None:
        return None
    return {"count": found.count, "is_more": found.count >= MOST, "newest_at": instant_text(found.newest_at)}


def _found(
    connection: Connection, scope: Scope, sought: Sought, *, after: str | None, limit: int
) -> tuple[list[Schedule], str | None]:
    ordered = _by_id if catalog.is_larger(connection, scope, SMALL) else _by_name
    return ordered(connection, scope, sought, after=after, limit=limit)


def _by_name(
    connection: Connection, scope: Scope, sought: Sought, *, after: str | None, limit: int
) -> tuple[list[Schedule], str | None]:
    """A page of an environment that is small enough to be put in the order of its names, as people look for them."""
    part = catalog.list_part(connection, scope, after=None, window=SMALL, standing=sought.standing)
    heads, text = catalog.heads_of(connection, part.schedules), sought.text.strip()
    placed = sorted(
        (name_of(heads[each.row]).casefold(), each.key.schedule_id, each.row)
        for each in part.schedules
        if each.row in heads and (not text or _holds(each, heads[each.row], text))
    )
    # One that is gone meanwhile was no place: then the beginning is shown.
    begin = next((place + 1 for place, (_, schedule_id, _) in enumerate(placed) if schedule_id == after), 0)
    shown = placed[begin : begin + limit]
    by_row = {each.row: each for each in part.schedules}
    last = shown[-1][1] if begin + limit < len(placed) else None
    return [by_row[row] for _, _, row in shown], last


def _by_id(
    connection: Connection, scope: Scope, sought: Sought, *, after: str | None, limit: int
) -> tuple[list[Schedule], str | None]:
    """A page of a large environment: of those that stand so and hold the text, among the next `_WINDOW` or so.

    What is frequent is found among the first few, so the first look is short.
    """
    text = sought.text.strip()
    found: list[Schedule] = []
    looked, window, last = 0, 2 * limit, after
    while looked < _WINDOW:
        part = catalog.list_part(
            connection, scope, after=last, window=window, standing=sought.standing, holding=text or None
        )
        heads = catalog.heads_of(connection, part.schedules) if text else {}
        found += [
            each for each in part.schedules if not text or (each.row in heads and _holds(each, heads[each.row], text))
        ]
        if len(found) > limit:
            return found[:limit], found[limit - 1].key.schedule_id
        last = part.last
        if last is None:
            return found, None
        looked, window = looked + window, min(2 * window, _AT_ONCE)
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
    begun = catalog.last_begun(connection, of)
    failed = [each.row for each in closed.values() if each.reason is Reason.AGENT_REPORTED_FAILURE]
    said = catalog.summaries(connection, failed)
    overdue = overdue_among(connection, [each.row for each in of], now=now)
    found = []
    standing_of = standings(connection, of)
    for standing, entry in zip(
        standing_of, directory_entries(connection, environment, standing_of, now=now), strict=True
    ):
        row = standing.schedule.row
        shown = standing.activated or standing.head
        found.append(
            {
                **entry,
                "state": state_of(standing),
                "timezone": zone_of(shown),
                "agent_version": None if shown.is_damaged else shown.configuration.run.agent_version,
                "last_outcome": last_outcome(closed.get(row)),
                "said": said.get(closed[row].row) if row in closed else None,
                "lateness_ms": _lateness(begun.get(row)),
                "overdue": overdue_document(overdue.get(row)),
                **_now(opened.get(row, {})),
            }
        )
    return found


def _lateness(last: LastRun | None) -> int | None:
    return None if last is None else (last.begun_at - last.first_at) // timedelta(milliseconds=1)


def _now(opened: Mapping[Disposition, int]) -> dict[str, int]:
    return {
        "running": sum(count for each, count in opened.items() if each in HOLDING),
        "waiting": opened.get(Disposition.BUFFERED, 0),
    }
