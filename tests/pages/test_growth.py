"""What the pages ask costs the same, however many schedules there are and however long the ledger is."""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, insert, select

from horarium.catalog import Catalog
from horarium.catalog.directory import Standing
from horarium.catalog.pages import Wanted
from horarium.catalog.schedules import require_schedule
from horarium.catalog.tables import entries, schedules, versions
from horarium.control import pages
from horarium.control.directory import SMALL, Sought, directory, names
from tests.control.desk import NOON, SCOPE, Desk, at, every, open_catalog

MORE = 1.25
"""How much more the larger one may cost: an index grows by a level."""


def operations(catalog: Catalog, ask: Callable[[Any], Any]) -> int:
    """What a question costs, in hundreds of operations of the database: no clock has a part in it."""
    counted = 0

    def count() -> None:
        nonlocal counted
        counted += 1

    def watch(raw: Any, *_: Any) -> None:
        raw.set_progress_handler(count, 100)

    event.listen(catalog.engine, "checkout", watch)
    try:
        with catalog.reading() as connection:
            ask(connection)
    finally:
        event.remove(catalog.engine, "checkout", watch)
    return counted


def crowded(folder: Path, *, count: int, lines: int) -> Catalog:
    """A catalog with so many schedules that were never enabled, and one with so many lines in its ledger."""
    folder.mkdir()
    catalog = open_catalog(folder)
    desk = Desk(catalog)
    desk.enabled(every(3_600))
    with catalog.writing() as connection:
        row = require_schedule(connection, desk.key).row
        like = dict(connection.execute(select(schedules).where(schedules.c.id == row)).mappings().one())
        text = dict(connection.execute(select(versions).where(versions.c.schedule == row)).mappings().one())
        made = [
            {**like, "id": row + 1 + number, "schedule_id": str(uuid.UUID(int=10**9 + number)), "generation": 0}
            for number in range(count)
        ]
        connection.execute(insert(schedules), made)
        heads = [
            {**text, "id": text["id"] + 1 + number, "schedule": each["id"], "resource_id": str(uuid.uuid4())}
            for number, each in enumerate(made)
        ]
        connection.execute(insert(versions), heads)
        past = [
            {
                "schedule": row,
                "generation": 1,
                "trigger": "schedule",
                "first_at": at(-60 * number),
                "last_at": at(-60 * number),
                "count": 1,
                "disposition": "succeeded",
                "held_since": at(-60 * number),
                "closed_at": at(-60 * number + 1),
            }
            for number in range(1, lines + 1)
        ]
        connection.execute(insert(entries), past)
    return catalog


QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "the directory": lambda c: directory(c, SCOPE, Sought(), after=None, limit=25, now=NOON),
    "a later page of it": lambda c: directory(
        c, SCOPE, Sought(), after=str(uuid.UUID(int=10**9 + 150)), limit=25, now=NOON
    ),
    "those never enabled": lambda c: directory(
        c, SCOPE, Sought(standing=Standing.NEVER_ENABLED), after=None, limit=25, now=NOON
    ),
    "a frequent text": lambda c: directory(c, SCOPE, Sought(text="schedule"), after=None, limit=25, now=NOON),
    "the runs": lambda c: pages.ledger(c, SCOPE, Wanted(newest_first=True), after=None, limit=50),
    "names": lambda c: names(c, SCOPE, [str(uuid.UUID(int=10**9 + number)) for number in range(25)]),
}


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory):
    opened = crowded(tmp_path_factory.mktemp("few") / "catalog", count=SMALL + 100, lines=500)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory):
    opened = crowded(tmp_path_factory.mktemp("many") / "catalog", count=20 * SMALL, lines=20_000)
    yield opened
    opened.close()


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_of_a_page_does_not_grow(few, many, question):
    ask = QUESTIONS[question]
    assert operations(many, ask) <= MORE * operations(few, ask) + 5
