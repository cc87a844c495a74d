"""Questions about the ledger and its runs. What changes them is in `ledger_changes`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    CompoundSelect,
    Connection,
    RowMapping,
    bindparam,
    func,
    literal_column,
    select,
    union,
)

from horarium.catalog.joined import taken_apart
from horarium.catalog.schedules import Schedule
from horarium.catalog.tables import entries, runs, schedules
from horarium.schedule.identity import ActivationKey, RunKey, ScheduleKey
from horarium.schedule.ledger import BY_CALENDAR, HOLDING, Disposition, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One ledger entry: a due instant or a span of them, a manual run included."""

    row: int
    generation: int
    trigger: str
    first_at: datetime
    last_at: datetime
    count: int
    disposition: Disposition
    reason: Reason | None
    held_since: datetime | None
    closed_at: datetime | None

    def run_key(self, schedule: ScheduleKey) -> RunKey:
        """The run of this entry."""
        activation = ActivationKey(schedule=schedule, generation=self.generation)
        return RunKey(activation=activation, nominal_time=self.first_at, trigger=self.trigger)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is known of a run beside its entry. `owner` is the workflow execution that was given the decision."""

    run_id: str
    entry: int
    workflow_id: str
    triggered_by: str | None
    buffered: bool
    window_from: datetime
    owner: str | None
    decision: str | None
    decided_at: datetime | None
    evidence: dict[str, Any] | None
    agent_version: str | None
    begun_at: datetime | None
    token_hash: str | None
    destination: str | None
    dispatch_sent: datetime | None
    token_nonce: str | None
    input_refused: str | None
    ended_at: datetime | None
    summary: str | None
    outputs: list[str] | None
    cost: int | None
    start_event: str | None
    event_data: dict[str, Any] | None

    @property
    def gateway(self) -> str | None:
        """What its decision says that it goes by; None before it, and of runs that were refused."""
        way = (self.evidence or {}).get("dispatch")
        return way.get("gateway") if isinstance(way, dict) else None


RUNS_AT_ONCE = 500
"""Runs that one question names: the databases take so many parameters and no more."""


def open_entries(connection: Connection, schedule: Schedule) -> Sequence[Entry]:
    """All entries of a schedule without an answer yet, of every generation and trigger, earliest first."""
    return [entry_of_row(row) for row in connection.execute(_OPEN, {"schedule": schedule.row}).mappings()]


def count_holding(connection: Connection, schedule: Schedule) -> int:
    """How many slots of the schedule are taken."""
    return connection.execute(_COUNT_HOLDING, {"schedule": schedule.row}).scalar_one()


def holds_closed_since(connection: Connection, schedule: Schedule, since: datetime) -> Sequence[Entry]:
    """The entries that held a slot until some time after `since`."""
    of = {"schedule": schedule.row, "since": since}
    return [entry_of_row(row) for row in connection.execute(_HELD_UNTIL_AFTER, of).mappings()]


def find_entry(connection: Connection, schedule: Schedule, key: RunKey) -> Entry | None:
    """The entry of a run, or None where it was withdrawn or never was."""
    found = find_entry_and_run(connection, schedule, key)
    return None if found is None else found[0]


def find_entry_and_run(connection: Connection, schedule: Schedule, key: RunKey) -> tuple[Entry, Run | None] | None:
    """The entry of a run with what is known of the run, or None where it was withdrawn or never was."""
    of = {
        "schedule": schedule.row,
        "first_at": key.nominal_time,
        "trigger": key.trigger,
        "generation": key.activation.generation,
    }
    row = connection.execute(_ENTRY_AND_RUN, of).one_or_none()
    if row is None:
        return None
    entry, run = taken_apart(row, _ENTRY_TABLES)
    return entry_of_row(entry), None if run["run_id"] is None else run_of_row(run)


def find_run(connection: Connection, run_id: str) -> Run | None:
    """A run by its id, or None."""
    row = connection.execute(_RUN, {"run_id": run_id}).mappings().one_or_none()
    return None if row is None else run_of_row(row)


def run_key_of(connection: Connection, run_id: str) -> RunKey | None:
    """Of which schedule and instant a run is, by its id; None where there is none."""
    row = connection.execute(_KEY_OF_RUN, {"run_id": run_id}).one_or_none()
    if row is None:
        return None
    key = ScheduleKey(org_id=row.org_id, environment_id=row.environment_id, schedule_id=row.schedule_id)
    activation = ActivationKey(schedule=key, generation=row.generation)
    return RunKey(activation=activation, nominal_time=row.first_at, trigger=row.trigger)


def newest_closed(connection: Connection, of: Collection[Schedule]) -> dict[int, Entry]:
    """Of each of these schedules what was closed last, by the schedule's row; nothing of one whose ledger is empty or open."""
    mine = entries.alias()
    newest = (
        select(mine.c.id)
        .where(mine.c.schedule == schedules.c.id, mine.c.closed_at.is_not(None))
        .order_by(mine.c.closed_at.desc(), mine.c.first_at.desc())
        .limit(1)
        .correlate(schedules)
        .scalar_subquery()
    )
    rows = [schedule.row for schedule in of]
    query = select(entries).select_from(schedules.join(entries, entries.c.id == newest)).where(schedules.c.id.in_(rows))
    return {row["schedule"]: entry_of_row(row) for row in connection.execute(query).mappings()}


