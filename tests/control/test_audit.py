"""The audit finds every kind of lie in a ledger, and none in an honest one."""

import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete, insert, update

from horarium.calendar import parse_calendar
from horarium.catalog import ledger_changes, presence
from horarium.catalog.environments import ensure_environment
from horarium.catalog.schedules import change_activation, find_activation, insert_activation, require_schedule
from horarium.catalog.tables import entries
from horarium.control.audit import DEFAULT_GRACE, audit, document
from horarium.control.publication import publish
from horarium.control.reckoning import Entered, Pending, Problem, reckon
from horarium.errors import NotFound
from horarium.schedule.identity import ActivationKey, RunKey, ScheduleKey, Scope
from horarium.schedule.ledger import Disposition, Fate, Reason, Span

SCOPE = Scope(org_id="acme", environment_id="test")
KEY = ScheduleKey(org_id="acme", environment_id="test", schedule_id="7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11")
START = datetime(2027, 3, 1, 9, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def configuration(every: int = 10, name: str = "Check") -> dict:
    return {
        "name": name,
        "calendar": {
            "timezone": "UTC",
            "calendars": [],
            "intervals": [{"every_seconds": every, "offset_seconds": 0}],
            "start_at": "2026-01-01T00:00:00Z",
            "end_at": "2035-12-31T23:59:59Z",
        },
        "policy": {"overlap": "skip", "catchup_window_seconds": 60, "pause_on_failure": False},
        "run": {
            "agent_version": "agent@1",
            "input": "in",
            "output_target": "out",
            "grants": [],
            "budget_id": None,
            "usage_class": "test_simulation",
        },
    }


@pytest.fixture
def catalog(own_catalog):
    return own_catalog


def enable(connection, *, since: datetime, every: int = 10, key: ScheduleKey = KEY, ended_as: Reason | None = None):
    """A published schedule with a new activation; nothing of the run's presence is asked here."""
    ensure_environment(connection, SCOPE, mode="simulation", runtime_profile="embedded")
    publish(connection, key, configuration(every), expected_revision=None, by="ada", now=START)
    schedule = require_schedule(connection, key)
    insert_activation(
        connection, schedule, revision=schedule.head_revision, by="ada", now=since, since=since, ended_as=ended_as
    )
    return require_schedule(connection, key)


def end(connection, schedule, *, ended_at: datetime, generation: int | None = None):
    activation = find_activation(connection, schedule, generation or schedule.generation)
    change_activation(
        connection,
        activation,
        ended_at=ended_at,
        accounted_through=ended_at,
        ended_as="paused",
        waiting=False,
    )


def mark(connection, schedule, **values):
    change_activation(connection, find_activation(connection, schedule, schedule.generation), **values)


def enter(
    connection,
    schedule,
    first: float,
    last: float | None = None,
    count: int = 1,
    *,
    disposition: Disposition = Disposition.SUCCEEDED,
    generation: int | None = None,
    trigger: str = "schedule",
    closed: bool | None = None,
):
    """One row of the ledger, as it stands."""
    is_closed = not disposition.is_open if closed is None else closed
    connection.execute(
        insert(entries).values(
            schedule=schedule.row,
            generation=generation or schedule.generation,
            trigger=trigger,
            first_at=at(first),
            last_at=at(first if last is None else last),
            count=count,
            disposition=disposition,
            closed_at=at(first) if is_closed else None,
        )
    )


def honest(connection) -> ScheduleKey:
    """Enabled at 09:00:00 and paused at 09:01:00, every 10 s: runs, a span of skipped ones, and a run."""
    schedule = enable(connection, since=START)
    enter(connection, schedule, 10)
    enter(connection, schedule, 20, 40, 3, disposition=Disposition.SKIPPED)
    enter(connection, schedule, 50, disposition=Disposition.FAILED)
    enter(connection, schedule, 60, disposition=Disposition.DROPPED)
    end(connection, schedule, ended_at=at(60))
    return schedule


def problems(result) -> list[tuple[Problem, float, float, int]]:
    return [
        (each.kind, (each.first - START).total_seconds(), (each.last - START).total_seconds(), each.count)
        for one in result.schedules
        for each in one.problems
    ]


def sums_up(result) -> bool:
    entered = sum(result.dispositions.values())
    lies = result.count(Problem.MISSING) - result.count(Problem.DUPLICATE) - result.count(Problem.UNDUE)
    return result.due == entered + result.not_entered + lies


def test_an_honest_ledger_is_clean_and_its_sum_is_what_was_due(catalog):
    with catalog.writing() as connection:
        honest(connection)
        result = audit(connection, KEY, now=at(3600))
    assert result.clean
    assert result.due == 6
    assert result.dispositions == {
        Disposition.DROPPED: 1,
        Disposition.SKIPPED: 3,
        Disposition.SUCCEEDED: 1,
        Disposition.FAILED: 1,
    }
    assert sums_up(result)


LIES = {
    "a row was deleted": (
        lambda c, s: c.execute(delete(entries).where(entries.c.first_at == at(50))),
        [(Problem.MISSING, 50, 50, 1)],
    ),
    "the first row was deleted": (
        lambda c, s: c.execute(delete(entries).where(entries.c.first_at == at(10))),
        [(Problem.MISSING, 10, 10, 1)],
    ),
    "the last row was deleted": (
        lambda c, s: c.execute(delete(entries).where(entries.c.first_at == at(60))),
        [(Problem.MISSING, 60, 60, 1)],
    ),
    "a span was deleted": (
        lambda c, s: c.execute(delete(entries).where(entries.c.first_at == at(20))),
        [(Problem.MISSING, 20, 40, 3)],
    ),
    "an instant was entered that the calendar does not select": (
        lambda c, s: enter(c, s, 55),
        [(Problem.UNDUE, 55, 55, 1)],
    ),
    "an instant was entered with a fraction of a second": (
        lambda c, s: c.execute(
            update(entries).where(entries.c.first_at == at(50)).values(first_at=at(50.5), last_at=at(50.5))
        ),
        [(Problem.MISSING, 50, 50, 1), (Problem.UNDUE, 50.5, 50.5, 1)],
    ),
    "an instant of before the activation was entered": (
        lambda c, s: enter(c, s, -10),
        [(Problem.UNDUE, -10, -10, 1)],
    ),
    "the instant of the activation itself was entered": (
        lambda c, s: enter(c, s, 0),
        [(Problem.UNDUE, 0, 0, 1)],
    ),
    "an instant of after the end was entered": (
        lambda c, s: enter(c, s, 70),
        [(Problem.UNDUE, 70, 70, 1)],
    ),
    "a span was shifted": (
        lambda c, s: c.execute(
            update(entries).where(entries.c.first_at == at(20)).values(first_at=at(21), last_at=at(41))
        ),
        [(Problem.MISSING, 20, 20, 1), (Problem.UNDUE, 21, 41, 1)],
    ),
    "a span reaches over the entry behind it": (
        lambda c, s: c.execute(update(entries).where(entries.c.first_at == at(20)).values(last_at=at(50), count=4)),
        [(Problem.DUPLICATE, 50, 50, 1)],
    ),
    "a second span lies inside the first": (
        lambda c, s: enter(c, s, 30, 40, 2, disposition=Disposition.MISSED),
        [(Problem.DUPLICATE, 30, 40, 2)],
    ),
    "a span counts too many": (
        lambda c, s: c.execute(update(entries).where(entries.c.first_at == at(20)).values(count=5)),
        [(Problem.UNDUE, 20, 40, 2)],
    ),
    "a span counts too few": (
        lambda c, s: c.execute(update(entries).where(entries.c.first_at == at(20)).values(count=2)),
        [(Problem.MISSING, 20, 40, 1)],
    ),
    "a single instant counts twice": (
        lambda c, s: c.execute(update(entries).where(entries.c.first_at == at(50)).values(count=2)),
        [(Problem.UNDUE, 50, 50, 1)],
    ),
    "a span runs backwards": (
        lambda c, s: c.execute(update(entries).where(entries.c.first_at == at(50)).values(last_at=at(40))),
        [(Problem.UNDUE, 50, 40, 1), (Problem.MISSING, 50, 50, 1)],
    ),
    "an entry belongs to a generation that never was": (
        lambda c, s: c.execute(update(entries).where(entries.c.first_at == at(50)).values(generation=9)),
        [(Problem.MISSING, 50, 50, 1), (Problem.UNDUE, 50, 50, 1)],
    ),
    "an entry is still staged": (
        lambda c, s: c.execute(
            update(entries).where(entries.c.first_at == at(50)).values(disposition="staged", closed_at=None)
        ),
        [(Problem.UNCLOSED, 50, 50, 0)],
    ),
    "an entry is still buffered": (
        lambda c, s: c.execute(
            update(entries).where(entries.c.first_at == at(50)).values(disposition="buffered", closed_at=None)
        ),
        [(Problem.UNCLOSED, 50, 50, 0)],
    ),
    "an ended run still holds its slot": (
        lambda c, s: c.execute(update(entries).where(entries.c.first_at == at(50)).values(closed_at=None)),
        [(Problem.UNCLOSED, 50, 50, 0)],
    ),
    "an open run no longer holds its slot": (
        lambda c, s: c.execute(update(entries).where(entries.c.first_at == at(50)).values(disposition="started")),
        [(Problem.UNCLOSED, 50, 50, 0)],
    ),
}


@pytest.mark.parametrize(("lie", "found"), LIES.values(), ids=LIES)
def test_every_kind_of_lie_is_found(catalog, lie, found):
    with catalog.writing() as connection:
        lie(connection, honest(connection))
        result = audit(connection, KEY, now=at(3600))
    assert problems(result) == found
    assert not result.clean
    assert sums_up(result)


def test_an_admitted_run_of_a_past_activation_goes_on_and_is_no_problem(catalog):
    with catalog.writing() as connection:
        schedule = honest(connection)
        connection.execute(
            update(entries).where(entries.c.first_at == at(50)).values(disposition="started", closed_at=None)
        )
        result = audit(connection, schedule.key, now=at(3600))
    assert result.clean
    assert [each.kind for each in result.schedules[0].open] == [Pending.RUNNING]


def test_a_live_activation_answers_for_what_is_older_than_the_grace(catalog):
    with catalog.writing() as connection:
        schedule = enable(connection, since=START)
        enter(connection, schedule, 10)
        mark(connection, schedule, accounted_through=at(10))
        result = audit(connection, KEY, now=at(125), grace=timedelta(seconds=90))
    assert problems(result) == [(Problem.MISSING, 20, 30, 2)]
    assert [(each.kind, each.count) for each in result.schedules[0].open] == [(Pending.YOUNG, 9)]
    assert result.due == 12
    assert sums_up(result)


def test_what_a_live_activation_has_accounted_for_has_no_grace(catalog):
    with catalog.writing() as connection:
        schedule = enable(connection, since=START)
        enter(connection, schedule, 10)
        mark(connection, schedule, accounted_through=at(20))
        result = audit(connection, KEY, now=at(21))
    assert problems(result) == [(Problem.MISSING, 20, 20, 1)]


def test_a_run_that_is_staged_ahead_of_its_time_is_open_and_no_problem(catalog):
    with catalog.writing() as connection:
        schedule = enable(connection, since=START)
        enter(connection, schedule, 10, disposition=Disposition.STAGED)
        mark(connection, schedule, accounted_through=at(10))
        result = audit(connection, KEY, now=at(6))
    assert result.clean
    assert [each.kind for each in result.schedules[0].open] == [Pending.UNDECIDED]
    assert result.due == 1
    assert sums_up(result)


def test_an_entry_ahead_of_the_mark_is_undue(catalog):
    with catalog.writing() as connection:
        schedule = enable(connection, since=START)
        enter(connection, schedule, 10, disposition=Disposition.STAGED)
        result = audit(connection, KEY, now=at(6))
    assert problems(result) == [(Problem.UNDUE, 10, 10, 1)]


def test_what_waits_behind_an_active_run_is_open_however_old_and_names_the_run(catalog):
    with catalog.writing() as connection:
        schedule = enable(connection, since=START)
        run = RunKey(activation=ActivationKey(schedule=KEY, generation=1), nominal_time=at(10))
        ledger_changes.stage(connection, schedule, run, now=at(8))
        mark(connection, schedule, accounted_through=at(10), waiting=True, attended_until=at(70))
        result = audit(connection, KEY, now=at(86_400))
    assert result.clean
    behind = next(each for each in result.schedules[0].open if each.kind is Pending.BEHIND_RUN)
    assert behind.count == 8_639
    assert run.run_id in behind.sentence
    assert sums_up(result)


@pytest.mark.parametrize(("now", "clean"), [(200, True), (391, False)])
def test_a_schedule_whose_nudge_was_lost_has_until_its_own_look_and_the_grace(catalog, now, clean):
    with catalog.writing() as connection:
        schedule = enable(connection, since=START)
        enter(connection, schedule, 10)
        mark(connection, schedule, accounted_through=at(10), waiting=True, attended_until=at(300))
        result = audit(connection, KEY, now=at(now), grace=timedelta(seconds=90))
    assert result.clean is clean
    assert sums_up(result)


def beat(connection, seconds: float, *, role: str = "schedules", left: bool = False):
    presence.beat(connection, instance=f"{role}@here", role=role, tzdata="2026a", now=at(seconds))
    if left:
        presence.leave(connection, instance=f"{role}@here")


@pytest.mark.parametrize("left", [False, True], ids=["killed", "left in good order"])
def test_what_fell_due_while_no_schedule_worker_was_alive_is_open_and_not_missing(catalog, left):
    with catalog.writing() as connection:
        schedule = enable(connection, since=START)
        enter(connection, schedule, 10)
        mark(connection, schedule, accounted_through=at(10))
        beat(connection, 18, left=left)
        beat(connection, 3590, role="runs")  # which accounts for nothing
        result = audit(connection, KEY, now=at(3600), grace=timedelta(seconds=5))
    assert result.clean
    assert result.not_entered == 359
    assert sums_up(result)
    (unattended,) = result.schedules[0].open
    assert (unattended.kind, unattended.first, unattended.count) == (Pending.UNATTENDED, at(20), 359)
    assert (
        "no schedule worker has been alive since 2027-03-01T09:00:18Z; accounted for when one starts"
        in unattended.sentence
    )
    assert document(result)["schedules"][0]["open"][0]["kind"] == "unattended"


@pytest.mark.parametrize("alive", [False, True])
def test_what_was_missing_before_the_last_worker_went_stays_missing(catalog, alive):
    with catalog.writing() as connection:
        schedule = enable(connection, since=START)
        enter(connection, schedule, 10)
        mark(connection, schedule, accounted_through=at(10))
        beat(connection, 3595 if alive else 100)
        result = audit(connection, KEY, now=at(3600), grace=timedelta(seconds=60))
    lost = (Problem.MISSING, 20, 3540, 353) if alive else (Problem.MISSING, 20, 40, 3)
    assert problems(result) == [lost]
    assert [each.kind for each in result.schedules[0].open] == [Pending.YOUNG if alive else Pending.UNATTENDED]
    assert sums_up(result)


def test_what_a_stopped_installation_has_accounted_for_is_held_against_the_ledger_all_the_same(catalog):
    with catalog.writing() as connection:
        schedule = enable(connection, since=START)
        enter(connection, schedule, 10)
        mark(connection, schedule, accounted_through=at(30))
        beat(connection, 31, left=True)
        result = audit(connection, KEY, now=at(3600))
    assert problems(result) == [(Problem.MISSING, 20, 30, 2)]


def test_a_manual_run_is_no_occurrence(catalog):
    with catalog.writing() as connection:
        enter(connection, honest(connection), 33, trigger="manual:abc")
        assert audit(connection, KEY, now=at(3600)).clean


def test_generations_share_no_time(catalog):
    with catalog.writing() as connection:
        schedule = enable(connection, since=START)
        enter(connection, schedule, 10, 60, 6, disposition=Disposition.SKIPPED)
        end(connection, schedule, ended_at=at(60))
        schedule = enable(connection, since=at(40))
        end(connection, schedule, ended_at=at(45))
        result = audit(connection, KEY, now=at(3600))
    assert [(kind, count) for kind, _, _, count in problems(result)] == [(Problem.UNCLOSED, 0)]
    assert "Generation 2 begins before generation 1 has ended" in result.schedules[0].problems[0].sentence


def test_an_activation_that_was_never_ended_is_found(catalog):
    with catalog.writing() as connection:
        enable(connection, since=START)
        schedule = enable(connection, since=at(5), ended_as=Reason.PAUSED)
        assert schedule.generation == 2
        result = audit(connection, KEY, now=at(6))
    assert [kind for kind, *_ in problems(result)] == [Problem.UNCLOSED]


def test_a_whole_environment_is_audited_with_its_retired_schedules(catalog):
    other = ScheduleKey(org_id="acme", environment_id="test", schedule_id="00000000-0000-4000-8000-000000000001")
    with catalog.writing() as connection:
        honest(connection)
        schedule = enable(connection, since=START, key=other)
        end(connection, schedule, ended_at=at(25))
        enter(connection, schedule, 10)
        result = audit(connection, SCOPE, now=at(3600))
    assert [one.key for one in result.schedules] == [other, KEY]
    assert problems(result) == [(Problem.MISSING, 20, 20, 1)]
    shown = document(result)
    assert (shown["due"], shown["missing"], shown["undue"], shown["duplicate"], shown["clean"]) == (8, 1, 0, 0, False)
    assert shown["schedules"][0]["problems"][0]["sentence"] == "1 due instant is in no entry: 2027-03-01T09:00:20Z."


def test_a_schedule_that_is_not_there_is_not_found(catalog):
    with catalog.writing() as connection:
        ensure_environment(connection, SCOPE, mode="simulation", runtime_profile="embedded")
        assert audit(connection, SCOPE, now=START).clean
        with pytest.raises(NotFound, match="schedule_not_found"):
            audit(connection, KEY, now=START)


def test_a_year_of_a_dense_span_costs_no_time(catalog):
    year = 365 * 86_400
    with catalog.writing() as connection:
        schedule = enable(connection, since=START, every=1)
        fate = Fate(
            span=Span(first=at(1), last=at(year), count=year),
            disposition=Disposition.MISSED,
            reason=Reason.OUTSIDE_WINDOW,
        )
        ledger_changes.write_fate(connection, schedule, generation=1, fate=fate, now=at(year))
        mark(connection, schedule, accounted_through=at(year))
        began = time.perf_counter()
        result = audit(connection, KEY, now=at(year))
        spent = time.perf_counter() - began
    assert result.clean
    assert result.due == year
    assert spent < 0.5


def test_the_grace_is_longer_than_a_killed_worker_needs():
    assert timedelta(seconds=30) < DEFAULT_GRACE < timedelta(minutes=5)


CALENDAR = parse_calendar(configuration(3)["calendar"])
ROWS = st.lists(st.tuples(st.integers(-5, 70), st.integers(0, 12), st.integers(0, 6)), max_size=12)


@given(rows=ROWS)
def test_the_numbers_add_up_whatever_the_ledger_holds(rows):
    entered = [
        Entered(1, at(first), at(first + length), count, Disposition.SKIPPED, START)
        for first, length, count in sorted(rows)
    ]
    found = list(reckon(CALENDAR, entered, generation=1, after=START, until=at(60)))
    by_kind = {kind: sum(each.count for each in found if each.kind is kind) for kind in Problem}
    lies = by_kind[Problem.MISSING] - by_kind[Problem.DUPLICATE] - by_kind[Problem.UNDUE]
    assert CALENDAR.count(at(1), at(60)) == sum(entry.instants for entry in entered) + lies


def cut(cuts: set[int]) -> list[Entered]:
    """What was due in the minute, honestly entered as spans that end at the cuts."""
    due = list(CALENDAR.between(at(1), at(60)))
    bounds = [0, *sorted(cuts), len(due)]
    return [
        Entered(1, due[low], due[high - 1], high - low, Disposition.SKIPPED, START) for low, high in pairwise(bounds)
    ]


CUTS = st.sets(st.integers(1, 19), max_size=10)


@given(cuts=CUTS)
def test_any_cutting_of_what_was_due_into_entries_is_clean(cuts):
    assert list(reckon(CALENDAR, cut(cuts), generation=1, after=START, until=at(60))) == []


CHANGES = {
    "dropped": lambda entry: [],
    "doubled": lambda entry: [entry, entry],
    "one more": lambda entry: [entry._replace(instants=entry.instants + 1)],
    "one fewer": lambda entry: [entry._replace(instants=entry.instants - 1)],
    "a second later": lambda entry: [entry._replace(first=entry.first + SECOND, last=entry.last + SECOND)],
    "a second longer": lambda entry: [entry._replace(last=entry.last + SECOND)],
    "begun a second earlier": lambda entry: [entry._replace(first=entry.first - SECOND)],
    "an instant longer": lambda entry: [entry._replace(last=entry.last + 3 * SECOND)],
}
SECOND = timedelta(seconds=1)


@given(cuts=CUTS, which=st.integers(0, 10), change=st.sampled_from(sorted(CHANGES)))
def test_one_changed_entry_among_honest_ones_is_always_found(cuts, which, change):
    honest_ones = cut(cuts)
    which %= len(honest_ones)
    entered = [*honest_ones[:which], *CHANGES[change](honest_ones[which]), *honest_ones[which + 1 :]]
    assert list(reckon(CALENDAR, entered, generation=1, after=START, until=at(60))) != []
