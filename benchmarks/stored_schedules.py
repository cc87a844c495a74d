"""Catalogs that hold many schedules already, loaded by bulk insert, with everything that enabling asks for."""

import hashlib
import random
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, Table, func, insert, select

from horarium.catalog import Catalog, declared_sums, migrate, presence
from horarium.catalog.environments import ensure_environment
from horarium.catalog.schedules import require_schedule
from horarium.catalog.tables import activations, audit_events, runtime, schedules, versions
from horarium.control.activation import Reviewed, enable
from horarium.control.publication import publish
from horarium.schedule.identity import Scope, schedule_key
from tests.postgres.server import PostgresServer

Rows = Mapping[Table, Sequence[Mapping[str, Any]]]

SCOPE = Scope(org_id="acme", environment_id="test")
AGENT = "worked@1"
_FAR = datetime(2100, 1, 1, tzinfo=UTC)
_SCHEDULES_AT_ONCE = 5_000
_EVERY_DAY: Mapping[str, tuple[int, int]] = MappingProxyType(
    {"second": (0, 0), "day_of_month": (1, 31), "month": (1, 12), "day_of_week": (1, 5)}
)

Empty = Callable[[Path], str]
"""Gives the URL of an empty catalog, which may use that folder."""


@contextmanager
def _on_sqlite() -> Iterator[Empty]:
    yield lambda folder: f"sqlite:///{folder / 'catalog.db'}"


@contextmanager
def _on_postgresql() -> Iterator[Empty]:
    """A server for the time of the measurement, which waits for its disk as one in production does."""
    server = PostgresServer(durable=True, shared_buffers="256MB")
    try:
        server.start()
        yield lambda _folder: server.url(server.create_database())
    finally:
        server.remove()


Engines = Mapping[str, Callable[[], AbstractContextManager[Empty]]]
ENGINES: Engines = MappingProxyType({"SQLite": _on_sqlite, "PostgreSQL": _on_postgresql})
"""Where catalogs are measured, by name."""


class Contents:
    """Every input is readable and every output target is there."""

    def of(self, _scope: Scope) -> "Contents":
        """The same in every environment."""
        return self

    def has_input(self, _reference: str) -> bool:
        """Say yes."""
        return True

    def has_output_target(self, _target: str) -> bool:
        """Say yes."""
        return True

    def read_input(self, _reference: str) -> bytes:
        """An empty one."""
        return b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A catalog with so many schedules, all of them enabled at generation 1 and revision 1."""

    url: str
    ids: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many schedules were stored."""
        return len(self.ids)


def configuration(number: int) -> dict[str, Any]:
    """A configuration whose name, and so its digest, no other number has."""
    fields = {**_EVERY_DAY, "minute": (30, 30), "hour": (7, 7)}
    rule = {name: [{"start": start, "end": end, "step": 1}] for name, (start, end) in fields.items()}
    return {
        "name": _name(number),
        "calendar": {
            "timezone": "Europe/Zurich",
            "calendars": [rule],
            "intervals": [],
            "start_at": "2026-01-01T00:00:00Z",
            "end_at": "2099-12-31T23:59:59Z",
        },
        "policy": {"overlap": "skip", "catchup_window_seconds": 3_600, "pause_on_failure": True},
        "run": {
            "agent_version": AGENT,
            "input": "in",
            "output_target": "out",
            "grants": [],
            "budget_id": None,
            "usage_class": "test_simulation",
        },
    }


def store(url: str, count: int) -> Stored:
    """Make a catalog and load it. The same schedules every time, in no order of their ids."""
    chance = random.Random(count)
    ids = [str(uuid.UUID(int=chance.getrandbits(128), version=4)) for _ in range(count)]
    catalog = Catalog.open(url)
    try:
        migrate.upgrade(catalog)
        with catalog.writing() as connection:
            _populate(connection)
            first = _first(connection, ids[0])
        for start in range(1, count, _SCHEDULES_AT_ONCE):
            with catalog.writing() as connection:
                _copy(connection, first, start, ids[start : start + _SCHEDULES_AT_ONCE])
        _settle(catalog, first)
    finally:
        catalog.close()
    return Stored(url=url, ids=tuple(ids))


