"""Whether schedules succeed when they should: what an installation is there for, whatever keeps it from happening.

A schedule is expected to succeed once by the time that its first due instant since the last success should have: that instant,
its catch-up window, and the time limit of its run. Failed, refused, missed, or never looked at: it is all the same here.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection

from horarium.catalog import figures
from horarium.catalog.figures import Expecting
from horarium.errors import InvalidSchedule

LIMIT_UNKNOWN: Final = timedelta(hours=1)
"""What a run may take of a schedule that never succeeded: how long its agent takes is known once it has been admitted."""
AT_ONCE: Final = 500
"""Live activations that are looked at together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overdue:
    """A schedule, by its row, that should have succeeded by `expected_by` and has not, since an instant was due."""

    schedule: int
    due_at: datetime
    expected_by: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A page of live activations: those that are overdue, and behind which schedule the next page begins, if there is one."""

    overdue: Sequence[Overdue]
    following: int | None


def overdue_page(connection: Connection, *, after: int, limit: int = AT_ONCE, now: datetime) -> Looked:
    """Look at a page of the live activations of the installation, beginning behind the row `after`."""
    page = figures.expecting_page(connection, after=after, limit=limit)
    due = [each for each in page if each.due_at is not None and each.due_at < now]
    following = page[-1].schedule if len(page) == limit else None
    return Looked(overdue=_overdue(connection, due, now=now) if due else (), following=following)


def overdue_of(connection: Connection, schedule: int, *, now: datetime) -> Overdue | None:
    """What is overdue of one schedule, by its row; None where nothing is, or nothing of it is live."""
    looked = overdue_page(connection, after=schedule - 1, limit=1, now=now)
    return next((each for each in looked.overdue if each.schedule == schedule), None)


def overdue_among(connection: Connection, schedules: Collection[int], *, now: datetime) -> dict[int, Overdue]:
    """What is overdue of some schedules, by their rows: in as many queries for fifty as for one."""
    expecting = figures.expecting_of(connection, schedules)
    due = [each for each in expecting if each.due_at is not None and each.due_at < now]
    return {each.schedule: each for each in (_overdue(connection, due, now=now) if due else ())}


def _overdue(connection: Connection, due: Sequence[Expecting], *, now: datetime) -> Sequence[Overdue]:
    versions = figures.versions_of_activations(connection, [each.activation for each in due])
    limits = figures.time_limits(connection, [each.schedule for each in due])
    found = []
    for each in due:
        assert each.due_at is not None
        version = versions.get(each.activation)
        try:
            window = timedelta(0) if version is None else version.configuration.policy.catchup_window
        except InvalidSchedule:
            window = timedelta(0)  # a damaged row, of which nothing runs
        expected_by = each.due_at + window + limits.get(each.schedule, LIMIT_UNKNOWN)
        if expected_by < now:
            found.append(Overdue(schedule=each.schedule, due_at=each.due_at, expected_by=expected_by))
    return found


class Expectations:
    """Goes round the live activations, a page at a time, and keeps what it found.

    An installation of few schedules is gone round at once. Of many, what is told is of the last whole round, and at least
    what the present one has found so far.
    """

    def __init__(self) -> None:
        self._after = 0
        self._finding: list[Overdue] = []
        self._found: list[Overdue] = []

    def look(self, connection: Connection, *, now: datetime) -> "Expectations":
        """Look at the next page."""
        looked = overdue_page(connection, after=self._after, now=now)
        self._finding += looked.overdue
        if looked.following is None:
            self._after, self._found, self._finding = 0, self._finding, []
        else:
            self._after = looked.following
        return self

    @property
    def count(self) -> int:
        """How many schedules are overdue."""
        return max(len(self._found), len(self._finding))

    @property
    def since(self) -> datetime | None:
        """Since when the one is that is longest overdue; None where none is."""
        return min((each.expected_by for each in (*self._found, *self._finding)), default=None)
