"""The life of an admitted run: begun by its agent, settled when it ended."""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from horarium.agents.report import kept_cost, kept_outputs, kept_summary
from horarium.authority.facts import Question
from horarium.calendar.clock_text import clock_text, zone_shown
from horarium.catalog import ledger, ledger_changes, money
from horarium.catalog.generations import Generation, find_generation
from horarium.catalog.schedules import Schedule, find_live, require_version
from horarium.catalog.versions import Version
from horarium.control import profile_logs, threads, v0_events
from horarium.control.activation import send_to_review
from horarium.control.admission import ADMITTED, nudge_if_waiting
from horarium.control.judgement import TRIED_ONCE, halt_of, person_of, question_about
from horarium.errors import InvalidSchedule, NotFound, Refused
from horarium.schedule.identity import ActivationKey, RunKey, Scope
from horarium.schedule.ledger import BY_CALENDAR, FAILURES, Disposition, Reason
from horarium.schedule.profiles import CONTRACT

SETTLEMENT = "system:settlement"
"""Who acts where the end of a run has consequences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What the token of a running run opens: its input, and a folder of its own below its output target."""

    scope: Scope
    schedule_id: str
    run_id: str
    question: Question
    output_target: str
    folder: str

    @property
    def input(self) -> str:
        """The reference of what it may read."""
        return self.question.request.input


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A run that its agent has just claimed. `token` opens its input and outputs, and dies with the run.

    `start_event` is the class of the event that starts it, None for the calendar's, and `event` that event's own fields.
    `config` is the plain configuration of the profile that it belongs to; empty where there is none. `tenant_id` is the tenant
    that was set together with it; None where none was.
    """

    run_id: str
    key: RunKey
    version: Version
    begun_at: datetime
    previous_success: datetime | None
    token: str = field(repr=False)
    start_event: str | None = None
    event: Mapping[str, Any] = field(default_factory=dict, repr=False)
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)
    tenant_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended: one of the terminal dispositions, and what the agent left behind.

    `trace` is the traceback of what kept a run from starting, as far as there is one: for the log, and not stored.
    """

    disposition: Disposition
    reason: Reason | None
    summary: str = ""
    outputs: tuple[str, ...] = ()
    cost: int | None = None
    trace: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        assert not self.disposition.is_open


def begin(connection: Connection, run_id: str, *, again: bool, now: datetime) -> Begun:
    """Claim an admitted run for the agent that is about to do it, exactly once.

    With `again`, for agents that are idempotent by key, a run that was begun before may be begun once more, unless its
    contract tries everything once. Raises
    `Refused` with `already_begun` or `not_admitted`, or with what operators did since the admission (`stopped_by_operator`,
    `environment_epoch_changed`, `environment_reset`), and then the agent must not run.
    """
    found, entry, run = _find(connection, run_id, lock=True)
    schedule, version = found.schedule, found.version
    key = entry.run_key(schedule.key)
    if run.decision != ADMITTED or entry.closed_at is not None:
        raise Refused("not_admitted", f"Run {run_id} is {entry.disposition}; no agent may begin it.")
    if run.begun_at is not None and not (again and schedule.contract not in TRIED_ONCE):
        raise Refused("already_begun", f"Run {run_id} was begun at {run.begun_at.isoformat()}.")
    if run.begun_at is None:
        halt = halt_of(connection, found.environment, found.activation, decided_at=run.decided_at)
        if halt is not None:
            raise Refused(halt[0], f"Run {run_id} is not begun: {halt[1]}")
    if version.is_damaged:
        raise Refused("not_admitted", f"Run {run_id} cannot be begun. {version.fault}")
    token = secrets.token_urlsafe(32)
    ledger_changes.set_disposition(connection, entry, Disposition.STARTED)
    ledger_changes.change_run(connection, run_id, begun_at=run.begun_at or now, token_hash=hash_of(token))
    if run.begun_at is None:
        ledger_changes.note_begun(connection, schedule, entry, run, at=now)
    tenant_id = tenant_of(version)
    threads.tell_begun(connection, schedule, key, run, tenant_id=tenant_id, now=now)
    return Begun(
        run_id=run_id,
        key=key,
        version=version,
        begun_at=run.begun_at or now,
        previous_success=ledger.previous_success(connection, schedule, entry.first_at),
        token=token,
        start_event=run.start_event,
        event=run.event_data or {},
        config=config_of(version),
        tenant_id=tenant_id,
    )


