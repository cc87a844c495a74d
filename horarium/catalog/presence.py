"""Queries on who is there: workers with their heartbeats, agents with their leases, and what the controller observed."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    Connection,
    Row,
    Text,
    and_,
    bindparam,
    cast,
    delete,
    func,
    or_,
    select,
    update,
)

from horarium.catalog.schedules import Schedule
from horarium.catalog.stored_json import stored_object
from horarium.catalog.tables import activations, agents, runtime, schedules, sweeps, workers
from horarium.catalog.upsert import upsert, upsert_all
from horarium.errors import InvalidSchedule
from horarium.schedule.identity import Scope

HEARTBEAT_LIFETIME = timedelta(seconds=15)
"""How old a worker's heartbeat may be (DESIGN.md, section 7)."""
MAX_CLASS_NAME = 200
"""Characters of the name of an agent class. One that is longer is none: nothing could be stored under it."""
ROLES = ("schedules", "runs")
"""The two runtime workers."""
_LEFT = " (left)"
"""Behind the role of a worker that left in good order, so that its row counts as nobody's presence."""
FORSAKEN_AFTER = timedelta(minutes=15)
"""An environment whose schedules were looked at since needs no question whether any of them is enabled."""
UNSETTLED = frozenset({"pending", "stopping"})
"""Observed states that are on their way to another one: the controller looks again at its next tick."""
_LIVE = frozenset({"active", "error"})
"""Observed states of what may be live: sweeps look again, and a tick only once it has ended."""


