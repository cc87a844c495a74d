"""What is said of a schedule that is retired, in the words of the contract that it was made by."""

from horarium.catalog.schedules import Schedule
from horarium.errors import Conflict
from horarium.schedule.v0 import CONTRACT as V0


def refused_as_retired(schedule: Schedule) -> Conflict:
    """The answer to whoever changes a schedule that was ended for good. Scheduler v0 calls that disabled (seed 002)."""
    assert schedule.retired_at is not None
    done, step = (
        ("disabled", "Create another schedule.")
        if schedule.contract == V0
        else ("retired", "Publish under a new schedule id.")
    )
    return Conflict(
        "schedule_retired",
        f"Schedule {schedule.key.schedule_id} was {done} on {schedule.retired_at:%Y-%m-%d}; that is final.",
        next_step=step,
    )