def opened(connection: Connection, run_id: str, token: str) -> Opened:
    """What a running run may read and write now; `NotFound` once the run has ended, or with another token.

    The contents themselves are read and written by the caller, after this: no transaction waits for a disk.
    """
    try:
        found, entry, run = _find(connection, run_id, lock=False)
    except NotFound:
        raise not_opened(run_id) from None
    if run.token_hash is None or not secrets.compare_digest(run.token_hash, hash_of(token)):
        raise not_opened(run_id)
    schedule = found.schedule
    question = question_about(schedule, found.version, person=person_of(schedule, found.activation, run))
    return Opened(
        scope=schedule.key.scope,
        schedule_id=schedule.key.schedule_id,
        run_id=run_id,
        question=question,
        output_target=question.request.output_target,
        folder=f"{entry.first_at:%Y%m%dT%H%M%SZ}-{run_id[:8]}",
    )


def not_opened(run_id: str) -> NotFound:
    """The answer to a token that opens nothing, whatever the cause."""
    return NotFound("run_not_found", f"There is no run {run_id} that this token opens.")


def settle(connection: Connection, key: RunKey, outcome: Outcome, *, now: datetime) -> ActivationKey | None:
    """Write down how a run ended and free its slot, once; a later outcome changes nothing.

    Whatever was reported is cut to what can be stored, and never refused: a run that is not settled holds its slot for good.
    A run that no agent has begun did not fail: it is `not_started` with `start_unknown`, and no failure for the policy.
    A failure of a run by the calendar ends its activation in review, in this transaction, where the policy says so.
    Returns the activation that waits for the slot, if one does.
    """
    found = find_live(connection, key.activation, lock=True)
    if found is None:
        return None
    schedule, activation = found
    there = ledger.find_entry_and_run(connection, schedule, key)
    if there is None:
        return None
    entry, run = there
    if entry.closed_at is not None:
        return nudge_if_waiting(connection, schedule)
    if outcome.disposition in FAILURES and (run is None or run.begun_at is None):
        # Its agent cannot have failed: none has claimed it. A runner that dies before it claims looks the same from outside
        # as one that dies in the middle.
        outcome = replace(outcome, disposition=Disposition.NOT_STARTED, reason=Reason.START_UNKNOWN)
    gateway = None if run is None else run.gateway
    ledger_changes.close(connection, schedule, entry, outcome.disposition, outcome.reason, gateway=gateway, now=now)
    if outcome.disposition is Disposition.MISSED:
        v0_events.tell_missed(connection, schedule, key, outcome.reason, by=SETTLEMENT, now=now)
    threads.tell_ended(
        connection,
        schedule,
        key,
        run,
        disposition=outcome.disposition,
        reason=outcome.reason,
        summary=outcome.summary,
        now=now,
    )
    _log_if_not_started(connection, schedule, key, outcome)
    if run is not None:
        _settle_money(connection, run, outcome, now=now)
    ledger_changes.change_run(
        connection,
        key.run_id,
        ended_at=now,
        token_hash=None,
        summary=kept_summary(outcome.summary),
        outputs=list(kept_outputs(outcome.outputs)),
        cost=kept_cost(outcome.cost),
    )
    fails = outcome.disposition in FAILURES and key.trigger == BY_CALENDAR
    looked_at = require_version(connection, schedule, activation.revision) if fails and activation.is_live else None
    zone = None if looked_at is None else _zone_if_it_pauses(looked_at)
    if zone is not None:
        because = _review_text(key.run_id, entry.first_at, zone, outcome.disposition)
        send_to_review(connection, schedule, activation, because=because, by=SETTLEMENT, now=now)
        return nudge_if_waiting(connection, schedule)
    return nudge_if_waiting(connection, schedule, held=activation)


def _log_if_not_started(connection: Connection, schedule: Schedule, key: RunKey, outcome: Outcome) -> None:
    if outcome.disposition is Disposition.NOT_STARTED:
        because, trace = outcome.summary, outcome.trace
        profile_logs.tell_not_started(connection, schedule, key, outcome.reason, because=because, trace=trace)
    elif outcome.disposition is Disposition.MISSED:
        profile_logs.tell_one(connection, schedule, key.nominal_time, outcome.disposition, outcome.reason)


