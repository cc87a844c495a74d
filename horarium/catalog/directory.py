"""Queries behind the directory that people look at: which schedules it lists, and where their runs stand, a page at a time."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, and_, func, not_, or_, select, union_all

from horarium.catalog.schedules import Schedule, schedule_of_row
from horarium.catalog.tables import activations, entries, runs, schedules, versions
from horarium.catalog.versions import Version, version_of_row
from horarium.schedule.identity import Scope
from horarium.schedule.ledger import Disposition, Reason


class Standing(StrEnum):
    """What a schedule may be asked for by."""

    ENABLED = "enabled"
    NEVER_ENABLED = "never_enabled"
    PAUSED = "paused"
    REVIEW = "review"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Schedules in the order of their ids. `last` is the last one that was looked at, None where none is behind it."""

    schedules: Sequence[Schedule]
    last: str | None


def list_part(
    connection: Connection,
    scope: Scope,
    *,
    after: str | None,
    window: int,
    standing: Standing | None = None,
    holding: str | None = None,
) -> Part:
    """Those of the next `window` schedules behind an id that stand so; without `standing`, all that are not retired.

    `holding` leaves those whose id or newest configuration may hold a text in any case: whoever asks looks at what is found,
    since letters beyond ASCII are taken for any.
    """
    looked_at = connection.execute(_ids(scope, after).limit(window + 1)).all()
    last = looked_at[window - 1].schedule_id if len(looked_at) > window else None
    query = (
        select(schedules)
        .select_from(
            schedules.outerjoin(
                activations,
                (activations.c.schedule == schedules.c.id) & (activations.c.generation == schedules.c.generation),
            ).join(
                versions,
                (versions.c.schedule == schedules.c.id) & (versions.c.revision == schedules.c.head_revision),
            )
        )
        .where(schedules.c.id.in_([row.id for row in looked_at[:window]]), _stands(standing))
    )
    if holding is not None:
        pattern = f"%{_pattern(holding)}%"
        query = query.where(
            or_(
                func.lower(versions.c.configuration).like(pattern, escape="!"),
                schedules.c.schedule_id.like(pattern, escape="!"),
            )
        )
    found = [schedule_of_row(row) for row in connection.execute(query).mappings()]
    return Part(schedules=sorted(found, key=lambda each: each.key.schedule_id), last=last)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    """When a run was due, and when its agent began it."""

    first_at: datetime
    begun_at: datetime


def is_larger(connection: Connection, scope: Scope, than: int) -> bool:
    """Whether an environment has more schedules than that, the retired ones included."""
    return connection.execute(_ids(scope, None).offset(than).limit(1)).first() is not None


def heads_of(connection: Connection, of: Collection[Schedule]) -> Mapping[int, Version]:
    """The newest version of each schedule, by the schedule's row."""
    head = (versions.c.schedule == schedules.c.id) & (versions.c.revision == schedules.c.head_revision)
    query = (
        select(versions)
        .select_from(schedules.join(versions, head))
        .where(schedules.c.id.in_([each.row for each in of]))
    )
    return {row["schedule"]: version_of_row(row) for row in connection.execute(query).mappings()}


def count_open(connection: Connection, of: Collection[Schedule]) -> Mapping[int, Mapping[Disposition, int]]:
    """How many entries of each schedule stand open, by the schedule's row and by disposition."""
    query = (
        select(entries.c.schedule, entries.c.disposition, func.count().label("entries"))
        .where(entries.c.schedule.in_([each.row for each in of]), entries.c.closed_at.is_(None))
        .group_by(entries.c.schedule, entries.c.disposition)
    )
    found: dict[int, dict[Disposition, int]] = {}
    for row in connection.execute(query):
        found.setdefault(row.schedule, {})[Disposition(row.disposition)] = row.entries
    return found


RECENT: Final = 20
"""Entries of a schedule among which its last run is looked for: behind a flood of refusals it is no news."""


def last_begun(connection: Connection, of: Collection[Schedule]) -> Mapping[int, LastRun]:
    """The newest run of each schedule whose agent began, by the schedule's row; nothing where none of its last entries has one.

    One statement with a part for each schedule, since each has a newest entry of its own.
    """
    parts: list[Select[Any]] = []
    for each in of:
        recent = (
            select(entries.c.schedule, entries.c.first_at, runs.c.begun_at)
            .select_from(entries.outerjoin(runs, runs.c.entry == entries.c.id))
            .where(entries.c.schedule == each.row)
            .order_by(entries.c.first_at.desc())
            .limit(RECENT)
            .subquery()
        )
        parts.append(select(recent).where(recent.c.begun_at.is_not(None)))
    if not parts:
        return {}
    found: dict[int, LastRun] = {}
    for row in connection.execute(union_all(*parts)):
        known = found.get(row.schedule)
        if known is None or known.first_at < row.first_at:
            found[row.schedule] = LastRun(first_at=row.first_at, begun_at=row.begun_at)
    return found


def summaries(connection: Connection, of: Collection[int]) -> Mapping[int, str]:
    """What the agents of some entries said of their runs, by the entry's row; nothing of a run that left no word."""
    query = select(runs.c.entry, runs.c.summary).where(runs.c.entry.in_(of))
    return {row.entry: row.summary for row in connection.execute(query) if row.summary}


def _ids(scope: Scope, after: str | None) -> Select[tuple[int, str]]:
    query = (
        select(schedules.c.id, schedules.c.schedule_id)
        .where(schedules.c.org_id == scope.org_id, schedules.c.environment_id == scope.environment_id)
        .order_by(schedules.c.schedule_id)
    )
    return query if after is None else query.where(schedules.c.schedule_id > after)


def _stands(standing: Standing | None) -> ColumnElement[bool]:
    is_there = schedules.c.retired_at.is_(None)
    fires = and_(activations.c.enabled, activations.c.ended_at.is_(None))
    in_review = and_(activations.c.enabled, activations.c.ended_as == Reason.REVIEW)
    match standing:
        case None:
            return is_there
        case Standing.RETIRED:
            return schedules.c.retired_at.is_not(None)
        case Standing.ENABLED:
            return and_(is_there, fires)
        case Standing.REVIEW:
            return and_(is_there, in_review)
        case Standing.NEVER_ENABLED:
            return and_(is_there, activations.c.schedule.is_(None))
        case Standing.PAUSED:
            # None of these is known where there is no activation, and then it was never enabled.
            return and_(is_there, not_(fires), not_(func.coalesce(in_review, False)))


def _pattern(text: str) -> str:
    """What a text looks like in canonical JSON, for LIKE: as the databases fold case in ASCII only, others stand for any."""
    inside = json.dumps(text, ensure_ascii=False)[1:-1].lower()
    escaped = "".join(f"!{each}" if each in "%_!" else each for each in inside)
    return "".join(each if each.isascii() else "%" for each in escaped)