def decision_times(connection: Connection, of: Sequence[Entry]) -> dict[int, datetime]:
    """When the runs of some entries were decided, by the entry's row; nothing of one that is not decided yet."""
    rows = [each.row for each in of]
    decided: dict[int, datetime] = {}
    for begin in range(0, len(rows), RUNS_AT_ONCE):
        some = rows[begin : begin + RUNS_AT_ONCE]
        query = select(runs.c.entry, runs.c.decided_at).where(runs.c.entry.in_(some), runs.c.decided_at.is_not(None))
        decided.update((row.entry, row.decided_at) for row in connection.execute(query))
    return decided


def entry_of(connection: Connection, run: Run) -> Entry | None:
    """The ledger entry of a run."""
    row = connection.execute(select(entries).where(entries.c.id == run.entry)).mappings().one_or_none()
    return None if row is None else entry_of_row(row)


def latest_decided(connection: Connection, schedule: Schedule, generation: int) -> datetime | None:
    """The latest nominal time of an activation that has been decided; staged and waiting instants have not."""
    query = select(func.max(entries.c.last_at)).where(
        entries.c.schedule == schedule.row,
        entries.c.generation == generation,
        entries.c.trigger == BY_CALENDAR,
        entries.c.disposition.not_in([Disposition.STAGED, Disposition.BUFFERED]),
    )
    latest: datetime | None = connection.execute(query).scalar_one()
    return latest


def previous_success(connection: Connection, schedule: Schedule, before: datetime) -> datetime | None:
    """The nominal time of the last run that succeeded before an instant."""
    of = {"schedule": schedule.row, "before": before}
    latest: datetime | None = connection.execute(_PREVIOUS_SUCCESS, of).scalar_one()
    return latest


def list_entries(
    connection: Connection,
    schedule: Schedule,
    *,
    generation: int | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    dispositions: Sequence[Disposition] = (),
    touched_since: datetime | None = None,
    newest_first: bool = False,
    limit: int | None = None,
) -> Sequence[tuple[Entry, Run | None]]:
    """A schedule's ledger, by nominal time, each entry with its run where it has one.

    `touched_since` leaves those that are open, and those that were closed or extended at that instant or later.
    """
    order = entries.c.first_at.desc() if newest_first else entries.c.first_at
    query = (
        select(entries, *(column.label(f"run_{column.name}") for column in runs.c))
        .select_from(entries.outerjoin(runs, runs.c.entry == entries.c.id))
        .order_by(order, entries.c.id)
    )
    if touched_since is None:
        query = query.where(entries.c.schedule == schedule.row)
    else:
        query = query.where(entries.c.id.in_(_touched(schedule, touched_since)))
    if generation is not None:
        query = query.where(entries.c.generation == generation)
    if since is not None:
        # The last calendar entry that begins before it is the only one that may reach into it.
        reaching = (
            select(func.max(entries.c.first_at))
            .where(entries.c.schedule == schedule.row, entries.c.first_at < since, entries.c.trigger == BY_CALENDAR)
            .scalar_subquery()
        )
        query = query.where(entries.c.first_at >= func.coalesce(reaching, since), entries.c.last_at >= since)
    if until is not None:
        query = query.where(entries.c.first_at <= until)
    if dispositions:
        query = query.where(entries.c.disposition.in_(list(dispositions)))
    if limit is not None:
        query = query.limit(limit)
    rows = connection.execute(query).mappings()
    return [(entry_of_row(row), run_of_row(row, prefix="run_") if row["run_run_id"] else None) for row in rows]


