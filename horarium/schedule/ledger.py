"""The words of the ledger: what became of a due instant, and why."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

BY_CALENDAR = "schedule"
"""The trigger of an occurrence. A manual run's trigger is `manual:{receipt}`."""


class Disposition(StrEnum):
    """Where a ledger entry stands. The first four are open; every entry ends in exactly one of the others."""

    BUFFERED = "buffered"
    """Waits for a slot."""
    STAGED = "staged"
    """Holds a slot; its admission is not decided yet."""
    ADMITTED = "admitted"
    """May run, and is on its way to the agent."""
    STARTED = "started"
    """The agent has begun it."""

    DROPPED = "dropped"
    """Given up without a decision on its merits: the activation ended first, or a limit of ours was reached."""
    MISSED = "missed"
    """Nothing was listening until it was older than the catch-up window."""
    SKIPPED = "skipped"
    """It fell due while the schedule's runs held every slot."""
    REFUSED = "refused"
    """Admission said no."""
    NOT_STARTED = "not_started"
    """Admitted or staged, and no agent is known to have begun it."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    TERMINATED = "terminated"
    """Its workflow was ended by hand."""

    @property
    def is_open(self) -> bool:
        """True until the entry has its one answer."""
        return self in OPEN

    @property
    def holds_slot(self) -> bool:
        """True while the entry counts as an active run of its schedule."""
        return self in HOLDING


OPEN = frozenset({Disposition.BUFFERED, Disposition.STAGED, Disposition.ADMITTED, Disposition.STARTED})
HOLDING = OPEN - {Disposition.BUFFERED}
FAILURES = frozenset({Disposition.FAILED, Disposition.TIMED_OUT})
"""What counts for `pause_on_failure` (DESIGN.md, section 6)."""


class Reason(StrEnum):
    """Why an entry ended as it did. Stable codes: programs and alerts rely on them."""

    OVERLAP = "overlap"
    ALREADY_WAITING = "already_waiting"
    COALESCED = "coalesced"
    BUFFER_FULL = "buffer_full"
    CATCHUP_LIMIT = "catchup_limit"
    OUTSIDE_WINDOW = "outside_window"
    ALREADY_PASSED = "already_passed"

    PAUSED = "paused"
    RETIRED = "retired"
    REVIEW = "review"
    SUPERSEDED = "superseded"

    RUNTIME_UNCONFIGURED = "runtime_unconfigured"
    STOPPED_BY_OPERATOR = "stopped_by_operator"
    ENVIRONMENT_EPOCH_CHANGED = "environment_epoch_changed"
    ENVIRONMENT_RESET = "environment_reset"
    PRINCIPAL_LEFT = "principal_left"
    USAGE_CLASS_MISMATCH = "usage_class_mismatch"
    APPROVAL_MISSING = "approval_missing"
    APPROVAL_EXPIRED = "approval_expired"
    AGENT_MISSING = "agent_missing"
    AGENT_NOT_SCHEDULABLE = "agent_not_schedulable"
    AGENT_WITHDRAWN = "agent_withdrawn"
    AGENT_NOT_READY = "agent_not_ready"
    AGENT_OFFLINE = "agent_offline"
    INPUT_UNREADABLE = "input_unreadable"
    INPUT_EXPIRED = "input_expired"
    CONSENT_EXPIRED = "consent_expired"
    GRANT_MISSING = "grant_missing"
    GRANT_EXPIRED = "grant_expired"
    GRANT_REVOKED = "grant_revoked"
    BUDGET_MISSING = "budget_missing"
    BUDGET_USAGE_CLASS = "budget_usage_class"
    PAYMENT_X402 = "payment_x402"
    PAYMENT_PER_RUN = "payment_per_run"
    BUDGET_EXHAUSTED = "budget_exhausted"
    WALLET_UNPAID_LIMIT = "wallet_unpaid_limit"
    WALLET_COLLECTION_FAILED = "wallet_collection_failed"
    OUTPUT_MISSING = "output_missing"
    OUTPUT_FORBIDDEN = "output_forbidden"
    AUTHORITY_UNAVAILABLE = "authority_unavailable"
    CEILING_EXCEEDED = "ceiling_exceeded"
    NOT_IN_CALENDAR = "not_in_calendar"
    BREAKER_OPEN = "breaker_open"
    VERSION_UNUSABLE = "version_unusable"

    RUN_LOST = "run_lost"
    NOT_PICKED_UP = "not_picked_up"
    CLAIM_FAILED = "claim_failed"
    START_UNKNOWN = "start_unknown"
    DISPATCH_REFUSED = "dispatch_refused"
    DISPATCH_FAILED = "dispatch_failed"

    AGENT_REPORTED_FAILURE = "agent_reported_failure"
    AGENT_LOST = "agent_lost"
    OUTCOME_LOST = "outcome_lost"
    TIME_LIMIT = "time_limit"
    CANCELLED_BY_OPERATOR = "cancelled_by_operator"
    TERMINATED_BY_OPERATOR = "terminated_by_operator"

    @property
    def sentence(self) -> str:
        """The reason in words, for a person."""
        return _SENTENCES[self]


_SENTENCES = {
    Reason.OVERLAP: "Other runs of this schedule held every slot when its turn came.",
    Reason.ALREADY_WAITING: "Other runs held every slot when its turn came, and one instant was waiting already.",
    Reason.COALESCED: "One run that starts late answers for it too: the schedule defers once.",
    Reason.BUFFER_FULL: "The buffer of waiting instants was full.",
    Reason.CATCHUP_LIMIT: "More instants had passed unattended than catch-up starts after one outage.",
    Reason.OUTSIDE_WINDOW: "Nothing was listening until the instant was older than the catch-up window.",
    Reason.ALREADY_PASSED: "The instant had passed when the schedule was enabled, so it never runs.",
    Reason.PAUSED: "The schedule was paused before the instant was decided.",
    Reason.RETIRED: "The schedule was retired before the instant was decided.",
    Reason.REVIEW: "The activation ended in review before the instant was decided.",
    Reason.SUPERSEDED: "A newer activation took over before the instant was decided.",
    Reason.RUNTIME_UNCONFIGURED: "The environment has no runtime profile, so nothing runs in it.",
    Reason.STOPPED_BY_OPERATOR: "An operator has stopped everything in the environment or the organization.",
    Reason.ENVIRONMENT_EPOCH_CHANGED: "The environment's authority epoch is another one than at enabling.",
    Reason.ENVIRONMENT_RESET: "The environment was reset after the schedule was enabled.",
    Reason.PRINCIPAL_LEFT: "The person on whose word it runs is no member of the organization any more.",
    Reason.USAGE_CLASS_MISMATCH: "The usage class does not fit the mode of the environment.",
    Reason.APPROVAL_MISSING: "Live runs need an approval of exactly this version, and there is none.",
    Reason.APPROVAL_EXPIRED: "The approval of this version has expired.",
    Reason.AGENT_MISSING: "No agent of exactly that version is registered.",
    Reason.AGENT_WITHDRAWN: "The agent version was withdrawn.",
    Reason.AGENT_NOT_SCHEDULABLE: "The agent handles no CronStartEvent, so it cannot run on a schedule.",
    Reason.AGENT_NOT_READY: "The agent is registered, but is neither ready nor running.",
    Reason.AGENT_OFFLINE: "The agent's lease lapsed: its runner stopped renewing it.",
    Reason.INPUT_UNREADABLE: "The input of the run request does not exist or cannot be read.",
    Reason.INPUT_EXPIRED: "The input has expired.",
    Reason.CONSENT_EXPIRED: "The consent to use the input has ended.",
    Reason.GRANT_MISSING: "The agent does not hold a grant that the run request names.",
    Reason.GRANT_EXPIRED: "A grant of the run request has expired.",
    Reason.GRANT_REVOKED: "A grant of the run request was revoked.",
    Reason.BUDGET_MISSING: "The budget of the run request does not exist.",
    Reason.BUDGET_USAGE_CLASS: "The budget is not for this usage class.",
    Reason.PAYMENT_X402: "The budget pays with x402, which no schedule can.",
    Reason.PAYMENT_PER_RUN: "The budget is paid per run, which no schedule can use.",
    Reason.BUDGET_EXHAUSTED: "The budget has no room for another run.",
    Reason.WALLET_UNPAID_LIMIT: "The wallet owes its unpaid limit.",
    Reason.WALLET_COLLECTION_FAILED: "A collection from the wallet has failed.",
    Reason.OUTPUT_FORBIDDEN: "The environment may not write to the output target.",
    Reason.AUTHORITY_UNAVAILABLE: "The authority did not answer until the catch-up window had passed.",
    Reason.OUTPUT_MISSING: "The output target of the run request does not exist.",
    Reason.CEILING_EXCEEDED: "The schedule, or all of them together, declares more runs than this installation allows.",
    Reason.NOT_IN_CALENDAR: "The stored calendar does not select that instant; the run was stopped as a fault of ours.",
    Reason.BREAKER_OPEN: "More runs were about to start than the calendar declares; the run was stopped as a fault of ours.",
    Reason.VERSION_UNUSABLE: "This release cannot evaluate the stored version, so nothing of it runs.",
    Reason.RUN_LOST: "The run's workflow closed without deciding.",
    Reason.NOT_PICKED_UP: "No agent runner took the run in time.",
    Reason.CLAIM_FAILED: "The runner could not claim the run, since the catalog did not answer; the agent never saw it.",
    Reason.START_UNKNOWN: "The run was handed over and its start was never confirmed; it may have run.",
    Reason.DISPATCH_REFUSED: "The agent's address refused the run, or may not be used any more.",
    Reason.DISPATCH_FAILED: "The agent's address could not be reached, so the run was never handed over.",
    Reason.AGENT_REPORTED_FAILURE: "The agent reported that it failed.",
    Reason.AGENT_LOST: "The agent runner stopped in the middle of the run.",
    Reason.OUTCOME_LOST: "The agent had begun, and the run's workflow closed without saying how it ended.",
    Reason.TIME_LIMIT: "The run passed its time limit.",
    Reason.CANCELLED_BY_OPERATOR: "The run was cancelled by hand.",
    Reason.TERMINATED_BY_OPERATOR: "The run's workflow was terminated by hand.",
}
assert set(_SENTENCES) == set(Reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Consecutive due instants that are told together: the first, the last and how many."""

    first: datetime
    last: datetime
    count: int

    def __post_init__(self) -> None:
        assert self.count >= 1
        assert self.first <= self.last


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """A span of instants that ended without a run."""

    span: Span
    disposition: Disposition
    reason: Reason
