"""Queries on environments: what they are, and the state of them that callers have to know."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, select, update

from horarium.catalog.tables import environments
from horarium.catalog.upsert import make_sure
from horarium.errors import NotFound
from horarium.schedule.identity import Scope
from horarium.schedule.notifications import Kind, kinds_of_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An environment as stored. `runtime_profile` is None where nothing may run yet.

    In a `development` environment whoever is of the organization may act, and what nobody declared is looked for in the folder
    of contents. With `live_needs_approval`, live runs need an approval of their exact version. `notifies` holds the kinds of
    notifications that anybody wants to be told of.
    """

    scope: Scope
    mode: str
    authority_epoch: int
    reset_generation: int
    runtime_profile: str | None
    development: bool = False
    live_needs_approval: bool = False
    notifies: frozenset[Kind] = frozenset()


def ensure_environment(connection: Connection, scope: Scope, *, mode: str, runtime_profile: str) -> None:
    """Create a development environment if it is not there; an existing one is left as it is."""
    make_sure(
        connection,
        environments,
        {"org_id": scope.org_id, "environment_id": scope.environment_id},
        {
            "mode": mode,
            "authority_epoch": 1,
            "reset_generation": 1,
            "runtime_profile": runtime_profile,
            "development": mode == "simulation",
        },
    )


def create_environment(connection: Connection, environment: Environment) -> bool:
    """Store an environment that is not there yet, and say whether it was. One that is there is left as it is."""
    scope = environment.scope
    return make_sure(
        connection,
        environments,
        {"org_id": scope.org_id, "environment_id": scope.environment_id},
        {
            "mode": environment.mode,
            "authority_epoch": environment.authority_epoch,
            "reset_generation": environment.reset_generation,
            "runtime_profile": environment.runtime_profile,
            "development": environment.development,
            "live_needs_approval": environment.live_needs_approval,
        },
    )


def change_environment(connection: Connection, scope: Scope, **values: Any) -> None:
    """Set columns of an environment. The caller holds its lock."""
    here = (environments.c.org_id == scope.org_id, environments.c.environment_id == scope.environment_id)
    connection.execute(update(environments).where(*here).values(**values))


def find_environment(connection: Connection, scope: Scope, *, lock: bool = False) -> Environment | None:
    """The environment, or None. With `lock`, nobody else who locks it goes on until the transaction ends."""
    query = select(environments).where(
        environments.c.org_id == scope.org_id, environments.c.environment_id == scope.environment_id
    )
    row = connection.execute(query.with_for_update() if lock else query).mappings().one_or_none()
    return None if row is None else environment_of_row(row)


def require_environment(connection: Connection, scope: Scope, *, lock: bool = False) -> Environment:
    """The environment, locked if asked for; `NotFound` where there is none."""
    environment = find_environment(connection, scope, lock=lock)
    if environment is None:
        raise environment_not_found(scope)
    return environment


def environment_not_found(scope: Scope) -> NotFound:
    """The answer about an environment that is not there, or that the caller may not see."""
    return NotFound(
        "environment_not_found",
        f"There is no environment {scope.environment_id!r} in organization {scope.org_id!r}.",
        next_step="`horarium dev` and `horarium setup` create the one that they serve, and `horarium authority apply` any.",
    )


def environment_of_row(row: RowMapping | Mapping[str, Any]) -> Environment:
    """An environment as the row of its table."""
    return Environment(
        scope=Scope(org_id=row["org_id"], environment_id=row["environment_id"]),
        mode=row["mode"],
        authority_epoch=row["authority_epoch"],
        reset_generation=row["reset_generation"],
        runtime_profile=row["runtime_profile"],
        development=row["development"],
        live_needs_approval=row["live_needs_approval"],
        notifies=kinds_of_text(row["notifies"] or ""),
    )
