"""Threads of cron profiles (seed 004): one for each profile, in which all its runs leave what happened to them.

A thread has no members and is read by operators. It is made by the first run of its profile, in the run's own transaction,
and never deleted. Its events are metadata: neither inputs nor outputs, and no token. They are told of schedules of that
contract only. Only they are pruned, and only of profiles that are there: an id is computed from each of those, so what belongs
to anything else cannot be named. A profile that was deleted leaves its events for good.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Final

import structlog
from sqlalchemy import Connection

from horarium.agents.report import kept_summary
from horarium.catalog import ledger
from horarium.catalog.aftermath import after_commit
from horarium.catalog.ledger import Run
from horarium.catalog.profiles import StoredProfile, live_profiles, profile_of_schedule
from horarium.catalog.schedules import Schedule
from horarium.catalog.threads import make_thread, prune_thread_events, record_thread_event
from horarium.control.once import Once
from horarium.schedule.identity import RunKey, Scope, instant_text
from horarium.schedule.ledger import Disposition, Reason
from horarium.schedule.profiles import CONTRACT, CRON_START_EVENT, thread_id

PRUNED_AT_ONCE: Final = 1_000
"""Events that one transaction deletes."""
PROFILES_AT_ONCE: Final = 200
"""Profiles that one transaction looks at: nobody who saves one of them waits for longer."""
_NEVER_BEGAN: Final = frozenset({Disposition.NOT_STARTED, Disposition.MISSED, Disposition.DROPPED})

_TOLD: Final = Once()
_logger = structlog.get_logger(__name__)


def tell_begun(
    connection: Connection, schedule: Schedule, key: RunKey, run: Run, *, tenant_id: str | None, now: datetime
) -> None:
    """Tell that an agent has begun a run: by which event, for which instant, on whose word, none by the calendar, and for which
    tenant."""
    if (profile := _profile(connection, schedule)) is None:
        return
    data = {
        "start_event": run.start_event or _calendar_event(run),
        **_about(key, run),
        "tenant_id": tenant_id,
    }
    _tell(connection, profile, "run_started", data, run_id=key.run_id, now=now)


def tell_ended(
    connection: Connection,
    schedule: Schedule,
    key: RunKey,
    run: Run | None,
    *,
    disposition: Disposition,
    reason: Reason | None,
    summary: str = "",
    now: datetime,
) -> None:
    """Tell how a run ended that its agent had begun, or that it was not started."""
    if (profile := _profile(connection, schedule)) is None:
        return
    ended = {"disposition": disposition.value, "reason": None if reason is None else reason.value}
    if disposition in _NEVER_BEGAN:
        _tell(connection, profile, "run_not_started", {**_about(key, run), **ended}, run_id=key.run_id, now=now)
    else:
        data = {**ended, "summary": kept_summary(summary)}
        _tell(connection, profile, "run_ended", data, run_id=key.run_id, now=now)


def tell_dropped(connection: Connection, schedule: Schedule, key: RunKey, *, reason: Reason, now: datetime) -> None:
    """Tell that a run which had its slot ended with its activation, before anybody decided on it."""
    if schedule.contract == CONTRACT:
        run = ledger.find_run(connection, key.run_id)
        tell_ended(connection, schedule, key, run, disposition=Disposition.DROPPED, reason=reason, now=now)


def tell_refused(
    connection: Connection,
    schedule: Schedule,
    key: RunKey,
    run: Run | None,
    *,
    reason: Reason,
    sentence: str,
    now: datetime,
) -> None:
    """Tell that admission refused a run, and why."""
    if (profile := _profile(connection, schedule)) is None:
        return
    data = {**_about(key, run), "reason": reason.value, "sentence": sentence}
    _tell(connection, profile, "run_refused", data, run_id=key.run_id, now=now)


def log_unusable(connection: Connection, schedule: Schedule, fault: str) -> None:
    """Write to the log, after the commit, that a profile's stored version cannot be used. It fires no more, and keeps no other
    from firing."""
    profile = _profile(connection, schedule)
    if profile is not None:
        after_commit(connection, lambda: _log(profile, fault))


def log_malformed(profile: StoredProfile, fault: str) -> None:
    """Write to the log that what is stored of a profile cannot be used: once in a process, however often somebody reads it."""
    if _TOLD.is_first((profile.scope, profile.agent_class, profile.agent_id, profile.changed_at, fault)):
        _log(profile, fault)


def _log(profile: StoredProfile, fault: str) -> None:
    _logger.error(
        "profile_malformed",
        agent_class=profile.agent_class,
        profile=profile.agent_id,
        org_id=profile.scope.org_id,
        environment_id=profile.scope.environment_id,
        fault=fault,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What one transaction of pruning did: how many events it deleted, and where to go on; None once it was all."""

    count: int
    after: int | None


def prune(
    connection: Connection,
    *,
    now: datetime,
    older_than_days: int,
    after: int = 0,
    limit: int = PRUNED_AT_ONCE,
    scope: Scope | None = None,
) -> Pruned:
    """Delete what happened in threads of profiles that are there, and is older than so many days: of one page of profiles,
    beginning behind `after`, and at most `limit` events.

    `scope` is the environment, None for all of the installation. Threads, ledger, runs, receipts and audit events stay.
    """
    page = live_profiles(connection, scope, after=after, limit=PROFILES_AT_ONCE)
    if not page:
        return Pruned(count=0, after=None)
    before, pruned = now - timedelta(days=older_than_days), 0
    by_scope = sorted(page, key=lambda each: (each.scope.org_id, each.scope.environment_id))
    for here, some in groupby(by_scope, key=lambda each: each.scope):
        ids = [thread_id(each.agent_class, each.agent_id) for each in some]
        pruned += prune_thread_events(connection, here, ids, before=before, limit=limit - pruned)
    # Where the limit was reached, the same page may hold more.
    return Pruned(count=pruned, after=page[-1].row if pruned < limit else after)


def _profile(connection: Connection, schedule: Schedule) -> StoredProfile | None:
    """The profile that a schedule stands behind; None for schedules of other contracts, which have none."""
    if schedule.contract != CONTRACT:
        return None
    return profile_of_schedule(connection, schedule.key.scope, schedule.key.schedule_id)


def _calendar_event(run: Run) -> str:
    """As which event an occurrence came to its agent, which may handle only one of its own that derives from the calendar's."""
    way = (run.evidence or {}).get("dispatch", {})
    return str(way.get("calendar_event", CRON_START_EVENT))


def _about(key: RunKey, run: Run | None) -> dict[str, Any]:
    return {
        "nominal_time": instant_text(key.nominal_time),
        "trigger": key.trigger,
        "by": None if run is None else run.triggered_by,
    }


def _tell(
    connection: Connection,
    profile: StoredProfile,
    kind: str,
    data: Mapping[str, Any],
    *,
    run_id: str,
    now: datetime,
) -> None:
    thread = thread_id(profile.agent_class, profile.agent_id)
    make_thread(
        connection,
        profile.scope,
        thread,
        agent_class=profile.agent_class,
        agent_id=profile.agent_id,
        now=now,
    )
    record_thread_event(connection, profile.scope, thread, kind, at=now, run_id=run_id, data=data)
