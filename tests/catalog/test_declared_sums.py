"""What all enabled schedules declare: the sums, held against adding up each of them, whatever happens and at once."""

import asyncio
import random
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, delete, func, insert, select, tuple_, update

from horarium.catalog import Catalog, declared_sums
from horarium.catalog.declared_runs import declared_before, declared_by_all, keep_counts
from horarium.catalog.environments import ensure_environment
from horarium.catalog.notification_tables import expected
from horarium.catalog.schedules import (
    Activation,
    change_activation,
    find_activation,
    find_schedule,
    insert_activation,
    insert_schedule,
    require_schedule,
)
from horarium.catalog.tables import activations, declared, schedules
from horarium.errors import Conflict
from horarium.schedule.identity import Scope, schedule_key
from horarium.schedule.ledger import Reason
from tests.control.desk import open_undurable
from tests.postgres.databases import Database

SCOPE = Scope(org_id="acme", environment_id="test")
MIDNIGHT = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def catalog(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    with database.migrated(tmp_path_factory.mktemp("catalog")) as url, pytest.MonkeyPatch.context() as patched:
        patched.setattr(declared_sums, "FOLDED_EVERY", 4)
        opened = open_undurable(url)
        with opened.writing() as connection:
            ensure_environment(connection, SCOPE, mode="simulation", runtime_profile="embedded")
        yield opened
        opened.close()


def empty(connection: Connection) -> None:
    for table in (activations, expected, schedules, declared):
        connection.execute(delete(table))


def enabled(connection: Connection, schedule_id: str, runs: int | None, at: datetime) -> Activation:
    """One more generation of a schedule, which ends the one before."""
    schedule = insert_schedule(connection, schedule_key(SCOPE, schedule_id), contract="schedules", now=at)
    current = find_activation(connection, schedule, schedule.generation)
    if current is not None and current.is_live:
        ended(connection, current, at)
    return insert_activation(
        connection, schedule, revision=1, by="ada", now=at, since=at, runs_per_month=runs, ended_as=None
    )


def ended(connection: Connection, activation: Activation, at: datetime) -> None:
    change_activation(connection, activation, ended_at=at, ended_as=Reason.PAUSED.value)


def one_by_one(connection: Connection, before: Activation | None = None) -> int:
    query = select(func.coalesce(func.sum(activations.c.runs_per_month), 0)).where(activations.c.ended_at.is_(None))
    if before is not None:
        order = tuple_(activations.c.changed_at, activations.c.id)
        query = query.where(order < tuple_(before.changed_at, before.row))
    return int(connection.execute(query).scalar_one())


runs = st.none() | st.integers(min_value=0, max_value=50_000)
# Some of the same instant, second, five minutes and day, and of those around them.
instants = st.sampled_from([0, 0.5, 1, 299, 299.999999, 300, 3_600, 86_399, 86_399.5, 86_400, 90_000, 300_000]).map(
    lambda seconds: MIDNIGHT + timedelta(seconds=seconds)
)
acts = st.lists(
    st.tuples(st.sampled_from(["enable", "enable", "count", "end", "first"]), st.integers(0, 5), runs, instants),
    max_size=25,
)


@given(acts=acts)
@settings(max_examples=120)
def test_the_sums_are_what_adding_up_each_comes_to(
    catalog: Catalog, acts: list[tuple[str, int, int | None, datetime]]
) -> None:
    ids = [str(uuid.UUID(int=number)) for number in range(6)]
    with catalog.writing() as connection:
        empty(connection)
        for act, which, counted, at in acts:
            schedule = find_schedule(connection, schedule_key(SCOPE, ids[which]))
            current = None if schedule is None else find_activation(connection, schedule, schedule.generation)
            if act == "enable":
                enabled(connection, ids[which], counted, at)
            elif current is None:
                continue
            elif act == "count" and counted is not None:
                change_activation(connection, current, runs_per_month=counted)
            elif act == "end" and current.is_live:
                ended(connection, current, at)
            elif act == "first" and counted is not None:
                keep_counts(connection, {current.row: counted})
        found = declared_by_all(connection)
        assert found.runs == one_by_one(connection)
        live = connection.execute(select(activations.c.schedule).where(activations.c.ended_at.is_(None))).scalars()
        for row in live.all():
            generation = connection.execute(select(schedules.c.generation).where(schedules.c.id == row)).scalar_one()
            key = connection.execute(select(schedules.c.schedule_id).where(schedules.c.id == row)).scalar_one()
            activation = find_activation(connection, require_schedule(connection, schedule_key(SCOPE, key)), generation)
            assert activation is not None
            assert declared_before(connection, activation).runs == one_by_one(connection, activation)


def test_the_sums_hold_at_every_moment_while_many_change_at_once(catalog: Catalog) -> None:
    """Some of them give up in the middle, and others count what nobody had counted."""
    ids = [str(uuid.UUID(int=100 + number)) for number in range(8)]

    def act(connection: Connection, chance: random.Random) -> None:
        schedule = insert_schedule(
            connection, schedule_key(SCOPE, chance.choice(ids)), contract="schedules", now=MIDNIGHT
        )
        current = find_activation(connection, schedule, schedule.generation)
        if current is None or not current.is_live or chance.random() < 0.4:
            enabled(connection, schedule.key.schedule_id, chance.choice([None, 1, 720]), MIDNIGHT)
        elif chance.random() < 0.5:
            ended(connection, current, MIDNIGHT)
        else:
            change_activation(connection, current, runs_per_month=chance.randrange(1_000))
        if chance.random() < 0.2:
            raise Conflict("gives_up", "Nothing of it is stored.")

    def count_first(connection: Connection) -> None:
        nobody = select(activations.c.id).where(
            activations.c.runs_per_month.is_(None), activations.c.ended_at.is_(None)
        )
        keep_counts(connection, dict.fromkeys(connection.execute(nobody).scalars().all(), 30))

    def hold(connection: Connection) -> tuple[int, int]:
        return declared_by_all(connection).runs, one_by_one(connection)

    async def all_at_once() -> list[object]:
        changes = [catalog.write(act, random.Random(number)) for number in range(120)]
        counts = [catalog.write(count_first) for _ in range(10)]
        looks = [catalog.read(hold) for _ in range(40)]
        return await asyncio.gather(*changes, *counts, *looks, return_exceptions=True)

    with catalog.writing() as connection:
        empty(connection)
    answers = asyncio.run(all_at_once())
    unforeseen = [each for each in answers if isinstance(each, BaseException) and not isinstance(each, Conflict)]
    assert not unforeseen
    looked = [each for each in answers if isinstance(each, tuple)]
    assert len(looked) == 40
    assert all(sums == each for sums, each in looked), looked
    with catalog.reading() as connection:
        sums, each = hold(connection)
    assert sums == each > 0


def test_the_rows_that_are_added_up_stay_few(catalog: Catalog) -> None:
    with catalog.writing() as connection:
        empty(connection)
        activation = enabled(connection, str(uuid.UUID(int=200)), 1, MIDNIGHT)
        for counted in range(2, 200):
            change_activation(connection, activation, runs_per_month=counted)
        assert declared_by_all(connection).runs == 199
        # Three sums, and what was added since they were made one row each.
        assert connection.execute(select(func.count()).select_from(declared)).scalar_one() <= 3 + 3 + 4
        ended(connection, activation, MIDNIGHT)
        declared_sums.fold(connection)
        assert connection.execute(select(func.count()).select_from(declared)).scalar_one() == 0


def test_what_was_written_by_hand_can_be_counted_again(catalog: Catalog) -> None:
    with catalog.writing() as connection:
        empty(connection)
        enabled(connection, str(uuid.UUID(int=300)), 720, MIDNIGHT)
        enabled(connection, str(uuid.UUID(int=301)), 30, MIDNIGHT + timedelta(days=1))
        connection.execute(insert(declared), {"day": 1, "runs": 5})
        connection.execute(insert(declared), {"span": 300, "day": 1, "since": 0, "runs": 5})
        connection.execute(update(activations).where(activations.c.runs_per_month == 30).values(runs_per_month=31))
        declared_sums.count_again(connection)
        assert declared_by_all(connection).runs == 751
        sums = select(declared.c.span, func.sum(declared.c.runs)).group_by(declared.c.span).order_by(declared.c.span)
        assert [tuple(row) for row in connection.execute(sums)] == [(1, 751), (300, 751), (86_400, 751)]
