"""The proof of the ledger: what was due by the stored calendars, held against what was entered (DESIGN.md, section 5).

Each activation that was ever enabled answers for the due instants in `(activated_at, ended_at]`, and a live one for those
that it has accounted for and those older than a grace. The audit events are proved beside that, by their seals.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import Any

from sqlalchemy import Connection, select

from horarium.calendar import Calendar
from horarium.catalog import ledger
from horarium.catalog.archiving import PrunedLedger, pruned_ledger
from horarium.catalog.environments import require_environment
from horarium.catalog.presence import last_beat, roles_present
from horarium.catalog.schedules import (
    Activation,
    Schedule,
    list_activations,
    list_schedules,
    require_schedule,
    require_version,
)
from horarium.catalog.tables import entries
from horarium.control import seals
from horarium.control.reckoning import Entered, Pending, Problem, Remark, missing, reckon, span_text, still_open
from horarium.control.records import UNREADABLE
from horarium.control.seals import Verified, verify_seals
from horarium.schedule.facts import span_between
from horarium.schedule.identity import ScheduleKey, Scope, instant_text
from horarium.schedule.ledger import BY_CALENDAR, Disposition, Span

DEFAULT_GRACE = timedelta(seconds=90)
"""How young a due instant may be without an entry: a worker that was killed is back and has caught up by then."""

SCHEDULE_WORKER = "schedules"
"""The role that accounts for due instants; the run workers only decide on them."""
_NOT_ENTERED = {Pending.BEHIND_RUN, Pending.YOUNG, Pending.UNATTENDED}
_PAGE = 1_000
_NOT_OF_INSTANTS = frozenset({Problem.UNCLOSED, Problem.UNUSABLE})
"""Problems of an activation or an entry: they are counted themselves, not the instants in them."""
_NAMED_RUNS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleAudit:
    """The audit of one schedule.

    `due` counts the instants that its activations answer for until now, and those that are entered ahead of their time.
    `dispositions` counts the instants in the ledger. In any ledger,
    `due == sum(dispositions) + not_entered + missing - duplicate - undue`.
    """

    key: ScheduleKey
    name: str
    due: int
    dispositions: dict[Disposition, int]
    problems: tuple[Remark, ...]
    open: tuple[Remark, ...]

    @property
    def not_entered(self) -> int:
        """Due instants that may still be entered."""
        return sum(each.count for each in self.open if each.kind in _NOT_ENTERED)

    def count(self, problem: Problem) -> int:
        """How many instants have a problem."""
        return sum(each.count for each in self.problems if each.kind is problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The audit of some schedules at one moment. `seals` is None where it is of one schedule: seals are of environments."""

    at: datetime
    grace: timedelta
    schedules: tuple[ScheduleAudit, ...]
    seals: Verified | None = None

    @property
    def clean(self) -> bool:
        """True if nothing is missing, duplicate, undue, unclosed or unusable, and every seal fits its events."""
        broken = self.seals is not None and self.seals.faults
        return not broken and not any(each.problems for each in self.schedules)

    @property
    def due(self) -> int:
        """As `ScheduleAudit.due`, of all."""
        return sum(each.due for each in self.schedules)

    @property
    def not_entered(self) -> int:
        """As `ScheduleAudit.not_entered`, of all."""
        return sum(each.not_entered for each in self.schedules)

    @property
    def dispositions(self) -> dict[Disposition, int]:
        """As `ScheduleAudit.dispositions`, of all."""
        total: Counter[Disposition] = Counter()
        for each in self.schedules:
            total.update(each.dispositions)
        return _ordered(total)

    def count(self, problem: Problem) -> int:
        """How many instants have a problem."""
        return sum(each.count(problem) for each in self.schedules)


def audit(
    connection: Connection, subject: Scope | ScheduleKey, *, now: datetime, grace: timedelta = DEFAULT_GRACE
) -> Audit:
    """Hold the ledger of one schedule, or of all in an environment, against the stored calendars.

    Retired schedules and past activations are part of it; manual runs are not, since no calendar selects them. Of an
    environment, the seals of its audit events are verified too. Raises `NotFound` for a schedule or an environment that is not
    there.
    """
    verified = None
    if isinstance(subject, ScheduleKey):
        found: Iterable[Schedule] = [require_schedule(connection, subject)]
    else:
        require_environment(connection, subject)
        found = _all_schedules(connection, subject)
        verified = verify_seals(connection, subject)
    alone = _alone_since(connection, now=now)
    audits = tuple(_audit_schedule(connection, schedule, alone=alone, now=now, grace=grace) for schedule in found)
    return Audit(at=now, grace=grace, schedules=audits, seals=verified)


