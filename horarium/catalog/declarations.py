"""Queries on what operators declared, on kill switches, and on what operators did."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Text,
    and_,
    bindparam,
    cast,
    delete,
    insert,
    or_,
    select,
    update,
)

from horarium.catalog.tables import authority_events, declarations, stops
from horarium.catalog.upsert import make_sure, upsert, upsert_all
from horarium.schedule.identity import Scope

ORGANIZATION = ""
"""As an environment: the organization as a whole."""
_ITSELF = "organization"
"""The kind of the one row that stands for an organization. It declares nothing and is there to be locked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """One declaration as stored. `version` is the number of the operator's act that made it what it is."""

    kind: str
    name: str
    version: int
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStop:
    """A kill switch that is on; `environment_id` is empty for the organization's."""

    environment_id: str
    since: datetime
    by: str
    because: str


def find_declarations(
    connection: Connection, scope: Scope, wanted: Collection[tuple[str, str]]
) -> dict[tuple[str, str], Declaration]:
    """Those of the wanted declarations that are there, by kind and name; the organization's own among them."""
    of = {
        "org_id": scope.org_id,
        "here": [ORGANIZATION, scope.environment_id],
        "kinds": sorted({kind for kind, _ in wanted}),
        "names": sorted({name for _, name in wanted}),
    }
    found = (_declaration(row) for row in connection.execute(_WANTED, of).mappings())
    return {(each.kind, each.name): each for each in found if (each.kind, each.name) in wanted}


def declared_texts(connection: Connection, scope: Scope, kind: str, names: Collection[str]) -> list[tuple[str, str]]:
    """Name and facts of some declarations of a kind as they are stored, those of the organization first: for whoever only tells
    of them, and is hindered by no damaged one.
    """
    here = declarations.c.environment_id.in_([ORGANIZATION, scope.environment_id])
    query = (
        select(declarations.c.name, cast(declarations.c.facts, Text).label("told"))
        .where(declarations.c.org_id == scope.org_id, here)
        .where(declarations.c.kind == kind, declarations.c.name.in_(names))
        .order_by(declarations.c.environment_id)
    )
    return [(row.name, row.told) for row in connection.execute(query)]


def list_declarations(connection: Connection, scope: Scope) -> Sequence[Declaration]:
    """Everything that is declared for an environment and its organization, by kind and name."""
    query = _of(scope).where(declarations.c.kind != _ITSELF).order_by(declarations.c.kind, declarations.c.name)
    return [_declaration(row) for row in connection.execute(query).mappings()]


def lock_organization(connection: Connection, scope: Scope) -> None:
    """Let nobody else who calls this for the organization go on until the transaction ends.

    Whoever changes what stands for all environments does. The lock of an environment is taken before it, never after.
    """
    key = {**_owner(scope, everywhere=True), "kind": _ITSELF, "name": scope.org_id}
    make_sure(connection, declarations, key, {"version": 0, "facts": {}})
    row = and_(*(declarations.c[column] == value for column, value in key.items()))
    connection.execute(select(declarations.c.version).where(row).with_for_update())


def declare(
    connection: Connection,
    scope: Scope,
    kind: str,
    name: str,
    facts: Mapping[str, Any],
    *,
    version: int,
    everywhere: bool,
) -> None:
    """Make a declaration what it says; with `everywhere`, one of the organization."""
    key = {**_owner(scope, everywhere=everywhere), "kind": kind, "name": name}
    upsert(connection, declarations, key, {"version": version, "facts": dict(facts)})


def declare_all(
    connection: Connection,
    scope: Scope,
    made: Iterable[tuple[str, str, Mapping[str, Any]]],
    *,
    version: int,
    everywhere: bool,
) -> None:
    """Make many declarations what they say: kind, name and facts of each."""
    owner = _owner(scope, everywhere=everywhere)
    rows = [
        {**owner, "kind": kind, "name": name, "version": version, "facts": dict(facts)} for kind, name, facts in made
    ]
    upsert_all(connection, declarations, rows)


