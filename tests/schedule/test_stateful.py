"""Everything that may go wrong around one schedule, in any order, with the ledger held against its laws after each event."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from horarium.catalog import Catalog, ledger
from horarium.catalog.schedules import require_schedule, require_version
from horarium.control.stepping import Status
from horarium.errors import Conflict
from horarium.schedule.identity import RunKey
from horarium.schedule.ledger import BY_CALENDAR, FAILURES, Disposition, Reason
from horarium.schedule.plan import Plan, plan
from horarium.schedule.policy import BUFFER_LIMIT, Overlap, Policy
from tests.control.desk import Desk, configuration, every, open_catalog, seconds
from tests.control.world import Work, World

INTERVALS = st.lists(
    st.sampled_from([1, 3, 5, 7, 15, 60, 600]).flatmap(
        lambda every: st.fixed_dictionaries(
            {"every_seconds": st.just(every), "offset_seconds": st.integers(0, every - 1)}
        )
    ),
    min_size=1,
    max_size=2,
    unique_by=lambda each: (each["every_seconds"], each["offset_seconds"]),
)
CONFIGURATIONS = st.builds(
    configuration,
    INTERVALS,
    st.sampled_from(["skip", "buffer_one", "buffer_all", "allow"]),
    window=st.sampled_from([10, 12, 60, 3_600]),
    runs=st.sampled_from([1, 1, 2, 3]),
    failing=st.booleans(),
)
WORK = st.builds(
    Work,
    takes=st.sampled_from([0.001, 0.5, 1, 2.5, 6, 6.001, 45, 400]).map(seconds),
    ends_as=st.sampled_from(
        [Disposition.SUCCEEDED] * 4 + [Disposition.FAILED, Disposition.TIMED_OUT, Disposition.CANCELLED]
    ),
)
SKEWS = st.sampled_from([0, 0, 0, 0.8, -0.7]).map(seconds)
A_WHILE = st.sampled_from([0.2, 0.999, 1, 3, 4, 5.5, 10, 30, 61]).map(seconds)


class OneSchedule(RuleBasedStateMachine):
    """A schedule that people, crashes, outages and clocks work on."""

    catalog: Catalog

    def __init__(self) -> None:
        super().__init__()
        self.carried = 0
        self.kept_plan: Plan | None = None
        self.failed: set[int] = set()
        self.receipts = 0

    @initialize(document=CONFIGURATIONS, work=st.lists(WORK, min_size=1, max_size=5), skew=SKEWS)
    def publish_and_enable(self, document: dict[str, Any], work: list[Work], skew: timedelta) -> None:
        self.desk = Desk(self.catalog)
        works = cycle(work)
        self.world = World(self.desk, lambda _run: next(works), skew=skew, after_each=self.no_policy_is_violated)
        self.desk.publish(document)
        self.world.establish(self.desk.enable())

    @rule(a_while=A_WHILE)
    def time_passes(self, a_while: timedelta) -> None:
        self.world.pass_until(self.desk.now + a_while)

    @rule(a_while=st.sampled_from([5, 15, 70, 700, 4_000]).map(seconds))
    def the_schedule_worker_is_down(self, a_while: timedelta) -> None:
        self.world.schedules_up = False
        self.world.pass_until(self.desk.now + a_while)
        self.world.schedules_up = True

    @rule(a_while=st.sampled_from([0.5, 5, 15, 70]).map(seconds))
    def the_run_worker_is_down(self, a_while: timedelta) -> None:
        self.world.runs_up = False
        self.world.pass_until(self.desk.now + a_while)
        self.world.runs_up = True

    @rule(a_while=A_WHILE)
    def nudges_are_lost(self, a_while: timedelta) -> None:
        self.world.nudges_arrive = False
        self.world.pass_until(self.desk.now + a_while)
        self.world.nudges_arrive = True

    @rule()
    def the_next_commit_dies_before_it_starts_anything(self) -> None:
        self.world.dies_before_starting = True

    @precondition(lambda self: self.world.current() is not None)
    @rule()
    def somebody_nudges(self) -> None:
        loop = self.world.current()
        assert loop is not None
        loop.wake = self.desk.now

    @precondition(lambda self: self.world.current() is not None)
    @rule()
    def a_second_workflow_plans(self) -> None:
        loop = self.world.current()
        assert loop is not None
        found = loop.gather()
        self.kept_plan = None if found.facts is None else plan(found.facts)
        self.kept_by = loop

    @precondition(lambda self: self.kept_plan is not None)
    @rule()
    def the_second_workflow_commits(self) -> None:
        assert self.kept_plan is not None
        before = self.desk.entries()
        committed = self.kept_by.commit(self.kept_plan)
        if committed.status is Status.STALE:
            assert self.desk.entries() == before
        again = self.desk.entries()
        if self.kept_plan.accounted_through != self.kept_plan.base:
            assert self.kept_by.commit(self.kept_plan).status is not Status.DONE
            assert self.desk.entries() == again

    @rule(data=st.data())
    def an_admission_is_attempted_again(self, data: st.DataObject) -> None:
        decided = sorted(self.world.decided, key=lambda run: run.workflow_id)
        assume(decided)
        run = data.draw(st.sampled_from(decided))
        before = self.desk.entries(), self.desk.run_row(run)
        repeated = self.desk.admit(run, owner="first")
        stolen = self.desk.admit(run, owner="second")
        assert (self.desk.entries(), self.desk.run_row(run)) == before
        assert stolen.outcome == "withdrawn"
        closed_since = run not in self.world.running
        if not (self.world.decided[run] == "admitted" and closed_since):
            assert repeated.outcome == self.world.decided[run]

    @rule(data=st.data())
    def a_settlement_is_repeated(self, data: st.DataObject) -> None:
        settled = sorted(self.world.decided.keys() - self.world.running.keys(), key=lambda run: run.workflow_id)
        assume(settled)
        run = data.draw(st.sampled_from(settled))
        before = self.desk.entries()
        self.desk.settle(run, Disposition.FAILED)
        assert self.desk.entries() == before

    @rule()
    def somebody_triggers_a_run(self) -> None:
        loop = self.world.current()
        assume(loop is not None and self.desk.activation().is_live)
        assume(self.slots() is None or self.desk.holding() < (self.slots() or 0))
        self.receipts += 1
        self.desk.started.add(self.desk.hold_by_hand(str(self.receipts)))

    @rule(skew=SKEWS)
    def somebody_pauses(self, skew: timedelta) -> None:
        assume(self.desk.activation().enabled)
        self.by_a_clock_that_is_ahead(skew, self.desk.pause)

    @rule(skew=SKEWS)
    def somebody_enables(self, skew: timedelta) -> None:
        self.carried = self.desk.holding()
        self.world.establish(self.by_a_clock_that_is_ahead(skew, self.desk.enable))

    @rule(document=CONFIGURATIONS, skew=SKEWS)
    def somebody_switches_the_version(self, document: dict[str, Any], skew: timedelta) -> None:
        self.desk.publish(document)
        self.somebody_enables(skew)

    def by_a_clock_that_is_ahead(self, skew: timedelta, act: Any) -> Any:
        now, self.desk.now = self.desk.now, self.desk.now + skew
        changed = act()
        self.desk.now = now
        return changed

    @invariant()
    def each_due_instant_has_exactly_one_disposition(self) -> None:
        self.desk.check_ledger()

    @invariant()
    def the_circuit_breaker_has_room_for_whatever_may_still_start(self) -> None:
        activation, entries = self.desk.activation(), self.desk.entries(since=self.desk.now - seconds(5_000))
        assert Reason.BREAKER_OPEN not in {entry.reason for entry in entries}
        undecided = [
            entry
            for entry in entries
            if entry.disposition in {Disposition.STAGED, Disposition.BUFFERED} and entry.trigger == BY_CALENDAR
        ]
        assert activation.allowance is not None
        assert not activation.is_live or activation.allowance >= len(undecided)

    def policy(self) -> Policy:
        def current(connection: Any) -> Policy:
            schedule = require_schedule(connection, self.desk.key)
            return require_version(connection, schedule, self.desk.activation().revision).configuration.policy

        return self.desk.read(current)

    def slots(self) -> int | None:
        return self.policy().slots

    def no_policy_is_violated(self) -> None:
        policy, entries = self.policy(), self.desk.entries(since=self.desk.now - seconds(100))
        generation = self.desk.activation().generation
        holding = [entry for entry in entries if entry.disposition.holds_slot]
        if policy.slots is not None:
            assert len(holding) <= max(policy.slots, self.carried)
        waiting = [entry for entry in entries if entry.disposition is Disposition.BUFFERED]
        most = {Overlap.BUFFER_ONE: 1, Overlap.BUFFER_ALL: BUFFER_LIMIT}.get(policy.overlap, 0)
        assert len(waiting) <= most
        for entry in entries:
            run = entry.run_key(self.desk.key)
            if entry.generation in self.failed:
                assert entry.disposition is not Disposition.STAGED
            if entry.disposition in FAILURES and entry.generation == generation and entry.trigger == BY_CALENDAR:
                assert not policy.pause_on_failure or not self.desk.activation().is_live
            if entry.disposition in {Disposition.ADMITTED, Disposition.STARTED}:
                self.it_was_rightly_admitted(run, policy)
        if policy.overlap is Overlap.SKIP:
            mine = [each for each in entries if each.generation == generation and each.trigger == BY_CALENDAR]
            for entry in mine:
                if entry.held_since is not None:
                    self.no_slot_was_taken_when_it_fell_due(entry, entries, policy)

    def it_was_rightly_admitted(self, run: RunKey, policy: Policy) -> None:
        row = self.desk.run_row(run)
        assert row is not None
        assert row.decided_at is not None
        assert row.decided_at >= run.nominal_time
        if run.activation.generation == self.desk.activation().generation:
            assert row.decided_at - row.window_from <= policy.catchup_window

    def no_slot_was_taken_when_it_fell_due(
        self, entry: ledger.Entry, entries: list[ledger.Entry], policy: Policy
    ) -> None:
        due, error = entry.first_at, abs(self.world.skew)
        others = [
            each
            for each in entries
            # A run of a later instant was staged after this one, if ever so early by a clock that is ahead.
            if (each.first_at < due or each.trigger != BY_CALENDAR)
            and each.row != entry.row
            and each.held_since is not None
            and each.held_since <= due
            # A run that nobody decided on held nothing.
            and each.disposition not in {Disposition.MISSED, Disposition.DROPPED}
            and (each.closed_at is None or each.closed_at > due + error)
        ]
        assert policy.slots is not None
        assert len(others) < policy.slots, (entry, others)

    def teardown(self) -> None:
        """At last everything works again, and after a while nothing is left undone."""
        if not hasattr(self, "world"):
            return
        for loop in self.world.loops.values():
            loop.wake = self.desk.now
        self.world.pass_until(self.desk.now + seconds(30))
        self.desk.check_ledger()
        loop = self.world.current()
        activation = self.desk.activation()
        if loop is None or not activation.is_live:
            return
        found = loop.gather()
        assert found.facts is not None
        if not activation.waiting:
            assert found.facts.waiting == 0
            undecided = sum(len(stretch.head) for stretch in found.facts.stretches)
            assert undecided == 0
        else:
            slots = self.slots()
            assert slots is not None
            assert self.desk.holding() >= slots
        overdue = [
            entry
            for entry in self.desk.entries()
            if entry.disposition is Disposition.STAGED and entry.trigger == BY_CALENDAR
        ]
        assert all(entry.first_at > self.desk.now - seconds(2) or entry.held_since is not None for entry in overdue)


OneSchedule.TestCase.settings = settings(
    max_examples=60, stateful_step_count=20, suppress_health_check=list(HealthCheck), deadline=None
)


@pytest.fixture(scope="module", autouse=True)
def _catalog() -> Iterator[None]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        OneSchedule.catalog = open_catalog(folder)
        stack.callback(OneSchedule.catalog.close)
        yield


TestOneSchedule = OneSchedule.TestCase


def test_a_retired_schedule_never_fires_again() -> None:
    desk = Desk(OneSchedule.catalog)
    world = World(desk, lambda _run: Work(takes=seconds(1)))
    desk.publish(every(5, overlap="allow"))
    world.establish(desk.enable())
    world.pass_until(desk.now + seconds(12))
    desk.retire()
    before = desk.entries()
    world.pass_until(desk.now + seconds(100))
    desk.check_ledger()
    assert len(desk.entries()) == len(before)
    with pytest.raises(Conflict, match="final"):
        desk.enable()
