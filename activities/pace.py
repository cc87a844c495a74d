"""How early runs are staged, and how often a blocked schedule looks. Free of Temporal, so that settings are quick to read."""

import hashlib
from dataclasses import dataclass
from datetime import timedelta

from horarium.schedule.identity import ActivationKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How a worker paces schedules.

    `lead` is how early a run is staged at the least, and `spread` how much earlier at the most: each schedule by its own
    share, so that those due in the same second are not staged in the same second. `look_after` is when a blocked
    schedule first looks by itself. `steps_per_run` forces continue-as-new, for tests of it.
    """

    lead: timedelta = timedelta(seconds=4)
    spread: timedelta = timedelta(seconds=2)
    look_after: timedelta = timedelta(seconds=60)
    steps_per_run: int | None = None

    def lead_of(self, key: ActivationKey) -> timedelta:
        """The lead of one schedule, the same in every process."""
        share = int.from_bytes(hashlib.sha256(key.schedule.path.encode()).digest()[:4]) / 2**32
        return self.lead + self.spread * share
