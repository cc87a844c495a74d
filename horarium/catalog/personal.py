"""Where persons are named in the catalog, and queries that find and replace one of them.

A name means one person in one organization, so nothing of another organization is looked at.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, Table, Text, cast, delete, false, func, or_, select, update

from horarium.catalog.notification_tables import deliveries, endpoints, notifications
from horarium.catalog.session_tables import sessions, sign_in_codes
from horarium.catalog.tables import (
    activations,
    audit_events,
    authority_events,
    declarations,
    entries,
    profiles,
    receipts,
    runs,
    runtime,
    schedules,
    stops,
    versions,
)

AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A table that names persons: whole columns that are a name, documents in JSON with names in them, and texts that people
    and agents wrote.

    `names` and `documents` are replaced. In `texts` a name is replaced where we quoted it; what else they say is only counted.
    """

    table: Table
    names: Sequence[str] = ()
    documents: Sequence[str] = ()
    texts: Sequence[str] = ()


PLACES: Final = (
    Place(table=versions, names=("published_by",)),
    Place(table=activations, names=("changed_by",), texts=("ended_reason",)),
    Place(table=runs, names=("triggered_by",), documents=("evidence", "event_data"), texts=("summary",)),
    Place(table=receipts, names=("principal",), documents=("document",)),
    Place(table=authority_events, names=("actor",), documents=("details",)),
    Place(table=stops, names=("by",), texts=("because",)),
    Place(table=profiles, names=("changed_by",), texts=("config",)),
    Place(table=runtime, texts=("reason",)),
    Place(table=endpoints, names=("declared_by",), texts=("name", "url", "stopped_because")),
    Place(table=notifications, texts=("because",)),
    Place(table=deliveries, texts=("last_error",)),
)
"""All but the audit events, which go with their seals, and sessions, which are removed."""
EVENTS: Final = Place(table=audit_events, names=("actor",), documents=("details",))


def find_rows(
    connection: Connection, org_id: str, place: Place, name: str, *, after: tuple[Any, ...] = (), lock: bool = False
) -> list[Row[Any]]:
    """A page of the rows of an organization that may name a person, by their key."""
    key = list(place.table.primary_key.columns)
    query = select(place.table).where(_of(place.table, org_id), _mentions(place, name)).order_by(*key).limit(AT_ONCE)
    if after:
        query = query.where(_behind(key, after))
    return list(connection.execute(query.with_for_update() if lock else query))


def find_events(
    connection: Connection, org_id: str, environment_id: str, name: str, *, seal: int | None
) -> list[Row[Any]]:
    """The audit events of an environment under a seal, or a page of those under none, that may name a person."""
    query = (
        select(audit_events)
        .join(schedules, audit_events.c.schedule == schedules.c.id)
        .where(schedules.c.org_id == org_id, schedules.c.environment_id == environment_id, _mentions(EVENTS, name))
        .order_by(audit_events.c.id)
    )
    under = audit_events.c.seal.is_(None) if seal is None else audit_events.c.seal == seal
    return list(connection.execute(query.where(under)))


def seals_that_name(connection: Connection, org_id: str, environment_id: str, name: str) -> list[int]:
    """The numbers of the seals under which an event may name a person, oldest first."""
    query = (
        select(audit_events.c.seal)
        .distinct()
        .join(schedules, audit_events.c.schedule == schedules.c.id)
        .where(schedules.c.org_id == org_id, schedules.c.environment_id == environment_id, _mentions(EVENTS, name))
        .where(audit_events.c.seal.is_not(None))
        .order_by(audit_events.c.seal)
    )
    return [row.seal for row in connection.execute(query)]


def change_row(connection: Connection, table: Table, row: Row[Any], values: Mapping[str, Any]) -> None:
    """Change a row that was found. The caller holds the lock of what it belongs to."""
    key = [column == row._mapping[column.name] for column in table.primary_key.columns]  # noqa: SLF001 - the public way
    connection.execute(update(table).where(*key).values(**values))


def remove_sessions(connection: Connection, org_id: str, name: str, *, dry: bool) -> int:
    """Sign a person out everywhere, and return of how many sessions and codes; with `dry` only count them."""
    count = 0
    for table in (sessions, sign_in_codes):
        mine = (table.c.org_id == org_id, table.c.person == name)
        count += connection.execute(select(func.count()).select_from(table).where(*mine)).scalar_one()
        if not dry:
            connection.execute(delete(table).where(*mine))
    return count


def count_relied_on(connection: Connection, org_id: str, name: str) -> tuple[list[str], int]:
    """The schedules that are enabled on a person's word, and how many runs that the person asked for are under way."""
    enabled = (
        select(schedules.c.schedule_id)
        .join(activations, activations.c.schedule == schedules.c.id)
        .where(
            schedules.c.org_id == org_id,
            activations.c.changed_by == name,
            activations.c.enabled,
            activations.c.ended_at.is_(None),
        )
        .order_by(schedules.c.schedule_id)
    )
    asked = (
        select(func.count())
        .select_from(runs.join(entries, runs.c.entry == entries.c.id))
        .where(_of(runs, org_id), runs.c.triggered_by == name, entries.c.closed_at.is_(None))
    )
    return [row.schedule_id for row in connection.execute(enabled)], connection.execute(asked).scalar_one()


def declared_about(connection: Connection, org_id: str, name: str) -> list[Row[Any]]:
    """What operators declared that may name a person: as the person, among readers, or as who granted something."""
    query = select(declarations).where(
        declarations.c.org_id == org_id,
        or_(declarations.c.name == name, _in_json(declarations.c.facts, name)),
    )
    return list(connection.execute(query.order_by(declarations.c.kind, declarations.c.name)))


def environments_with_events(connection: Connection, org_id: str) -> list[str]:
    """The environments of an organization that have schedules."""
    query = select(schedules.c.environment_id).distinct().where(schedules.c.org_id == org_id)
    return sorted(row.environment_id for row in connection.execute(query))


def _of(table: Table, org_id: str) -> ColumnElement[bool]:
    if "org_id" in table.c:
        return table.c.org_id == org_id
    mine = select(schedules.c.id).where(schedules.c.org_id == org_id)
    if table is runs:
        return runs.c.entry.in_(select(entries.c.id).where(entries.c.schedule.in_(mine)))
    if table is deliveries:
        return deliveries.c.endpoint.in_(select(endpoints.c.id).where(endpoints.c.org_id == org_id))
    return table.c.schedule.in_(mine)


def _mentions(place: Place, name: str) -> ColumnElement[bool]:
    """A superset, cheap to ask for: who found a row looks at it."""
    return or_(
        false(),
        *(place.table.c[each] == name for each in place.names),
        *(_in_json(place.table.c[each], name) for each in place.documents),
        *(place.table.c[each].contains(name, autoescape=True) for each in place.texts),
    )


def _in_json(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """As SQLAlchemy writes JSON: anything but ASCII by its number."""
    return cast(column, Text).contains(json.dumps(name)[1:-1], autoescape=True)


def _behind(key: Sequence[ColumnElement[Any]], after: tuple[Any, ...]) -> ColumnElement[bool]:
    first, *rest = zip(key, after, strict=True)
    column, value = first
    later: ColumnElement[bool] = column > value
    if not rest:
        return later
    return or_(later, (column == value) & _behind([each for each, _ in rest], tuple(value for _, value in rest)))
