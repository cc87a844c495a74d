"""Catalogs that are large in one way: many schedules, many versions of one, or a long ledger of one."""

import hashlib
import random
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, insert, select, update

from benchmarks.stored_schedules import SCOPE, Empty, Stored, configuration, store
from horarium.catalog import Catalog
from horarium.catalog.schedules import require_schedule
from horarium.catalog.tables import activations, entries, runs, schedules, versions
from horarium.schedule.identity import ActivationKey, RunKey, schedule_key
from horarium.schedule.ledger import BY_CALENDAR, Disposition

OTHERS = 50
"""Schedules beside the one that is large: a page of them can be read."""
_ROWS_AT_ONCE = 5_000
_EVIDENCE = MappingProxyType({"facts": {}, "version": {"revision": 1}})

Fill = Callable[[Empty, Path, int], Stored]
"""Makes a catalog of that size in a folder."""


def many_schedules(url: Empty, folder: Path, size: int) -> Stored:
    """So many schedules, all enabled, each with one version and an empty ledger."""
    return store(url(folder), size)


def many_versions(url: Empty, folder: Path, size: int) -> Stored:
    """One schedule with so many versions, of which the last one is enabled, among a few others."""
    return _large(url, folder, size, _add_versions)


def long_ledger(url: Empty, folder: Path, size: int) -> Stored:
    """One schedule with so many runs in its ledger, all of which succeeded, among a few others."""
    return _large(url, folder, size, _add_runs)


def _large(url: Empty, folder: Path, size: int, fill: Callable[[Connection, str, range], None]) -> Stored:
    few = store(url(folder), OTHERS)
    large = few.ids[random.Random(size).randrange(OTHERS)]
    catalog = Catalog.open(few.url)
    try:
        for start in range(0, size, _ROWS_AT_ONCE):
            with catalog.writing() as connection:
                fill(connection, large, range(start, min(start + _ROWS_AT_ONCE, size)))
        _count_rows(catalog)
    finally:
        catalog.close()
    return Stored(url=few.url, ids=(large,))


def _add_versions(connection: Connection, schedule_id: str, numbers: range) -> None:
    row = require_schedule(connection, schedule_key(SCOPE, schedule_id)).row
    first = connection.execute(select(versions).where(versions.c.schedule == row, versions.c.revision == 1)).mappings()
    whole = {name: value for name, value in first.one().items() if name != "id"}
    # The canonical form of one document, changed in its name alone: to write 100,000 of them would take a minute.
    name = configuration(0)["name"]
    model = whole["configuration"].replace(_quoted_name(whole["configuration"]), f'"{name}"', 1)
    added = [_version(whole, model.replace(f'"{name}"', f'"Version {n + 2}"', 1), n + 2) for n in numbers]
    connection.execute(insert(versions), added)
    last = numbers[-1] + 2
    connection.execute(update(schedules).where(schedules.c.id == row).values(head_revision=last))
    connection.execute(update(activations).where(activations.c.schedule == row).values(revision=last))


def _version(whole: Mapping[str, Any], text: str, revision: int) -> dict[str, Any]:
    return {
        **whole,
        "revision": revision,
        "resource_id": str(uuid.uuid4()),
        "digest": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}",
        "configuration": text,
    }


def _quoted_name(text: str) -> str:
    return text[text.index('"name":') + len('"name":') :].split(",", 1)[0].rstrip("}")


def _add_runs(connection: Connection, schedule_id: str, numbers: range) -> None:
    """A run a minute, each as it is when it has ended, from the enabling backwards."""
    schedule = require_schedule(connection, schedule_key(SCOPE, schedule_id))
    activated = connection.execute(
        select(activations.c.activated_at).where(activations.c.schedule == schedule.row)
    ).scalar_one()
    latest = activated.replace(second=0, microsecond=0)
    key = ActivationKey(schedule=schedule.key, generation=1)
    keys = [RunKey(activation=key, nominal_time=latest - timedelta(minutes=number)) for number in numbers]
    connection.execute(insert(entries), [_entry(schedule.row, each.nominal_time) for each in keys])
    found = select(entries.c.first_at, entries.c.id).where(
        entries.c.schedule == schedule.row, entries.c.first_at.between(keys[-1].nominal_time, keys[0].nominal_time)
    )
    rows = {row.first_at: row.id for row in connection.execute(found)}
    connection.execute(insert(runs), [_run(each, rows[each.nominal_time]) for each in keys])


def _entry(schedule: int, at: datetime) -> dict[str, Any]:
    return {
        "schedule": schedule,
        "generation": 1,
        "trigger": BY_CALENDAR,
        "first_at": at,
        "last_at": at,
        "count": 1,
        "disposition": Disposition.SUCCEEDED,
        "held_since": at - timedelta(seconds=4),
        "closed_at": at + timedelta(seconds=1),
    }


def _run(key: RunKey, entry: int) -> dict[str, Any]:
    at = key.nominal_time
    return {
        "run_id": key.run_id,
        "entry": entry,
        "workflow_id": key.workflow_id,
        "buffered": False,
        "window_from": at,
        "owner": str(uuid.uuid4()),
        "decision": "admitted",
        "decided_at": at,
        "evidence": dict(_EVIDENCE),
        "agent_version": "worked@1",
        "begun_at": at,
        "ended_at": at + timedelta(seconds=1),
        "summary": "done",
        "outputs": [],
    }


def _count_rows(catalog: Catalog) -> None:
    """Let the planner know what is there, as the database does by itself in time."""
    if catalog.engine.dialect.name != "postgresql":
        with catalog.writing() as connection:
            connection.exec_driver_sql("ANALYZE")
        return
    with catalog.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("SET statement_timeout = 0")
        connection.exec_driver_sql("VACUUM ANALYZE")
        connection.exec_driver_sql("CHECKPOINT")
        connection.invalidate()  # with what was set for it


FILLS: Mapping[str, Fill] = MappingProxyType(
    {"schedules": many_schedules, "versions": many_versions, "ledger rows": long_ledger}
)
"""What a catalog can be full of, by name."""
