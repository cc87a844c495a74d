"""PostgreSQL as it really behaves: every trouble here is caused, and what the catalog says of it is what a person reads."""

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import Connection, func, insert, select, text
from sqlalchemy.exc import DataError, IntegrityError, InternalError

from horarium.catalog import Catalog, engine, migrate, postgresql
from horarium.catalog.failures import OutcomeUnknown
from horarium.catalog.tables import workers
from horarium.errors import Misconfigured, Unavailable
from tests.catalog.words import told
from tests.postgres.databases import Database
from tests.postgres.server import GUARDED, IP, PASSWORD, PostgresServer

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
PATIENCE = 0.4
"""Seconds, in place of the real ones."""


@pytest.fixture
def url(postgres: PostgresServer, tmp_path) -> Iterator[str]:
    with Database(postgres).migrated(tmp_path) as found:
        yield found


@pytest.fixture
def other(url: str) -> Iterator[Catalog]:
    """Another process at the same catalog, as patient as it really is."""
    opened = Catalog.open(url)
    yield opened
    opened.close()


@pytest.fixture
def catalog(url: str, other: Catalog, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    monkeypatch.setattr(engine, "BUSY_TIMEOUT_SECONDS", PATIENCE)
    opened = Catalog.open(url)
    yield opened
    opened.close()


@pytest.fixture
def lone() -> Iterator[PostgresServer]:
    """A server that the test may end."""
    server = PostgresServer(max_connections=12, superuser_reserved_connections=1)
    server.start()
    yield server
    server.remove()


@pytest.fixture
def on_lone(lone: PostgresServer, tmp_path) -> Iterator[Catalog]:
    with Database(lone).migrated(tmp_path) as found:
        opened = Catalog.open(found)
        yield opened
        opened.close()
        if not lone.running:
            lone.start()


def add(connection: Connection, instance: str) -> None:
    connection.execute(insert(workers).values(instance=instance, role="runs", seen_at=NOW, tzdata="2026.1"))


def count(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(workers)).scalar_one()


def backend(connection: Connection) -> int:
    """The process of the server that serves this connection."""
    return connection.execute(select(func.pg_backend_pid())).scalar_one()


def write(catalog: Catalog, do: Callable[[Connection], object]) -> None:
    """One writing transaction."""
    with catalog.writing() as connection:
        do(connection)


def works(catalog: Catalog, name: str) -> bool:
    """Whether it takes a change and tells of it."""
    with catalog.writing() as connection:
        before = count(connection)
        add(connection, name)
    with catalog.reading() as connection:
        return count(connection) == before + 1


def test_a_reader_sees_one_state_however_long_it_reads(catalog: Catalog) -> None:
    with catalog.reading() as reader:
        before = count(reader)
        with catalog.writing() as writer:
            add(writer, "meanwhile")
        assert count(reader) == before
    with catalog.reading() as reader:
        assert count(reader) == before + 1


def test_a_reader_changes_nothing_and_locks_nothing(catalog: Catalog) -> None:
    """A question that writes is a fault of ours, so it is no outage."""
    with pytest.raises(InternalError, match="read-only transaction"), catalog.reading() as connection:
        add(connection, "by mistake")
    with pytest.raises(InternalError, match="read-only transaction"), catalog.reading() as connection:
        connection.execute(select(workers).with_for_update())


def test_a_writer_that_waited_for_a_lock_sees_what_was_committed_meanwhile(catalog: Catalog) -> None:
    with catalog.writing() as connection:
        add(connection, "locked")
    seen = []

    def second() -> None:
        with catalog.writing() as connection:
            connection.execute(select(workers).where(workers.c.instance == "locked").with_for_update())
            seen.append(count(connection))

    with catalog.writing() as connection:
        connection.execute(select(workers).where(workers.c.instance == "locked").with_for_update())
        waiting = threading.Thread(target=second)
        waiting.start()
        time.sleep(PATIENCE / 4)
        add(connection, "new")
    waiting.join()
    assert seen == [2]


def test_writers_of_one_process_go_side_by_side(catalog: Catalog) -> None:
    together = threading.Barrier(postgresql.WRITERS, timeout=5)

    def write(connection: Connection, number: int) -> None:
        add(connection, f"w{number}")
        together.wait()

    async def many() -> int:
        await asyncio.gather(*(catalog.write(write, number) for number in range(postgresql.WRITERS)))
        return await catalog.read(count)

    assert asyncio.run(many()) == postgresql.WRITERS


def test_sessions_are_set_up_as_a_ledger_needs_them_whatever_the_server_prefers(
    postgres: PostgresServer, url: str
) -> None:
    name = url.rpartition("/")[2]
    for setting in ("timezone = 'Asia/Kathmandu'", "synchronous_commit = off", "lock_timeout = 0", "datestyle = 'SQL'"):
        postgres.execute(f"ALTER DATABASE {name} SET {setting}")
    postgres.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
    catalog = Catalog.open(url)

    def settings(connection: Connection) -> list[str]:
        names = ("TimeZone", "synchronous_commit", "lock_timeout", "statement_timeout", "transaction_isolation")
        return [connection.execute(text(f"SHOW {each}")).scalar_one() for each in names]

    instant = datetime(2026, 3, 29, 0, 59, 59, 999_999, tzinfo=UTC)
    with catalog.writing() as connection:
        assert settings(connection) == ["UTC", "on", "5s", "10s", "read committed"]
        connection.execute(insert(workers).values(instance="i", role="r", seen_at=instant, tzdata="t"))
    with catalog.reading() as connection:
        assert settings(connection) == ["UTC", "on", "5s", "1min", "repeatable read"]
        assert connection.execute(select(workers.c.seen_at)).scalar_one() == instant
    catalog.close()


def test_what_a_person_wrote_into_the_url_counts_more(url: str) -> None:
    catalog = Catalog.open(f"{url}?application_name=mine&connect_timeout=33")
    with catalog.reading() as connection:
        assert connection.execute(text("SHOW application_name")).scalar_one() == "mine"
    catalog.close()


@pytest.mark.parametrize("value", ["s3cret", '{"s3cret'])
def test_an_error_does_not_tell_the_value_that_is_wrong(catalog: Catalog, value: str) -> None:
    kind = "integer" if value == "s3cret" else "json"
    with pytest.raises(DataError, match="invalid input syntax") as refused, catalog.writing() as connection:
        connection.execute(text(f"SELECT CAST(CAST(:value AS text) AS {kind})"), {"value": value})
    assert "s3cret" not in told(refused.value)


def test_a_broken_rule_of_the_tables_names_the_rule(catalog: Catalog) -> None:
    with pytest.raises(IntegrityError, match="pk_workers"):
        write(catalog, lambda connection: [add(connection, "twice") for _ in range(2)])


def lock_all(connection: Connection) -> None:
    connection.execute(text("LOCK TABLE workers IN ACCESS EXCLUSIVE MODE"))


def test_a_lock_that_somebody_holds_for_long_is_told_and_nothing_took_effect(catalog: Catalog, other: Catalog) -> None:
    with other.writing() as holder:
        lock_all(holder)
        began = time.monotonic()
        with pytest.raises(
            Unavailable, match=r"does not answer: canceling statement due to lock timeout.*Try the same"
        ):
            works(catalog, "waits")
        assert PATIENCE / 2 < time.monotonic() - began < 5
    assert works(catalog, "waits")


def test_a_statement_that_takes_too_long_is_given_up(catalog: Catalog) -> None:
    with pytest.raises(Unavailable, match="canceling statement due to statement timeout"), catalog.writing() as c:
        c.execute(text("SELECT pg_sleep(30)"))
    assert works(catalog, "next")


def test_whoever_stops_in_the_middle_of_a_transaction_gives_its_locks_away(catalog: Catalog, other: Catalog) -> None:
    def stops(connection: Connection) -> None:
        lock_all(connection)
        time.sleep(3 * PATIENCE)
        assert works(other, "goes on")
        add(connection, "late")

    with pytest.raises(Unavailable, match="does not answer"):
        write(catalog, stops)
    assert works(catalog, "again")


def test_two_that_wait_for_each_other_are_told_and_both_may_try_again(postgres: PostgresServer, url: str) -> None:
    postgres.execute(f"ALTER DATABASE {url.rpartition('/')[2]} SET deadlock_timeout = '50ms'")
    catalog = Catalog.open(url)
    with catalog.writing() as connection:
        add(connection, "a")
        add(connection, "b")
    both, failures = threading.Barrier(2, timeout=5), []

    def lock(first: str, second: str) -> None:
        try:
            with catalog.writing() as connection:
                connection.execute(select(workers).where(workers.c.instance == first).with_for_update())
                both.wait()
                connection.execute(select(workers).where(workers.c.instance == second).with_for_update())
        except Unavailable as error:
            failures.append(str(error))

    threads = [threading.Thread(target=lock, args=names) for names in (("a", "b"), ("b", "a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(failures) == 1
    assert "deadlock detected" in failures[0]
    assert works(catalog, "c")
    catalog.close()


def test_a_view_that_is_out_of_date_is_told_and_may_be_tried_again(catalog: Catalog) -> None:
    """Our writers ask for nothing that fails so; a person with an own transaction level might."""
    with catalog.writing() as connection:
        add(connection, "a")
    strict = catalog.engine.execution_options(isolation_level="REPEATABLE READ")
    with strict.connect() as connection, connection.begin():
        count(connection)
        with catalog.writing() as other:
            other.execute(workers.update().values(role="other"))
        with pytest.raises(Unavailable, match="could not serialize access"), engine.honest_errors():
            connection.execute(workers.update().values(role="mine"))


def test_a_process_that_has_no_connection_left_says_so(catalog: Catalog) -> None:
    with _all_taken(catalog), pytest.raises(Unavailable, match="all connections of this process are taken"):
        works(catalog, "never")
    assert works(catalog, "now")


class _all_taken:  # noqa: N801 - it is used as a function
    def __init__(self, catalog: Catalog) -> None:
        self.connections = [catalog.engine.connect() for _ in range(2 * postgresql.WRITERS)]

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        for connection in self.connections:
            connection.close()


def test_a_server_that_has_no_connection_left_is_told(lone: PostgresServer, on_lone: Catalog) -> None:
    guarded = as_guarded(lone, on_lone)
    with pytest.raises(Unavailable, match=r"does not answer.*(too many clients|connection slots)"):
        open_many(guarded)
    catalog = Catalog.open(guarded)
    with catalog.reading() as connection:
        assert count(connection) == 0
    catalog.close()


def open_many(url: str) -> None:
    """Let twenty processes read at the same time."""
    with ExitStack() as stack:
        for _ in range(20):
            catalog = Catalog.open(url)
            stack.callback(catalog.close)
            stack.enter_context(catalog.reading())


def as_guarded(server: PostgresServer, catalog: Catalog, password: str = PASSWORD, database: str | None = None) -> str:
    """The URL of a catalog for a role that needs its password, and that may read what is there."""
    if not server.execute(f"SELECT 1 FROM pg_roles WHERE rolname = '{GUARDED}'"):
        server.execute(f"CREATE ROLE {GUARDED} LOGIN PASSWORD '{PASSWORD}'")
    name = catalog.engine.url.database
    server.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {GUARDED}", database=name or "")
    return f"postgresql+psycopg://{GUARDED}:{quote(password, safe='')}@{IP}:{server.port}/{database or name}"


def test_a_role_and_its_password_open_the_catalog(postgres: PostgresServer, catalog: Catalog) -> None:
    guarded = Catalog.open(as_guarded(postgres, catalog))
    with guarded.reading() as connection:
        assert count(connection) == 0
    with pytest.raises(Misconfigured, match=r"may not do that: permission denied for table workers\. Let its owner"):
        works(guarded, "never")
    guarded.close()


@pytest.mark.parametrize(
    ("password", "database", "words"),
    [
        ("wr0ng:s3cret", None, f'password authentication failed for user "{GUARDED}"'),
        ("", None, "no password supplied"),
        (PASSWORD, "nowhere", 'database "nowhere" does not exist'),
        (PASSWORD, "nowhere?sslmode=require", "does not support SSL"),
        (PASSWORD, "nowhere?sslmode=s3cretly", "invalid sslmode value"),
        (PASSWORD, "nowhere?favourite=red", 'invalid connection option "favourite"'),
    ],
)
def test_who_is_not_let_in_is_told_what_to_check_and_no_password(
    postgres: PostgresServer, catalog: Catalog, password: str, database: str | None, words: str
) -> None:
    stranger = Catalog.open(as_guarded(postgres, catalog, password, database))
    with pytest.raises(Misconfigured, match=words) as refused, stranger.reading():
        pass
    for word in (password, quote(password, safe="")):
        assert not word or word not in told(refused.value)
    stranger.close()


def test_a_role_that_is_not_there_is_told(postgres: PostgresServer, catalog: Catalog) -> None:
    stranger = Catalog.open(str(catalog.engine.url).replace("postgres@", "nobody@"))
    with pytest.raises(Misconfigured, match=r'role "nobody" does not exist.*Check user, password and database'):
        migrate.require_current(stranger)
    stranger.close()


@pytest.mark.parametrize("where", ["127.0.0.1:1", "nowhere.invalid"])
def test_where_nobody_listens_is_an_outage_and_no_mistake_of_ours(where: str) -> None:
    """A server that is being started, or a name that is being moved, looks the same."""
    catalog = Catalog.open(f"postgresql+psycopg://me:s3cret@{where}/name")
    with pytest.raises(Unavailable, match=r"does not answer.*(refused|resolve)") as refused, catalog.reading():
        pass
    assert "s3cret" not in told(refused.value)
    catalog.close()


def test_a_server_that_is_restarted_is_told_of_once_and_the_process_goes_on(
    lone: PostgresServer, on_lone: Catalog
) -> None:
    assert works(on_lone, "before")
    lone.stop()
    with pytest.raises(Unavailable, match=r"does not answer.*refused.*Try the same again"):
        works(on_lone, "meanwhile")
    lone.start()
    assert works(on_lone, "meanwhile")
    lone.kill()
    lone.start()
    assert works(on_lone, "after a crash")
    with on_lone.reading() as connection:
        assert count(connection) == 3


def is_alive(pid: int) -> bool:
    """Whether a process goes on. One that has ended stays listed where nobody asks what it ended with."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except FileNotFoundError:
        return False


@pytest.mark.skipif(
    sys.platform != "linux", reason="Only Linux tells here whether the process of a connection has ended."
)
def test_a_server_that_ends_during_a_transaction_took_nothing_of_it(lone: PostgresServer, on_lone: Catalog) -> None:
    def lost(connection: Connection) -> None:
        add(connection, "lost")
        served_by = connection.scalar(text("SELECT pg_backend_pid()"))
        lone.kill()
        # It notices that the server is gone, and might answer once more until then.
        while is_alive(served_by):
            time.sleep(0.01)
        add(connection, "never sent")

    with pytest.raises(Unavailable, match="does not answer") as told_of:
        write(on_lone, lost)
    assert not isinstance(told_of.value, OutcomeUnknown)
    lone.start()
    with on_lone.reading() as connection:
        assert count(connection) == 0


def test_a_connection_that_an_operator_ended_is_told_and_replaced(catalog: Catalog, postgres: PostgresServer) -> None:
    def ended(connection: Connection) -> None:
        end(postgres, connection)
        add(connection, "never")

    with pytest.raises(Unavailable, match="terminating connection due to administrator command"):
        write(catalog, ended)
    assert works(catalog, "next")


def end(server: PostgresServer, connection: Connection) -> None:
    """End a connection from outside, as an operator does."""
    server.execute(f"SELECT pg_terminate_backend({backend(connection)}, 5000)")


def test_a_reader_whose_connection_ended_is_told_and_replaced(catalog: Catalog, postgres: PostgresServer) -> None:
    def read() -> None:
        with catalog.reading() as connection:
            end(postgres, connection)
            count(connection)

    with pytest.raises(Unavailable, match="terminating connection"):
        read()
    assert works(catalog, "next")


def test_a_connection_that_is_lost_at_the_commit_leaves_it_open_what_happened(
    catalog: Catalog, postgres: PostgresServer
) -> None:
    def lost_at_the_end(connection: Connection) -> None:
        add(connection, "perhaps")
        end(postgres, connection)

    with pytest.raises(OutcomeUnknown, match=r"not known whether the change took effect.*same key"):
        write(catalog, lost_at_the_end)
    assert works(catalog, "next")


def test_a_commit_that_is_refused_is_known_to_have_done_nothing(catalog: Catalog) -> None:
    """A rule that is checked at the end, as a full disk would be."""
    with catalog.writing() as connection:
        connection.execute(
            text("ALTER TABLE workers ADD CONSTRAINT late UNIQUE (tzdata) DEFERRABLE INITIALLY DEFERRED")
        )
    with pytest.raises(IntegrityError, match="late"):
        write(catalog, lambda connection: [add(connection, name) for name in "ab"])
    with catalog.reading() as connection:
        assert count(connection) == 0


def test_a_full_disk_is_an_outage_that_took_nothing(catalog: Catalog) -> None:
    """Raised by the server itself, with the code that it has for a full disk."""
    full = "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE disk_full; END $$"
    with catalog.writing() as connection:
        connection.execute(text(full))
        connection.execute(text("CREATE TRIGGER full_disk BEFORE INSERT ON workers EXECUTE FUNCTION full_disk()"))
    with pytest.raises(Unavailable, match="does not answer: disk_full"):
        works(catalog, "never")


def test_a_database_that_takes_no_changes_is_tried_again_and_elsewhere(
    catalog: Catalog, postgres: PostgresServer
) -> None:
    """As after a failover, for whoever is still connected to the server that became a standby."""
    name = catalog.engine.url.database
    postgres.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with pytest.raises(Unavailable, match="takes no changes now"):
        works(catalog, "never")
    postgres.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    assert works(catalog, "now")


def test_migrations_wait_for_one_another_longer_than_anything_else(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "BUSY_TIMEOUT_SECONDS", PATIENCE)
    first, second = Catalog.open(url), Catalog.open(url)
    with first.writing() as connection:
        migrate._take_turns(connection)
        waiting = threading.Thread(target=migrate.upgrade, args=(second,))
        waiting.start()
        for _ in range(4):
            time.sleep(PATIENCE / 2)
            count(connection)  # so that it is not taken for a process that stopped
        assert waiting.is_alive()
    waiting.join(10)
    assert not waiting.is_alive()
    migrate.require_current(second)
    first.close()
    second.close()