def entry_of_row(row: RowMapping | Mapping[str, Any]) -> Entry:
    """An entry, from a row with the columns of `entries`."""
    return Entry(
        row=row["id"],
        generation=row["generation"],
        trigger=row["trigger"],
        first_at=row["first_at"],
        last_at=row["last_at"],
        count=row["count"],
        disposition=Disposition(row["disposition"]),
        reason=None if row["reason"] is None else Reason(row["reason"]),
        held_since=row["held_since"],
        closed_at=row["closed_at"],
    )


def run_of_row(row: RowMapping | Mapping[str, Any], *, prefix: str = "") -> Run:
    """A run, from a row with the columns of `runs`, each name behind `prefix`."""
    return Run(
        **{
            name: row[prefix + name]
            for name in (
                "run_id",
                "entry",
                "workflow_id",
                "triggered_by",
                "buffered",
                "window_from",
                "owner",
                "decision",
                "decided_at",
                "evidence",
                "agent_version",
                "begun_at",
                "token_hash",
                "destination",
                "dispatch_sent",
                "token_nonce",
                "input_refused",
                "ended_at",
                "summary",
                "outputs",
                "cost",
                "start_event",
                "event_data",
            )
        }
    )


def _touched(schedule: Schedule, since: datetime) -> CompoundSelect[tuple[int]]:
    """The keys of the entries that are open, or were closed at that instant or later: two questions, an index for each."""
    mine = select(entries.c.id).where(entries.c.schedule == schedule.row)
    return union(mine.where(entries.c.closed_at.is_(None)), mine.where(entries.c.closed_at >= since))


# What an occurrence asks, made once (see `horarium.catalog.schedules.OF_A_GENERATION`).
_MINE = entries.c.schedule == bindparam("schedule")
_IS_OPEN = entries.c.closed_at.is_(None)
_OPEN = select(entries).where(_MINE, _IS_OPEN).order_by(entries.c.first_at, entries.c.id)
_COUNT_HOLDING = (
    select(func.count()).select_from(entries).where(_MINE, _IS_OPEN, entries.c.disposition.in_(sorted(HOLDING)))
)
_HELD_UNTIL_AFTER = select(entries).where(
    _MINE, entries.c.closed_at > bindparam("since"), entries.c.held_since.is_not(None)
)
_ENTRY_TABLES = (entries, runs)
_ENTRY_AND_RUN = (
    select(*_ENTRY_TABLES)
    .select_from(entries.outerjoin(runs, runs.c.entry == entries.c.id))
    .where(_MINE, *(entries.c[name] == bindparam(name) for name in ("first_at", "trigger", "generation")))
)
_KEY_OF_RUN = (
    select(
        schedules.c.org_id,
        schedules.c.environment_id,
        schedules.c.schedule_id,
        entries.c.generation,
        entries.c.first_at,
        entries.c.trigger,
    )
    .select_from(runs.join(entries, runs.c.entry == entries.c.id).join(schedules, entries.c.schedule == schedules.c.id))
    .where(runs.c.run_id == bindparam("run_id"))
)
_RUN = select(runs).where(runs.c.run_id == bindparam("run_id"))
_PREVIOUS_SUCCESS = select(func.max(entries.c.first_at)).where(
    _MINE,
    entries.c.first_at < bindparam("before"),
    # Written out, since a parameter would hide from the planner that the index of successes is meant.
    entries.c.disposition == literal_column("'succeeded'"),
)
