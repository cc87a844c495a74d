"""Agent classes as their runners report them (seed 004): what each can do follows from the events that it handles."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from horarium.authority.rules import RUNS
from horarium.catalog.environments import require_environment
from horarium.catalog.presence import RegisteredAgent, registered_agents
from horarium.control.principals import WRITE_SCOPE, Principal, authorize
from horarium.errors import NotFound
from horarium.schedule.identity import Scope, instant_text


def classes(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    *,
    is_conversational: bool | None = None,
    is_schedulable: bool | None = None,
    now: datetime,
    required_scope: str = WRITE_SCOPE,
) -> dict[str, Any]:
    """The agent classes of an environment by name, `{"agent_classes": […]}`; with a filter, only those that are, or are not.

    What a class can do is what its newest version can: the one that was registered last, of those whose runner has not left in
    good order where there is one. `offline_since` is when the last lease of any version ended, and null while a runner vouches
    for one.
    """
    authorize(principal, scope, required_scope)
    require_environment(connection, scope)
    wanted = {"is_conversational": is_conversational, "is_schedulable": is_schedulable}
    found = [_shown(name, versions, now) for name, versions in sorted(_grouped(connection, scope).items())]
    return {
        "agent_classes": [
            each for each in found if all(value is None or each[name] is value for name, value in wanted.items())
        ]
    }


def class_of(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    agent_class: str,
    *,
    now: datetime,
    required_scope: str = WRITE_SCOPE,
) -> dict[str, Any]:
    """One agent class, as `classes` shows it; `NotFound` with `agent_class_not_found`."""
    authorize(principal, scope, required_scope)
    require_environment(connection, scope)
    return reported(connection, scope, agent_class, now=now)


def reported(
    connection: Connection, scope: Scope, agent_class: str, *, now: datetime, agent_version: str | None = None
) -> dict[str, Any]:
    """What an agent class reports of itself; `NotFound` where no runner ever reported it. Whoever asks may see it.

    With an `agent_version` it is what that one reports, where it is one of the class: two versions may be there at once.
    """
    versions = _grouped(connection, scope).get(agent_class)
    if versions is None:
        raise class_not_found(scope, agent_class)
    return _shown(agent_class, versions, now, agent_version=agent_version)


def class_not_found(scope: Scope, agent_class: str) -> NotFound:
    """The answer about a class that no runner ever reported."""
    return NotFound(
        "agent_class_not_found",
        f"No runner has reported the agent class {agent_class[:80]!r} in {scope.org_id}/{scope.environment_id}.",
        next_step="Start a runner that hosts it with `python -m worker agents MODULE`; the list of agent classes shows "
        "those that are known.",
    )


def class_named(registered: RegisteredAgent) -> str | None:
    """The class of an agent version, None where its runner did not tell."""
    found = registered.discovery.get("agent_class")
    return found if isinstance(found, str) and found.isidentifier() else None


def _grouped(connection: Connection, scope: Scope) -> dict[str, list[RegisteredAgent]]:
    grouped: dict[str, list[RegisteredAgent]] = {}
    for each in registered_agents(connection, scope):
        name = class_named(each)
        if name is not None:
            grouped.setdefault(name, []).append(each)
    return grouped


def _shown(
    agent_class: str, versions: Sequence[RegisteredAgent], now: datetime, *, agent_version: str | None = None
) -> dict[str, Any]:
    named = next((each for each in versions if each.agent_version == agent_version), None)
    newest = (named or max(versions, key=_newness)).discovery
    return {
        "agent_class": agent_class,
        "is_conversational": newest.get("is_conversational") is True,
        "is_schedulable": newest.get("is_schedulable") is True,
        "start_events": list(newest.get("start_events", ())),
        "agent_versions": [
            {
                "agent_version": each.agent_version,
                "lifecycle": each.lifecycle,
                "lease_until": instant_text(each.lease_until),
                "seen_at": instant_text(each.seen_at),
                "description": str(each.discovery.get("description", "")),
            }
            for each in versions
        ],
        "form": list(newest.get("form", ())),
        "submission_schema": dict(newest.get("submission_schema", {})),
        "event_schemas": dict(newest.get("event_schemas", {})),
        "offline_since": _offline_since(versions, now),
    }


def _newness(each: RegisteredAgent) -> tuple[bool, datetime, str]:
    """Not by when it was seen, which moves with each renewal of a lease: two versions would take turns."""
    return each.lifecycle in RUNS, each.registered_at, each.agent_version


def _offline_since(versions: Sequence[RegisteredAgent], now: datetime) -> str | None:
    if any(each.lifecycle in RUNS and each.lease_until > now for each in versions):
        return None
    return instant_text(min(now, max(each.lease_until for each in versions)))
