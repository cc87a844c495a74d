"""Queries behind the directory that people look at: which schedules it lists, and where their runs stand, a page at a time."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select

from horarium.catalog.schedules import Schedule, schedule_of_row
from horarium.catalog.tables import activations, entries, runs, schedules, versions
from horarium.schedule.identity import Scope
from horarium.schedule.ledger import Disposition, Reason


class Standing(StrEnum):
    """What a schedule may be asked for by."""

    ENABLED = "enabled"
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
    limit: int,
    window: int,
    standing: Standing | None = None,
    holding: str | None = None,
) -> Part:
    """At most `limit` schedules behind an id, among the next `window` of the environment.

    Without `standing`, all that are not retired. `holding` leaves those whose id or newest configuration may hold a text in
    any case: whoever asks looks at what is found, since letters beyond ASCII are taken for any.
    """
    ids = _ids(scope, after).limit(window)
    looked_at = ids.subquery()
    query = (
        select(schedules)
        .select_from(
            schedules.join(looked_at, looked_at.c.id == schedules.c.id)
            .outerjoin(
                activations,
                (activations.c.schedule == schedules.c.id) & (activations.c.generation == schedules.c.generation),
            )
            .join(
                versions,
                (versions.c.schedule == schedules.c.id) & (versions.c.revision == schedules.c.head_revision),
            )
        )
        .where(_stands(standing))
        .order_by(schedules.c.schedule_id)
        .limit(limit + 1)
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
    if len(found) > limit:
        return Part(schedules=found[:limit], last=found[limit - 1].key.schedule_id)
    return Part(schedules=found, last=_last_of(connection, scope, after, window=window))


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


def begun_of(connection: Connection, of: Collection[int]) -> Mapping[int, datetime]:
    """When the agents of some entries began, by the entry's row; nothing of those where none did."""
    query = select(runs.c.entry, runs.c.begun_at).where(runs.c.entry.in_(of), runs.c.begun_at.is_not(None))
    return {row.entry: row.begun_at for row in connection.execute(query)}


def _ids(scope: Scope, after: str | None) -> Select[tuple[int, str]]:
    query = (
        select(schedules.c.id, schedules.c.schedule_id)
        .where(schedules.c.org_id == scope.org_id, schedules.c.environment_id == scope.environment_id)
        .order_by(schedules.c.schedule_id)
    )
    return query if after is None else query.where(schedules.c.schedule_id > after)


def _last_of(connection: Connection, scope: Scope, after: str | None, *, window: int) -> str | None:
    """The last schedule of a window, where there are others behind it."""
    row = connection.execute(_ids(scope, after).offset(window - 1).limit(2)).all()
    return row[0].schedule_id if len(row) > 1 else None


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
        case Standing.PAUSED:
            # Either may be unknown, where there is no activation.
            return and_(is_there, func.coalesce(fires, False).is_(False), func.coalesce(in_review, False).is_(False))


def _pattern(text: str) -> str:
    """What a text looks like in canonical JSON, for LIKE: as the databases fold case in ASCII only, others stand for any."""
    inside = json.dumps(text, ensure_ascii=False)[1:-1].lower()
    escaped = "".join(f"!{each}" if each in "%_!" else each for each in inside)
    return "".join(each if each.isascii() else "%" for each in escaped)
