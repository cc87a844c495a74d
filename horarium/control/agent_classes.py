"""Agent classes as their runners report them (seed 004): what each can do follows from the events that it handles."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Final

from sqlalchemy import Connection

from horarium.authority.rules import RUNS
from horarium.catalog.environments import require_environment
from horarium.catalog.presence import AgentVersion, RegisteredAgent, list_classes, versions_of
from horarium.control.principals import WRITE_SCOPE, Principal, authorize
from horarium.control.records import MAX_PAGE, require_limit
from horarium.control.registrations import registration, registrations
from horarium.errors import NotFound
from horarium.schedule.identity import Scope, instant_text

MAX_SHOWN: Final = 80
"""Characters of a name that nobody knows which are shown again."""
_COMPARED: Final = 500
"""Names of classes that one which nobody knows is compared with."""
MAX_VERSIONS: Final = 100
"""Versions of one class that are shown, the newest ones: they are never forgotten."""


def classes(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    *,
    is_conversational: bool | None = None,
    is_schedulable: bool | None = None,
    after: str | None = None,
    limit: int = 25,
    now: datetime,
    required_scope: str = WRITE_SCOPE,
) -> dict[str, Any]:
    """A page of the agent classes of an environment by name: `{"agent_classes": […], "next_cursor": name or None}`.

    With a filter only those of the page that are, or are not, so that it may hold fewer than `limit`, and none.

    What a class can do is what its newest version can: the one that was registered last, of those whose runner has not left in
    good order where there is one. `offline_since` is when the last lease of any version ended, and null while a runner vouches
    for one.
    """
    authorize(principal, scope, required_scope)
    require_environment(connection, scope)
    require_limit(limit, MAX_PAGE, "agent classes")
    names = list_classes(connection, scope, after=after, limit=limit + 1)
    page = names[:limit]
    by_class = _by_class(connection, scope, page)
    newest = registrations(connection, scope, [versions[0].agent_version for versions in by_class.values()])
    wanted = {"is_conversational": is_conversational, "is_schedulable": is_schedulable}
    found: list[dict[str, Any]] = []
    for name in page:
        first, *others = by_class[name]
        speaking = newest.get(first.agent_version) or _speaking(connection, scope, others)
        if speaking is not None:
            found.append(_shown(speaking, by_class[name], now))
    return {
        "agent_classes": [
            each for each in found if all(value is None or each[name] is value for name, value in wanted.items())
        ],
        "next_cursor": page[-1] if len(names) > limit else None,
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
    versions = _by_class(connection, scope, [agent_class]).get(agent_class, []) if agent_class.isidentifier() else []
    named = [each for each in versions if each.agent_version == agent_version]
    speaking = _speaking(connection, scope, (*named, *versions))
    if speaking is None:
        raise class_not_found(connection, scope, agent_class)
    return _shown(speaking, versions, now)


def require_class(connection: Connection, scope: Scope, agent_class: str) -> None:
    """Raise `NotFound` with `agent_class_not_found` for a class that no runner ever reported."""
    if not agent_class.isidentifier() or not versions_of(connection, scope, [agent_class]):
        raise class_not_found(connection, scope, agent_class)


def class_not_found(connection: Connection, scope: Scope, agent_class: str) -> NotFound:
    """The answer about a class that no runner ever reported, with the name of one that may have been meant."""
    meant = _meant(list_classes(connection, scope, after=None, limit=_COMPARED), agent_class[:MAX_SHOWN])
    return NotFound(
        "agent_class_not_found",
        f"No runner has reported the agent class {agent_class[:MAX_SHOWN]!r} in {scope.org_id}/{scope.environment_id}."
        + ("" if meant is None else f" Did you mean {meant!r}?"),
        next_step="Start a runner that hosts it with `horarium worker agents MODULE`; the list of agent classes shows "
        "those that are known.",
    )


def _meant(known: Iterable[str], name: str) -> str | None:
    """The known name that differs from another by its case alone, or else by little; None where there is none."""
    folded = {each.casefold(): each for each in known}
    return next((folded[each] for each in get_close_matches(name.casefold(), folded, n=1, cutoff=0.75)), None)


def _by_class(connection: Connection, scope: Scope, names: Collection[str]) -> dict[str, list[AgentVersion]]:
    """The versions of some classes, newest first."""
    grouped: dict[str, list[AgentVersion]] = {}
    for each in sorted(versions_of(connection, scope, names), key=_newness, reverse=True):
        grouped.setdefault(str(each.agent_class), []).append(each)
    return grouped


def _speaking(connection: Connection, scope: Scope, versions: Iterable[AgentVersion]) -> RegisteredAgent | None:
    """The first of some versions whose report can be read."""
    found = (registration(connection, scope, each.agent_version) for each in versions)
    return next((each for each in found if each is not None), None)


def _shown(speaking: RegisteredAgent, versions: Sequence[AgentVersion], now: datetime) -> dict[str, Any]:
    told = speaking.discovery
    listed = sorted(versions[:MAX_VERSIONS], key=lambda each: each.agent_version)
    return {
        "agent_class": speaking.agent_class,
        "is_conversational": told.get("is_conversational") is True,
        "is_schedulable": told.get("is_schedulable") is True,
        "start_events": list(told.get("start_events", ())),
        "agent_versions": [
            {
                "agent_version": each.agent_version,
                "lifecycle": each.lifecycle,
                "lease_until": instant_text(each.lease_until),
                "seen_at": instant_text(each.seen_at),
                "description": each.description,
            }
            for each in listed
        ],
        "form": list(told.get("form", ())),
        "submission_schema": dict(told.get("submission_schema", {})),
        "event_schemas": dict(told.get("event_schemas", {})),
        "offline_since": _offline_since(versions, now),
    }


def _newness(each: AgentVersion) -> tuple[bool, datetime, str]:
    """Not by when it was seen, which moves with each renewal of a lease: two versions would take turns."""
    return each.lifecycle in RUNS, each.registered_at, each.agent_version


def _offline_since(versions: Sequence[AgentVersion], now: datetime) -> str | None:
    if any(each.lifecycle in RUNS and each.lease_until > now for each in versions):
        return None
    return instant_text(min(now, max(each.lease_until for each in versions)))
