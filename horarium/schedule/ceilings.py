"""How many runs schedules may declare at the most (seed 004, decision 9).

What a timing declares can be counted before its first run. So what is too much is refused where a person sees it, and no run
is metered.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from horarium.calendar import Calendar

MONTH: Final = timedelta(days=30)
"""What the ceilings count in."""
EVERY_MINUTE: Final = 43_200
"""Runs a month of the densest cron there is, so that a profile is refused nothing unless an operator allows less."""
PER_PROFILE: Final = "SCHEDULER_MAX_RUNS_PER_PROFILE_PER_MONTH"
TOTAL: Final = "SCHEDULER_MAX_TOTAL_RUNS_PER_MONTH"
"""What an operator sets: a refusal names it."""
_MOMENT: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """The most runs a month: of one cron profile, and of all enabled schedules of an installation together.

    `total` is None where nothing bounds it: what can refuse a person's change is switched on by an operator.
    """

    per_profile: int = EVERY_MINUTE
    total: int | None = None


USUAL: Final = Ceilings()
"""Those of an installation that was told nothing."""


def runs_per_month(calendar: Calendar, *, now: datetime) -> int:
    """How many instants a calendar declares in the 30 days after `now`: itself excluded, the end included."""
    return calendar.count(now + _MOMENT, now + MONTH)
