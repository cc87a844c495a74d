"""Money: reserved at admission, settled or given back at the end, in whole minor units, and never promised twice."""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule, run_state_machine_as_test
from sqlalchemy import func, select

from horarium.catalog import Catalog, money, presence
from horarium.catalog.money import Account, ReservationState
from horarium.catalog.tables import reservations
from horarium.control import running
from horarium.control.running import Outcome
from horarium.errors import Unavailable
from horarium.schedule.identity import ActivationKey, RunKey, Scope, schedule_key
from horarium.schedule.ledger import Disposition, Reason
from tests.control.desk import AGENT, FAR, NOON, Desk, Loop, at, every, open_catalog, open_undurable
from tests.control.operators import Operator, paid

BUDGET = {"usage_classes": ["test_compute"], "pays_by": "wallet", "wallet": "main", "limit": 100, "currency": "CHF"}


@dataclass
class Till:
    """An operator's view of one environment's money, and schedules that spend it."""

    operator: Operator

    def __post_init__(self) -> None:
        self.operator.open()
        self.operator.declare_usual(max_cost=10)
        self.declare()
        with self.operator.catalog.writing() as connection:
            discovery = {"is_schedulable": True, "task_queue": "agents", "max_run_seconds": 60, "idempotent": False}
            presence.register_agent(connection, self.scope, AGENT, discovery, lease_until=FAR, now=NOON)

    @property
    def scope(self) -> Scope:
        return self.operator.scope

    def declare(self, *, limit: int = 100, unpaid_limit: int = 1_000) -> None:
        self.operator.declare("budget", "team", **{**BUDGET, "limit": limit})
        self.operator.declare("wallet", "main", unpaid_limit=unpaid_limit, currency="CHF")

    def desk(self) -> Desk:
        desk = Desk(self.operator.catalog)
        desk.key = schedule_key(self.scope, desk.key.schedule_id)
        return desk

    def schedule(self) -> "Spending":
        desk = self.desk()
        return Spending(desk, desk.enabled(paid(every(60, overlap="allow"))))

    def budget(self) -> Account:
        return self._account(money.BUDGET, "team")

    def owed(self) -> int:
        wallet = self._account(money.WALLET, "main")
        assert wallet.reserved == 0
        return wallet.spent

    def _account(self, kind: str, name: str) -> Account:
        with self.operator.catalog.reading() as connection:
            return money.account(connection, self.scope, kind, name)


@dataclass
class Spending:
    """A schedule with a run at each minute."""

    desk: Desk
    loop: Loop

    @property
    def run(self) -> RunKey:
        """That of the first minute."""
        return self.loop.run(60)

    def admitted(self, offset: int = 60) -> RunKey:
        self.loop.step_at(offset - 3)
        self.desk.now = at(offset)
        admission = self.desk.admit(self.loop.run(offset))
        assert admission.outcome == "admitted", admission
        return self.loop.run(offset)

    def begun(self, offset: int = 60) -> RunKey:
        run = self.admitted(offset)
        self.desk.begin(run)
        return run

    def ends(
        self,
        run: RunKey,
        disposition: Disposition = Disposition.SUCCEEDED,
        *,
        reason: Reason | None = None,
        cost: int | None = None,
    ) -> None:
        outcome = Outcome(disposition=disposition, reason=reason, cost=cost)
        self.desk.write(running.settle, run, outcome, now=self.desk.now)

    def state(self, run: RunKey) -> tuple[str, int | None]:
        found = self.desk.read(money.find_reservation, run.run_id)
        return found.state, found.settled


_numbers = iter(range(1, 1_000_000))


@pytest.fixture
def till(catalog: Catalog) -> Till:
    return Till(Operator(catalog, Scope(org_id=f"till{next(_numbers)}", environment_id="strict")))


