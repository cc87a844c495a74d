"""One step of a schedule, against the catalog: what is known, and carrying out what was planned (DESIGN.md, section 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import Connection

from horarium.catalog import ledger, ledger_changes
from horarium.catalog.environments import Environment
from horarium.catalog.generations import find_generation
from horarium.catalog.schedules import Activation, Schedule, change_activation, find_live
from horarium.control import breaker, profile_logs, threads, v0_events
from horarium.control.activation import send_to_review
from horarium.control.deferral import deferred_until, never_ran
from horarium.schedule.facts import MAX_STARTS_PER_STEP, OVERDUE, Facts, Hold, instants_after, stretches
from horarium.schedule.identity import ActivationKey, RunKey
from horarium.schedule.ledger import BY_CALENDAR, Disposition, Reason
from horarium.schedule.plan import Plan
from horarium.schedule.policy import Policy

AHEAD_LIMIT = 100
"""How many instants within the lead one step looks at."""
CONTROLLER = "system:schedule"
"""Who acts where no person does."""


class Status(StrEnum):
    """How a commit ended."""

    DONE = "done"
    STALE = "stale"
    """The plan rests on what is no longer so: gather and plan again."""
    ENDED = "ended"
    """The activation fires no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What a step begins with: facts, or None where the activation fires no more. `waiting` is what it last declared.

    `unusable` says why it must not go on: its version cannot be evaluated, or the environment is another one than at enabling.
    Then there are no facts, and the activation goes to review.
    """

    facts: Facts | None
    waiting: bool = False
    unusable: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """What a commit did, and every staged run of the activation: each has to be started, or to have been."""

    status: Status
    staged: tuple[RunKey, ...] = ()


def gather(connection: Connection, key: ActivationKey, *, now: datetime, lead: timedelta) -> Gathered:
    """Read everything that the plan of one step needs."""
    found = find_generation(connection, key)
    if found is None or not found.activation.is_live:
        return Gathered(facts=None)
    schedule, activation, version = found.schedule, found.activation, found.version
    if (fault := version.fault) is not None:
        return Gathered(facts=None, unusable=f"version_unusable: {fault}")
    if (moved := moved_on(found.environment, activation)) is not None:
        return Gathered(facts=None, unusable=moved)
    configuration = version.configuration
    policy, calendar = configuration.policy, configuration.calendar
    entries = ledger.open_entries(connection, schedule)
    waiting = [
        entry.first_at
        for entry in entries
        if entry.generation == key.generation and entry.disposition is Disposition.BUFFERED
    ]
    held, holds = _holds(connection, schedule, activation, policy, entries)
    mark = activation.accounted_through
    ahead = instants_after(calendar, max(mark, now), until=max(mark, now) + lead, limit=AHEAD_LIMIT)
    ahead = tuple(instant for instant in ahead if instant <= now + lead)
    answered_for = deferred_until(connection, schedule, activation, entries) if policy.defer_once else None
    told, told_through = stretches(
        calendar,
        policy,
        holds,
        accounted_through=mark,
        attended_until=activation.attended_until,
        now=now,
        deferred_until=answered_for,
    )
    facts = Facts(
        now=now,
        accounted_through=mark,
        policy=policy,
        held=held,
        holds=holds,
        waiting=len(waiting),
        waiting_head=tuple(waiting[:MAX_STARTS_PER_STEP]),
        undecided=sum(
            entry.generation == key.generation and entry.disposition is Disposition.STAGED for entry in entries
        ),
        stretches=told,
        told_through=told_through,
        ahead=ahead,
        following=calendar.after(ahead[-1] if ahead else max(mark, now)),
        lead=lead,
        catchup_started=activation.catchup_started,
        awaits=policy.slots is not None and _awaits(entries, now),
        deferred_until=answered_for,
    )
    return Gathered(facts=facts, waiting=activation.waiting)


def moved_on(environment: Environment, activation: Activation) -> str | None:
    """Why an activation that was enabled in an earlier state of its environment does not go on; None where it does."""
    for code, enabled_under, now_at in (
        (Reason.ENVIRONMENT_EPOCH_CHANGED, activation.environment_epoch, environment.authority_epoch),
        (Reason.ENVIRONMENT_RESET, activation.reset_generation, environment.reset_generation),
    ):
        if enabled_under is not None and enabled_under != now_at:
            return f"{code}: it was enabled under {enabled_under}, and the environment is at {now_at}."
    return None


def give_up(connection: Connection, key: ActivationKey, *, because: str, now: datetime) -> None:
    """Send an activation to review that must not go on. One that has ended meanwhile is left as it is."""
    found = find_generation(connection, key, lock=True)
    if found is not None and found.activation.is_live:
        send_to_review(connection, found.schedule, found.activation, because=because, by=CONTROLLER, now=now)
        if (fault := found.version.fault) is not None:
            threads.log_unusable(connection, found.schedule, fault)


def commit(
    connection: Connection, key: ActivationKey, plan: Plan, *, now: datetime, attended_until: datetime | None
) -> Committed:
    """Carry out a plan in one transaction, if what it rests on still holds; otherwise change nothing.

    `attended_until` is until when a blocked schedule leaves what falls due for later. A repeated commit finds the mark
    moved and reports `STALE`, with the staged runs that the first one may not have come to start.
    """
    found = find_generation(connection, key, lock=True)
    if found is None or not found.activation.is_live:
        return Committed(status=Status.ENDED)
    schedule, activation = found.schedule, found.activation
    if found.version.fault is not None:
        # Known to the worker that planned, and not to this one: the next step says so.
        return Committed(status=Status.STALE)
    if moved_on(found.environment, activation) is not None:
        return Committed(status=Status.STALE)
    waiting = _waiting(connection, schedule, key) if plan.promotions else {}
    agrees = activation.accounted_through == plan.base and {*waiting, *plan.waits}.issuperset(plan.promotions)
    policy, calendar = found.version.configuration.policy, found.version.configuration.calendar
    if not agrees or not _slots_agree(connection, schedule, policy, plan, now=now):
        return Committed(status=Status.STALE, staged=_staged(ledger.open_entries(connection, schedule), schedule, key))
    _write(connection, schedule, key, plan, waiting, now=now)
    entries = ledger.open_entries(connection, schedule)
    account = breaker.after_step(activation, calendar, entries, accounted_through=plan.accounted_through)
    if not plan.blocked:
        # What a blocked schedule left for later is still left for later where this step could not take it all.
        attended_until = activation.attended_until if plan.more else None
    change_activation(
        connection,
        activation,
        accounted_through=plan.accounted_through,
        attended_until=attended_until,
        waiting=plan.blocked,
        look_by=attended_until if plan.blocked else calendar.after(plan.accounted_through),
        catchup_started=plan.catchup_started,
        allowance=account.allowance,
        declared_until=account.declared_until,
    )
    if plan.exhausted:
        live = find_live(connection, key)
        assert live is not None
        because = "calendar_exhausted: the calendar selects no further instant."
        send_to_review(connection, schedule, live[1], because=because, by=CONTROLLER, now=now)
        return Committed(status=Status.ENDED)
    return Committed(status=Status.DONE, staged=_staged(entries, schedule, key))


def _holds(
    connection: Connection,
    schedule: Schedule,
    activation: Activation,
    policy: Policy,
    entries: Sequence[ledger.Entry],
) -> tuple[int, tuple[Hold, ...]]:
    """Claims on slots: how many began before the mark and go on, and the others one by one."""
    if policy.slots is None:
        return 0, ()
    mark = activation.accounted_through
    held = 0
    holds: list[Hold] = []
    for entry in (*entries, *ledger.holds_closed_since(connection, schedule, mark)):
        if entry.held_since is None or never_ran(entry):
            continue
        # Whatever the calendar staged was staged by a step that then set the mark. A manual run begins in between.
        since = mark if entry.trigger == BY_CALENDAR else max(mark, entry.held_since)
        if entry.closed_at is not None:
            holds.append(Hold(since=since, until=entry.closed_at))
        elif since > mark:
            holds.append(Hold(since=since))
        else:
            held += 1
    return held, tuple(holds)


def _awaits(entries: Sequence[ledger.Entry], now: datetime) -> bool:
    """Whether a staged run is undecided although its time has come: by its instant, or by the slot that it waited for."""
    return any(
        entry.disposition is Disposition.STAGED
        and entry.held_since is not None
        and now - max(entry.first_at, entry.held_since) > OVERDUE
        for entry in entries
    )


def _slots_agree(connection: Connection, schedule: Schedule, policy: Policy, plan: Plan, *, now: datetime) -> bool:
    """Whether the slots are still as the plan took them: none too few to start, none freed while it means to wait, and what
    it waits to be decided still undecided.
    """
    if policy.slots is None:
        return True
    wanted = len(plan.starts) + len(plan.promotions)
    taken = ledger.count_holding(connection, schedule) + wanted
    if wanted and taken > policy.slots:
        return False
    if plan.awaits:
        return _awaits(ledger.open_entries(connection, schedule), now)
    return not plan.blocked or taken >= policy.slots


def _write(
    connection: Connection,
    schedule: Schedule,
    key: ActivationKey,
    plan: Plan,
    waiting: Mapping[datetime, int],
    *,
    now: datetime,
) -> None:
    ledger_changes.buffer(connection, schedule, generation=key.generation, instants=plan.waits)
    waits = _waiting(connection, schedule, key) if set(plan.promotions) & set(plan.waits) else {}
    for instant in plan.promotions:
        run = RunKey(activation=key, nominal_time=instant)
        ledger_changes.stage(connection, schedule, run, now=now, waiting_entry=waiting.get(instant) or waits[instant])
    for instant in plan.starts:
        ledger_changes.stage(connection, schedule, RunKey(activation=key, nominal_time=instant), now=now)
    # Last, so that no span is made one with an earlier span across an instant of another fate.
    for fate in plan.fates:
        ledger_changes.write_fate(connection, schedule, generation=key.generation, fate=fate, now=now)
    v0_events.tell_step(connection, schedule, key, plan, by=CONTROLLER, now=now)
    profile_logs.tell_fates(connection, schedule, plan.fates)


def _waiting(connection: Connection, schedule: Schedule, key: ActivationKey) -> dict[datetime, int]:
    """The rows of the entries of an activation that wait, by their instants, earliest first."""
    return {
        entry.first_at: entry.row
        for entry in ledger.open_entries(connection, schedule)
        if entry.generation == key.generation and entry.disposition is Disposition.BUFFERED
    }


def _staged(entries: Sequence[ledger.Entry], schedule: Schedule, key: ActivationKey) -> tuple[RunKey, ...]:
    return tuple(
        entry.run_key(schedule.key)
        for entry in entries
        if entry.generation == key.generation and entry.disposition is Disposition.STAGED
    )
