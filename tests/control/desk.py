"""One schedule against a real catalog file and a clock that the test turns: Horarium without Temporal.

`Desk` publishes, enables and pauses as a person does. `Loop` does what `ScheduleWorkflow` does with the same functions, and
the desk's `started` is what Temporal would hold: the runs whose workflows were started.
"""

import itertools
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import event, update

from horarium.catalog import Catalog, ledger, ledger_changes, migrate, presence
from horarium.catalog.environments import ensure_environment
from horarium.catalog.schedules import Activation, find_activation, list_activations, require_schedule, require_version
from horarium.catalog.tables import workers
from horarium.control import activation, admission, running, stepping
from horarium.control.activation import Changed, Reviewed
from horarium.control.admission import Admission
from horarium.control.publication import Published, publish
from horarium.control.running import Outcome
from horarium.control.stepping import Committed, Gathered, Status
from horarium.schedule.identity import ActivationKey, RunKey, ScheduleKey, Scope, instant_text, schedule_key
from horarium.schedule.ledger import Disposition, Reason
from horarium.schedule.plan import Plan, plan

SCOPE = Scope(org_id="acme", environment_id="test")
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
FAR = datetime(2100, 1, 1, tzinfo=UTC)
AGENT = "worked@1"
LEAD = timedelta(seconds=4)
LOOK = timedelta(seconds=60)
LONGEST_LOOK = timedelta(minutes=10)

_numbers = itertools.count(1)


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def at(offset: float) -> datetime:
    """An instant, so many seconds after noon."""
    return NOON + timedelta(seconds=offset)


def offsets(instants: Sequence[datetime]) -> list[int]:
    return [round((instant - NOON).total_seconds()) for instant in instants]


def every(
    interval: int, *, overlap: str = "skip", window: int = 3600, runs: int | None = None, pause_on_failure: bool = False
) -> dict[str, Any]:
    """A configuration that is due each `interval` seconds, at noon too for an interval that divides half a day."""
    rules = [{"every_seconds": interval, "offset_seconds": 0}]
    return configuration(rules, overlap, window=window, runs=runs, failing=pause_on_failure)


def configuration(
    intervals: list[dict[str, int]],
    overlap: str,
    *,
    window: int = 3600,
    runs: int | None = None,
    failing: bool = False,
    end_at: datetime | None = None,
) -> dict[str, Any]:
    bounds = {"start_at": instant_text(NOON - timedelta(days=1)), "end_at": instant_text(end_at or FAR)}
    calendar: dict[str, Any] = {"timezone": "UTC", "calendars": [], "intervals": intervals, **bounds}
    policy: dict[str, Any] = {"overlap": overlap, "catchup_window_seconds": window, "pause_on_failure": failing}
    if runs is not None and overlap != "allow":
        policy["max_concurrent_runs"] = runs
    run = {
        "agent_version": AGENT,
        "input": "in",
        "output_target": "out",
        "grants": [],
        "budget_id": None,
        "usage_class": "test_simulation",
    }
    return {"name": "A schedule", "calendar": calendar, "policy": policy, "run": run}


@dataclass(slots=True)
class Shelf:
    """Contents that are there, or are not."""

    readable: bool = True
    writable: bool = True

    def of(self, _scope: Scope) -> "Shelf":
        return self

    def has_input(self, _reference: str) -> bool:
        return self.readable

    def has_output_target(self, _target: str) -> bool:
        return self.writable

    def read_input(self, reference: str) -> bytes:
        return f"the input {reference}".encode()


def open_catalog(folder: Path, *, durable: bool = False) -> Catalog:
    """A migrated catalog in a file, furnished as below. It need not survive a power cut."""
    catalog = open_undurable(f"sqlite:///{folder / 'catalog.sqlite'}", durable=durable)
    migrate.upgrade(catalog)
    furnish(catalog)
    return catalog


