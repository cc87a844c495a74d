"""What migrations make is what the tables say, and a process works with its own release's form only."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    DateTime,
    Integer,
    MetaData,
    insert,
    inspect,
    select,
    text,
)

from horarium.catalog import Catalog, ledger, migrate
from horarium.catalog.environments import require_environment
from horarium.catalog.notification_tables import expected
from horarium.catalog.presence import find_agent, find_agents, list_classes, versions_of
from horarium.catalog.tables import declared, metadata
from horarium.control.seals import seal_due, verify_seals
from horarium.errors import Misconfigured
from horarium.schedule.identity import Scope
from tests.postgres.databases import Database


@pytest.fixture
def catalog(database: Database, tmp_path: Path) -> Iterator[Catalog]:
    with database.empty(tmp_path) as url:
        opened = Catalog.open(url)
        yield opened
        opened.close()


def test_the_migrations_make_exactly_the_tables(catalog: Catalog, database: Database, tmp_path: Path) -> None:
    """Alembic compares what it can; the rest (partial indexes, keys, defaults) is compared as the database keeps it."""
    migrate.upgrade(catalog)
    with catalog.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, metadata) == []
        migrated = written_down(connection)
    (tmp_path / "direct").mkdir()
    with database.empty(tmp_path / "direct") as url:
        direct = Catalog.open(url)
        with direct.writing() as connection:
            metadata.create_all(connection)
            assert migrated == written_down(connection)
        direct.close()


def written_down(connection: Connection) -> dict[str, list[str]]:
    """The words of each statement, in no order: constraints are told in any."""
    query = {"sqlite": WRITTEN_BY_SQLITE, "postgresql": WRITTEN_BY_POSTGRESQL}[connection.dialect.name]
    found = {name: sorted(re.findall(r"\w+|[^\s\w]", sql)) for name, sql in connection.execute(text(query))}
    return {name: words for name, words in found.items() if "alembic_version" not in name}


WRITTEN_BY_SQLITE = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"
WRITTEN_BY_POSTGRESQL = """
    SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL
    SELECT conrelid::regclass || '.' || conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace
    UNION ALL
    SELECT table_name || '.' || column_name, concat_ws(' ', data_type, character_maximum_length, is_nullable, column_default)
    FROM information_schema.columns WHERE table_schema = 'public'