def settle_kept(connection: Connection, *, now: datetime) -> int:
    """Settle what was kept for a run of which nobody could say whether it happened, once its time limit has passed.

    One at a time, since a transaction locks one budget and then its wallet, and two budgets may be paid from one wallet.
    Returns 0 where there was none.
    """
    kept = money.kept_until(connection, now=now, limit=1)
    for each in kept:
        money.settle(connection, each.run_id, spent=each.amount, now=now)
    return len(kept)


def _settle_money(connection: Connection, run: ledger.Run, outcome: Outcome, *, now: datetime) -> None:
    """What a run reserved is spent, given back, or kept while nobody can say whether it ran (DESIGN.md, section 5).

    A run that its agent has begun costs what it reports, and what was reserved where it reports nothing. One that was sent to
    an agent behind the gateway http may have begun, unless that refused it, whatever else has ended it meanwhile.
    """
    held = money.find_reservation(connection, run.run_id)
    if held is None:
        return
    cost = kept_cost(outcome.cost)
    if cost is not None and run.begun_at is not None:
        money.settle(connection, run.run_id, spent=max(cost, 0), now=now)
    elif run.begun_at is not None:
        money.settle(connection, run.run_id, spent=held.amount, now=now)
    elif outcome.reason is Reason.START_UNKNOWN or (
        run.dispatch_sent is not None and outcome.reason is not Reason.DISPATCH_REFUSED
    ):
        limit = int((run.evidence or {}).get("dispatch", {}).get("max_run_seconds", 0))
        money.keep(connection, run.run_id, until=now + timedelta(seconds=limit))
    else:
        money.release(connection, run.run_id, now=now)


def config_of(version: Version) -> Mapping[str, Any]:
    """What the profile of a version configures, as data; of other contracts, nothing."""
    source = version.document.get("source")
    config = source.get("config") if isinstance(source, dict) else None
    return config if isinstance(config, dict) else {}


def tenant_of(version: Version) -> str | None:
    """For which tenant a version of a profile runs: by the version and not by the profile's row, so that a run never has the
    configuration of one tenant and the name of another. Of other contracts, and of what cannot be read, None."""
    try:
        document = version.document
    except InvalidSchedule:
        return None
    source = document.get("source") if document.get("contract") == CONTRACT else None
    tenant_id = source.get("tenant_id") if isinstance(source, dict) else None
    return tenant_id if isinstance(tenant_id, str) else None


def _zone_if_it_pauses(version: Version) -> str | None:
    """The zone of a version's calendar, where a run that failed sends it to review; None where it does not."""
    try:
        found = version.configuration
    except InvalidSchedule:
        # The row is damaged, for which its next step sends the activation to review. The slot is freed all the same.
        return None
    if not found.policy.pause_on_failure:
        return None
    try:
        return found.calendar.timezone
    except InvalidSchedule:  # such as a zone that newer zone data lack: the run is settled, and told of in UTC
        return "UTC"


def _review_text(run_id: str, due: datetime, zone: str, ended_as: Disposition) -> str:
    """Why the activation is in review, for people. The pages make a link of the run's id, which stands at the end."""
    when = f"{clock_text(due, zone)} {zone_shown(zone)}"
    return f"Its run of {when} {ended_as.replace('_', ' ')} (pause_on_failure, run {run_id})."


def _find(connection: Connection, run_id: str, *, lock: bool) -> tuple[Generation, ledger.Entry, ledger.Run]:
    key = ledger.run_key_of(connection, run_id)
    found = None if key is None else find_generation(connection, key.activation, lock=lock)
    # Once more, under the lock: it may have been withdrawn meanwhile.
    there = None if found is None or key is None else ledger.find_entry_and_run(connection, found.schedule, key)
    if found is None or there is None or there[1] is None:
        raise NotFound("run_not_found", f"There is no run {run_id}.")
    return found, there[0], there[1]


def hash_of(token: str) -> str:
    """What is kept of a token: enough to know it again."""
    return hashlib.sha256(token.encode()).hexdigest()
