"""What should not be, and is found now and then: each kind is counted, and told at `/metrics` (DESIGN.md, sections 5 and 7)."""

from enum import StrEnum


class Finding(StrEnum):
    """One thing that somebody watching over an installation wants to hear of. Stable names: alerts rely on them."""

    BREAKER_OPENED = "breaker_opened"
    """More runs were about to start than a calendar declares; the activation went to review."""
    SCHEDULE_WORKFLOW_CLOSED = "schedule_workflow_closed"
    """The workflow of an enabled schedule was gone; the activation went to review."""
    RUN_NEVER_DECIDED = "run_never_decided"
    """The workflow of a staged run was gone before anybody had decided on it; its entry was closed."""
    RUN_NEVER_SETTLED = "run_never_settled"
    """The workflow of an admitted or started run was gone, and its entry open; it was closed."""
    RUN_STARTED_AGAIN = "run_started_again"
    """Temporal did not know a staged run; it was started again."""
    DUE_TIME_PASSED = "due_time_passed"
    """Nobody accounted for a schedule's due time; its state became `error`."""
    RESERVATION_RELEASED = "reservation_released"
    """Money was kept for a run that nobody decided on; it was given back."""
    PINNED_WITHOUT_POLLERS = "pinned_without_pollers"
    """A running run belongs to a build of which a worker is missing; nobody goes on with it."""
    MARK_AHEAD = "mark_ahead"
    """A schedule's mark was ahead of the clock: nothing of it fires until the clock has come there."""
    STEP_OUTRAN_LIMIT = "step_outran_limit"
    """A step of a schedule, or a sweep of the controller, took longer than it may."""
    CLOCK_SKEW = "clock_skew"
    """A process found its machine's clock to be wrong, and went by the server's."""
    SERVER_CLOCK_AHEAD = "server_clock_ahead"
    """The Temporal server's clock was ahead of the catalog's, so a step was put off."""
