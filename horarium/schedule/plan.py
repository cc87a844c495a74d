"""The judge: from what is known to what shall be done, without a clock, a calendar or a catalog.

`plan` replays the time since the last step as it should have gone: due instants and ends of runs in their order, each
decided on the slots as they were at that instant. So a step that comes late decides as one that came on time would have,
and a start that is too late for the catch-up window is missed.
"""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from horarium.schedule.facts import LATE, MAX_STARTS_PER_STEP, Facts, Stretch
from horarium.schedule.ledger import Disposition, Fate, Reason, Span
from horarium.schedule.policy import BUFFER_LIMIT, Overlap

MAX_CATCHUP_STARTS = 1_000
"""How many late runs one outage may start; the rest is dropped (DESIGN.md, section 6)."""
CATCHUP_STARTS_PER_SECOND = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one step does.

    `promotions` are waiting instants whose turn has come, `starts` are instants that take a slot at once (some of them
    ahead of their time), `waits` are instants that begin to wait, `fates` are those that end without a run.
    `accounted_through` is the new mark. `wake_at` is when the next step is due; with `blocked` it is None and the next
    step waits for the end of a run. `exhausted` says that nothing will ever be due again and nothing is undecided. `more`
    says that due instants are left for the next step, since this one has done as much as one step may. `awaits` says that
    they are left until an overdue admission is decided, for which a plan is `blocked` too.
    """

    base: datetime
    promotions: tuple[datetime, ...]
    starts: tuple[datetime, ...]
    waits: tuple[datetime, ...]
    fates: tuple[Fate, ...]
    accounted_through: datetime
    wake_at: datetime | None
    blocked: bool
    exhausted: bool
    catchup_started: int
    more: bool = False
    awaits: bool = False

    @property
    def changes_nothing(self) -> bool:
        """True where a commit would only move the mark, if that."""
        return not (self.promotions or self.starts or self.waits or self.fates)


def plan(facts: Facts) -> Plan:
    """Decide every instant that is due, and stage the next ones where a slot is free."""
    return _Replay(facts).run()


class _StepIsFull(Exception):
    """The step has started as many runs as one step may."""


@dataclass(slots=True)
class _Replay:
    """The replay of one step: the state of the slots and the buffer as virtual time moves from the mark to now.

    `taken` counts the slots taken by earlier steps at the instant that is being decided. `taken_now` counts those that still
    are, and an end that is recorded counts, whatever it is dated: the clock that dated it may be ahead of this step's.
    """

    facts: Facts
    taken: int = field(init=False)
    taken_now: int = field(init=False)
    mark: datetime = field(init=False)
    waiting: int = field(init=False)
    promotable: deque[datetime] = field(init=False)
    catchup: int = field(init=False)
    promotions: list[datetime] = field(default_factory=list)
    starts: list[datetime] = field(default_factory=list)
    waits: list[datetime] = field(default_factory=list)
    fates: list[Fate] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.taken = self.taken_now = self.facts.held + sum(hold.until is None for hold in self.facts.holds)
        self.mark = self.facts.accounted_through
        self.waiting = self.facts.waiting
        self.promotable = deque(self.facts.waiting_head)
        self.catchup = self.facts.catchup_started

    def run(self) -> Plan:
        facts = self.facts
        full = facts.told_through < facts.now
        awaits = False
        try:
            for stretch in facts.stretches:
                awaits = facts.awaits and self._depends_on_slots(stretch)
                if awaits:
                    break
                self._enter(stretch)
            if awaits:
                self.taken = self.taken_now
                self._promote()
                return self._plan(full=False, awaits=True)
            self.mark = max(self.mark, facts.told_through)
            if not full:
                self.taken = self.taken_now
                self._promote()
                self._stage_ahead()
        except _StepIsFull:
            full = True
        return self._plan(full=full, awaits=False)

    def _depends_on_slots(self, stretch: Stretch) -> bool:
        """Whether something is due in it that is not missed whoever holds a slot."""
        first = stretch.head[0] if stretch.head else stretch.rest.first if stretch.rest else None
        return first is not None and not self._was_missed(first, attended=stretch.attended)

    def _plan(self, *, full: bool, awaits: bool) -> Plan:
        facts = self.facts
        following = next((instant for instant in facts.ahead if instant > self.mark), facts.following)
        due_to_stage = following is not None and following - facts.lead <= facts.now
        saturated = not self._slot_is_free()
        blocked = awaits or (not full and saturated and (self.waiting > 0 or due_to_stage))
        nothing_left = following is None and self.waiting == 0 and not awaits
        exhausted = not full and nothing_left and facts.undecided == 0 and not self.starts and not self.promotions
        wake_at: datetime | None = None
        if full:
            wake_at = facts.now + timedelta(seconds=len(self.starts + self.promotions) / CATCHUP_STARTS_PER_SECOND)
        elif nothing_left and not exhausted:
            # The last run is staged for an instant up to `lead` from now; look again when it is decided.
            wake_at = facts.now + facts.lead + LATE
        elif not blocked and following is not None:
            wake_at = max(following - facts.lead, facts.now)
        return Plan(
            base=facts.accounted_through,
            promotions=tuple(self.promotions),
            starts=tuple(self.starts),
            waits=tuple(self.waits),
            fates=tuple(self.fates),
            accounted_through=self.mark,
            wake_at=wake_at,
            blocked=blocked,
            exhausted=exhausted,
            catchup_started=self.catchup if full or awaits else 0,
            more=full,
            awaits=awaits,
        )

    def _enter(self, stretch: Stretch) -> None:
        """Decide a stretch. Whoever waits is given the slots that were freed as it begins, but is still waiting for an
        instant due at that very time.
        """
        held = sum(hold.covers(stretch.since) for hold in self.facts.holds)
        self.taken = self.facts.held + held
        on_the_event = stretch.head[:1] if stretch.head[:1] == (stretch.since,) else ()
        for instant in on_the_event:
            self._decide(instant, attended=stretch.attended)
        self._promote()
        for instant in stretch.head[len(on_the_event) :]:
            self._decide(instant, attended=stretch.attended)
        if stretch.rest is None:
            return
        fate = self._fate(stretch.rest.first, attended=stretch.attended)
        if isinstance(fate, Disposition):
            # These still differ from one another: they are left for the next step.
            raise _StepIsFull
        self._end(stretch.rest, fate)
        self.mark = stretch.rest.last

    def _decide(self, instant: datetime, *, attended: bool) -> None:
        fate = self._fate(instant, attended=attended)
        if isinstance(fate, Reason):
            self._end(Span(first=instant, last=instant, count=1), fate)
        elif fate is Disposition.STAGED:
            self._start(instant)
        else:
            self.waits.append(instant)
            self.promotable.append(instant)
            self.waiting += 1
        self.mark = instant

    def _fate(self, instant: datetime, *, attended: bool) -> Disposition | Reason:
        """What becomes of an instant: STAGED, BUFFERED, or the reason why neither."""
        facts, policy = self.facts, self.facts.policy
        too_late = facts.now - instant > policy.catchup_window
        if self._was_missed(instant, attended=attended):
            return Reason.OUTSIDE_WINDOW
        if policy.defer_once and self._was_deferred(instant):
            return Reason.COALESCED
        if policy.overlap is Overlap.ALLOW or (self.waiting == 0 and self._slot_is_free()):
            if too_late:
                return Reason.OUTSIDE_WINDOW
            return Reason.CATCHUP_LIMIT if self._past_the_limit(instant) else Disposition.STAGED
        match policy.overlap:
            case Overlap.SKIP:
                return Reason.OVERLAP
            case Overlap.BUFFER_ONE:
                return Disposition.BUFFERED if self.waiting == 0 else Reason.ALREADY_WAITING
            case Overlap.BUFFER_ALL:
                return Disposition.BUFFERED if self.waiting < BUFFER_LIMIT else Reason.BUFFER_FULL

    def _was_missed(self, instant: datetime, *, attended: bool) -> bool:
        """Whether nothing was listening until it was too late, so that the slots do not matter."""
        return not attended and self.facts.now - instant > self.facts.policy.catchup_window

    def _was_deferred(self, instant: datetime) -> bool:
        """Whether a run that starts late answers for the instant: one of this step or of this backlog, or one that began
        after it.
        """
        until = self.facts.deferred_until
        return bool(self.promotions) or self.catchup > 0 or (until is not None and instant < until)

    def _slot_is_free(self) -> bool:
        """Whether a slot was free at the instant that is being decided, and still is: whoever starts, starts now."""
        slots = self.facts.policy.slots
        if slots is None:
            return True
        return max(self.taken, self.taken_now) + len(self.starts) + len(self.promotions) < slots

    def _past_the_limit(self, instant: datetime) -> bool:
        return self.catchup >= MAX_CATCHUP_STARTS and self.facts.now - instant > LATE

    def _start(self, instant: datetime) -> None:
        self._make_room()
        self.starts.append(instant)
        if self.facts.now - instant > LATE:
            self.catchup += 1

    def _promote(self) -> None:
        """Give free slots to those that waited longest. A waiting instant does not age out."""
        while self.waiting and self._slot_is_free():
            self._make_room()
            self.promotions.append(self.promotable.popleft())
            self.waiting -= 1

    def _make_room(self) -> None:
        if len(self.starts) + len(self.promotions) >= MAX_STARTS_PER_STEP:
            raise _StepIsFull

    def _end(self, span: Span, reason: Reason) -> None:
        fate = Fate(span=span, disposition=_ENDS[reason], reason=reason)
        if self.fates and (merged := _merged(self.fates[-1], fate)) and not self._between(self.fates[-1], fate):
            self.fates[-1] = merged
        else:
            self.fates.append(fate)

    def _between(self, earlier: Fate, later: Fate) -> bool:
        """Whether an instant with another fate lies between the two."""
        named = (*self.starts[-1:], *self.waits[-1:])
        return any(earlier.span.last < instant < later.span.first for instant in named)

    def _stage_ahead(self) -> None:
        for instant in self.facts.ahead:
            if self.waiting or not self._slot_is_free():
                return
            self._start(instant)
            self.mark = instant


_ENDS = {
    Reason.OVERLAP: Disposition.SKIPPED,
    Reason.ALREADY_WAITING: Disposition.SKIPPED,
    Reason.COALESCED: Disposition.SKIPPED,
    Reason.BUFFER_FULL: Disposition.DROPPED,
    Reason.CATCHUP_LIMIT: Disposition.DROPPED,
    Reason.OUTSIDE_WINDOW: Disposition.MISSED,
}


def _merged(earlier: Fate, later: Fate) -> Fate | None:
    if (earlier.disposition, earlier.reason) != (later.disposition, later.reason):
        return None
    span = Span(first=earlier.span.first, last=later.span.last, count=earlier.span.count + later.span.count)
    return Fate(span=span, disposition=earlier.disposition, reason=earlier.reason)
