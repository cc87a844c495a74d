"""Calls that share a transaction of SQLite: to each caller it is one of its own."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, event, insert, select
from sqlalchemy.exc import IntegrityError, OperationalError

from horarium.catalog import Catalog, engine, grouping, migrate
from horarium.catalog.aftermath import after_commit
from horarium.catalog.tables import runtime, workers
from horarium.errors import Conflict, HorariumError, Unavailable
from tests.catalog.test_engine import NOW, add, count, url

LONGEST = 30.0


@pytest.fixture(autouse=True, scope="module")
def _for_as_long_as_it_takes() -> Iterator[None]:
    """Take all that waits into one transaction, however slow the machine."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(grouping, "TAKES_IN", timedelta(minutes=1))
        yield


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Catalog]:
    opened = Catalog.open(url(tmp_path))
    migrate.upgrade(opened)
    yield opened
    opened.close()


@pytest.fixture
def commits(file: Catalog) -> list[int]:
    """A number for each commit that wrote."""
    seen: list[int] = []

    def committed(connection: Connection) -> None:
        if connection.get_execution_options().get("horarium_writes", False):
            seen.append(len(seen))

    event.listen(file.engine, "commit", committed)
    return seen


def stored(connection: Connection) -> list[str]:
    return list(connection.execute(select(workers.c.instance).order_by(workers.c.instance)).scalars())


async def at_once(
    catalog: Catalog, *calls: Callable[[Connection], object], meanwhile: Callable[[list[asyncio.Future[object]]], None]
) -> list[object]:
    """Ask for all of these while the writer is busy with another, and give what each came to."""
    begun, go_on = threading.Event(), threading.Event()

    def keeps_busy(_connection: Connection) -> None:
        begun.set()
        assert go_on.wait(LONGEST)

    busy = asyncio.ensure_future(catalog.write(keeps_busy))
    try:
        assert await asyncio.to_thread(begun.wait, LONGEST)
        asked: list[asyncio.Future[object]] = [asyncio.ensure_future(catalog.write(call)) for call in calls]
        await asyncio.sleep(0)  # each has asked by then
        meanwhile(asked)
    finally:
        go_on.set()
    await busy
    return await asyncio.gather(*asked, return_exceptions=True)


def all_of(catalog: Catalog, *calls: Callable[[Connection], object]) -> list[object]:
    return asyncio.run(at_once(catalog, *calls, meanwhile=lambda _asked: None))


def adds(name: str) -> Callable[[Connection], str]:
    def call(connection: Connection) -> str:
        add(connection, name)
        return name

    return call


def adds_and_raises(name: str) -> Callable[[Connection], None]:
    def call(connection: Connection) -> None:
        add(connection, name)
        raise Conflict("not_now", f"{name} is not stored.")

    return call


FULL = OperationalError("INSERT", {}, Exception("database or disk is full"))


def loses_all(raised: Exception) -> Callable[[Connection], None]:
    """Takes the whole transaction back, as SQLite itself does where the disk is full, for one."""

    def call(connection: Connection) -> None:
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.execute("ROLLBACK")
        raise raised

    return call


def test_calls_that_wait_together_share_a_commit_and_each_has_its_answer(file: Catalog, commits: list[int]) -> None:
    names = [f"w{number:02}" for number in range(40)]
    assert all_of(file, *map(adds, names)) == names
    assert len(commits) < len(names) / 2
    with file.reading() as connection:
        assert stored(connection) == names


def test_what_one_raises_undoes_it_alone_and_what_it_asked_to_be_done(file: Catalog) -> None:
    done: list[str] = []

    def tells(call: Callable[[Connection], object], name: str) -> Callable[[Connection], object]:
        def told(connection: Connection) -> object:
            after_commit(connection, lambda: done.append(name))
            return call(connection)

        return told

    answers = all_of(
        file, tells(adds("a"), "a"), tells(adds_and_raises("b"), "b"), tells(adds("a"), "twice"), tells(adds("c"), "c")
    )
    assert answers[0] == "a"
    assert isinstance(answers[1], Conflict)
    assert isinstance(answers[2], IntegrityError)
    assert answers[3] == "c"
    assert done == ["a", "c"]
    with file.reading() as connection:
        assert stored(connection) == ["a", "c"]


def test_nobody_is_answered_before_the_commit(file: Catalog) -> None:
    asked: list[asyncio.Future[object]] = []
    answered_early: list[int] = []

    def look(connection: Connection) -> None:
        if connection.get_execution_options().get("horarium_writes", False) and asked:
            answered_early.append(sum(each.done() for each in asked))

    async def ask() -> list[object]:
        return await at_once(file, adds("a"), adds_and_raises("b"), adds("c"), meanwhile=asked.extend)

    event.listen(file.engine, "commit", look)
    asyncio.run(ask())
    assert answered_early == [0, 0], "the commit of what kept the writer busy, and theirs"


def test_one_that_is_cancelled_before_its_turn_is_never_carried_out(file: Catalog) -> None:
    async def ask() -> list[object]:
        return await at_once(file, adds("a"), adds("b"), adds("c"), meanwhile=lambda asked: asked[1].cancel())

    answers = asyncio.run(ask())
    assert isinstance(answers[1], asyncio.CancelledError)
    with file.reading() as connection:
        assert stored(connection) == ["a", "c"]