def _populate(connection: Connection) -> None:
    ensure_environment(connection, SCOPE, mode="simulation", runtime_profile="embedded")
    beat(connection)
    discovery = {"is_schedulable": True, "task_queue": "agents", "max_run_seconds": 60, "idempotent": False}
    presence.register_agent(connection, SCOPE, AGENT, discovery, lease_until=_FAR, now=datetime.now(UTC))


def beat(connection: Connection) -> None:
    """Let both runtime workers say that they are there; it holds for some seconds, and nothing is enabled without it."""
    for role in presence.ROLES:
        presence.beat(connection, instance=role, role=role, tzdata="2026.1", now=datetime.now(UTC))


def _first(connection: Connection, schedule_id: str) -> Rows:
    """Publish, enable and observe one schedule as it is really done, and give its rows."""
    key, now = schedule_key(SCOPE, schedule_id), datetime.now(UTC)
    publish(connection, key, configuration(0), expected_revision=0, by="ada", now=now)
    enable(connection, key, Reviewed(), Contents(), by="ada", now=now)
    row = require_schedule(connection, key).row
    presence.observe(connection, row, generation=1, state="active", reason=None, now=now)
    found = {}
    for table in (versions, activations, audit_events, runtime):
        rows = connection.execute(select(table).where(table.c.schedule == row)).mappings()
        found[table] = [{name: value for name, value in each.items() if name != "id"} for each in rows]
    whole = connection.execute(select(schedules).where(schedules.c.id == row)).mappings().one()
    return {schedules: [dict(whole)], **found}


def _copy(connection: Connection, first: Rows, start: int, ids: Sequence[str]) -> None:
    """Store more schedules like the first, each with a configuration of its own."""
    offset = first[schedules][0]["id"]
    numbers = range(start, start + len(ids))
    text = first[versions][0]["configuration"]
    own: dict[Table, list[dict[str, Any]]] = {
        schedules: [{"id": offset + n, "schedule_id": each} for n, each in zip(numbers, ids, strict=True)],
        versions: [_version(offset + n, n, each, text) for n, each in zip(numbers, ids, strict=True)],
    }
    for table, rows in first.items():
        others = own.get(table) or [{"schedule": offset + number} for number in numbers]
        connection.execute(insert(table), [{**row, **other} for other in others for row in rows])


def _settle(catalog: Catalog, first: Rows) -> None:
    """Count what is there, as the database does by itself in time; and number further rows behind those that were copied."""
    with catalog.writing() as connection:
        declared_sums.count_again(connection)
    if catalog.engine.dialect.name != "postgresql":
        with catalog.writing() as connection:
            connection.exec_driver_sql("ANALYZE")
        return
    with catalog.writing() as connection:
        for table in (each for each in first if "id" in each.c):
            highest = select(func.max(table.c.id)).scalar_subquery()
            connection.execute(select(func.setval(func.pg_get_serial_sequence(table.name, "id"), highest)))
    with catalog.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("SET statement_timeout = 0")
        connection.exec_driver_sql("VACUUM ANALYZE")
        connection.exec_driver_sql("CHECKPOINT")
        connection.invalidate()  # with what was set for it


def _version(row: int, number: int, schedule_id: str, text_of_first: str) -> dict[str, Any]:
    # To write 100,000 documents in canonical form one by one would take a minute.
    text = text_of_first.replace(_name(0), _name(number), 1)
    return {
        "schedule": row,
        "resource_id": str(uuid.uuid5(uuid.NAMESPACE_OID, schedule_id)),
        "digest": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}",
        "configuration": text,
    }


def _name(number: int) -> str:
    return f"Review {number}"
