"""The end of a run as an agent behind the gateway `http` reports it: believed once, and only in time.

The report may come before the POST that started the agent has returned, twice, late, or against an earlier one. Whatever comes
after the run has ended changes nothing and is told how it ended.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from sqlalchemy import Connection, select

from horarium.agents.report import kept_outputs, kept_summary
from horarium.authority.declared import MAX_AMOUNT, Destination
from horarium.calendar.faults import Faults, pointer, shown
from horarium.catalog import ledger
from horarium.catalog.tables import entries, runs, schedules
from horarium.control.dispatching import Handed, find_destination, find_handed, mark_begun
from horarium.control.running import Outcome, settle
from horarium.errors import Conflict, NotFound
from horarium.schedule.identity import ActivationKey, RunKey, Scope, schedule_key
from horarium.schedule.ledger import Disposition, Reason

_FIELDS: Final = ("outcome", "summary", "outputs", "cost")


class OutcomeReport(BaseModel):
    """How a run ended, as its agent says. Longer summaries are shortened, and of more than 100 outputs the first are kept."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    outcome: Literal["succeeded", "failed"] = Field(description="Whether the agent did its work, whatever it found.")
    summary: Annotated[str, AfterValidator(kept_summary)] = Field(
        default="", description="One or two sentences for a person; 2,000 characters are kept."
    )
    outputs: Annotated[
        tuple[str, ...],
        BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value),
        AfterValidator(kept_outputs),
    ] = Field(default=(), description="References to what was written; 100 are kept.")
    cost: Annotated[int, Field(ge=0, le=MAX_AMOUNT)] | None = Field(
        default=None,
        description="What the run cost, in whole minor units of the budget's currency. Without it, what was reserved counts.",
    )

    @property
    def as_outcome(self) -> Outcome:
        """The same as the ledger knows it."""
        succeeded = self.outcome == "succeeded"
        return Outcome(
            disposition=Disposition.SUCCEEDED if succeeded else Disposition.FAILED,
            reason=None if succeeded else Reason.AGENT_REPORTED_FAILURE,
            summary=self.summary,
            outputs=self.outputs,
            cost=self.cost,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """What became of a report. `replayed` says that the same was reported before.

    `nudge` names a schedule that waits for the slot. `late` is a sentence where the run had passed its time limit, and was
    closed for that.
    """

    key: RunKey
    disposition: Disposition
    reason: Reason | None
    replayed: bool
    nudge: ActivationKey | None
    late: str | None = None


def read_outcome(document: object) -> OutcomeReport:
    """Read a report strictly; `InvalidSchedule` with all faults.

    A cost that is no amount of money is refused and not corrected: nobody knows what was meant.
    """
    faults = Faults()
    if not isinstance(document, dict):
        faults.add(
            "", "not_an_object", f"This is an object with the fields {', '.join(_FIELDS)}; found {shown(document)}."
        )
        faults.raise_if_any()
    assert isinstance(document, dict)
    faults.check_members({name: None for name in document if name not in _FIELDS}, "", _FIELDS)
    if "outcome" not in document:
        faults.add("/outcome", "missing_field", "The field outcome is required.")
    elif document["outcome"] not in ("succeeded", "failed"):
        sentence = f'This is "succeeded" or "failed"; found {shown(document["outcome"])}.'
        faults.add("/outcome", "unknown_value", sentence)
    summary, outputs, cost = document.get("summary", ""), document.get("outputs", []), document.get("cost")
    if not isinstance(summary, str):
        faults.add("/summary", "not_text", f"This is a text; found {shown(summary)}.")
    if not isinstance(outputs, list):
        faults.add("/outputs", "not_an_array", f"This is an array of texts; found {shown(outputs)}.")
    else:
        for number, each in enumerate(outputs):
            if not isinstance(each, str):
                faults.add(pointer("/outputs", number), "not_text", f"This is a text; found {shown(each)}.")
    if cost is not None and (isinstance(cost, bool) or not isinstance(cost, int)):
        faults.add("/cost", "not_an_integer", f"This is an integer, in minor units; found {shown(cost)}.")
    elif cost is not None and not 0 <= cost <= MAX_AMOUNT:
        faults.add("/cost", "out_of_range", f"This is an integer from 0 to {MAX_AMOUNT:,}; found {shown(cost)}.")
    faults.raise_if_any()
    return OutcomeReport.model_validate(document)


def destination_of(connection: Connection, scope: Scope, run_id: str) -> Destination | None:
    """The destination that may report on a run; None where there is no such run, or none may."""
    key = _key_of(connection, scope, run_id)
    handed = None if key is None else find_handed(connection, key, lock=False)
    if handed is None or not _was_sent(handed):
        return None
    return find_destination(connection, scope, handed.destination_name)


def report(connection: Connection, scope: Scope, run_id: str, reported: OutcomeReport, *, now: datetime) -> Reported:
    """Take a report of a run's end, exactly once.

    It settles the run and its money in this transaction. One that comes before the hand-over is confirmed is believed: it is
    the better confirmation. The same report again is `replayed`. Raises `NotFound` for a run that was not sent, and `Conflict`
    with `outcome_conflict` against an earlier report, or with `run_ended` where the run ended in another way.
    """
    key = _key_of(connection, scope, run_id)
    handed = None if key is None else find_handed(connection, key, lock=True)
    if key is None or handed is None or not _was_sent(handed):
        raise no_such_run(run_id)
    if handed.entry.closed_at is not None:
        return _repeated(handed, reported)
    if handed.run.begun_at is None:
        mark_begun(connection, handed, at=handed.run.dispatch_sent or now)
    begun_at = handed.run.begun_at or handed.run.dispatch_sent or now
    outcome, late = reported.as_outcome, None
    if now > begun_at + handed.limit:
        late = f"Run {run_id} passed its time limit of {handed.limit.total_seconds():,.0f} s before its outcome came."
        outcome = Outcome(disposition=Disposition.TIMED_OUT, reason=Reason.TIME_LIMIT, summary=late)
    nudge = settle(connection, key, outcome, now=now)
    return Reported(
        key=key, disposition=outcome.disposition, reason=outcome.reason, replayed=False, nudge=nudge, late=late
    )


def no_such_run(run_id: str) -> NotFound:
    """The answer to a report that nobody may give, whatever the cause."""
    return NotFound(
        "run_not_found",
        f"There is no run {run_id} that this message may report on.",
        next_step="Report to the address that came with the run, with webhook-id the run's id, signed with the destination's "
        "secret, by a clock that is right.",
    )


def run_ended(run_id: str, disposition: Disposition, reason: Reason | None) -> Conflict:
    """The answer to an outcome of a run that ended in another way."""
    because = "" if reason is None else f" ({reason}): {reason.sentence}"
    return Conflict(
        "run_ended",
        f"Run {run_id} is over: {disposition}{because or '.'}",
        next_step="The report changed nothing. Do not send it again.",
    )


def _repeated(handed: Handed, reported: OutcomeReport) -> Reported:
    entry, run, said = handed.entry, handed.run, reported.as_outcome
    was_reported = (entry.disposition, entry.reason) in {
        (Disposition.SUCCEEDED, None),
        (Disposition.FAILED, Reason.AGENT_REPORTED_FAILURE),
    }
    if not was_reported:
        raise run_ended(run.run_id, entry.disposition, entry.reason)
    before = (entry.disposition, entry.reason, run.summary or "", tuple(run.outputs or ()), run.cost)
    if before != (said.disposition, said.reason, said.summary, said.outputs, said.cost):
        raise Conflict(
            "outcome_conflict",
            f"Another outcome of run {run.run_id} was reported before: {entry.disposition}. The first one counts.",
            next_step="The report changed nothing. Do not send it again.",
        )
    return Reported(key=handed.key, disposition=entry.disposition, reason=entry.reason, replayed=True, nudge=None)


def _was_sent(handed: Handed) -> bool:
    return handed.run.token_nonce is not None


def _key_of(connection: Connection, scope: Scope, run_id: str) -> RunKey | None:
    query = (
        select(schedules.c.schedule_id, entries)
        .select_from(
            runs.join(entries, runs.c.entry == entries.c.id).join(schedules, entries.c.schedule == schedules.c.id)
        )
        .where(
            runs.c.run_id == run_id,
            schedules.c.org_id == scope.org_id,
            schedules.c.environment_id == scope.environment_id,
        )
    )
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else ledger.entry_of_row(row).run_key(schedule_key(scope, row["schedule_id"]))