def open_undurable(url: str, *, durable: bool = False) -> Catalog:
    """A catalog at a URL, which need not survive a power cut."""
    catalog = Catalog.open(url)
    if not durable and catalog.engine.dialect.name == "sqlite":
        event.listen(catalog.engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous=OFF"))
    return catalog


def furnish(catalog: Catalog) -> None:
    """Put an environment, both workers and one agent into a migrated catalog."""
    with catalog.writing() as connection:
        ensure_environment(connection, SCOPE, mode="simulation", runtime_profile="embedded")
        for role in presence.ROLES:
            presence.beat(connection, instance=role, role=role, tzdata="2026.1", now=NOON)
        discovery = {"is_schedulable": True, "task_queue": "agents", "max_run_seconds": 60, "idempotent": False}
        presence.register_agent(connection, SCOPE, AGENT, discovery, lease_until=FAR, now=NOON)


class Desk:
    """One schedule of its own in a catalog."""

    def __init__(self, catalog: Catalog, *, now: datetime = NOON) -> None:
        self.catalog = catalog
        self.now = now
        self.key: ScheduleKey = schedule_key(SCOPE, str(uuid.UUID(int=next(_numbers))))
        self.content = Shelf()
        self.started: set[RunKey] = set()
        self.workers_beat = True

    def write(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        with self.catalog.writing() as connection:
            if self.workers_beat:
                # Those that are there live by the clock of this desk.
                there = workers.c.role.in_(presence.ROLES)
                connection.execute(update(workers).where(there).values(seen_at=self.now))
            return function(connection, *args, **kwargs)

    def read(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        with self.catalog.reading() as connection:
            return function(connection, *args, **kwargs)

    def publish(self, document: dict[str, Any], *, expected: int | None = None) -> Published:
        return self.write(publish, self.key, document, expected_revision=expected, by="ada", now=self.now)

    def enable(self, reviewed: Reviewed | None = None) -> Changed:
        return self.write(activation.enable, self.key, reviewed or Reviewed(), self.content, by="ada", now=self.now)

    def pause(self, reviewed: Reviewed | None = None) -> Changed:
        return self.write(activation.pause, self.key, reviewed or Reviewed(), by="ada", now=self.now)

    def retire(self, reviewed: Reviewed | None = None) -> Changed:
        return self.write(activation.retire, self.key, reviewed or Reviewed(), by="ada", now=self.now)

    def enabled(self, document: dict[str, Any]) -> "Loop":
        """Publish, enable, and the loop of that activation."""
        self.publish(document)
        return Loop(self, self.enable().key)

    def enabled_whatever(self, document: dict[str, Any]) -> "Loop":
        """As `enabled`, although the contents are not there: they were when it was enabled."""
        content, self.content = self.content, Shelf()
        loop = self.enabled(document)
        self.content = content
        return loop

    def admit(self, run: RunKey, *, owner: str = "execution", now: datetime | None = None) -> Admission:
        return self.write(admission.decide, run, self.content, owner=owner, now=now or self.now)

    def begin(self, run: RunKey, *, again: bool = False) -> running.Begun:
        return self.write(running.begin, run.run_id, again=again, now=self.now)

    def settle(
        self, run: RunKey, disposition: Disposition = Disposition.SUCCEEDED, reason: Reason | None = None
    ) -> ActivationKey | None:
        outcome = Outcome(disposition=disposition, reason=reason)
        return self.write(running.settle, run, outcome, now=self.now)

    def stage(self, run: RunKey) -> None:
        """Give a slot to a run, without a plan."""
        self.write(lambda c: ledger_changes.stage(c, require_schedule(c, self.key, lock=True), run, now=self.now))

    def hold_by_hand(self, receipt: str) -> RunKey:
        """A manual run takes a slot now."""
        key = ActivationKey(schedule=self.key, generation=self.activation().generation)
        run = RunKey(activation=key, nominal_time=self.now, trigger=f"manual:{receipt}")
        self.stage(run)
        return run

    def entries(self, generation: int | None = None, *, since: datetime | None = None) -> list[ledger.Entry]:
        """The ledger by nominal time."""

        def listed(connection: Any) -> list[ledger.Entry]:
            schedule = require_schedule(connection, self.key)
            found = ledger.list_entries(connection, schedule, generation=generation, since=since)
            return [entry for entry, _ in found]

        return self.read(listed)

    def told(self, generation: int | None = None) -> list[tuple[str, int, int, int]]:
        """The ledger as `(disposition, first, last, count)`, in seconds after noon."""
        return [
            (str(entry.disposition), *offsets([entry.first_at, entry.last_at]), entry.count)
            for entry in self.entries(generation)
        ]

    def run_row(self, run: RunKey) -> ledger.Run | None:
        return self.read(ledger.find_run, run.run_id)

    def activation(self, generation: int | None = None) -> Activation:
        def found(connection: Any) -> Activation | None:
            schedule = require_schedule(connection, self.key)
            return find_activation(connection, schedule, generation or schedule.generation)

        activation_found = self.read(found)
        assert activation_found is not None
        return activation_found

    def holding(self) -> int:
        return self.read(lambda connection: ledger.count_holding(connection, require_schedule(connection, self.key)))

    def check_ledger(self) -> None:
        """Every due instant of every activation has exactly one entry, and nothing else has one."""

        def told(connection: Any) -> list[tuple[Activation, Any, list[ledger.Entry]]]:
            schedule = require_schedule(connection, self.key)
            entries = [entry for entry, _ in ledger.list_entries(connection, schedule) if entry.trigger == "schedule"]
            return [
                (
                    each,
                    require_version(connection, schedule, each.revision).configuration.calendar,
                    [entry for entry in entries if entry.generation == each.generation],
                )
                for each in list_activations(connection, schedule)
            ]

        ended = NOON - timedelta(days=10_000)
        for each, calendar, entries in self.read(told):
            assert each.activated_at >= ended
            ended = each.ended_at or each.accounted_through
            assert each.accounted_through == ended
            due = list(calendar.between(each.activated_at + timedelta(microseconds=1), ended)) if each.enabled else []
            answered: list[datetime] = []
            for entry in entries:
                instants = list(calendar.between(entry.first_at, entry.last_at))
                assert entry.count == len(instants), entry
                assert instants[0] == entry.first_at, entry
                assert instants[-1] == entry.last_at, entry
                assert entry.count == 1 or (entry.held_since is None and not entry.disposition.is_open), entry
                answered += instants
            assert sorted(answered) == due
            if not each.is_live:
                assert {entry.disposition for entry in entries if entry.disposition.is_open} <= {
                    Disposition.ADMITTED,
                    Disposition.STARTED,
                }


@dataclass(slots=True)
class Loop:
    """What `ScheduleWorkflow` does between two of its steps, for one activation."""

    desk: Desk
    key: ActivationKey
    wake: datetime | None = None
    look_after: timedelta | None = None
    ended: bool = False
    lead: timedelta = LEAD
    last: Plan | None = field(default=None)

    def gather(self) -> Gathered:
        return self.desk.read(stepping.gather, self.key, now=self.desk.now, lead=self.lead)

    def commit(self, decided: Plan, *, start: bool = True) -> Committed:
        """Commit a plan; without `start`, the process dies before it starts what it staged."""
        until = self.desk.now + (self.look_after or LOOK)
        committed = self.desk.write(stepping.commit, self.key, decided, now=self.desk.now, attended_until=until)
        if start:
            self.desk.started.update(committed.staged)
        return committed

    def step(self, *, start: bool = True) -> Status:
        """One step, and the time of the next one."""
        found = self.gather()
        if found.facts is None:
            self.ended, self.wake = True, None
            return Status.ENDED
        decided = plan(found.facts)
        if not decided.blocked:
            self.look_after = None
        elif self.look_after is None or decided.starts or decided.promotions:
            self.look_after = LOOK
        else:
            self.look_after = min(self.look_after * 2, LONGEST_LOOK)
        nothing = decided.changes_nothing and not (decided.blocked or found.waiting or decided.exhausted)
        status = Status.DONE
        if not nothing or found.facts.undecided:
            status = self.commit(decided, start=start).status
        self.last = decided
        self.ended = status is Status.ENDED
        if decided.blocked:
            assert self.look_after is not None
            self.wake = self.desk.now + self.look_after
        else:
            self.wake = decided.wake_at
        return status

    def step_at(self, offset: float) -> Plan:
        """Turn the clock to so many seconds after noon, make one step, and return its plan."""
        self.desk.now = at(offset)
        assert self.step() in {Status.DONE, Status.ENDED}
        assert self.last is not None
        return self.last

    def run(self, offset: int) -> RunKey:
        """The run of the instant so many seconds after noon."""
        return RunKey(activation=self.key, nominal_time=at(offset))

    def has_run(self, offset: int, *, starts: float | None = None, ends: float, **outcome: Any) -> ActivationKey | None:
        """Admit, begin and settle the run of an instant, each at its time; returns whom the settlement nudges."""
        self.desk.now = at(offset if starts is None else starts)
        assert self.desk.admit(self.run(offset)).outcome == "admitted"
        self.desk.begin(self.run(offset))
        self.desk.now = at(ends)
        return self.desk.settle(self.run(offset), **outcome)
