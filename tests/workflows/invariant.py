"""What must hold of the ledger after every test, whatever happened in it.

It is reckoned here from the calendar and the rows alone, so that it can disagree with the library's own audit.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import groupby, pairwise

from sqlalchemy import Connection

from horarium.agents.events import RunBrief
from horarium.calendar import Calendar
from horarium.catalog import Catalog, ledger
from horarium.catalog.schedules import Activation, Schedule, list_activations, list_schedules, require_version
from horarium.control.audit import audit
from horarium.schedule.identity import Scope
from horarium.schedule.ledger import BY_CALENDAR, Disposition

_JUST_BEFORE = timedelta(microseconds=1)
_GOES_ON = {Disposition.ADMITTED, Disposition.STARTED}


def assert_every_instant_has_one_answer(
    catalog: Catalog, scope: Scope, *, begun: Iterable[RunBrief], now: datetime
) -> None:
    """Each activation's entries are exactly its due instants, none is open that should not be, and no run began twice."""
    twice = [run_id for run_id, count in Counter(brief.run_id for brief in begun).items() if count > 1]
    assert twice == [], "a run began twice"
    with catalog.reading() as connection:
        for schedule in list_schedules(connection, scope, after=None, limit=1_000, include_retired=True):
            _check_schedule(connection, schedule)
        found = audit(connection, scope, now=now)
        assert found.clean, found


def _check_schedule(connection: Connection, schedule: Schedule) -> None:
    # What a person asked for is in no calendar; the audit looks at it no more than this does.
    entries = [entry for entry, _ in ledger.list_entries(connection, schedule) if entry.trigger == BY_CALENDAR]
    by_generation = {
        generation: list(group)
        for generation, group in groupby(sorted(entries, key=_place), key=lambda entry: entry.generation)
    }
    activations = list_activations(connection, schedule)
    for earlier, later in pairwise(activations):
        assert earlier.ended_at is not None, "two activations fire at the same time"
        assert later.activated_at >= earlier.ended_at, (earlier, later)
    for activation in activations:
        calendar = require_version(connection, schedule, activation.revision).configuration.calendar
        _check_activation(calendar, activation, by_generation.pop(activation.generation, []))
    assert by_generation == {}, "entries of a generation that never was"


def _check_activation(calendar: Calendar, activation: Activation, entries: Sequence[ledger.Entry]) -> None:
    mark = activation.accounted_through if activation.ended_at is None else activation.ended_at
    answered = activation.activated_at
    for entry in entries:
        assert calendar.after(answered) == entry.first_at, f"between {answered} and {entry} is a gap or an overlap"
        assert calendar.count(entry.first_at, entry.last_at) == entry.count, entry
        assert calendar.after(entry.last_at - _JUST_BEFORE) == entry.last_at, entry
        assert (entry.closed_at is None) == entry.disposition.is_open, entry
        if activation.ended_at is not None and entry.disposition.is_open:
            assert entry.disposition in _GOES_ON, f"{entry} is open after the end of its activation"
        answered = entry.last_at
    following = calendar.after(answered)
    assert following is None or following > mark, f"{following} was due by {mark}, and is in no entry"
    assert answered <= mark, f"{answered} is entered, and was not due by {mark}"


def _place(entry: ledger.Entry) -> tuple[int, datetime]:
    return entry.generation, entry.first_at
