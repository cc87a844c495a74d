"""The circuit breaker: no more runs start than the calendar declares, whatever else is wrong (DESIGN.md, section 5).

Each activation has an allowance of starts beside its ledger. A step that commits adds what the calendar declares between the
mark that the account was last brought to and its own, and then takes away whatever can no longer start: no more may be left
than there are instants, staged or waiting, that nobody has decided on. An admission takes one away, and one that finds none
opens the breaker: it is refused, and its activation goes to review.

So between any two moments no more runs start than the calendar declares there, and the instants that were undecided at the
first: what a correct schedule can start at the most, with everything that catch-up and buffering may add. A correct one
therefore never meets the breaker. A fault that starts instants again, or instants of its own making, is stopped at the first
run in excess, however the ledger looks by then. A new generation begins with no allowance and with the instant that the
last one ended at, so that nothing is counted twice across them.

Runs by hand are not counted: each has a person and a receipt. What follows costs no query, except at the first step of what
an earlier release enabled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from horarium.authority.rules import Objection
from horarium.calendar import Calendar
from horarium.catalog import findings, ledger
from horarium.catalog.schedules import Activation, Schedule, change_activation
from horarium.control.activation import send_to_review
from horarium.schedule.findings import Finding
from horarium.schedule.identity import RunKey, instant_text
from horarium.schedule.ledger import BY_CALENDAR, Disposition, Reason
from horarium.schedule.profiles import CONTRACT as CRON_PROFILES

BREAKER = "system:breaker"
"""Who acts where the breaker opens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """How many more runs an activation may start, of what its calendar declares until an instant."""

    allowance: int
    declared_until: datetime


def after_step(
    activation: Activation, calendar: Calendar, open_entries: Sequence[ledger.Entry], *, accounted_through: datetime
) -> Account:
    """The account after a step that moved the mark there and left these entries open."""
    undecided = sum(_is_undecided(entry, activation) for entry in open_entries)
    if activation.allowance is None or activation.declared_until is None:
        return Account(allowance=undecided, declared_until=accounted_through)
    declared = _declared(calendar, activation.declared_until, accounted_through)
    return Account(
        allowance=min(activation.allowance + declared, undecided),
        # Never back: what was declared once is not declared again.
        declared_until=max(activation.declared_until, accounted_through),
    )


def objection(connection: Connection, schedule: Schedule, activation: Activation, key: RunKey) -> Objection | None:
    """What the breaker has against one more start; None where it has nothing. The caller holds the schedule's lock."""
    if key.trigger != BY_CALENDAR:
        return None
    account = _account(connection, schedule, activation)
    if account.allowance > 0:
        return None
    until = instant_text(account.declared_until)
    return Objection(
        reason=Reason.BREAKER_OPEN,
        sentence=f"Every start that the calendar declares until {until} was made or is past, and this would be one more.",
        evidence={"breaker": {"allowance": account.allowance, "declared_until": until}},
    )


def count_start(connection: Connection, schedule: Schedule, activation: Activation, key: RunKey) -> None:
    """Take an admitted run off the allowance."""
    if key.trigger != BY_CALENDAR:
        return
    account = _account(connection, schedule, activation)
    change_activation(connection, activation, allowance=account.allowance - 1, declared_until=account.declared_until)


def open_for(
    connection: Connection, schedule: Schedule, activation: Activation, against: Objection, *, now: datetime
) -> None:
    """Send the activation to review where its run was refused by the breaker, and count it; nothing where by anything else.

    Enabling it again begins with a new account.
    """
    if against.reason is not Reason.BREAKER_OPEN:
        return
    # What stands behind a profile is enabled by nothing else.
    again = "save the profile" if schedule.contract == CRON_PROFILES else "enable the schedule"
    because = f"{Reason.BREAKER_OPEN}: {against.sentence} It is a fault of ours: report it, then {again} again."
    send_to_review(connection, schedule, activation, because=because, by=BREAKER, now=now)
    findings.add(connection, schedule.key.scope, {Finding.BREAKER_OPENED: 1}, now=now)


def _account(connection: Connection, schedule: Schedule, activation: Activation) -> Account:
    if activation.allowance is not None and activation.declared_until is not None:
        return Account(allowance=activation.allowance, declared_until=activation.declared_until)
    undecided = sum(_is_undecided(entry, activation) for entry in ledger.open_entries(connection, schedule))
    return Account(allowance=undecided, declared_until=activation.accounted_through)


def _is_undecided(entry: ledger.Entry, activation: Activation) -> bool:
    return (
        entry.generation == activation.generation
        and entry.trigger == BY_CALENDAR
        and entry.disposition in {Disposition.STAGED, Disposition.BUFFERED}
    )


def _declared(calendar: Calendar, after: datetime, until: datetime) -> int:
    """How many instants the calendar selects in `(after, until]`."""
    first = calendar.after(after)
    return 0 if first is None or first > until else calendar.count(first, until)
