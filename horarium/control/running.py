"""The life of an admitted run: begun by its agent, settled when it ended."""

import hashlib
import secrets
from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlalchemy import Connection, select

from horarium.agents.report import kept_cost, kept_outputs, kept_summary
from horarium.catalog import ledger
from horarium.catalog.schedules import Schedule, Version, find_live, require_schedule, require_version
from horarium.catalog.tables import entries, runs, schedules
from horarium.control.activation import send_to_review
from horarium.control.admission import ADMITTED, nudge_if_waiting
from horarium.errors import InvalidSchedule, NotFound, Refused
from horarium.schedule.identity import ActivationKey, RunKey, ScheduleKey, Scope
from horarium.schedule.ledger import BY_CALENDAR, FAILURES, Disposition, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What the token of a running run opens: its input, and a folder of its own below its output target."""

    scope: Scope
    input: str
    output_target: str
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A run that its agent has just claimed. `token` opens its input and outputs, and dies with the run."""

    run_id: str
    key: RunKey
    version: Version
    begun_at: datetime
    previous_success: datetime | None
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended: one of the terminal dispositions, and what the agent left behind."""

    disposition: Disposition
    reason: Reason | None
    summary: str = ""
    outputs: tuple[str, ...] = ()
    cost: int | None = None

    def __post_init__(self) -> None:
        assert not self.disposition.is_open


def begin(connection: Connection, run_id: str, *, again: bool, now: datetime) -> Begun:
    """Claim an admitted run for the agent that is about to do it, exactly once.

    With `again`, for agents that are idempotent by key, a run that was begun before may be begun once more. Raises
    `Refused` with `already_begun` or `not_admitted`, and then the agent must not run.
    """
    schedule, entry, run = _find(connection, run_id, lock=True)
    key = entry.run_key(schedule.key)
    if run.decision != ADMITTED or entry.closed_at is not None:
        raise Refused("not_admitted", f"Run {run_id} is {entry.disposition}; no agent may begin it.")
    if run.begun_at is not None and not again:
        raise Refused("already_begun", f"Run {run_id} was begun at {run.begun_at.isoformat()}.")
    found = find_live(connection, key.activation)
    assert found is not None, "an entry has its activation"
    version = require_version(connection, schedule, found[1].revision)
    if version.is_damaged:
        raise Refused("not_admitted", f"Run {run_id} cannot be begun. {version.fault}")
    token = secrets.token_urlsafe(32)
    ledger.set_disposition(connection, entry, Disposition.STARTED)
    ledger.change_run(connection, run_id, begun_at=run.begun_at or now, token_hash=_hash(token))
    return Begun(
        run_id=run_id,
        key=key,
        version=version,
        begun_at=run.begun_at or now,
        previous_success=ledger.previous_success(connection, schedule, entry.first_at),
        token=token,
    )


def opened(connection: Connection, run_id: str, token: str) -> Opened:
    """What a running run may read and write now; `NotFound` once the run has ended, or with another token.

    The contents themselves are read and written by the caller, after this: no transaction waits for a disk.
    """
    schedule, entry, run = _find(connection, run_id, lock=False)
    if run.token_hash is None or not secrets.compare_digest(run.token_hash, _hash(token)):
        raise NotFound("run_not_found", f"There is no run {run_id} that this token opens.")
    found = find_live(connection, entry.run_key(schedule.key).activation)
    assert found is not None, "an entry has its activation"
    request = require_version(connection, schedule, found[1].revision).configuration.run
    return Opened(
        scope=schedule.key.scope,
        input=request.input,
        output_target=request.output_target,
        folder=f"{entry.first_at:%Y%m%dT%H%M%SZ}-{run_id[:8]}",
    )


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
    entry = ledger.find_entry(connection, schedule, key)
    if entry is None:
        return None
    if entry.closed_at is not None:
        return nudge_if_waiting(connection, schedule)
    run = ledger.find_run(connection, key.run_id)
    if outcome.disposition in FAILURES and (run is None or run.begun_at is None):
        # Its agent cannot have failed: none has claimed it. A runner that dies before it claims looks the same from outside
        # as one that dies in the middle.
        outcome = replace(outcome, disposition=Disposition.NOT_STARTED, reason=Reason.START_UNKNOWN)
    ledger.close(connection, entry, outcome.disposition, outcome.reason, now=now)
    ledger.change_run(
        connection,
        key.run_id,
        ended_at=now,
        token_hash=None,
        summary=kept_summary(outcome.summary),
        outputs=list(kept_outputs(outcome.outputs)),
        cost=kept_cost(outcome.cost),
    )
    fails = outcome.disposition in FAILURES and key.trigger == BY_CALENDAR
    if fails and activation.is_live and _pauses_on_failure(require_version(connection, schedule, activation.revision)):
        because = f"pause_on_failure: run {key.run_id} of {entry.first_at.isoformat()} {outcome.disposition}."
        send_to_review(connection, schedule, activation, because=because, by="system:settlement", now=now)
    return nudge_if_waiting(connection, schedule)


def _pauses_on_failure(version: Version) -> bool:
    try:
        return version.configuration.policy.pause_on_failure
    except InvalidSchedule:
        # The row is damaged, for which its next step sends the activation to review. The slot is freed all the same.
        return False


def _find(connection: Connection, run_id: str, *, lock: bool) -> tuple[Schedule, ledger.Entry, ledger.Run]:
    query = (
        select(schedules.c.org_id, schedules.c.environment_id, schedules.c.schedule_id)
        .select_from(
            runs.join(entries, runs.c.entry == entries.c.id).join(schedules, entries.c.schedule == schedules.c.id)
        )
        .where(runs.c.run_id == run_id)
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        raise NotFound("run_not_found", f"There is no run {run_id}.")
    key = ScheduleKey(org_id=row.org_id, environment_id=row.environment_id, schedule_id=row.schedule_id)
    schedule = require_schedule(connection, key, lock=lock)
    run = ledger.find_run(connection, run_id)
    entry = None if run is None else ledger.entry_of(connection, run)
    if run is None or entry is None:
        raise NotFound("run_not_found", f"There is no run {run_id}.")
    return schedule, entry, run


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
