"""What a plan is made from: everything that one step of a schedule knows, as values.

The instants that are due are told in stretches. Within a stretch nothing but due instants happens (no run ends, the
catch-up window is not crossed), so that after its first few instants all others share one fate and need only be counted.
That is why a day of outage of a per-second schedule costs a handful of values.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from horarium.calendar import Calendar
from horarium.schedule.ledger import Span
from horarium.schedule.policy import BUFFER_LIMIT, Overlap, Policy

MAX_STARTS_PER_STEP = 100
"""How many runs one step may start (DESIGN.md, section 6)."""
LATE = timedelta(seconds=10)
"""A start later than this is catch-up, and counts against its limits."""
OVERDUE = timedelta(seconds=2)
"""How long after its time a staged run that is still undecided may have had nobody to decide it."""
MAX_NAMED = 5_000
"""How many instants one step's facts name. They travel through a workflow's history, which has limits of its own."""

_ONE_SECOND = timedelta(seconds=1)
_ONE_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """One run's claim on a slot: from its staging until its end; `until` is None while it goes on.

    The claim of a run by the calendar counts from the mark on, whenever its staging was written down: the step that staged
    it had moved the mark, and every later instant meets it.
    """

    since: datetime
    until: datetime | None = None

    def covers(self, instant: datetime) -> bool:
        """Whether the slot was taken at that instant. It is free again at exactly `until`."""
        return self.since <= instant and (self.until is None or instant < self.until)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Due instants from one event until just before the next: the first ones by name, and the rest as a span.

    `since` is the event that it begins with, and an instant at exactly that time belongs to it; the first stretch of a step
    begins just behind the mark instead. `attended` tells whether an instant of it that is older than the catch-up window was
    knowingly left for later (the schedule was blocked) and not missed.
    """

    since: datetime
    head: tuple[datetime, ...]
    rest: Span | None
    attended: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One step's knowledge. All instants are aware UTC.

    `held` counts the claims that began before `accounted_through` and go on; `holds` are the other claims that matter
    (begun or ended since). `stretches` tell what is due until `told_through`, which is `now` unless that would be too much
    to name. `waiting` is how many instants are buffered and `waiting_head` the earliest of them.
    `undecided` counts the staged entries of this activation. `awaits` tells that a run which holds a slot is overdue and
    undecided: its admission has yet to say whether it ran at all, and until then nothing is an overlap with it.
    `deferred_until` is when the last run that starts late began to answer for what is due, where the policy defers once.
    `ahead` are the instants within `lead` from now, `following` is the first one after those. `catchup_started` counts the
    late starts since the backlog began.
    """

    now: datetime
    accounted_through: datetime
    policy: Policy
    held: int
    holds: tuple[Hold, ...]
    waiting: int
    waiting_head: tuple[datetime, ...]
    undecided: int
    stretches: tuple[Stretch, ...]
    told_through: datetime
    ahead: tuple[datetime, ...]
    following: datetime | None
    lead: timedelta
    catchup_started: int
    awaits: bool = False
    deferred_until: datetime | None = None


def stretches(
    calendar: Calendar,
    policy: Policy,
    holds: Iterable[Hold],
    *,
    accounted_through: datetime,
    attended_until: datetime | None,
    now: datetime,
    deferred_until: datetime | None = None,
) -> tuple[tuple[Stretch, ...], datetime]:
    """Tell what is due in `(accounted_through, now]`, cut wherever something else happened, and until when it is told.

    `attended_until` is how far a blocked schedule had promised to account later; None when it had promised nothing.
    The telling stops early, at the end of a stretch, once it has named `MAX_NAMED` instants.
    """
    edge = now - policy.catchup_window
    events = {edge, now - LATE, attended_until, deferred_until}
    for hold in holds:
        events.update((hold.since, hold.until))
    cuts = sorted(event for event in events if event is not None and accounted_through < event <= now)
    # An instant at exactly a cut belongs to what follows it: the window is inclusive, and a slot is free for a nominal
    # time at the end of the run that held it.
    bounds = [accounted_through, *(cut - _ONE_MICROSECOND for cut in cuts), now]
    told: list[Stretch] = []
    named = 0
    for since, (lower, upper) in zip([accounted_through, *cuts], pairwise(bounds), strict=True):
        if named >= MAX_NAMED:
            return tuple(told), lower
        attended = attended_until is not None and upper < attended_until
        limit = 0 if upper < edge and not attended else _named(policy)
        head = instants_after(calendar, lower, until=upper, limit=limit)
        rest = span_between(calendar, head[-1] if head else lower, upper)
        told.append(Stretch(since=since, head=head, rest=rest, attended=attended))
        named += len(head)
    return tuple(told), now


def instants_after(calendar: Calendar, instant: datetime, *, until: datetime, limit: int) -> tuple[datetime, ...]:
    """The first `limit` instants in `(instant, until]`."""
    found: list[datetime] = []
    while len(found) < limit:
        following = calendar.after(instant)
        if following is None or following > until:
            break
        found.append(following)
        instant = following
    return tuple(found)


def _named(policy: Policy) -> int:
    """How many instants of a stretch can meet different fates before the rest share one."""
    match policy.overlap:
        case Overlap.ALLOW:
            return MAX_STARTS_PER_STEP
        case Overlap.SKIP:
            return min(policy.max_concurrent_runs, MAX_STARTS_PER_STEP)
        case Overlap.BUFFER_ONE:
            return min(policy.max_concurrent_runs, MAX_STARTS_PER_STEP) + 1
        case Overlap.BUFFER_ALL:
            return min(policy.max_concurrent_runs, MAX_STARTS_PER_STEP) + BUFFER_LIMIT


def span_between(calendar: Calendar, after: datetime, until: datetime) -> Span | None:
    """What is due in `(after, until]`, counted; None where nothing is."""
    first = calendar.after(after)
    if first is None or first > until:
        return None
    count = calendar.count(first, until)
    last = first if count == 1 else _last(calendar, first, until)
    return Span(first=first, last=last, count=count)


def _last(calendar: Calendar, first: datetime, until: datetime) -> datetime:
    """The last instant up to `until`, by halving: the calendar counts in no time, and has no way back."""
    low, high = first, until
    while high - low > _ONE_SECOND:
        middle = low + (high - low) / 2
        following = calendar.after(middle)
        if following is not None and following <= until:
            low = following
        else:
            high = middle
    following = calendar.after(low)
    return following if following is not None and following <= until else low