def document(result: Audit) -> dict[str, Any]:
    """An audit as a document that is ready for JSON."""
    return {
        "clean": result.clean,
        "at": instant_text(result.at),
        "grace_seconds": result.grace.total_seconds(),
        "due": result.due,
        "dispositions": _named(result.dispositions),
        "not_entered": result.not_entered,
        **{
            problem.value: _number(result, problem) if problem in _NOT_OF_INSTANTS else result.count(problem)
            for problem in Problem
        },
        "schedules": [
            {
                "schedule_id": each.key.schedule_id,
                "name": each.name,
                "due": each.due,
                "dispositions": _named(each.dispositions),
                "not_entered": each.not_entered,
                "problems": [_told(remark) for remark in each.problems],
                "open": [_told(remark) for remark in each.open],
            }
            for each in result.schedules
        ],
        "seals": None if result.seals is None else seals.document(result.seals),
    }


def _named(counts: dict[Disposition, int]) -> dict[str, int]:
    return {disposition.value: count for disposition, count in counts.items()}


def _number(result: Audit, problem: Problem) -> int:
    return sum(each.kind is problem for one in result.schedules for each in one.problems)


def _told(remark: Remark) -> dict[str, Any]:
    return {
        "kind": remark.kind.value,
        "generation": remark.generation,
        "first_at": instant_text(remark.first),
        "last_at": instant_text(remark.last),
        "count": remark.count,
        "sentence": remark.sentence,
    }


def _all_schedules(connection: Connection, scope: Scope) -> Iterator[Schedule]:
    after = None
    while page := list_schedules(connection, scope, after=after, limit=_PAGE, include_retired=True):
        yield from page
        after = page[-1].key.schedule_id


def _alone_since(connection: Connection, *, now: datetime) -> datetime | None:
    """The last heartbeat of a schedule worker, where none is alive; None where one is, or none was ever known."""
    if SCHEDULE_WORKER in roles_present(connection, now=now):
        return None
    return last_beat(connection, SCHEDULE_WORKER)


def _audit_schedule(
    connection: Connection, schedule: Schedule, *, alone: datetime | None, now: datetime, grace: timedelta
) -> ScheduleAudit:
    enabled = [activation for activation in list_activations(connection, schedule) if activation.enabled]
    by_generation = _entered(connection, schedule)
    pruned = pruned_ledger(connection, schedule)
    remarks = [*_overlapping(enabled), *_left_alive(schedule, enabled)]
    due = 0
    for activation in enabled:
        entered = by_generation.get(activation.generation, [])
        mark = activation.ended_at or activation.accounted_through
        version = require_version(connection, schedule, activation.revision)
        if (fault := version.fault) is not None:
            remarks += [_unusable(activation, fault, until=mark), *still_open(entered, closed=not activation.is_live)]
            # What is entered is all that is known of what was due.
            due += sum(entry.instants for entry in entered)
            due += pruned[activation.generation].instants if activation.generation in pruned else 0
            continue
        calendar = version.configuration.calendar
        due += _due(calendar, activation.activated_at, mark)
        generation = activation.generation
        since = activation.activated_at
        if generation in pruned:
            remarks += _archived(calendar, activation, pruned[generation], entered)
            since = max(since, pruned[generation].through)
        later = [entry for entry in entered if entry.last > since] if generation in pruned else entered
        remarks += reckon(calendar, later, generation=generation, after=since, until=mark)
        remarks += still_open(entered, closed=activation.ended_at is not None)
        owed = span_between(calendar, mark, now) if activation.is_live else None
        if owed is not None:
            due += owed.count
            runs = _holding(connection, schedule) if activation.waiting else []
            remarks += _not_entered(activation, calendar, owed, runs, alone=alone, now=now, grace=grace)
    for generation in by_generation.keys() - {activation.generation for activation in enabled}:
        sentence = f"Generation {generation} was never enabled, and the ledger holds entries of it."
        remarks += [entry.remark(Problem.UNDUE, entry.instants, sentence) for entry in by_generation[generation]]
    dispositions: Counter[Disposition] = Counter()
    for entered in by_generation.values():
        for entry in entered:
            dispositions[entry.disposition] += entry.instants
    for each in pruned.values():
        dispositions.update(each.dispositions)
    head = require_version(connection, schedule, schedule.head_revision)
    return ScheduleAudit(
        key=schedule.key,
        name=UNREADABLE if head.is_damaged else head.configuration.name,
        due=due,
        dispositions=_ordered(dispositions),
        problems=tuple(remark for remark in remarks if isinstance(remark.kind, Problem)),
        open=tuple(remark for remark in remarks if isinstance(remark.kind, Pending)),
    )


def _entered(connection: Connection, schedule: Schedule) -> dict[int, list[Entered]]:
    columns = entries.c
    query = (
        select(
            columns.generation,
            columns.first_at,
            columns.last_at,
            columns["count"],
            columns.disposition,
            columns.closed_at,
        )
        .where(columns.schedule == schedule.row, columns.trigger == BY_CALENDAR)
        .order_by(columns.generation, columns.first_at)
    )
    found = (
        Entered(generation, first, last, instants, Disposition(disposition), closed_at)
        for generation, first, last, instants, disposition, closed_at in connection.execute(query)
    )
    return {generation: list(group) for generation, group in groupby(found, key=lambda entry: entry.generation)}


