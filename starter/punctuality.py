"""Finds activations that nobody accounts for: their workflows run, and their due times pass (DESIGN.md, section 7).

And those that are accounted for too far: whose mark is ahead of the clock, so that nothing of them fires until it comes there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from activities.findings import Findings
from activities.pace import Pace
from horarium.catalog import Catalog
from horarium.catalog.sweeping import Watched
from horarium.control.punctuality import next_to_account_for
from horarium.schedule.findings import Finding
from horarium.schedule.identity import instant_text

GRACE = timedelta(seconds=30) + Pace().lead + Pace().spread
"""How long a mark may stand still behind a due time. A step comes before it, and is 60 s late only after an outage."""

_logger = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Mark:
    """How far an activation was accounted for, since when it is known to stand there, and when somebody has to look."""

    stands_at: tuple[object, ...]
    since: datetime
    is_reckoned: bool = False
    due: datetime | None = None
    is_counted: bool = False


@dataclass(slots=True)
class Punctuality:
    """What was seen of the marks of live activations.

    A mark is reckoned with its calendar once, and only once it is old. So a sweep of schedules that fire asks
    their rows alone, and one of schedules that sleep for days nothing more than the first.
    """

    catalog: Catalog
    findings: Findings
    _marks: dict[int, _Mark] = field(default_factory=dict)

    async def overdue(self, live: Sequence[Watched], *, now: datetime) -> dict[int, str]:
        """Of each activation that nobody accounts for, by its schedule's row, a sentence on what has passed; and of each whose
        mark is ahead, one on how far.

        One that is behind and whose mark moves is catching up, and is not among them.
        """
        late = [each for each in live if self._stands_still(each, now=now)]
        unreckoned = [each for each in late if not self._marks[each.row].is_reckoned]
        if unreckoned:
            for row, due in (await self.catalog.read(next_to_account_for, unreckoned)).items():
                self._marks[row].due, self._marks[row].is_reckoned = due, True
        found = {each.row: sentence for each in late if (sentence := self._sentence(each, now=now))}
        ahead = {each.row: _ahead(each) for each in live if each.accounted_through - now > GRACE}
        for kind, rows in ((Finding.DUE_TIME_PASSED, found), (Finding.MARK_AHEAD, ahead)):
            for row, sentence in rows.items():
                self._count(row, kind, sentence)
        return found | ahead

    def keep_only(self, live: Sequence[Watched]) -> None:
        """Forget the marks of what is not live any more."""
        rows = {each.row for each in live}
        self._marks = {row: mark for row, mark in self._marks.items() if row in rows}

    def _count(self, row: int, kind: Finding, sentence: str) -> None:
        """Once for each mark, however often it is found there."""
        mark = self._marks[row]
        if not mark.is_counted:
            mark.is_counted = True
            self.findings.note(kind)
            _logger.warning(str(kind), schedule=row, because=sentence)

    def _stands_still(self, each: Watched, *, now: datetime) -> bool:
        stands_at = (each.key.generation, each.accounted_through, each.waiting, each.attended_until)
        mark = self._marks.get(each.row)
        if mark is None or mark.stands_at != stands_at:
            mark = self._marks[each.row] = _Mark(stands_at=stands_at, since=now)
        return now - mark.since > GRACE and now - each.accounted_through > GRACE

    def _sentence(self, each: Watched, *, now: datetime) -> str | None:
        due = self._marks[each.row].due
        if due is None or now - due <= GRACE:
            return None
        what = "Its next look at a free slot" if each.waiting else "Its next due time"
        return (
            f"{what}, {instant_text(due)}, has passed and no worker has accounted for it. Is the schedule worker up? "
            "If it is, the workflow's page in the Temporal UI says what fails."
        )


def _ahead(each: Watched) -> str:
    return (
        f"It is accounted for until {instant_text(each.accounted_through)}, which is ahead of the clock. Nothing fires before. "
        "A clock was wrong when its last step was made. Enabling it again does not help: no instant is decided twice."
    )
