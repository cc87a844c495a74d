"""What a schedule's workflow answers. Not in its own module: what that defines is made anew for every workflow."""

from dataclasses import dataclass
from datetime import datetime

from horarium.schedule.identity import ActivationKey


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleDescription:
    """What a schedule's workflow says of itself when it is asked. `trouble` is why its last step failed, if it did."""

    key: ActivationKey
    state: str
    accounted_through: datetime | None
    next_look: datetime | None
    waiting: int
    blocked: bool
    trouble: str | None = None