"""
"""PostgreSQL keeps no statements, so what it tells of indexes, constraints and columns."""


def test_upgrading_twice_changes_nothing(catalog: Catalog) -> None:
    migrate.upgrade(catalog)
    migrate.upgrade(catalog)
    migrate.require_current(catalog)
    with catalog.reading() as connection:
        assert set(inspect(connection).get_table_names()) == {*metadata.tables, "alembic_version"}


def test_a_catalog_of_the_first_release_keeps_what_it_holds_and_is_sealed_from_its_beginning(catalog: Catalog) -> None:
    upgrade_to(catalog, "0001")
    noon, schedule = datetime(2026, 11, 30, 12, tzinfo=UTC), "7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11"
    then = MetaData()
    rows: dict[str, list[dict[str, Any]]] = {
        "environments": [
            {"org_id": "acme", "environment_id": "test", "mode": "simulation", "authority_epoch": 4}
            | {"reset_generation": 2, "runtime_profile": "embedded"}
        ],
        "schedules": [
            {"id": 1, "org_id": "acme", "environment_id": "test", "schedule_id": schedule, "contract": "schedules"}
            | {"head_revision": 1, "generation": 1, "created_at": noon, "unobserved": False}
        ],
        "audit_events": [
            {"id": number, "schedule": 1, "kind": kind, "at": noon, "actor": "ada", "details": {"digest": "sha256:0"}}
            for number, kind in ((1, "published"), (2, "enabled"))
        ],
        "entries": [
            {"id": 1, "schedule": 1, "generation": 1, "trigger": "schedule", "first_at": noon, "last_at": noon}
            | {"count": 1, "disposition": "staged", "held_since": noon}
        ],
        "runs": [{"run_id": "r", "entry": 1, "workflow_id": "run/r", "buffered": False, "window_from": noon}],
        "agents": [
            {"org_id": "acme", "environment_id": "test", "agent_version": "a@1", "discovery": {"agent_class": "A"}}
            | {"lifecycle": "ready", "lease_until": noon, "seen_at": noon}
        ],
    }
    with catalog.writing() as connection:
        then.reflect(connection)
        for table, values in rows.items():
            connection.execute(insert(then.tables[table]), values)
    migrate.upgrade(catalog)
    migrate.require_current(catalog)
    scope, at = Scope(org_id="acme", environment_id="test"), datetime(2026, 12, 24, tzinfo=UTC)
    with catalog.writing() as connection:
        environment = require_environment(connection, scope)
        assert (environment.authority_epoch, environment.reset_generation) == (4, 2)
        run = ledger.find_run(connection, "r")
        assert run is not None
        assert run.triggered_by is None
        agent = find_agent(connection, scope, "a@1")
        assert agent is not None
        assert (agent.registered_at, agent.discovery) == (noon, {"agent_class": "A"})
        sealed = seal_due(connection, scope, now=at)
        assert sealed is not None
        assert (sealed.count, sealed.first_event, sealed.last_event) == (2, 1, 2)
        assert verify_seals(connection, scope).faults == ()


def test_what_runners_had_reported_is_found_by_its_class_whatever_lies_beside_it(catalog: Catalog) -> None:
    upgrade_to(catalog, "0005")
    told = {
        "good@1": json.dumps({"agent_class": "Good", "description": "Does good.\x00"}),
        "half@1": json.dumps({"agent_class": "Half", "description": "Half a character: \ud800"}),
        "none@1": "{}",
        "odd@1": json.dumps({"agent_class": "not a name", "description": 5}),
        "long@1": json.dumps({"agent_class": "L" * 201}),
        "list@1": "[]",
    }
    if catalog.engine.dialect.name == "sqlite":
        told |= {"broken@1": "{", "deep@1": "[" * 100_000}
    statement = text(
        "INSERT INTO agents (org_id, environment_id, agent_version, discovery, lifecycle, lease_until, seen_at) "
        f"VALUES ('acme', 'test', :name, {'CAST(:told AS json)' if catalog.engine.dialect.name != 'sqlite' else ':told'}, "
        "'ready', '2026-11-30 12:00:00', '2026-11-30 12:00:00')"
    )
    with catalog.writing() as connection:
        for name, each in told.items():
            connection.execute(statement, {"name": name, "told": each})
    migrate.upgrade(catalog)
    scope = Scope(org_id="acme", environment_id="test")
    with catalog.reading() as connection:
        assert list_classes(connection, scope, after=None, limit=10) == ["Good", "Half"]
        found = [(each.agent_version, each.description) for each in versions_of(connection, scope, ["Good", "Half"])]
        assert found == [("good@1", "Does good."), ("half@1", "Half a character: ?")]
        stored = find_agents(connection, scope, list(told))
    damaged = {"half@1", "list@1", "broken@1", "deep@1"}
    assert {name for name, each in stored.items() if each.fault} == told.keys() & damaged


def test_what_was_added_up_by_days_is_added_up_by_seconds_too_and_by_days_alone_again(catalog: Catalog) -> None:
    upgrade_to(catalog, "0006")
    then = MetaData()
    noon = datetime(2026, 11, 30, 12, tzinfo=UTC)
    days = [(noon.toordinal(), 750)]
    with catalog.writing() as connection:
        then.reflect(connection)
        stored = noon if connection.dialect.name == "postgresql" else noon.replace(tzinfo=None)
        kept = {name: plausible(column, connection) for name, column in then.tables["schedules"].columns.items()}
        connection.execute(insert(then.tables["schedules"]), kept)
        live = {name: plausible(column, connection) for name, column in then.tables["activations"].columns.items()}
        for row, (second, runs, ended_at) in enumerate(
            [(0, 720, None), (301, 30, None), (1, 5, noon), (2, None, None)]
        ):
            own = {"id": row, "generation": row, "changed_at": stored + timedelta(seconds=second)}
            ended = None if ended_at is None else stored
            connection.execute(
                insert(then.tables["activations"]), {**live, **own, "runs_per_month": runs, "ended_at": ended}
            )
        connection.execute(insert(then.tables["declared"]), [{"day": day, "runs": runs} for day, runs in days])
    migrate.upgrade(catalog)
    with catalog.reading() as connection:
        found = select(declared.c.span, declared.c.since, declared.c.runs).order_by(declared.c.span, declared.c.since)
        assert [tuple(row) for row in connection.execute(found)] == [
            (1, 43_200, 720),
            (1, 43_501, 30),
            (300, 43_200, 720),
            (300, 43_500, 30),
            (86_400, 0, 750),
        ]
    upgrade_to(catalog, "0006", change=command.downgrade)
    with catalog.reading() as connection:
        assert [tuple(row) for row in connection.execute(text("SELECT day, runs FROM declared"))] == days


def test_what_is_live_is_looked_at_for_a_success_that_is_overdue(catalog: Catalog) -> None:
    upgrade_to(catalog, "0006")
    then = MetaData()
    with catalog.writing() as connection:
        then.reflect(connection)
        stored = datetime(2026, 11, 30, 12, tzinfo=UTC)
        stored = stored if connection.dialect.name == "postgresql" else stored.replace(tzinfo=None)
        kept = {name: plausible(column, connection) for name, column in then.tables["schedules"].columns.items()}
        live = {name: plausible(column, connection) for name, column in then.tables["activations"].columns.items()}
        for row, ended_at in ((1, None), (2, stored)):
            connection.execute(insert(then.tables["schedules"]), {**kept, "id": row, "schedule_id": str(row)})
            own = {"id": row, "schedule": row, "activated_at": stored, "ended_at": ended_at}
            connection.execute(insert(then.tables["activations"]), {**live, **own})
    migrate.upgrade(catalog)
    with catalog.reading() as connection:
        found = connection.execute(select(expected.c.schedule, expected.c.look_at)).all()
    assert [tuple(row) for row in found] == [(1, datetime(2026, 11, 30, 12, tzinfo=UTC))]


def upgrade_to(catalog: Catalog, revision: str, *, change: Callable[[Config, str], None] = command.upgrade) -> None:
    """What `migrate.upgrade` does, as far as an older release's last revision."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrate.__file__).parent / "migrations"))
    with catalog.writing() as connection:
        config.attributes["connection"] = connection
        change(config, revision)


