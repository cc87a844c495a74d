"""What a plan is made from: everything that one step of a schedule knows, as values.

The instants that are due are told in stretches. Within a stretch nothing but due instants happens (no run ends, the
catch-up window is not crossed), so that after its first few instants all others share one fate and need only be counted.
That is why a day of outage of a per-second schedule costs a handful of values.
"""

from collections.abc import Iterable, Iterator
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

_ONE_SECOND = timedelta(seconds=1)
_ONE_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """One run's claim on a slot: from its staging until its end; `until` is None while it goes on."""

    since: datetime
    until: datetime | None = None

    def covers(self, instant: datetime) -> bool:
        """Whether the slot was taken at that instant. It is free again at exactly `until`."""
        return self.since <= instant and (self.until is None or instant < self.until)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Due instants between two events: the first ones by name, and the rest as a span.

    `after` is the event that it begins with; `attended` tells whether an instant of it that is older than the catch-up
    window was knowingly left for later (the schedule was blocked) and not missed.
    """

    after: datetime
    head: tuple[datetime, ...]
    rest: Span | None
    attended: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One step's knowledge. All instants are aware UTC.

    `held` counts the claims that began before `accounted_through` and go on; `holds` are the other claims that matter
    (begun or ended since). `waiting` is how many instants are buffered and `waiting_head` the earliest of them.
    `undecided` counts the staged entries of this activation. `ahead` are the instants within `lead` from now, `following`
    is the first one after those. `catchup_started` counts the late starts since the backlog began.
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
    ahead: tuple[datetime, ...]
    following: datetime | None
    lead: timedelta
    catchup_started: int


def stretches(
    calendar: Calendar,
    policy: Policy,
    holds: Iterable[Hold],
    *,
    accounted_through: datetime,
    attended_until: datetime | None,
    now: datetime,
) -> tuple[Stretch, ...]:
    """Tell what is due in `(accounted_through, now]`, cut wherever something else happened.

    `attended_until` is how far a blocked schedule had promised to account later; None when it had promised nothing.
    """
    edge = now - policy.catchup_window
    cuts = {hold.until for hold in holds if hold.until is not None and accounted_through < hold.until <= now}
    cuts.update(cut for cut in (edge, now - LATE, attended_until) if cut is not None and accounted_through < cut < now)
    bounds = [accounted_through, *sorted(cuts), now]
    return tuple(_told(calendar, policy, bounds, edge, attended_until))


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


def _told(
    calendar: Calendar, policy: Policy, bounds: list[datetime], edge: datetime, attended_until: datetime | None
) -> Iterator[Stretch]:
    cuts = bounds[1:-1]
    for start, end in pairwise(bounds):
        attended = attended_until is not None and end <= attended_until
        limit = 0 if end <= edge and not attended else _named(policy)
        # An instant at exactly a cut belongs to what follows it: the window is inclusive, and a slot is free for a
        # nominal time at the end of the run that held it.
        lower = start - _ONE_MICROSECOND if start in cuts else start
        upper = end - _ONE_MICROSECOND if end in cuts else end
        head = instants_after(calendar, lower, until=upper, limit=limit)
        rest = span_between(calendar, head[-1] if head else lower, upper)
        yield Stretch(after=start, head=head, rest=rest, attended=attended)


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
