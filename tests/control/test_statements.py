"""How much an occurrence asks of the catalog: whoever adds a question to it sees so here."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from benchmarks.occurrences import Life
from benchmarks.stored_schedules import SCOPE, store
from horarium.catalog import Catalog
from horarium.catalog.endpoints import put_endpoint
from horarium.schedule.identity import ActivationKey, schedule_key
from horarium.schedule.notifications import ASKED_FOR
from tests.postgres.databases import Database

MOST_STATEMENTS = 35
"""Of an occurrence that nothing blocks, from the step that stages its run to its settlement, on either database."""
LOCKS = 4
"""Among them, on PostgreSQL alone: each writing transaction locks its schedule in a statement of its own."""


@pytest.fixture
def life(database: Database, tmp_path: Path) -> Iterator[Life]:
    with database.migrated(tmp_path) as url:
        stored = store(url, 3)
        catalog = Catalog.open(stored.url)
        key = ActivationKey(schedule=schedule_key(SCOPE, stored.ids[1]), generation=1)
        life = Life(catalog=catalog, key=key)
        # What a process or a connection asks once is no part of an occurrence.
        life.live()
        yield life
        catalog.close()


def test_an_occurrence_asks_the_catalog_no_more_than_it_has_to(life: Life) -> None:
    due = life.next_due()
    with _asked() as asked:
        run = life.step(due)
        life.admit(run)
        life.finish(run)
    locks = LOCKS if life.catalog.engine.dialect.name == "postgresql" else 0
    assert asked.total() <= MOST_STATEMENTS - LOCKS + locks, asked
    assert sum(count for statement, count in asked.items() if statement.endswith("FOR UPDATE")) <= LOCKS


def test_an_occurrence_that_goes_well_asks_no_more_where_people_are_told_of_everything(life: Life) -> None:
    with life.catalog.writing() as connection:
        put_endpoint(
            connection,
            SCOPE,
            "pager",
            url="https://pager.example/",
            secret="HORARIUM_SECRET_PAGER",
            private=False,
            kinds=ASKED_FOR,
            schedule_id=None,
            by="ada",
            now=datetime.now(UTC),
        )
    due = life.next_due()
    with _asked() as asked:
        run = life.step(due)
        life.admit(run)
        life.finish(run)
    locks = LOCKS if life.catalog.engine.dialect.name == "postgresql" else 0
    assert asked.total() <= MOST_STATEMENTS - LOCKS + locks, asked
    assert not any("notifications" in statement for statement in asked)


def test_no_part_of_an_occurrence_asks_the_same_twice(life: Life) -> None:
    due = life.next_due()
    with _asked() as step:
        run = life.step(due)
    with _asked() as admission:
        life.admit(run)
    # To gather and to commit are two transactions, each of which asks for itself; so do looking and deciding.
    assert {count for statement, count in {**step, **admission}.items() if statement.startswith("SELECT")} <= {1, 2}


@contextmanager
def _asked() -> Iterator[Counter[str]]:
    asked: Counter[str] = Counter()

    def executed(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if not statement.startswith("BEGIN"):
            asked[" ".join(statement.split())] += 1

    event.listen(Engine, "before_cursor_execute", executed)
    try:
        yield asked
    finally:
        event.remove(Engine, "before_cursor_execute", executed)
