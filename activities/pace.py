"""How early runs are staged, and how often a blocked schedule looks. Free of Temporal, so that settings are quick to read."""

import hashlib
from dataclasses import dataclass
from datetime import timedelta

from horarium.schedule.identity import ActivationKey

SILENT_WAIT = timedelta(seconds=6)
"""How long a run waits for its nominal time without a sign of life, which would be a write of the server and paid for as an
action: as long as a run that is alone in its second waits. Its timeout has the wait in it (`workflows.options`). Together they
are shorter than the shortest catch-up window of ten seconds, so that no run is missed for a worker that was killed."""


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
        return self.lead + self.spread * share_of(key)


def share_of(key: ActivationKey) -> float:
    """A number from 0 to 1 that is a schedule's own, so that what many do for the same second is not done at the same time."""
    return int.from_bytes(hashlib.sha256(key.schedule.path.encode()).digest()[:4]) / 2**32
