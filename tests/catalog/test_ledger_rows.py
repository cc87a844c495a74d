"""What the ledger's rows keep: instants, one entry for each, and spans that touch."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError, StatementError

from horarium.catalog import Catalog, ledger_changes
from horarium.catalog.schedules import require_schedule
from horarium.catalog.tables import entries, workers
from horarium.schedule.identity import ActivationKey, RunKey
from horarium.schedule.ledger import Disposition, Fate, Reason, Span
from tests.control.desk import Desk, at, every, furnish, open_undurable
from tests.postgres.databases import Database


@pytest.fixture(scope="module")
def catalog(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    with database.migrated(tmp_path_factory.mktemp("catalog")) as url:
        opened = open_undurable(url)
        furnish(opened)
        yield opened
        opened.close()


@pytest.fixture
def desk(catalog: Catalog) -> Desk:
    desk = Desk(catalog)
    desk.enabled(every(60))
    return desk


@given(st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-9, minutes=-30))])))
def test_an_instant_comes_back_as_it_was_to_the_microsecond(catalog: Catalog, instant: datetime) -> None:
    if not datetime(2, 1, 1, tzinfo=UTC) < instant < datetime(9998, 1, 1, tzinfo=UTC):
        return
    with catalog.writing() as connection:
        connection.execute(workers.delete().where(workers.c.instance == "clock"))
        connection.execute(insert(workers).values(instance="clock", role="r", seen_at=instant, tzdata="t"))
        found = connection.execute(select(workers.c.seen_at).where(workers.c.instance == "clock")).scalar_one()
    assert found == instant
    assert found.utcoffset() == timedelta(0)


def test_a_naive_datetime_is_no_instant(catalog: Catalog) -> None:
    naive = datetime(2026, 11, 30, 12)  # noqa: DTZ001 # the point of the test
    with pytest.raises(StatementError, match="a naive datetime cannot be stored"), catalog.writing() as connection:
        connection.execute(insert(workers).values(instance="naive", role="r", seen_at=naive, tzdata="t"))


def test_one_instant_has_one_entry_whatever_the_generation(desk: Desk) -> None:
    def stage(connection: Any, generation: int, trigger: str = "schedule") -> None:
        schedule = require_schedule(connection, desk.key, lock=True)
        activation = ActivationKey(schedule=desk.key, generation=generation)
        ledger_changes.stage(
            connection, schedule, RunKey(activation=activation, nominal_time=at(60), trigger=trigger), now=at(1)
        )

    desk.write(stage, 1)
    desk.write(stage, 1, "manual:a")
    desk.write(stage, 1, "manual:b")
    with pytest.raises(IntegrityError):
        desk.write(stage, 1)
    with pytest.raises(IntegrityError):
        desk.write(stage, 2)
    assert len(desk.entries()) == 3


def test_nobody_s_schedule_has_an_entry(catalog: Catalog) -> None:
    row = {
        "generation": 1,
        "trigger": "schedule",
        "first_at": at(0),
        "last_at": at(0),
        "count": 1,
        "disposition": "missed",
    }
    with pytest.raises(IntegrityError), catalog.writing() as connection:
        connection.execute(insert(entries).values(schedule=999_999, **row))


def fate(first: float, last: float, count: int, reason: Reason = Reason.OVERLAP) -> Fate:
    disposition = {Reason.OVERLAP: Disposition.SKIPPED, Reason.OUTSIDE_WINDOW: Disposition.MISSED}[reason]
    return Fate(span=Span(first=at(first), last=at(last), count=count), disposition=disposition, reason=reason)


def enter(desk: Desk, *told: Fate | RunKey | float, generation: int = 1) -> None:
    """Fates, runs to stage, and instants that wait, in this order."""

    def write(connection: Any) -> None:
        schedule = require_schedule(connection, desk.key, lock=True)
        for each in told:
            if isinstance(each, Fate):
                ledger_changes.write_fate(connection, schedule, generation=generation, fate=each, now=desk.now)
            elif isinstance(each, RunKey):
                ledger_changes.stage(connection, schedule, each, now=desk.now)
            else:
                ledger_changes.buffer(connection, schedule, generation=generation, instants=[at(each)])

    desk.write(write)


def test_spans_of_one_fate_that_touch_are_one_entry(desk: Desk) -> None:
    enter(desk, fate(60, 60, 1))
    enter(desk, fate(120, 240, 3))
    assert desk.told() == [("skipped", 60, 240, 4)]


def test_spans_of_different_fates_are_not(desk: Desk) -> None:
    enter(desk, fate(60, 60, 1), fate(120, 180, 2, Reason.OUTSIDE_WINDOW), fate(240, 240, 1))
    assert desk.told() == [("skipped", 60, 60, 1), ("missed", 120, 180, 2), ("skipped", 240, 240, 1)]


def test_spans_are_not_joined_across_a_run_or_a_waiting_instant(desk: Desk) -> None:
    run = RunKey(activation=ActivationKey(schedule=desk.key, generation=1), nominal_time=at(120))
    enter(desk, fate(60, 60, 1), run, fate(180, 180, 1), 240.0, fate(300, 300, 1))
    assert desk.told() == [
        ("skipped", 60, 60, 1),
        ("staged", 120, 120, 1),
        ("skipped", 180, 180, 1),
        ("buffered", 240, 240, 1),
        ("skipped", 300, 300, 1),
    ]


def test_spans_are_not_joined_across_generations(desk: Desk) -> None:
    enter(desk, fate(60, 60, 1))
    enter(desk, fate(120, 120, 1), generation=2)
    assert desk.told() == [("skipped", 60, 60, 1), ("skipped", 120, 120, 1)]


def test_a_run_that_came_too_late_keeps_an_entry_of_its_own(desk: Desk) -> None:
    """It is missed as a span may be, but it is about one run."""
    run = RunKey(activation=ActivationKey(schedule=desk.key, generation=1), nominal_time=at(60))
    enter(desk, run)
    desk.now = at(4_000)
    assert desk.admit(run).outcome == "missed"
    enter(desk, fate(120, 180, 2, Reason.OUTSIDE_WINDOW))
    assert desk.told() == [("missed", 60, 60, 1), ("missed", 120, 180, 2)]