def _archived(
    calendar: Calendar, activation: Activation, pruned: PrunedLedger, entered: Sequence[Entered]
) -> Iterator[Remark]:
    """Hold what was due until a ledger was pruned against what is in archives and what stayed: by their number."""
    since, through = activation.activated_at, pruned.through
    due = _due(calendar, since, through)
    stayed = sum(entry.instants for entry in entered if entry.last <= through)
    if due == pruned.instants + stayed:
        return
    first = calendar.after(since)
    yield Remark(
        generation=activation.generation,
        kind=Problem.MISSING if due > pruned.instants + stayed else Problem.UNDUE,
        first=since if first is None else first,
        last=through,
        count=abs(due - pruned.instants - stayed),
        sentence=f"{due} instants were due until {instant_text(through)}, {pruned.instants} are said to be in archives and "
        f"{stayed} stand in the ledger.",
    )


def _due(calendar: Calendar, after: datetime, until: datetime) -> int:
    first = calendar.after(after)
    return 0 if first is None or first > until else calendar.count(first, until)


def _not_entered(
    activation: Activation,
    calendar: Calendar,
    owed: Span,
    runs: Sequence[str],
    *,
    alone: datetime | None,
    now: datetime,
    grace: timedelta,
) -> Iterator[Remark]:
    """What a live activation has not accounted for: left for later on purpose, unattended, young, or missing."""
    if runs:
        named = ", ".join(runs[:_NAMED_RUNS]) + (f" and {len(runs) - _NAMED_RUNS} more" if runs[_NAMED_RUNS:] else "")
        sentence = f"{_instants(owed)} accounted for when one of these runs ends: {named}."
        yield _open(activation, Pending.BEHIND_RUN, owed, sentence)
        return
    # A schedule that waits and whose nudge was lost looks by itself at the time that it has stored.
    promised = activation.waiting and activation.attended_until is not None
    # What was young when the last schedule worker was seen may have been under way in it.
    edge = (now if alone is None else alone) - grace
    if promised and activation.attended_until is not None and activation.attended_until >= edge:
        edge = activation.accounted_through
    old = span_between(calendar, activation.accounted_through, edge)
    if old is not None:
        yield missing(activation.generation, old.first, old.last, old.count)
    young = span_between(calendar, max(activation.accounted_through, edge), now)
    if young is not None and alone is not None:
        sentence = (
            f"{_instants(young)} no schedule worker has been alive since {instant_text(alone.replace(microsecond=0))}; "
            "accounted for when one starts."
        )
        yield _open(activation, Pending.UNATTENDED, young, sentence)
    elif young is not None:
        sentence = f"{_instants(young)} younger than the grace, or left for a look that the schedule has stored."
        yield _open(activation, Pending.YOUNG, young, sentence)


def _unusable(activation: Activation, fault: str, *, until: datetime) -> Remark:
    return Remark(
        generation=activation.generation,
        kind=Problem.UNUSABLE,
        first=activation.activated_at,
        last=until,
        count=0,
        sentence=f"Nobody can say what was due from {span_text(activation.activated_at, until)}. {fault}",
    )


def _instants(span: Span) -> str:
    are = "instant is" if span.count == 1 else "instants are"
    return f"{span.count} due {are} not entered yet ({span_text(span.first, span.last)}):"


def _open(activation: Activation, kind: Pending, span: Span, sentence: str) -> Remark:
    return Remark(
        generation=activation.generation,
        kind=kind,
        first=span.first,
        last=span.last,
        count=span.count,
        sentence=sentence,
    )


def _holding(connection: Connection, schedule: Schedule) -> list[str]:
    """The runs that hold a slot, of every generation and trigger."""
    return [
        entry.run_key(schedule.key).run_id
        for entry in ledger.open_entries(connection, schedule)
        if entry.disposition.holds_slot
    ]


def _overlapping(enabled: Sequence[Activation]) -> Iterator[Remark]:
    for earlier, later in pairwise(enabled):
        if earlier.ended_at is not None and later.activated_at < earlier.ended_at:
            yield Remark(
                generation=later.generation,
                kind=Problem.UNCLOSED,
                first=later.activated_at,
                last=earlier.ended_at,
                count=0,
                sentence=f"Generation {later.generation} begins before generation {earlier.generation} has ended.",
            )


def _left_alive(schedule: Schedule, enabled: Sequence[Activation]) -> Iterator[Remark]:
    for activation in enabled:
        if activation.is_live and activation.generation != schedule.generation:
            yield Remark(
                generation=activation.generation,
                kind=Problem.UNCLOSED,
                first=activation.activated_at,
                last=activation.accounted_through,
                count=0,
                sentence=f"Generation {activation.generation} was never ended, and generation {schedule.generation} "
                "came after it.",
            )


def _ordered(counts: Counter[Disposition]) -> dict[Disposition, int]:
    return {disposition: counts[disposition] for disposition in Disposition if counts[disposition]}