def test_a_run_reserves_what_it_may_cost_and_spends_what_it_has_cost(till: Till) -> None:
    spending = till.schedule()
    run = spending.begun()
    assert till.budget() == Account(reserved=10, spent=0)
    assert till.owed() == 0
    spending.ends(run, cost=3)
    assert till.budget() == Account(reserved=0, spent=3)
    assert till.owed() == 3
    assert spending.state(run) == ("settled", 3)


@pytest.mark.parametrize(
    ("disposition", "cost", "spent"),
    [
        (Disposition.SUCCEEDED, None, 10),
        (Disposition.SUCCEEDED, 0, 0),
        (Disposition.SUCCEEDED, 25, 25),
        (Disposition.FAILED, None, 10),
        (Disposition.FAILED, 4, 4),
        (Disposition.TIMED_OUT, None, 10),
        (Disposition.CANCELLED, None, 10),
        (Disposition.TERMINATED, None, 10),
    ],
)
def test_a_run_that_was_begun_costs_what_it_reports_and_its_reservation_where_it_reports_nothing(
    till: Till, disposition: Disposition, cost: int | None, spent: int
) -> None:
    spending = till.schedule()
    run = spending.begun()
    spending.ends(run, disposition, cost=cost)
    assert till.budget() == Account(reserved=0, spent=spent)
    assert till.owed() == spent


@pytest.mark.parametrize(
    ("disposition", "reason"),
    [
        (Disposition.NOT_STARTED, Reason.NOT_PICKED_UP),
        (Disposition.NOT_STARTED, Reason.CLAIM_FAILED),
        (Disposition.NOT_STARTED, Reason.STOPPED_BY_OPERATOR),
        (Disposition.NOT_STARTED, Reason.DISPATCH_FAILED),
        (Disposition.CANCELLED, Reason.CANCELLED_BY_OPERATOR),
    ],
)
def test_a_run_that_never_began_gives_its_reservation_back(
    till: Till, disposition: Disposition, reason: Reason
) -> None:
    spending = till.schedule()
    run = spending.admitted()
    # A cost is believed of nobody who has not begun.
    spending.ends(run, disposition, reason=reason, cost=7)
    assert till.budget() == Account(reserved=0, spent=0)
    assert spending.state(run) == ("released", 0)


@pytest.mark.parametrize(
    "ends",
    [(Disposition.NOT_STARTED, Reason.START_UNKNOWN), (Disposition.FAILED, None), (Disposition.TIMED_OUT, None)],
)
def test_a_run_of_which_nobody_knows_keeps_its_reservation_for_its_time_limit_and_then_counts_as_spent(
    till: Till, ends: tuple[Disposition, Reason | None]
) -> None:
    spending = till.schedule()
    run = spending.admitted()
    spending.ends(run, ends[0], reason=ends[1])
    assert spending.desk.told()[-1][0] == "not_started"
    assert till.budget() == Account(reserved=10, spent=0)

    def settle_kept(when: datetime) -> int:
        settled: int = spending.desk.write(running.settle_kept, now=when)
        return settled

    assert settle_kept(at(60 + 59.9)) == 0
    assert till.budget() == Account(reserved=10, spent=0)
    assert settle_kept(at(60 + 60)) == 1
    assert till.budget() == Account(reserved=0, spent=10)
    assert till.owed() == 10
    assert settle_kept(at(10_000)) == 0


def test_what_is_kept_of_many_runs_is_settled_one_at_a_time(till: Till) -> None:
    """Accounts are locked in one order in each transaction, and two budgets may be paid from one wallet."""
    spending = till.schedule()
    for offset in (60, 120, 180):
        spending.ends(spending.admitted(offset), Disposition.NOT_STARTED, reason=Reason.START_UNKNOWN)
    assert [spending.desk.write(running.settle_kept, now=at(1_000)) for _ in range(4)] == [1, 1, 1, 0]
    assert till.budget() == Account(reserved=0, spent=30)