REVISIONS = [each.revision for each in ScriptDirectory.from_config(migrate._config()).walk_revisions()][:0:-1]
"""All that were ever a release's, but this one's own."""


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_catalog_of_any_release_keeps_a_row_of_each_table(catalog: Catalog, revision: str) -> None:
    upgrade_to(catalog, revision)
    then = MetaData()
    with catalog.writing() as connection:
        then.reflect(connection)
        tables = [table for table in then.sorted_tables if table.name != "alembic_version"]
        rows = {table: {column.name: plausible(column, connection) for column in table.columns} for table in tables}
        for table, row in rows.items():
            connection.execute(insert(table).values(row))
    migrate.upgrade(catalog)
    migrate.require_current(catalog)
    with catalog.reading() as connection:
        now = MetaData()
        now.reflect(connection)
        assert {table.name for table in rows} <= now.tables.keys()
        for table, row in rows.items():
            kept = connection.execute(select(now.tables[table.name])).mappings().one()
            assert {name: kept[name] for name in row if name in kept} == row


def plausible(column: Column[Any], connection: Connection) -> Any:
    """A value that the column takes, and that any release might have stored."""
    match column.type:
        case Boolean():
            return False
        case Integer():
            return 1
        case DateTime():
            noon = datetime(2026, 11, 30, 12, tzinfo=UTC)
            return noon if connection.dialect.name == "postgresql" else noon.replace(tzinfo=None)
        case JSON():
            return {"a": 1}
        case _:
            return "x"


def test_an_empty_database_is_not_current(catalog: Catalog) -> None:
    with pytest.raises(Misconfigured, match=r"at revision none, .*Run `horarium db upgrade`"):
        migrate.require_current(catalog)


def test_a_catalog_of_a_newer_release_is_left_to_it(catalog: Catalog) -> None:
    migrate.upgrade(catalog)
    with catalog.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(Misconfigured, match=r"at revision 9999, .*or use the release that wrote it"):
        migrate.require_current(catalog)
    with pytest.raises(Misconfigured, match="'9999', which this release does not know"):
        migrate.upgrade(catalog)