def test_a_transaction_that_was_lost_in_the_middle_is_told_to_all_of_its_calls(file: Catalog) -> None:
    answers = all_of(file, adds("a"), loses_all(FULL), adds("d"))
    assert [type(each) for each in answers[:2]] == [Unavailable] * 2
    assert answers[0] is not answers[1]
    # It had not begun, and has a transaction of its own.
    assert answers[2] == "d"
    with file.reading() as connection:
        assert stored(connection) == ["d"]


def test_where_the_commit_fails_nothing_took_effect_and_all_are_told(file: Catalog) -> None:
    def breaks_the_commit(connection: Connection) -> None:
        connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
        nowhere = {"schedule": 999, "generation": 1, "state": "active", "reason": None, "observed_at": NOW}
        connection.execute(insert(runtime), nowhere)

    answers = all_of(file, adds("a"), breaks_the_commit, adds("b"))
    assert [type(each) for each in answers] == [IntegrityError] * 3
    asyncio.run(file.write(adds("c")))
    with file.reading() as connection:
        assert stored(connection) == ["c"]


def test_what_one_has_raised_stands_only_where_it_saw_nothing_that_did_not_take_effect(file: Catalog) -> None:
    """Whoever finds that another was faster must not be refused for what was taken back."""

    def refuses_a_second(connection: Connection) -> None:
        if stored(connection):
            raise Conflict("already_there", "Somebody was faster.")
        raise Conflict("not_yet", "Nobody is there.")

    answers = all_of(file, refuses_a_second, adds("a"), refuses_a_second, loses_all(FULL))
    assert [type(each) for each in answers] == [Conflict, Unavailable, Unavailable, Unavailable]


class Own(HorariumError):
    """An error that cannot be copied."""

    def __init__(self, *, because: str) -> None:
        super().__init__(because)


def test_each_is_told_an_error_of_its_own_and_the_first_the_very_one(file: Catalog) -> None:
    """With the way that it took; and no error keeps others waiting, whatever it is."""
    raised = Own(because="It is over.")
    assert all_of(file, adds("a"), loses_all(raised), adds("b")) == [raised, raised, "b"]
    (alone,) = all_of(file, loses_all(lost := Unavailable("gone", "It is gone.")))
    assert alone is lost


def test_a_file_that_stays_locked_is_told_to_each_that_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "BUSY_TIMEOUT_SECONDS", 0.3)
    impatient, other = Catalog.open(url(tmp_path)), Catalog.open(url(tmp_path))
    migrate.upgrade(other)
    try:

        async def ask() -> list[object]:
            asked = (impatient.write(adds(name)) for name in "abc")
            return await asyncio.gather(*asked, return_exceptions=True)

        with other.writing():
            answers = asyncio.run(ask())
        assert [type(each) for each in answers] == [Unavailable] * 3
        with other.reading() as connection:
            assert count(connection) == 0
    finally:
        impatient.close()
        other.close()


def test_whoever_closes_it_waits_for_all_that_was_asked_for(tmp_path: Path) -> None:
    catalog = Catalog.open(url(tmp_path))
    migrate.upgrade(catalog)

    async def ask() -> list[object]:
        asked = [asyncio.ensure_future(catalog.write(adds(f"w{number}"))) for number in range(20)]
        await asyncio.sleep(0)
        await asyncio.to_thread(catalog.close)
        return await asyncio.gather(*asked)

    assert len(asyncio.run(ask())) == 20


def test_what_is_asked_for_too_late_is_never_carried_out(tmp_path: Path) -> None:
    """Its caller is told so while others, that were in time, have their turn yet."""
    catalog, begun, go_on = Catalog.open(url(tmp_path)), threading.Event(), threading.Event()
    migrate.upgrade(catalog)

    def keeps_busy(_connection: Connection) -> None:
        begun.set()
        assert go_on.wait(LONGEST)

    async def ask() -> list[object]:
        in_time = [asyncio.ensure_future(catalog.write(call)) for call in (keeps_busy, adds("a"))]
        assert await asyncio.to_thread(begun.wait, LONGEST)
        catalog._writer.shutdown(wait=False)
        try:
            with pytest.raises(RuntimeError, match="after shutdown"):
                await catalog.write(adds("late"))
        finally:
            go_on.set()
        return await asyncio.gather(*in_time)

    assert asyncio.run(ask()) == [None, "a"]
    with catalog.reading() as connection:
        assert stored(connection) == ["a"]
    catalog.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    opened = Catalog.open(url(tmp_path_factory.mktemp("catalog")))
    migrate.upgrade(opened)
    yield opened
    opened.close()


@given(raises=st.lists(st.booleans(), min_size=1, max_size=80))
def test_as_if_each_had_a_transaction_of_its_own(shared: Catalog, raises: list[bool]) -> None:
    names = [f"w{number:02}" for number in range(len(raises))]
    with shared.writing() as connection:
        connection.execute(workers.delete())
    calls = [adds_and_raises(name) if raised else adds(name) for name, raised in zip(names, raises, strict=True)]
    answers = all_of(shared, *calls)
    assert [isinstance(each, Conflict) for each in answers] == raises
    with shared.reading() as connection:
        assert stored(connection) == [name for name, raised in zip(names, raises, strict=True) if not raised]