def test_a_second_outcome_changes_nothing(till: Till) -> None:
    spending = till.schedule()
    run = spending.begun()
    spending.ends(run, cost=3)
    spending.ends(run, cost=9)
    spending.ends(run, Disposition.TIMED_OUT)
    assert till.budget() == Account(reserved=0, spent=3)
    assert till.owed() == 3


def test_a_second_attempt_of_an_admission_reserves_nothing_more(till: Till) -> None:
    spending = till.schedule()
    run = spending.admitted()
    assert spending.desk.admit(run).outcome == "admitted"
    assert spending.desk.admit(run, owner="another").outcome == "withdrawn"
    assert till.budget() == Account(reserved=10, spent=0)


def test_a_refused_run_reserves_nothing(till: Till) -> None:
    spending = till.schedule()
    till.operator.declare("output", "out", writable=False)
    spending.loop.step_at(57)
    spending.desk.now = at(60)
    assert spending.desk.admit(spending.loop.run(60)).reason == "output_forbidden"
    assert till.budget() == Account(reserved=0, spent=0)
    assert spending.desk.read(money.find_reservation, spending.loop.run(60).run_id) is None


def test_what_a_run_reserves_is_what_its_agent_declared_when_it_was_admitted(till: Till) -> None:
    spending = till.schedule()
    run = spending.begun()
    till.operator.declare("agent", AGENT, max_cost=90, max_run_seconds=60)
    spending.ends(run)
    assert till.budget() == Account(reserved=0, spent=10)
    till.declare(limit=0)
    assert till.budget() == Account(reserved=0, spent=10)


def test_a_wallet_that_owes_its_limit_pays_again_once_it_was_collected_from(till: Till) -> None:
    till.declare(unpaid_limit=10)
    spending = till.schedule()
    spending.ends(spending.begun(60))
    spending.loop.step_at(117)
    spending.desk.now = at(120)
    assert spending.desk.admit(spending.loop.run(120)).reason == "wallet_unpaid_limit"
    left = spending.desk.write(money.collect, till.scope, "main", 4)
    assert left.spent == till.owed() == 6
    spending.admitted(180)
    assert till.budget() == Account(reserved=10, spent=10), "what was collected is no room in the budget"


