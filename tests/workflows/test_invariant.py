"""The check that runs after every test here finds what it is there to find."""

from datetime import timedelta

import pytest
from sqlalchemy import delete, insert, select, update

from horarium.catalog.tables import entries, runs
from tests.workflows.documents import every


def lose_one(connection, first):
    connection.execute(delete(entries).where(entries.c.first_at == first))


def answer_one_twice(connection, first):
    (row,) = connection.execute(select(entries).where(entries.c.first_at == first)).mappings()
    again = {name: value for name, value in row.items() if name != "id"} | {"trigger": "schedule"}
    later = {"first_at": first + timedelta(seconds=1), "last_at": first + timedelta(seconds=1)}
    connection.execute(insert(entries).values(**again | later))


def miscount(connection, first):
    connection.execute(update(entries).where(entries.c.first_at == first).values(count=2))


def stretch(connection, first):
    connection.execute(
        update(entries).where(entries.c.first_at == first).values(last_at=first + timedelta(minutes=1), count=2)
    )


@pytest.mark.parametrize(
    ("tampering", "told"),
    [
        (lose_one, "a gap or an overlap"),
        (answer_one_twice, "a gap or an overlap"),
        (stretch, "a gap or an overlap"),
        (miscount, "count=2"),
    ],
)
async def test_a_ledger_that_was_tampered_with_is_found_out(skipping, tampering, told):
    async def tampered() -> None:
        async with skipping() as house:
            start = await house.on_the_minute()
            await house.enabled(await house.published(every(60, overlap="allow")))
            await house.advance_to(start + timedelta(seconds=200))
            await house.check()
            with house.catalog.writing() as connection:
                connection.execute(delete(runs))  # they refer to entries
                tampering(connection, start + timedelta(minutes=1))

    with pytest.raises(AssertionError, match=told):
        await tampered()


async def test_a_run_that_began_twice_is_found_out(skipping):
    async def twice() -> None:
        async with skipping() as house:
            start = await house.on_the_minute()
            await house.enabled(await house.published(every(60)))
            await house.advance_to(start + timedelta(seconds=30))
            house.agent.begun *= 2

    with pytest.raises(AssertionError, match="began twice"):
        await twice()