def withdraw_all(
    connection: Connection, scope: Scope, withdrawn: Iterable[tuple[str, str]], *, everywhere: bool
) -> None:
    """Take many declarations back: kind and name of each. What was counted for them stays."""
    rows = [{"of": kind, "called": name} for kind, name in withdrawn]
    if not rows:
        return
    owner = _owner(scope, everywhere=everywhere)
    connection.execute(
        delete(declarations).where(
            declarations.c.org_id == owner["org_id"],
            declarations.c.environment_id == owner["environment_id"],
            declarations.c.kind == bindparam("of"),
            declarations.c.name == bindparam("called"),
        ),
        rows,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Halts:
    """The kill switch that is on for an environment, the organization's first, and when one of theirs was lifted last.

    `lifted_at` is None where none was, or it is on again.
    """

    stop: StoredStop | None
    lifted_at: datetime | None


def find_halts(connection: Connection, scope: Scope) -> Halts:
    """What an environment's kill switches say."""
    of = {"org_id": scope.org_id, "here": [ORGANIZATION, scope.environment_id]}
    rows = connection.execute(_STOPS, of).mappings().all()
    lifts = [row["lifted_at"] for row in rows if row["lifted_at"] is not None]
    return Halts(
        stop=next((_stop(row) for row in rows if row["lifted_at"] is None), None), lifted_at=max(lifts, default=None)
    )


def list_stops(connection: Connection, scope: Scope) -> Sequence[StoredStop]:
    """The kill switches that are on for an environment and for its organization, the organization's first."""
    query = select(stops).where(*_stops_of(scope), stops.c.lifted_at.is_(None)).order_by(stops.c.environment_id)
    return [_stop(row) for row in connection.execute(query).mappings()]


def set_stop(connection: Connection, scope: Scope, *, everywhere: bool, by: str, because: str, now: datetime) -> None:
    """Put a kill switch on."""
    values = {"since": now, "by": by, "because": because, "lifted_at": None}
    upsert(connection, stops, _owner(scope, everywhere=everywhere), values)


def lift_stop(connection: Connection, scope: Scope, *, everywhere: bool, now: datetime) -> bool:
    """Take a kill switch off; False where it was not on."""
    owner = _owner(scope, everywhere=everywhere)
    on = and_(*(stops.c[column] == value for column, value in owner.items()), stops.c.lifted_at.is_(None))
    return connection.execute(update(stops).where(on).values(lifted_at=now)).rowcount > 0


def record_act(
    connection: Connection,
    scope: Scope,
    kind: str,
    *,
    actor: str,
    now: datetime,
    details: Mapping[str, Any],
    everywhere: bool = False,
) -> int:
    """Append what an operator did, and return its number."""
    owner = _owner(scope, everywhere=everywhere)
    result = connection.execute(
        insert(authority_events).values(**owner, kind=kind, at=now, actor=actor, details=dict(details))
    )
    assert result.inserted_primary_key is not None
    number: int = result.inserted_primary_key[0]
    return number


def list_acts(
    connection: Connection, scope: Scope, *, after: int = 0, limit: int, newest: bool = False
) -> Sequence[RowMapping]:
    """A page of what operators did in an environment and its organization, beginning behind `after`.

    Oldest first; with `newest`, the last ones, newest first.
    """
    query = (
        select(authority_events)
        .where(
            authority_events.c.org_id == scope.org_id,
            or_(
                authority_events.c.environment_id == scope.environment_id,
                authority_events.c.environment_id == ORGANIZATION,
            ),
            authority_events.c.id > after,
        )
        .order_by(authority_events.c.id.desc() if newest else authority_events.c.id)
        .limit(limit)
    )
    return connection.execute(query).mappings().all()


def _of(scope: Scope) -> Any:
    return select(declarations).where(
        declarations.c.org_id == scope.org_id,
        declarations.c.environment_id.in_([ORGANIZATION, scope.environment_id]),
    )


def _stops_of(scope: Scope) -> tuple[ColumnElement[bool], ...]:
    return (stops.c.org_id == scope.org_id, stops.c.environment_id.in_([ORGANIZATION, scope.environment_id]))


def _owner(scope: Scope, *, everywhere: bool) -> dict[str, str]:
    return {"org_id": scope.org_id, "environment_id": ORGANIZATION if everywhere else scope.environment_id}


def _stop(row: RowMapping) -> StoredStop:
    return StoredStop(environment_id=row["environment_id"], since=row["since"], by=row["by"], because=row["because"])


def _declaration(row: RowMapping) -> Declaration:
    return Declaration(kind=row["kind"], name=row["name"], version=row["version"], facts=row["facts"])


# What each admission asks, made once (see `horarium.catalog.schedules.OF_A_GENERATION`).
_WANTED = select(declarations).where(
    declarations.c.org_id == bindparam("org_id"),
    declarations.c.environment_id.in_(bindparam("here", expanding=True)),
    declarations.c.kind.in_(bindparam("kinds", expanding=True)),
    declarations.c.name.in_(bindparam("names", expanding=True)),
)
_STOPS = (
    select(stops)
    .where(stops.c.org_id == bindparam("org_id"), stops.c.environment_id.in_(bindparam("here", expanding=True)))
    .order_by(stops.c.environment_id)
)
