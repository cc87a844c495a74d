"""What a profile's occurrences came to that did not run, in the log (seed 004): each with its class and its profile.

Nobody watches a run that is nobody's, so whoever operates the installation has to find it here. Written after the commit.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import structlog
from sqlalchemy import Connection

from horarium.authority.rules import Objection
from horarium.catalog.aftermath import after_commit
from horarium.catalog.profiles import profile_of_schedule
from horarium.catalog.schedules import Schedule
from horarium.control.starts import STARTS
from horarium.schedule.identity import RunKey, instant_text
from horarium.schedule.ledger import Disposition, Fate, Reason, Span
from horarium.schedule.profiles import CONTRACT

TOLD: Final = {Disposition.MISSED: "occurrence_missed", Disposition.DROPPED: "occurrence_dropped"}
"""How a line begins of what had no decision on its merits."""
_ABSENT: Final = frozenset({Reason.AGENT_OFFLINE, Reason.AGENT_NOT_READY})

_logger = structlog.get_logger(__name__)


def tell_fates(connection: Connection, schedule: Schedule, fates: Iterable[Fate]) -> None:
    """Tell what was missed or dropped, a line for each span."""
    told = [fate for fate in fates if fate.disposition in TOLD] if schedule.contract == CONTRACT else []
    if not told:
        return
    about = _about(connection, schedule)
    for fate in told:
        span = {
            "nominal_time": instant_text(fate.span.first),
            "last_nominal_time": instant_text(fate.span.last),
            "count": fate.span.count,
        }
        _write(connection, TOLD[fate.disposition], **about, **span, reason=fate.reason.value)


def tell_one(
    connection: Connection, schedule: Schedule, at: datetime, disposition: Disposition, reason: Reason | None
) -> None:
    """Tell of one instant that was missed or dropped although it had its slot, or waited for it."""
    span = Span(first=at, last=at, count=1)
    fate = Fate(span=span, disposition=disposition, reason=reason or Reason.OUTSIDE_WINDOW)
    tell_fates(connection, schedule, [fate])


def tell_refused(connection: Connection, schedule: Schedule, key: RunKey, objection: Objection) -> None:
    """Tell what admission refused. Where nobody was there to take the run, it is told for how long: None if never before."""
    if schedule.contract != CONTRACT:
        return
    about = {**_about(connection, schedule), **_named(key)}
    offline = objection.evidence.get("offline_seconds")
    holds_lease = offline is None and objection.evidence.get("lease_until") is not None
    if objection.reason in _ABSENT and not holds_lease:
        _write(connection, "occurrence_dropped_offline", **about, offline_seconds=offline)
    else:
        _write(connection, "occurrence_refused", **about, reason=objection.reason.value, because=objection.sentence)


def tell_not_started(
    connection: Connection, schedule: Schedule, key: RunKey, reason: Reason | None, *, because: str, trace: str
) -> None:
    """Tell that an admitted run was begun by no agent. `trace` is the traceback, empty where there is none."""
    if schedule.contract != CONTRACT:
        return
    about = {**_about(connection, schedule), **_named(key)}
    why = None if reason is None else reason.value
    after_commit(connection, lambda: STARTS.note(trace=trace, **about, reason=why, because=because))


def _write(connection: Connection, event: str, **told: Any) -> None:
    after_commit(connection, lambda: _logger.warning(event, **told))


def _about(connection: Connection, schedule: Schedule) -> dict[str, Any]:
    """Whose it is. The names are those of the profile's own row, which a damaged version does not take away."""
    scope = schedule.key.scope
    profile = profile_of_schedule(connection, scope, schedule.key.schedule_id)
    return {
        "agent_class": None if profile is None else profile.agent_class,
        "profile": None if profile is None else profile.agent_id,
        "org_id": scope.org_id,
        "environment_id": scope.environment_id,
        "schedule_id": schedule.key.schedule_id,
    }


def _named(key: RunKey) -> dict[str, str]:
    return {"nominal_time": instant_text(key.nominal_time), "run_id": key.run_id, "trigger": key.trigger}