class TestAtTheSameTime:
    """Two admissions that race cannot both take the last of a budget: here two hundred."""

    RUNS, ROOM, PROCESSES = 200, 50, 4

    @pytest.fixture
    def processes(self, catalog: Catalog) -> Iterator[list[Catalog]]:
        """Connections of several processes: each catalog has a pool of its own."""
        opened = [open_undurable(str(catalog.engine.url)) for _ in range(self.PROCESSES)]
        yield opened
        for each in opened:
            each.close()

    def test_a_budget_with_room_for_fifty_admits_fifty_of_two_hundred(
        self, till: Till, processes: list[Catalog]
    ) -> None:
        till.declare(limit=self.ROOM * 10 + 9, unpaid_limit=10**9)
        spendings = [till.schedule() for _ in range(self.RUNS)]
        for each in spendings:
            each.loop.step_at(57)
            each.desk.workers_beat = False
        outcomes = self._all(spendings, processes, lambda each: self._told(each.desk.admit(each.run, now=at(60))))
        assert sorted(outcomes) == sorted(
            [("admitted", None)] * self.ROOM + [("refused", "budget_exhausted")] * (self.RUNS - self.ROOM)
        )
        assert till.budget() == Account(reserved=self.ROOM * 10, spent=0)

        admitted = [each for each in spendings if each.desk.run_row(each.run).decision == "admitted"]
        assert len(admitted) == self.ROOM
        costs = {each.run: number % 15 for number, each in enumerate(admitted)}
        self._all(
            admitted, processes, lambda each: each.desk.write(running.begin, each.run.run_id, again=False, now=at(61))
        )
        self._all(admitted, processes, lambda each: each.ends(each.run, cost=costs[each.run]))
        assert till.budget() == Account(reserved=0, spent=sum(costs.values()))
        assert till.owed() == sum(costs.values())

    def test_what_one_gives_back_another_may_take_and_nothing_is_lost_on_the_way(
        self, till: Till, processes: list[Catalog]
    ) -> None:
        till.declare(limit=100)
        spendings = [till.schedule() for _ in range(60)]
        for each in spendings:
            each.loop.step_at(57)
            each.desk.workers_beat = False

        def lives(each: Spending) -> str:
            outcome = each.desk.admit(each.run, now=at(60)).outcome
            if outcome == "admitted":
                each.ends(each.run, Disposition.NOT_STARTED, reason=Reason.NOT_PICKED_UP)
            return outcome

        outcomes = self._all(spendings, processes, lives)
        assert outcomes.count("admitted") >= 10
        assert till.budget() == Account(reserved=0, spent=0)

    def _all(self, spendings: list[Any], processes: list[Catalog], act: Any) -> list[Any]:
        """Everybody acts at once, each in a thread and over a connection of its own, as far as the pools go."""
        told: list[Any] = []
        gate = threading.Barrier(len(spendings))

        def one(each: Spending, number: int) -> None:
            each.desk.catalog = processes[number % len(processes)]
            gate.wait()
            try:
                told.append(_sooner_or_later(lambda: act(each)))
            except Exception as error:  # noqa: BLE001 - told below, in the test's own thread
                told.append(error)

        threads = [threading.Thread(target=one, args=(each, number)) for number, each in enumerate(spendings)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        failures = [each for each in told if isinstance(each, Exception)]
        assert failures == []
        return told

    def _told(self, admission: Any) -> tuple[str, str | None]:
        return admission.outcome, admission.reason


def _sooner_or_later(act: Callable[[], Any]) -> Any:
    """Do it again where it does not come to its turn, as a worker does."""
    while True:
        with suppress(Unavailable):
            return act()


class Accounts(RuleBasedStateMachine):
    """Whatever happens to runs, budgets and wallets, the accounts are the sum of the reservations."""

    admitted = Bundle("admitted")
    begun = Bundle("begun")
    over = Bundle("over")

    def __init__(self, catalog: Catalog) -> None:
        super().__init__()
        self.till = Till(Operator(catalog, Scope(org_id=f"till{next(_numbers)}", environment_id="strict")))
        self.desk = self.till.desk()
        self.desk.enabled(paid(every(3_600, overlap="allow")))
        self.limit, self.unpaid_limit, self.max_cost = 100, 1_000, 10
        self.held: dict[RunKey, int] = {}
        self.kept: dict[RunKey, datetime] = {}
        self.spent = self.owed = 0

    @rule(target=admitted)
    def admit(self) -> RunKey | Any:
        self.desk.now += timedelta(seconds=1)
        key = ActivationKey(schedule=self.desk.key, generation=1)
        run = RunKey(activation=key, nominal_time=self.desk.now, trigger=f"manual:{self.desk.now.timestamp():.0f}")
        self.desk.stage(run)
        room = self.limit - self.spent - sum(self.held.values())
        admission = self.desk.admit(run)
        if room < max(self.max_cost, 1):
            assert admission.reason == "budget_exhausted"
        elif self.owed >= self.unpaid_limit:
            assert admission.reason == "wallet_unpaid_limit"
        else:
            assert admission.outcome == "admitted"
            if self.max_cost:
                self.held[run] = self.max_cost
            return run
        return None

    @rule(target=begun, run=consumes(admitted))
    def begin(self, run: RunKey | None) -> RunKey | None:
        if run is not None:
            self.desk.begin(run)
        return run

    @rule(
        target=over,
        run=consumes(begun),
        disposition=st.sampled_from([Disposition.SUCCEEDED, Disposition.FAILED, Disposition.TIMED_OUT]),
        cost=st.none() | st.integers(0, 40),
    )
    def end(self, run: RunKey | None, disposition: Disposition, cost: int | None) -> RunKey | None:
        if run is not None:
            self._settle(run, disposition, cost=cost)
            if run in self.held:
                self._spend(run, self.held[run] if cost is None else cost)
        return run

    @rule(
        target=over,
        run=consumes(admitted),
        reason=st.sampled_from([Reason.NOT_PICKED_UP, Reason.CLAIM_FAILED, Reason.DISPATCH_REFUSED]),
    )
    def does_not_start(self, run: RunKey | None, reason: Reason) -> RunKey | None:
        if run is not None:
            self._settle(run, Disposition.NOT_STARTED, reason=reason)
            self.held.pop(run, None)
        return run

    @rule(target=over, run=consumes(admitted))
    def is_lost(self, run: RunKey | None) -> RunKey | None:
        if run is not None:
            self._settle(run, Disposition.FAILED, reason=Reason.AGENT_LOST)
            if run in self.held:
                self.kept[run] = self.desk.now + timedelta(seconds=60)
        return run

    @rule(run=over, cost=st.integers(0, 40))
    def is_told_again(self, run: RunKey | None, cost: int) -> None:
        if run is not None:
            self._settle(run, Disposition.SUCCEEDED, cost=cost)

    @rule(seconds=st.integers(1, 90))
    def time_passes(self, seconds: int) -> None:
        self.desk.now += timedelta(seconds=seconds)
        while self.desk.write(running.settle_kept, now=self.desk.now):
            pass
        for run, until in list(self.kept.items()):
            if until <= self.desk.now:
                del self.kept[run]
                self._spend(run, self.held[run])

    @rule(limit=st.integers(0, 150), unpaid_limit=st.integers(0, 100))
    def other_limits(self, limit: int, unpaid_limit: int) -> None:
        self.limit, self.unpaid_limit = limit, unpaid_limit
        self.till.declare(limit=limit, unpaid_limit=unpaid_limit)

    @rule(max_cost=st.integers(0, 30))
    def other_cost(self, max_cost: int) -> None:
        self.max_cost = max_cost
        self.till.operator.declare("agent", AGENT, max_cost=max_cost, max_run_seconds=60)

    @rule(share=st.integers(1, 100))
    def collect(self, share: int) -> None:
        amount = self.owed * share // 100
        self.desk.write(money.collect, self.till.scope, "main", amount)
        self.owed -= amount

    @invariant()
    def the_accounts_are_what_happened(self) -> None:
        assert self.till.budget() == Account(reserved=sum(self.held.values()), spent=self.spent)
        assert self.till.owed() == self.owed

    @invariant()
    def the_accounts_are_the_sum_of_the_reservations(self) -> None:
        def summed(connection: Any) -> tuple[int, int]:
            ours = reservations.c.org_id == self.till.scope.org_id
            held = ours & (reservations.c.state == ReservationState.HELD)
            return (
                connection.execute(select(func.coalesce(func.sum(reservations.c.amount), 0)).where(held)).scalar_one(),
                connection.execute(select(func.coalesce(func.sum(reservations.c.settled), 0)).where(ours)).scalar_one(),
            )

        counted = self.till.budget()
        assert (counted.reserved, counted.spent) == self.desk.read(summed)
        assert all(type(each) is int and each >= 0 for each in (counted.reserved, counted.spent, self.till.owed()))

    def _settle(self, run: RunKey, disposition: Disposition, **how: Any) -> None:
        outcome = Outcome(disposition=disposition, **{"reason": None, **how})
        self.desk.write(running.settle, run, outcome, now=self.desk.now)

    def _spend(self, run: RunKey, amount: int) -> None:
        del self.held[run]
        self.spent += amount
        self.owed += amount


def test_the_accounts_are_the_sum_of_the_reservations_whatever_happens(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    run_state_machine_as_test(lambda: Accounts(catalog), settings=settings(max_examples=60, stateful_step_count=30))
    catalog.close()
