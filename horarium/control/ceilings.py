"""The ceilings: no more runs are declared than an installation allows (seed 004, decision 9; DESIGN.md, section 9).

Asked at enabling, where a person sees the answer, and again at each occurrence: what was enabled under a ceiling that has been
lowered since must not fire forever. The occurrence is refused then, and the schedule goes on, so that the next one runs once
the ceiling is high enough again. A run by hand is no declaration, and is never refused for this.

The ceiling of one profile binds cron profiles only, each by what its calendar declares from now on. That of all together counts
the enabled schedules of every contract in the order of their activation, each as it was counted at its enabling: those that
were activated last are the ones over it. To enable a schedule again is to activate it last, and does not count it twice.
What all together declare is of every organization, so it stands in the log and in no answer to a tenant.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import structlog
from sqlalchemy import Connection

from horarium.authority.rules import Objection
from horarium.catalog.aftermath import after_commit
from horarium.catalog.declared_runs import declared_before, declared_by_all
from horarium.catalog.schedules import Activation, Schedule, change_activation, find_activation
from horarium.catalog.versions import Version
from horarium.schedule.ceilings import PER_PROFILE, TOTAL, Ceilings, runs_per_month
from horarium.schedule.ledger import Reason
from horarium.schedule.profiles import CONTRACT

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
    if schedule.contract == CONTRACT:
        declared = runs_per_month(version.configuration.calendar, now=now)
        if declared > ceilings.per_profile:
            yield _against(
                f"It declares {declared:,} runs in 30 days, and a profile is allowed {ceilings.per_profile:,} here "
                f"({PER_PROFILE}).",
                which="per_profile",
                declared=declared,
                most=ceilings.per_profile,
            )
    if ceilings.total is None:
        return
    counted = None if activation is None else activation.runs_per_month
    declared = runs_per_month(version.configuration.calendar, now=now) if counted is None else counted
    # What declares nothing adds nothing, such as an instant that has passed.
    before = _before(connection, schedule, activation) if declared else 0
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
    """Count what an activation declares that was enabled by a release which did not. It counts for the others from then on."""
    if activation.runs_per_month is None:
        counted = runs_per_month(version.configuration.calendar, now=now)
        change_activation(connection, activation, runs_per_month=counted)


def _before(connection: Connection, schedule: Schedule, activation: Activation | None) -> int:
    if activation is not None:
        return declared_before(connection, activation)
    current = find_activation(connection, schedule, schedule.generation)
    ours = (current.runs_per_month or 0) if current is not None and current.is_live else 0
    return declared_by_all(connection) - ours


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
