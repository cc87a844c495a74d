"""Schedules that are due at instants of the benchmark's choice: published, enabled and paused as anybody would.

One that is due once is due every day at one second of the day, so that it is due once while something is measured.
One that is due more often is due every second, from its first to its last instant.
"""

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, func, select

from benchmarks.stamping_agent import Stamping
from horarium.authority.asking import Content
from horarium.catalog.tables import entries, schedules
from horarium.control import stepping
from horarium.control.activation import Reviewed, enable, pause
from horarium.control.publication import publish
from horarium.errors import Conflict
from horarium.schedule.identity import ActivationKey, RunKey, Scope, instant_text, schedule_key
from horarium.schedule.plan import plan

AGENT: Final = f"{Stamping.name}@{Stamping.version}"
INPUT: Final = "nothing"
OUTPUT_TARGET: Final = "reports"
WINDOW: Final = timedelta(minutes=10)
"""The catch-up window, which no start comes near: what is late is to be measured, and not missed."""
Instants = tuple[datetime, ...]
"""When one schedule is due: once, or in consecutive seconds."""
_BY: Final = "bench"
_ALWAYS: Final = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2199, 12, 31, tzinfo=UTC))


def now() -> datetime:
    """This machine's time, which is that of every process of a benchmark."""
    return datetime.now(UTC)


def enable_all(
    connection: Connection, scope: Scope, configurations: Sequence[Mapping[str, Any]], content: Content
) -> list[ActivationKey]:
    """Publish and enable a schedule of each. Raises `Unavailable` while a worker's heartbeat is missing."""
    found = []
    for each in configurations:
        key = schedule_key(scope, str(uuid.uuid4()))
        publish(connection, key, each, expected_revision=0, by=_BY, now=now())
        found.append(enable(connection, key, Reviewed(), content, by=_BY, now=now()).key)
    return found


def pause_all(connection: Connection, keys: Sequence[ActivationKey]) -> None:
    """Pause schedules, except those that have ended by themselves."""
    for key in keys:
        with suppress(Conflict):
            pause(connection, key.schedule, Reviewed(), by=_BY, now=now())


def stage(connection: Connection, key: ActivationKey, due: datetime) -> RunKey:
    """Stage the run of an instant, by the very step that a schedule's workflow takes shortly before it.

    Nobody starts it: that is left to whoever called this. Whatever else is due until then is staged too, and a run that was
    staged before is left as it is.
    """
    run = RunKey(activation=key, nominal_time=due)
    at = now()
    facts = stepping.gather(connection, key, now=at, lead=max(due - at, timedelta(0))).facts
    if facts is not None and facts.accounted_through < due:
        status = stepping.commit(connection, key, plan(facts), now=at, attended_until=None).status
        assert status is stepping.Status.DONE, "on SQLite nobody writes between the two"
    return run


def open_entries(connection: Connection, scope: Scope) -> int:
    """How many due instants of an environment have no answer yet."""
    query = select(func.count()).select_from(entries.join(schedules, schedules.c.id == entries.c.schedule))
    within = (schedules.c.org_id == scope.org_id, schedules.c.environment_id == scope.environment_id)
    return connection.execute(query.where(*within, entries.c.closed_at.is_(None))).scalar_one()


def answers(connection: Connection, keys: Sequence[ActivationKey]) -> Counter[str]:
    """What the ledger says of these schedules: how often each disposition, with its reason."""
    ids = [key.schedule.schedule_id for key in keys]
    query = (
        select(entries.c.disposition, entries.c.reason)
        .join(schedules, schedules.c.id == entries.c.schedule)
        .where(schedules.c.schedule_id.in_(ids))
    )
    return Counter(" ".join(filter(None, row)) for row in connection.execute(query))


def configuration(*instants: datetime) -> dict[str, Any]:
    """A schedule that is due at these instants: one, or several of which each is a second after the one before."""
    bounds = (instants[0], instants[-1]) if len(instants) > 1 else _ALWAYS
    return {
        "name": f"from {instants[0]:%H:%M:%S} to {instants[-1]:%H:%M:%S}",
        "calendar": {
            "timezone": "Etc/UTC",
            "calendars": [_every_day(instants[0])] if len(instants) == 1 else [],
            "intervals": [{"every_seconds": 1, "offset_seconds": 0}] if len(instants) > 1 else [],
            "start_at": instant_text(bounds[0]),
            "end_at": instant_text(bounds[1]),
        },
        "policy": {
            "overlap": "skip" if len(instants) == 1 else "allow",
            "catchup_window_seconds": int(WINDOW.total_seconds()),
            "pause_on_failure": False,
        },
        "run": {
            "agent_version": AGENT,
            "input": INPUT,
            "output_target": OUTPUT_TARGET,
            "grants": [],
            "budget_id": None,
            "usage_class": "test_simulation",
        },
    }


def _every_day(instant: datetime) -> dict[str, Any]:
    fields = {"second": instant.second, "minute": instant.minute, "hour": instant.hour}
    return {
        **{name: [{"start": value, "end": value, "step": 1}] for name, value in fields.items()},
        "day_of_month": [{"start": 1, "end": 31, "step": 1}],
        "month": [{"start": 1, "end": 12, "step": 1}],
        "day_of_week": [{"start": 0, "end": 6, "step": 1}],
    }