_LISTED = (
    agents.c.agent_version,
    agents.c.agent_class,
    agents.c.description,
    agents.c.lifecycle,
    agents.c.lease_until,
    agents.c.seen_at,
    agents.c.registered_at,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentVersion:
    """An agent version that a runner has reported, and how long the runner vouches for it.

    `agent_class` is None where its runner told none that could be one. `registered_at` is when the version was reported for the
    first time; no later report or renewal moves it.
    """

    agent_version: str
    agent_class: str | None
    description: str
    lifecycle: str
    lease_until: datetime
    seen_at: datetime
    registered_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredAgent(AgentVersion):
    """An agent version with all that its runner reported. `fault` says why that cannot be read; then `discovery` is empty."""

    discovery: dict[str, Any]
    fault: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What the controller saw of a schedule, and when it looked."""

    generation: int
    state: str
    reason: str | None
    observed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the controller sees of a schedule, by the schedule's row."""

    row: int
    generation: int
    state: str
    reason: str | None


def beat(connection: Connection, *, instance: str, role: str, tzdata: str, now: datetime) -> None:
    """A worker says that it is polling.

    Workers that fell silent a day ago are forgotten on the way, and so are heartbeats of the future: whoever wrote one with a
    clock that was ahead and still lives will write again.
    """
    seen_at = workers.c.seen_at
    connection.execute(
        delete(workers).where(or_(seen_at < now - timedelta(days=1), seen_at > now + HEARTBEAT_LIFETIME))
    )
    upsert(connection, workers, {"instance": instance}, {"role": role, "seen_at": now, "tzdata": tzdata})


def leave(connection: Connection, *, instance: str) -> None:
    """A worker stops polling. Its row stays, under another role, so that it is known since when nobody is there."""
    connection.execute(
        update(workers)
        .where(workers.c.instance == instance, workers.c.role.in_(ROLES))
        .values(role=workers.c.role + _LEFT)
    )


def last_beat(connection: Connection, role: str, *, present: bool = False) -> datetime | None:
    """The newest heartbeat of a role; None where none is known, or the last was forgotten.

    Of workers that left too, or with `present` of those that did not.
    """
    roles = [role] if present else [role, role + _LEFT]
    query = select(func.max(workers.c.seen_at)).where(workers.c.role.in_(roles))
    found: datetime | None = connection.execute(query).scalar_one()
    return found


def roles_present(connection: Connection, *, now: datetime) -> frozenset[str]:
    """The runtime workers with a fresh heartbeat. One of the future says nothing about now."""
    seen_at = workers.c.seen_at
    fresh = and_(seen_at > now - HEARTBEAT_LIFETIME, seen_at <= now + HEARTBEAT_LIFETIME)
    query = select(workers.c.role).where(fresh).distinct()
    return frozenset(connection.execute(query).scalars())


def execution_ready(connection: Connection, *, now: datetime) -> bool:
    """Whether both runtime workers are there. It is no proof that a run has ever been completed."""
    return roles_present(connection, now=now) >= set(ROLES)


def register_agent(
    connection: Connection,
    scope: Scope,
    agent_version: str,
    discovery: dict[str, Any],
    *,
    lease_until: datetime,
    now: datetime,
) -> None:
    """Store what a runner reports of one agent version, ready and with a lease."""
    listed = {"agent_class": _class_in(discovery), "description": _description_in(discovery)}
    upsert(
        connection,
        agents,
        {"org_id": scope.org_id, "environment_id": scope.environment_id, "agent_version": agent_version},
        {"discovery": discovery, "lifecycle": "ready", "lease_until": lease_until, "seen_at": now, **listed},
        first={"registered_at": now},
    )


def renew_lease(
    connection: Connection, scope: Scope, agent_version: str, *, lease_until: datetime, now: datetime
) -> bool:
    """Extend a lease; False where no such agent version is registered."""
    changed = connection.execute(
        update(agents)
        .where(*_agent(scope, agent_version))
        .values(lease_until=lease_until, seen_at=now, lifecycle="ready")
    )
    return changed.rowcount > 0


def release_agent(connection: Connection, scope: Scope, agent_version: str, *, now: datetime) -> None:
    """The runner leaves in good order."""
    connection.execute(
        update(agents).where(*_agent(scope, agent_version)).values(lifecycle="stopped", lease_until=now, seen_at=now)
    )


def find_agent(connection: Connection, scope: Scope, agent_version: str) -> RegisteredAgent | None:
    """An agent version, or None where no runner ever reported it."""
    return find_agents(connection, scope, [agent_version]).get(agent_version)


def find_agents(connection: Connection, scope: Scope, agent_versions: Collection[str]) -> dict[str, RegisteredAgent]:
    """Those of some agent versions that a runner has reported, by name. One that is damaged keeps no other from being read."""
    query = select(*_LISTED, cast(agents.c.discovery, Text).label("told")).where(
        *_agents_of(scope), agents.c.agent_version.in_(agent_versions)
    )
    return {row.agent_version: _registered(row) for row in connection.execute(query)}


def list_classes(connection: Connection, scope: Scope, *, after: str | None, limit: int) -> Sequence[str]:
    """A page of the agent classes that runners have reported, by name, beginning behind `after`."""
    query = (
        select(agents.c.agent_class)
        .where(*_agents_of(scope), agents.c.agent_class.is_not(None) if after is None else agents.c.agent_class > after)
        .distinct()
        .order_by(agents.c.agent_class)
        .limit(limit)
    )
    return connection.execute(query).scalars().all()


def versions_of(connection: Connection, scope: Scope, agent_classes: Collection[str]) -> Sequence[AgentVersion]:
    """Every version of some classes that a runner has ever reported, by name, without all that it reported."""
    query = (
        select(*_LISTED)
        .where(*_agents_of(scope), agents.c.agent_class.in_(agent_classes))
        .order_by(agents.c.agent_version)
    )
    return [AgentVersion(**_listed(row)) for row in connection.execute(query)]


def present_agents(connection: Connection, scope: Scope, *, now: datetime) -> Sequence[str]:
    """The agent versions whose runner vouches for them now, by name."""
    query = (
        select(agents.c.agent_version)
        .where(agents.c.org_id == scope.org_id, agents.c.environment_id == scope.environment_id)
        .where(agents.c.lifecycle == "ready", agents.c.lease_until > now)
        .order_by(agents.c.agent_version)
    )
    return connection.execute(query).scalars().all()


def observe(
    connection: Connection, schedule_row: int, *, generation: int, state: str, reason: str | None, now: datetime
) -> None:
    """Write down what the controller saw of one schedule, as `observe_all` does."""
    observe_all(connection, [Seen(row=schedule_row, generation=generation, state=state, reason=reason)], now=now)


def observe_all(connection: Connection, seen: Iterable[Seen], *, now: datetime) -> None:
    """Write down what the controller saw of several schedules, all or none of it, in as many statements as for one.

    A schedule that is as it should be need not be looked at before it changes.
    """
    # In one order, so that no two controllers wait for each other's locks.
    ordered = sorted(seen, key=lambda each: each.row)
    if not ordered:
        return
    rows = [each.row for each in ordered]
    upsert_all(connection, runtime, [_observation(each, now) for each in ordered])
    # Locked in a statement of its own: the next one then sees an end that was committed while this one waited.
    connection.execute(
        select(schedules.c.id).where(schedules.c.id.in_(rows)).order_by(schedules.c.id).with_for_update()
    )
    query = select(activations.c.schedule, activations.c.generation).where(
        activations.c.schedule.in_(rows),
        activations.c.generation.in_({each.generation for each in ordered}),
        activations.c.ended_at.is_not(None),
    )
    ended = {(row.schedule, row.generation) for row in connection.execute(query)}
    settle = (
        update(schedules)
        .where(schedules.c.id == bindparam("seen_row"), schedules.c.generation == bindparam("seen_generation"))
        .values(unobserved=bindparam("still_open"))
    )
    connection.execute(
        settle,
        [
            {
                "seen_row": each.row,
                "seen_generation": each.generation,
                "still_open": (each.row, each.generation) in ended if each.state in _LIVE else each.state in UNSETTLED,
            }
            for each in ordered
        ],
    )


def _observation(seen: Seen, now: datetime) -> dict[str, Any]:
    return {
        "schedule": seen.row,
        "generation": seen.generation,
        "state": seen.state,
        "reason": seen.reason,
        "observed_at": now,
    }


def observations(connection: Connection, of: Sequence[Schedule]) -> dict[int, Observation]:
    """The last observation of each schedule that has one, by row.

    Of one that a later round of the controller found unchanged, `observed_at` is when that round began: it was looked at then
    or later. A round comes to all schedules of an environment (see `starter.rotation`).
    """
    query = (
        select(runtime, sweeps.c.swept_at)
        .select_from(
            runtime.join(schedules, schedules.c.id == runtime.c.schedule).outerjoin(
                sweeps,
                and_(sweeps.c.org_id == schedules.c.org_id, sweeps.c.environment_id == schedules.c.environment_id),
            )
        )
        .where(runtime.c.schedule.in_([schedule.row for schedule in of]))
    )
    return {
        row.schedule: Observation(
            generation=row.generation,
            state=row.state,
            reason=row.reason,
            observed_at=max(row.observed_at, row.swept_at or row.observed_at),
        )
        for row in connection.execute(query)
    }


def note_sweep(connection: Connection, scope: Scope, *, began_at: datetime, now: datetime) -> None:
    """Write down that a round of looks that began then has come to every schedule of an environment, and told what it found.

    So each was looked at then or later. A round of many schedules is many sweeps, and then takes minutes. Rounds go on side by
    side, so one that began later may end, and be written down, before this one: then nothing is left to write. What is written
    down and lies ahead of `now` was told by a clock that was ahead, and is no longer believed.
    """
    key = {"org_id": scope.org_id, "environment_id": scope.environment_id}
    goes_on = or_(sweeps.c.swept_at < began_at, sweeps.c.swept_at > now)
    upsert(connection, sweeps, key, {"swept_at": began_at}, where=goes_on)


def longest_ago(connection: Connection, *, now: datetime) -> datetime | None:
    """When the round of looks began that has come to every schedule, of the environment where that is longest ago.

    An environment in which nothing is enabled may be left alone: it counts for `FORSAKEN_AFTER` and no longer, and None is
    returned where there is no other. Only where nobody has looked for as long are the schedules gone through, until one is
    found that is enabled.
    """
    forsaken = sweeps.c.swept_at <= now - FORSAKEN_AFTER
    oldest = select(sweeps.c.swept_at).where(forsaken, _SOMETHING_ENABLED.is_not(None)).order_by(sweeps.c.swept_at)
    found: datetime | None = connection.execute(oldest.limit(1)).scalar_one_or_none()
    if found is None:
        found = connection.execute(select(func.min(sweeps.c.swept_at)).where(~forsaken)).scalar_one()
    return found


# Each within the other, with a limit and in the order of an index, so that no planner goes through what is elsewhere.
_ENABLED = (
    select(activations.c.id)
    .where(activations.c.schedule == schedules.c.id, activations.c.ended_at.is_(None))
    .limit(1)
    .correlate(schedules)
    .scalar_subquery()
)
_SOMETHING_ENABLED = (
    select(schedules.c.id)
    .where(
        schedules.c.org_id == sweeps.c.org_id,
        schedules.c.environment_id == sweeps.c.environment_id,
        _ENABLED.is_not(None),
    )
    .order_by(schedules.c.schedule_id)
    .limit(1)
    .correlate(sweeps)
    .scalar_subquery()
)


def _class_in(discovery: Mapping[str, Any]) -> str | None:
    name = discovery.get("agent_class")
    named = isinstance(name, str) and name.isidentifier() and len(name) <= MAX_CLASS_NAME
    return name if named else None


def _description_in(discovery: Mapping[str, Any]) -> str:
    # What is no character is no part of a text, and PostgreSQL takes no NUL in one.
    return str(discovery.get("description", "")).encode("utf-8", "replace").decode().replace("\0", "")


def _registered(row: Row[Any]) -> RegisteredAgent:
    try:
        discovery, fault = stored_object(row.told, what="It"), None
    except InvalidSchedule as error:
        discovery, fault = {}, error.faults[0].sentence
    return RegisteredAgent(**_listed(row), discovery=discovery, fault=fault)


def _listed(row: Any) -> dict[str, Any]:
    return {
        "agent_version": row.agent_version,
        "agent_class": row.agent_class,
        "description": row.description or "",
        "lifecycle": row.lifecycle,
        "lease_until": row.lease_until,
        "seen_at": row.seen_at,
        "registered_at": row.registered_at or row.seen_at,
    }


def _agent(scope: Scope, agent_version: str) -> tuple[Any, ...]:
    return (*_agents_of(scope), agents.c.agent_version == agent_version)


def _agents_of(scope: Scope) -> tuple[Any, ...]:
    return (agents.c.org_id == scope.org_id, agents.c.environment_id == scope.environment_id)
