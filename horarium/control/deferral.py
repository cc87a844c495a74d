"""Scheduler v0's `defer_once` (seed 002): one run starts late, the earliest instant's, and answers for what is due until then.

A step asks how far the last late run answers. An admission asks whether an earlier one answers for its own run: with several
slots, some are taken side by side before the first of them is late, and nobody may decide on them for a while.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from sqlalchemy import Connection

from horarium.catalog import ledger
from horarium.catalog.schedules import Activation, Schedule
from horarium.catalog.versions import Version
from horarium.schedule.facts import LATE
from horarium.schedule.ledger import BY_CALENDAR, Disposition, Reason


def deferred_until(
    connection: Connection, schedule: Schedule, activation: Activation, entries: Sequence[ledger.Entry]
) -> datetime | None:
    """When the last run that is late got its slot, or was decided: what was due before that, it answers for."""
    told = (*entries, *ledger.holds_closed_since(connection, schedule, activation.accounted_through))
    held = list(_runs_of(activation, told))
    decided = ledger.decision_times(connection, held)
    return max(
        (
            at
            for entry in held
            for at in (entry.held_since, decided.get(entry.row))
            if at is not None and at - entry.first_at > LATE
        ),
        default=None,
    )


def is_answered_for(
    connection: Connection,
    schedule: Schedule,
    activation: Activation,
    version: Version,
    entry: ledger.Entry,
    *,
    now: datetime,
) -> bool:
    """Whether a run of an earlier instant starts late, and after this one fell due: decided already, or about to be.

    `entry` is a staged one that is being decided, under the lock of its activation. A run by hand is answered for by none.
    """
    if not version.configuration.policy.defer_once or entry.trigger != BY_CALENDAR:
        return False
    told = (
        *ledger.open_entries(connection, schedule),
        *ledger.holds_closed_since(connection, schedule, entry.first_at),
    )
    earlier = [each for each in _runs_of(activation, told) if each.first_at < entry.first_at]
    decided = ledger.decision_times(
        connection, [each for each in earlier if each.disposition is not Disposition.STAGED]
    )
    for other in earlier:
        starts = now if other.disposition is Disposition.STAGED else decided.get(other.row)
        if starts is not None and starts > entry.first_at and starts - other.first_at > LATE:
            return True
    return False


def never_ran(entry: ledger.Entry) -> bool:
    """Whether a run ended before it was admitted or refused. What it seemed to hold was free all the time."""
    without_a_run = entry.disposition in {Disposition.MISSED, Disposition.DROPPED, Disposition.SKIPPED}
    return without_a_run or entry.reason is Reason.RUN_LOST


def _runs_of(activation: Activation, told: Iterable[ledger.Entry]) -> Iterator[ledger.Entry]:
    """The runs by the calendar of one activation, as far as they took a slot to run."""
    for entry in told:
        ours = entry.generation == activation.generation and entry.trigger == BY_CALENDAR
        if ours and entry.held_since is not None and not never_ran(entry):
            yield entry
