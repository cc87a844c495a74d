"""Finds activations that nobody accounts for: their workflows run, and their due times pass (DESIGN.md, section 7).

And those that are accounted for too far: whose mark is ahead of the clock, so that nothing of them fires until it comes there.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import structlog

from activities.findings import Findings
from activities.pace import Pace
from horarium.catalog import Catalog, watching
from horarium.catalog.watching import Watched
from horarium.control.punctuality import next_to_account_for
from horarium.schedule.findings import Finding
from horarium.schedule.identity import Scope, instant_text

STILL = timedelta(seconds=30)
"""How long a mark has to stand where it is before that is told: one that moves is catching up."""
GRACE = STILL + Pace().lead + Pace().spread
"""How long a due time may have passed. A step comes before it, and is 60 s late only after an outage."""
LATE_AT_ONCE = 200
"""Activations behind a due time that a sweep looks at. Where no worker is there for long they become many, and take turns."""

_logger = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Mark:
    """How far an activation was accounted for, since when it is known to stand there, and whether that was told."""

    stands_at: tuple[object, ...]
    since: datetime
    is_counted: bool = False


@dataclass(slots=True)
class Punctuality:
    """What was seen of the marks of live activations that are behind, or ahead.

    Whoever accounts for one stores when that has to be done next, so those that are behind are found by that, and those
    that are not cost nothing, whether they fire or sleep for days.
    """

    catalog: Catalog
    scope: Scope
    findings: Findings
    _behind: dict[int, _Mark] = field(default_factory=dict)
    _ahead: dict[int, _Mark] = field(default_factory=dict)
    _after: tuple[datetime, int] | None = None
    _round: set[int] = field(default_factory=set)

    async def late(self, *, now: datetime) -> Sequence[Watched]:
        """A page of the activations at which somebody has to have looked before now; the next call goes on behind it."""
        page, self._after = await self.catalog.read(
            watching.late, self.scope, before=now, after=self._after, limit=LATE_AT_ONCE
        )
        self._round.update(each.row for each in page)
        if self._after is None:
            self._behind = {row: mark for row, mark in self._behind.items() if row in self._round}
            self._round = set()
        return page

    async def overdue(self, live: Sequence[Watched], *, now: datetime) -> dict[int, str]:
        """Of each activation that nobody accounts for, by its schedule's row, a sentence on what has passed; and of each whose
        mark is ahead, one on how far.

        One that is behind and whose mark moves is catching up, and is not among them.
        """
        told: dict[int, str] = {}
        for each in await self._reckoned(live, now=now):
            if each.look_by is not None and each.look_by < now:
                mark = self._behind[each.row] = _mark(self._behind.get(each.row), each, now=now)
                if now - mark.since >= STILL and now - each.look_by > GRACE:
                    told[each.row] = _late(each, each.look_by)
                    _count(self.findings, mark, Finding.DUE_TIME_PASSED, each, told[each.row])
            else:
                self._behind.pop(each.row, None)
            if each.accounted_through - now > GRACE:
                mark = self._ahead[each.row] = _mark(self._ahead.get(each.row), each, now=now)
                told[each.row] = _too_far(each)
                _count(self.findings, mark, Finding.MARK_AHEAD, each, told[each.row])
            else:
                self._ahead.pop(each.row, None)
        return told

    def forget(self, ended: Iterable[Watched]) -> None:
        """Of what is not live any more, nothing is told."""
        for each in ended:
            self._behind.pop(each.row, None)
            self._ahead.pop(each.row, None)

    async def _reckoned(self, live: Sequence[Watched], *, now: datetime) -> Sequence[Watched]:
        """The same, those that were enabled before it was stored until when somebody has to look with that instant."""
        unreckoned = [each for each in live if each.look_by is None and each.accounted_through < now]
        if not unreckoned:
            return live
        reckoned = await self.catalog.read(next_to_account_for, unreckoned)
        found = {each.row: (each, look_by) for each in unreckoned if (look_by := reckoned[each.row]) is not None}
        if found:
            await self.catalog.write(watching.note_look_by, list(found.values()))
        return [replace(each, look_by=found[each.row][1]) if each.row in found else each for each in live]


def _mark(known: _Mark | None, each: Watched, *, now: datetime) -> _Mark:
    stands_at = (each.key.generation, each.accounted_through, each.waiting, each.attended_until)
    return known if known is not None and known.stands_at == stands_at else _Mark(stands_at=stands_at, since=now)


def _count(findings: Findings, mark: _Mark, kind: Finding, each: Watched, sentence: str) -> None:
    """Once for each mark, however often it is found there."""
    if not mark.is_counted:
        mark.is_counted = True
        findings.note(kind)
        _logger.warning(str(kind), schedule=each.row, because=sentence)


def _late(each: Watched, due: datetime) -> str:
    what = "Its next look at a free slot" if each.waiting else "Its next due time"
    return (
        f"{what}, {instant_text(due)}, has passed and no worker has accounted for it. Is the schedule worker up? "
        "If it is, the workflow's page in the Temporal UI says what fails."
    )


def _too_far(each: Watched) -> str:
    return (
        f"It is accounted for until {instant_text(each.accounted_through)}, which is ahead of the clock. Nothing fires before. "
        "A clock was wrong when its last step was made. Enabling it again does not help: no instant is decided twice."
    )
