"""What is stored of cron profiles and their threads, as plain documents for people and programs.

All values are ready for JSON. A profile whose stored row cannot be read is told with its `fault`, written to the log as an
error, and hides no other.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection

from horarium.catalog import ledger
from horarium.catalog.environments import require_environment
from horarium.catalog.profiles import StoredProfile, find_profile, list_profiles
from horarium.catalog.schedules import find_schedules
from horarium.catalog.standings import Standing, standings
from horarium.catalog.threads import find_thread, list_thread_events
from horarium.control import threads
from horarium.control.agent_classes import require_class
from horarium.control.events import reference
from horarium.control.principals import OPERATOR_SCOPE, WRITE_SCOPE, Principal, authorize
from horarium.control.profile_fits import misfits
from horarium.control.records import MAX_PAGE, last_outcome, next_due, require_limit
from horarium.errors import InvalidSchedule, NotFound
from horarium.schedule.identity import Scope, instant_text
from horarium.schedule.profiles import can_name, parse_profile, thread_id

MAX_EVENTS: Final = 1_000
"""Events on one page of a thread."""
_REMEDY: Final = "Save the profile again."


def show(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    agent_class: str,
    agent_id: str,
    *,
    now: datetime,
    required_scope: str = WRITE_SCOPE,
) -> dict[str, Any]:
    """A profile and how its schedule stands.

    `state` is `enabled`, `paused`, `review` with its `reason`, or `unscheduled` where it has no cron. `fault` says why what is
    stored cannot be used, or no longer fits the version that it is for; `config` is null where it cannot be read.
    `last_outcome` is what became of the run that was decided or ended last, a refused one too.
    """
    authorize(principal, scope, required_scope)
    require_environment(connection, scope)
    profile = find_profile(connection, scope, agent_class, agent_id)
    if profile is None or profile.is_deleted:
        raise profile_not_found(scope, agent_class, agent_id)
    (shown,) = _shown(connection, scope, [profile], now=now)
    return shown


def directory(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    agent_class: str,
    *,
    after: str | None = None,
    limit: int = 25,
    now: datetime,
    required_scope: str = WRITE_SCOPE,
) -> dict[str, Any]:
    """A page of the profiles of a class by their ids: `{"profiles": […], "next_cursor": id or None}`, each as in `show`."""
    authorize(principal, scope, required_scope)
    require_environment(connection, scope)
    require_limit(limit, MAX_PAGE, "profiles")
    found = list_profiles(connection, scope, agent_class, after=after, limit=limit + 1)
    if not found:
        require_class(connection, scope, agent_class)
    page = found[:limit]
    more = len(found) > limit
    return {
        "profiles": _shown(connection, scope, page, now=now),
        "next_cursor": page[-1].agent_id if more else None,
    }


def thread(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    agent_class: str,
    agent_id: str,
    *,
    after: int = 0,
    limit: int = MAX_EVENTS,
    required_scope: str = OPERATOR_SCOPE,
) -> dict[str, Any]:
    """The thread of a profile and a page of its events, oldest first, for operators. That of a deleted profile is there too.

    Its tenant is the one that the profile has now, or had last.

    Raises `NotFound` with `thread_not_found` before its first run.
    """
    authorize(principal, scope, required_scope)
    require_environment(connection, scope)
    require_limit(limit, MAX_EVENTS, "events")
    named = can_name(agent_class, agent_id)
    found = find_thread(connection, scope, thread_id(agent_class, agent_id)) if named else None
    if found is None:
        raise NotFound(
            "thread_not_found",
            f"There is no thread of profile {agent_id[:80]!r} of agent class {agent_class[:80]!r} in "
            f"{scope.org_id}/{scope.environment_id}.",
            next_step="It is made by the first run of the profile.",
        )
    profile = find_profile(connection, scope, agent_class, agent_id)
    rows = list_thread_events(connection, scope, found.thread_id, after=after, limit=limit + 1)
    page = rows[:limit]
    return {
        "thread_id": found.thread_id,
        "agent_class": found.agent_class,
        "agent_id": found.agent_id,
        "tenant_id": None if profile is None else profile.tenant_id,
        "created_at": _told(found.created_at),
        "members": [],
        "events": [
            {
                "id": row.id,
                "kind": row.kind,
                "at": _told(row.at),
                "run_id": row.run_id,
                "data": row.data,
            }
            for row in page
        ],
        "next_cursor": page[-1].id if len(rows) > limit else None,
    }


def profile_not_found(scope: Scope, agent_class: str, agent_id: str) -> NotFound:
    """The answer about a profile that is not there, or was deleted."""
    return NotFound(
        "profile_not_found",
        f"There is no profile {agent_id[:80]!r} of agent class {agent_class[:80]!r} in "
        f"{scope.org_id}/{scope.environment_id}.",
        next_step="The list of profiles of the class shows those that are there.",
    )


def _shown(
    connection: Connection, scope: Scope, page: Sequence[StoredProfile], *, now: datetime
) -> list[dict[str, Any]]:
    schedules = find_schedules(connection, scope, [each.schedule_id for each in page])
    by_id = {each.schedule.key.schedule_id: each for each in standings(connection, schedules)}
    closed = ledger.newest_closed(connection, schedules)
    found = [(each, by_id.get(each.schedule_id)) for each in page]
    unfit = misfits(connection, scope, found)
    return [
        {
            **_document(profile, standing, unfit=unfit.get(profile.row), now=now),
            "last_outcome": None if standing is None else last_outcome(closed.get(standing.schedule.row)),
        }
        for profile, standing in found
    ]


def _document(profile: StoredProfile, standing: Standing | None, *, unfit: str | None, now: datetime) -> dict[str, Any]:
    config, cron, fault = _read(profile, standing)
    if fault is not None:
        threads.log_malformed(profile, fault)
    state, reason = _state(standing, has_cron=cron is not None or fault is not None)
    due = None if standing is None else next_due(standing, now=now)
    return {
        "agent_class": profile.agent_class,
        "agent_id": profile.agent_id,
        "tenant_id": profile.tenant_id,
        "config": config,
        "cron": cron,
        "fault": " ".join(each for each in (fault, unfit) if each is not None) or None,
        "schedule_id": None if standing is None else standing.schedule.key.schedule_id,
        "state": state,
        "reason": reason,
        "thread_id": thread_id(profile.agent_class, profile.agent_id),
        "generation": None if standing is None else standing.schedule.generation,
        "reference": None if standing is None else reference(standing.schedule, standing.head),
        "next_due": None if due is None else instant_text(due),
        "changed_at": _told(profile.changed_at),
        "changed_by": profile.changed_by,
    }


def _read(
    profile: StoredProfile, standing: Standing | None
) -> tuple[dict[str, Any] | None, Mapping[str, str] | None, str | None]:
    """The configuration and the cron in it as far as they can be read, and what is wrong with what is stored."""
    faults: list[str] = []
    config, cron = None, None
    try:
        config = profile.config
        cron = parse_profile({"config": config}).cron
    except InvalidSchedule as error:
        what = "cannot be shown" if config is None else "is none that could be saved"
        meanwhile = "The version that was saved last goes on. " if _goes_on(standing) else ""
        faults.append(f"The stored config {what}: {error.faults[0]} {meanwhile}{_REMEDY}")
    if profile.created_at is None or profile.changed_at is None:
        faults.append(f"The row does not say when it was made or changed. {_REMEDY}")
    if standing is not None:
        versions = {each.revision: each.fault for each in (standing.head, standing.activated) if each is not None}
        faults += [fault for _, fault in sorted(versions.items()) if fault is not None]
    return config, cron, " ".join(faults) or None


def _goes_on(standing: Standing | None) -> bool:
    """Whether a version fires that can be used, whatever is stored of the profile itself."""
    if standing is None or standing.activated is None:
        return False
    return standing.state[0] == "enabled" and standing.activated.fault is None


def _told(instant: datetime | None) -> str | None:
    """An instant as text, None where a damaged row holds none."""
    return None if instant is None else instant_text(instant)


def _state(standing: Standing | None, *, has_cron: bool) -> tuple[str, str | None]:
    if standing is None or standing.activation is None:
        return "unscheduled", None
    state, reason = standing.state
    if state == "enabled":
        return state, reason
    if not has_cron:
        return "unscheduled", None
    if standing.schedule.retired_at is not None:
        return "paused", "schedule_retired: its schedule was retired, which is final."
    return state, reason
