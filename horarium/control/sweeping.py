"""What the controller concludes from a workflow that is gone, or from an environment that moved on.

Each conclusion is one transaction that looks again first.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from sqlalchemy import Connection

from horarium.catalog import Catalog, findings, ledger
from horarium.catalog.environments import require_environment
from horarium.catalog.moved_on import enabled_before
from horarium.catalog.schedules import find_live
from horarium.catalog.unsettled import Unsettled
from horarium.control.activation import send_to_review
from horarium.control.running import Outcome, settle
from horarium.control.stepping import moved_on
from horarium.schedule.findings import Finding
from horarium.schedule.identity import ActivationKey, Scope
from horarium.schedule.ledger import Disposition, Reason

CONTROLLER = "system:controller"
REVIEWED_AT_ONCE = 100
"""Activations that one transaction sends to review: their locks are held together, and for a fraction of a second."""


def review_if_live(connection: Connection, key: ActivationKey, *, because: str, now: datetime) -> bool:
    """Send an activation to review whose workflow closed under it; False where it has ended meanwhile."""
    found = find_live(connection, key, lock=True)
    if found is None or not found[1].is_live or found[0].generation != key.generation:
        return False
    send_to_review(connection, *found, because=because, by=CONTROLLER, now=now)
    findings.add(connection, key.schedule.scope, {Finding.SCHEDULE_WORKFLOW_CLOSED: 1}, now=now)
    return True


def settle_lost(connection: Connection, run: Unsettled, *, closed_as: str, now: datetime) -> ActivationKey | None:
    """Close the entry of a run whose workflow is closed, or unknown, and has not settled it (DESIGN.md, section 5).

    `closed_as` is what Temporal says: `terminated`, `cancelled`, `absent` or anything else. Nothing happens to a run that went
    on since it was listed (the answer is about what it was then): the next sweep looks again. Returns the activation that
    waits for the slot, if one does.
    """
    found = find_live(connection, run.key.activation, lock=True)
    entry = None if found is None else ledger.find_entry(connection, found[0], run.key)
    if entry is None or entry.disposition is not run.disposition:
        return None
    kind = Finding.RUN_NEVER_DECIDED if run.disposition is Disposition.STAGED else Finding.RUN_NEVER_SETTLED
    findings.add(connection, run.key.activation.schedule.scope, {kind: 1}, now=now)
    return settle(connection, run.key, _outcome(run, closed_as), now=now)


def review_enabled_before(connection: Connection, keys: Sequence[ActivationKey], *, now: datetime) -> int:
    """Send activations to review whose environment is another one than at enabling; returns how many were.

    What has ended meanwhile, or was enabled anew, is left as it is. They are locked in the order in which they are given.
    """
    sent = 0
    for key in keys:
        found = find_live(connection, key, lock=True)
        if found is None or not found[1].is_live:
            continue
        moved = moved_on(require_environment(connection, key.schedule.scope), found[1])
        if moved is not None:
            send_to_review(connection, *found, because=moved, by=CONTROLLER, now=now)
            sent += 1
    return sent


async def review_all_enabled_before(catalog: Catalog, scope: Scope, *, now: Callable[[], datetime]) -> None:
    """Send everything to review that a new epoch or a reset has left behind, a page at a time, each in its own transaction.

    Whatever ends this in the middle, the controller does the rest.
    """
    after = 0
    while page := await catalog.read(enabled_before, scope, limit=REVIEWED_AT_ONCE, after=after):
        await catalog.write(review_enabled_before, [key for _, key in page], now=now())
        after = page[-1][0]


def _outcome(run: Unsettled, closed_as: str) -> Outcome:
    if run.disposition is Disposition.STAGED:
        if closed_as == "absent":
            return Outcome(disposition=Disposition.MISSED, reason=Reason.OUTSIDE_WINDOW)
        return Outcome(disposition=Disposition.NOT_STARTED, reason=Reason.RUN_LOST)
    if closed_as == "terminated":
        return Outcome(disposition=Disposition.TERMINATED, reason=Reason.TERMINATED_BY_OPERATOR)
    if closed_as == "cancelled":
        return Outcome(disposition=Disposition.CANCELLED, reason=Reason.CANCELLED_BY_OPERATOR)
    if run.disposition is Disposition.ADMITTED:
        # It was on its way to an agent, and nobody is left who could say whether it arrived.
        return Outcome(disposition=Disposition.NOT_STARTED, reason=Reason.START_UNKNOWN)
    return Outcome(disposition=Disposition.FAILED, reason=Reason.OUTCOME_LOST)
