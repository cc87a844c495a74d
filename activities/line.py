"""How much earlier a run is staged where many are due in the same second. Free of Temporal, and of any clock."""

from collections import Counter, OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta

from horarium.schedule.identity import ActivationKey

STAGED_PER_SECOND = 50
"""How many runs of the same second one worker begins to stage in a second: a step, two transactions and a start each."""
LONGEST = timedelta(seconds=6)
"""The most that a lead grows. Each second of it is one in which the schedule's slot is taken, and a place to wait."""
REMEMBERED = 50_000
"""Schedules, some hundred bytes each. One that was forgotten is staged as if it were alone."""


@dataclass(frozen=True, slots=True)
class _Place:
    due: datetime
    extra: timedelta


class Line:
    """The schedules whose next instant this worker knows, by their seconds: each stands a little before the one behind it.

    The first in line of a second has no more than its own lead, and the n-th is staged n / `per_second` earlier; those for whom
    that would be more than `longest` share the time that there is. So it is the worker's own load that makes it begin early,
    and two workers need not agree: a lead changes when a run is staged, and nothing that is decided. A worker that has just
    started knows nobody, and stages as it would without a line until it has taken a step of each.
    """

    def __init__(
        self, *, per_second: int = STAGED_PER_SECOND, longest: timedelta = LONGEST, remembers: int = REMEMBERED
    ) -> None:
        self._between = timedelta(seconds=1) / per_second
        self._longest = longest
        self._remembers = remembers
        self._places: OrderedDict[ActivationKey, _Place] = OrderedDict()
        self._standing: Counter[datetime] = Counter()

    def extra_of(self, key: ActivationKey) -> timedelta:
        """How much earlier than by its own lead the next instant of a schedule is staged, as it was told to it."""
        place = self._places.get(key)
        return timedelta(0) if place is None else place.extra

    def stand(self, key: ActivationKey, due: datetime, *, at_most: timedelta | None = None) -> timedelta:
        """Let a schedule stand in line for its next instant: how much earlier it is staged. It is told the same each time.

        `at_most` bounds that for a schedule which is due again before a place further ahead would be of any use.
        """
        place = self._places.get(key)
        if place is not None and place.due == due:
            return place.extra
        self.leave(key)
        before = self._standing[due]
        self._standing[due] += 1
        extra = self._between * (before % (self._longest // self._between + 1))
        if at_most is not None:
            extra = max(min(extra, at_most), timedelta(0))
        self._places[key] = _Place(due=due, extra=extra)
        while len(self._places) > self._remembers:
            self.leave(next(iter(self._places)))
        return extra

    def leave(self, key: ActivationKey) -> None:
        """Forget a schedule."""
        place = self._places.pop(key, None)
        if place is None:
            return
        self._standing[place.due] -= 1
        if not self._standing[place.due]:
            del self._standing[place.due]
