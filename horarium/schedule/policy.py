"""What a schedule does when it cannot simply start the next run: the policy part of a version."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

MIN_CATCHUP_WINDOW = timedelta(seconds=10)
MAX_CATCHUP_WINDOW = timedelta(seconds=86_400)
MAX_CONCURRENT_RUNS = 1_000
BUFFER_LIMIT = 1_000
"""How many instants `buffer_all` keeps waiting; the newest beyond that is dropped (DESIGN.md, section 6)."""


class Overlap(StrEnum):
    """What happens to an instant that falls due while the schedule's runs hold every slot."""

    SKIP = "skip"
    """It is gone."""
    BUFFER_ONE = "buffer_one"
    """The earliest such instant waits for a slot; later ones are gone."""
    BUFFER_ALL = "buffer_all"
    """All wait, in order, up to `BUFFER_LIMIT`."""
    ALLOW = "allow"
    """It starts all the same; there are no slots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The policy of a version.

    `catchup_window` is how late an instant may still be handled, inclusive. `max_concurrent_runs` is the number of slots,
    and means nothing under `Overlap.ALLOW`. `pause_on_failure` ends the activation in review at its first failed or
    timed-out run.

    `defer_once` goes with `Overlap.BUFFER_ONE` alone, and is scheduler v0's (DESIGN.md, section 6): the earliest instant that
    was missed or overlapped runs late, and answers for all others that are due until it starts. The canonical contract has no
    word for it.
    """

    overlap: Overlap
    catchup_window: timedelta
    pause_on_failure: bool
    max_concurrent_runs: int = 1
    defer_once: bool = False

    def __post_init__(self) -> None:
        assert MIN_CATCHUP_WINDOW <= self.catchup_window <= MAX_CATCHUP_WINDOW
        assert 1 <= self.max_concurrent_runs <= MAX_CONCURRENT_RUNS
        assert not self.defer_once or self.overlap is Overlap.BUFFER_ONE

    @property
    def slots(self) -> int | None:
        """How many runs may be active before a due instant is an overlap; None where there is no such number."""
        return None if self.overlap is Overlap.ALLOW else self.max_concurrent_runs
