"""The reckoning of one activation: what its calendar selects, held against its ledger entries. Pure.

It walks over the entries in the order of time and counts what the calendar selects inside them and between them. It never
goes from instant to instant, so a day of a per-second schedule that is one entry costs as much as any other entry.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from horarium.calendar import Calendar
from horarium.schedule.facts import span_between
from horarium.schedule.identity import instant_text
from horarium.schedule.ledger import Disposition

_MICROSECOND = timedelta(microseconds=1)


class Problem(StrEnum):
    """What is wrong; each makes an audit fail."""

    MISSING = "missing"
    """Due, and in no entry."""
    DUPLICATE = "duplicate"
    """Due once, and in two entries."""
    UNDUE = "undue"
    """Entered, and not due: the calendar does not select it, or the activation does not answer for it."""
    UNCLOSED = "unclosed"
    """An activation or an entry that should have been closed, and still looks alive."""
    UNUSABLE = "unusable"
    """An activation whose stored calendar cannot be evaluated, so that nobody can say what was due."""


class Pending(StrEnum):
    """What is not answered yet, and need not be."""

    WAITING = "waiting"
    """Entered and buffered until a slot is free."""
    UNDECIDED = "undecided"
    """Entered and staged; its admission comes at its nominal time."""
    RUNNING = "running"
    """Entered and admitted or started; the run goes on, also behind the end of its activation."""
    BEHIND_RUN = "behind_run"
    """Not entered: the schedule waits for an active run, and accounts for it then."""
    YOUNG = "young"
    """Not entered, and younger than the grace."""
    UNATTENDED = "unattended"
    """Not entered, since no schedule worker has been alive; the next one accounts for it first of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """One thing that an audit tells of an activation: which instants, how many, and a sentence for a person."""

    generation: int
    kind: Problem | Pending
    first: datetime
    last: datetime
    count: int
    sentence: str


class Entered(NamedTuple):
    """An entry of the ledger, as far as a reckoning goes."""

    generation: int
    first: datetime
    last: datetime
    instants: int
    disposition: Disposition
    closed_at: datetime | None

    @property
    def span_text(self) -> str:
        """Its instants, for a sentence."""
        return span_text(self.first, self.last)

    def remark(self, kind: Problem | Pending, instants: int, sentence: str) -> Remark:
        """Tell something about this entry."""
        return Remark(
            generation=self.generation, kind=kind, first=self.first, last=self.last, count=instants, sentence=sentence
        )


def reckon(
    calendar: Calendar, entered: Sequence[Entered], *, generation: int, after: datetime, until: datetime
) -> Iterator[Remark]:
    """Give what is missing, duplicate or undue in `(after, until]`, with `entered` by nominal time.

    The numbers add up, whatever the ledger holds: `due = entered + missing - duplicate - undue`.
    """
    covered = after
    for entry in entered:
        if entry.first == entry.last == calendar.after(covered) and entry.instants == 1 and entry.last <= until:
            covered = entry.last  # nearly all of a ledger of runs
            continue
        if entry.first <= after or entry.last > until or entry.last < entry.first:
            yield _outside(entry, after, until)
            continue
        if gap := span_between(calendar, covered, entry.first - _MICROSECOND):
            yield missing(generation, gap.first, gap.last, gap.count)
        yield from _inside(calendar, entry, covered)
        covered = max(covered, entry.last)
    if gap := span_between(calendar, covered, until):
        yield missing(generation, gap.first, gap.last, gap.count)


def still_open(entered: Iterable[Entered], *, closed: bool) -> Iterator[Remark]:
    """Give the entries without an answer. Of a `closed` activation only runs that were admitted may be among them."""
    for entry in entered:
        ends = entry.disposition
        if ends.is_open != (entry.closed_at is None):
            told = "is marked as closed" if ends.is_open else "was never marked as closed"
            yield entry.remark(Problem.UNCLOSED, 0, f"The entry of {entry.span_text} is {ends} and {told}.")
        elif ends in {Disposition.ADMITTED, Disposition.STARTED}:
            yield entry.remark(Pending.RUNNING, entry.instants, f"The run of {entry.span_text} is {ends} and goes on.")
        elif ends.is_open and closed:
            sentence = f"The entry of {entry.span_text} is still {ends}, and its activation has ended."
            yield entry.remark(Problem.UNCLOSED, 0, sentence)
        elif ends is Disposition.BUFFERED:
            sentence = f"The instant {entry.span_text} waits for a slot."
            yield entry.remark(Pending.WAITING, entry.instants, sentence)
        elif ends is Disposition.STAGED:
            sentence = f"The run of {entry.span_text} is staged, and its admission is not decided yet."
            yield entry.remark(Pending.UNDECIDED, entry.instants, sentence)


def missing(generation: int, first: datetime, last: datetime, count: int) -> Remark:
    """Tell that due instants are in no entry."""
    are = "instant is" if count == 1 else "instants are"
    sentence = f"{count} due {are} in no entry: {span_text(first, last)}."
    return Remark(generation=generation, kind=Problem.MISSING, first=first, last=last, count=count, sentence=sentence)


def span_text(first: datetime, last: datetime) -> str:
    """One instant, or the first and the last of several, for a sentence."""
    return instant_text(first) if first == last else f"{instant_text(first)} to {instant_text(last)}"


def _outside(entry: Entered, after: datetime, until: datetime) -> Remark:
    sentence = (
        f"The entry of {entry.span_text} lies outside of what generation {entry.generation} answers for: "
        f"after {instant_text(after)}, until {instant_text(until)}."
    )
    return entry.remark(Problem.UNDUE, entry.instants, sentence)


def _inside(calendar: Calendar, entry: Entered, covered: datetime) -> Iterator[Remark]:
    """Hold one entry against the instants that the calendar selects from its first to its last."""
    due = calendar.count(entry.first, entry.last)
    twice = calendar.count(entry.first, min(entry.last, covered)) if entry.first <= covered else 0
    if twice:
        sentence = f"{twice} of the instants {entry.span_text} stand in an entry before this one already."
        yield entry.remark(Problem.DUPLICATE, twice, sentence)
    foreign = [instant for instant in sorted({entry.first, entry.last}) if not calendar.selects(instant)]
    if foreign or entry.instants > due:
        found = f"The entry of {entry.span_text} counts {entry.instants}, and the calendar selects {due} there"
        which = f", not {' and not '.join(instant_text(instant) for instant in foreign)}" if foreign else ""
        yield entry.remark(Problem.UNDUE, max(entry.instants - due, 0), f"{found}{which}.")
    if entry.instants < due:
        sentence = f"The entry of {entry.span_text} counts {entry.instants}, and the calendar selects {due} there."
        yield entry.remark(Problem.MISSING, due - entry.instants, sentence)
