"""The ceilings: no more runs are declared than an installation allows (seed 004, decision 9; DESIGN.md, section 9).

Asked at enabling, where a person sees the answer, and again at each occurrence: what was enabled under a ceiling that has been
lowered since must not fire forever. The occurrence is refused then, and the schedule goes on, so that the next one runs once
the ceiling is high enough again. A run by hand is no declaration, and is never refused for this.

The ceiling of one profile binds cron profiles only, each by what its calendar declares from now on. That of all together counts
the enabled schedules of every contract in the order of their activation, each as it was counted at its enabling or at its last
occurrence since: those that were activated last are the ones over it. To enable a schedule again is to activate it last, and
does not count it twice. Where such a ceiling is set, all who enable anything in the installation do so one after the other.
As long as all together are within it nobody is over it, and that is asked first: their sum is kept. Only beyond it an
occurrence adds up what was activated before, from sums that are kept too, and one by one in its own second.
What all together declare is of every organization, so it stands in the log and in no answer to a tenant.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

import structlog
from sqlalchemy import Connection

from horarium.authority.rules import Objection
from horarium.catalog.aftermath import after_commit
from horarium.catalog.declared_runs import (
    Uncounted,
    declared_before,
    declared_by_all,
    keep_counts,
    lock_declared,
    uncounted,
)
from horarium.catalog.schedules import Activation, Schedule, change_activation, find_activation, find_versions
from horarium.catalog.versions import Version
from horarium.errors import InvalidSchedule
from horarium.schedule.ceilings import PER_PROFILE, TOTAL, Ceilings, runs_per_month
from horarium.schedule.ledger import Reason
from horarium.schedule.profiles import CONTRACT

COUNTED_AT_ONCE: Final = 500
"""What one occurrence counts of what an earlier release enabled; the next one counts the rest. Enabling counts all of it."""

_logger = structlog.get_logger(__name__)


def objection(
    connection: Connection,
    schedule: Schedule,
    version: Version,
    activation: Activation | None,
    ceilings: Ceilings,
    *,
    now: datetime,
) -> Objection | None:
    """The first of what the ceilings have against a schedule; None where they have nothing."""
    return next(objections(connection, schedule, version, activation, ceilings, now=now), None)


def objections(
    connection: Connection,
    schedule: Schedule,
    version: Version,
    activation: Activation | None,
    ceilings: Ceilings,
    *,
    now: datetime,
) -> Iterator[Objection]:
    """Everything that the ceilings have against a schedule. `activation` is that of an occurrence, None at enabling.

    Raises `InvalidSchedule` where this release cannot evaluate the version.
    Only a ceiling for all together costs a query.
    """
    if schedule.contract != CONTRACT and ceilings.total is None:
        return
    declared = runs_per_month(version.configuration.calendar, now=now)
    if schedule.contract == CONTRACT and declared > ceilings.per_profile:
        yield _against(
            f"It declares {declared:,} runs in 30 days, and a profile is allowed {ceilings.per_profile:,} here "
            f"({PER_PROFILE}).",
            which="per_profile",
            declared=declared,
            most=ceilings.per_profile,
        )
    if ceilings.total is None:
        return
    # What declares nothing adds nothing, such as an instant that has passed.
    before = _before(connection, schedule, activation, ceilings.total, now=now) if declared else 0
    if before + declared > ceilings.total:
        looked_at = {"declared": declared, "most": ceilings.total}
        _tell(connection, schedule, activation, before=before, **looked_at)
        yield _against(
            f"It declares {declared:,} runs in 30 days, which with what was enabled before it are more than the "
            f"{ceilings.total:,} that all together are allowed here ({TOTAL}).",
            which="total",
            **looked_at,
        )


def keep_count(connection: Connection, version: Version, activation: Activation, *, now: datetime) -> None:
    """Count anew what an activation declares: of a cron that fires in June alone, enabling in November counted nothing.

    It counts for the others from then on.
    """
    counted = runs_per_month(version.configuration.calendar, now=now)
    if counted != activation.runs_per_month:
        change_activation(connection, activation, runs_per_month=counted)


def _before(
    connection: Connection, schedule: Schedule, activation: Activation | None, most: int, *, now: datetime
) -> int:
    """What was enabled before: an occurrence's own activation, or now, which nobody else is then until the transaction ends.

    Of an occurrence it need not be known, and is told as 0, where all together are within the ceiling: then nobody is over it.
    """
    if activation is not None:
        everything = declared_by_all(connection)
        if everything.uncounted == 0 and everything.runs <= most:
            return 0
        found = declared_before(connection, activation)
        missing = uncounted(connection, before=activation, limit=COUNTED_AT_ONCE) if found.uncounted else ()
        return found.runs + sum(_count(connection, missing, now=now).values())
    lock_declared(connection)
    current = find_activation(connection, schedule, schedule.generation)
    found = declared_by_all(connection)
    counts = _count(connection, uncounted(connection) if found.uncounted else (), now=now)
    ours = 0
    if current is not None and current.is_live:
        ours = counts.get(current.row, 0) if current.runs_per_month is None else current.runs_per_month
    return found.runs + sum(counts.values()) - ours


def _count(connection: Connection, missing: Sequence[Uncounted], *, now: datetime) -> dict[int, int]:
    """Count what was enabled by a release which did not, and keep it. What cannot be evaluated declares nothing: its next step
    ends it."""
    counts: dict[int, int] = {}
    for begin in range(0, len(missing), COUNTED_AT_ONCE):
        some = missing[begin : begin + COUNTED_AT_ONCE]
        versions = find_versions(connection, {(each.schedule, each.revision) for each in some})
        for each in some:
            version = versions.get((each.schedule, each.revision))
            with suppress(InvalidSchedule):
                if version is not None:
                    counts[each.row] = runs_per_month(version.configuration.calendar, now=now)
    keep_counts(connection, counts)
    return counts


def _tell(connection: Connection, schedule: Schedule, activation: Activation | None, **counted: int) -> None:
    """Tell the operator, who alone may know what all together declare."""
    scope = schedule.key.scope
    about = {
        "org_id": scope.org_id,
        "environment_id": scope.environment_id,
        "schedule_id": schedule.key.schedule_id,
        **counted,
    }
    if activation is None:
        # An enabling that is refused is rolled back, so there is no commit to wait for.
        _logger.warning("over_total_ceiling", **about)
    else:
        after_commit(connection, lambda: _logger.warning("over_total_ceiling", **about))


def _against(sentence: str, **looked_at: Any) -> Objection:
    return Objection(reason=Reason.CEILING_EXCEEDED, sentence=sentence, evidence={"ceiling": looked_at})
