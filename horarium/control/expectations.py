"""Whether schedules succeed when they should: what an installation is there for, whatever keeps it from happening.

A schedule is expected to succeed once by the time that its first due instant since the last success should have: that instant,
its catch-up window, and the time limit of its run. Failed, refused, missed, or never looked at: it is all the same here.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection

from horarium.catalog import expected, figures
from horarium.catalog.figures import Expecting
from horarium.errors import InvalidSchedule
from horarium.schedule.identity import Scope

LIMIT_UNKNOWN: Final = timedelta(hours=1)
"""What a run may take of a schedule that never succeeded: how long its agent takes is known once it has been admitted."""
LOOK_AGAIN: Final = timedelta(minutes=10)
"""The longest between two looks at a schedule that may be overdue later. A run of its next version may take less time."""
OVERDUE_AGAIN: Final = timedelta(minutes=1)
"""Between two looks at one that is overdue, or of which nothing is known to be due."""
_SOONEST: Final = timedelta(seconds=1)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """Schedules that were to be looked at: those that are overdue, when each is to be looked at next, and which are not live.

    `following` has, by the row of the schedule, the time that was read and the next.
    """

    overdue: Sequence[Overdue]
    following: Mapping[int, tuple[datetime, datetime]]
    ended: Collection[int]

    @property
    def count(self) -> int:
        """How many schedules were looked at."""
        return len(self.following) + len(self.ended)


def look_where_due(connection: Connection, scope: Scope, *, limit: int = AT_ONCE, now: datetime) -> Due:
    """Look at the schedules of an environment of which a success may be overdue by now, and reckon when that may be next.

    An index leads to them, so that one whose successes come in time is looked at each `LOOK_AGAIN`, or as often as it is due.
    """
    read = expected.to_look_at(connection, scope, now=now, latest=now + LOOK_AGAIN, limit=limit)
    expecting = {each.schedule: each for each in figures.expecting_of(connection, list(read))} if read else {}
    limits = figures.time_limits(connection, list(expecting)) if expecting else {}
    # The window comes on top, and is looked up only where it matters.
    earliest = {
        row: each.due_at + limits.get(row, LIMIT_UNKNOWN) for row, each in expecting.items() if each.due_at is not None
    }
    past = [expecting[row] for row, at in earliest.items() if at < now]
    expected_by = _expected_by(connection, past) if past else {}
    overdue = _late(past, expected_by, now=now)
    may_be = {**earliest, **expected_by}
    for each in overdue:
        del may_be[each.schedule]
    following = {row: (read[row], _next_look(may_be.get(row), now=now)) for row in expecting}
    return Due(overdue=overdue, following=following, ended=read.keys() - expecting.keys())


def _next_look(may_be_overdue: datetime | None, *, now: datetime) -> datetime:
    if may_be_overdue is None:
        return now + OVERDUE_AGAIN
    return min(max(may_be_overdue, now + _SOONEST), now + LOOK_AGAIN)


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
    return _late(due, _expected_by(connection, due), now=now)


def _late(due: Sequence[Expecting], expected_by: Mapping[int, datetime], *, now: datetime) -> Sequence[Overdue]:
    return [
        Overdue(schedule=each.schedule, due_at=each.due_at, expected_by=expected_by[each.schedule])
        for each in due
        if each.due_at is not None and expected_by[each.schedule] < now
    ]


def _expected_by(connection: Connection, due: Sequence[Expecting]) -> dict[int, datetime]:
    """By when each should have succeeded, by the row of the schedule."""
    versions = figures.versions_of_activations(connection, [each.activation for each in due])
    limits = figures.time_limits(connection, [each.schedule for each in due])
    found = {}
    for each in due:
        assert each.due_at is not None
        version = versions.get(each.activation)
        try:
            window = timedelta(0) if version is None else version.configuration.policy.catchup_window
        except InvalidSchedule:
            window = timedelta(0)  # a damaged row, of which nothing runs
        found[each.schedule] = each.due_at + window + limits.get(each.schedule, LIMIT_UNKNOWN)
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
