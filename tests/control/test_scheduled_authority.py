"""A calendar adds no authority: a scheduled run pays, reads and expires as a run by hand does (the contract on agent runs)."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from horarium.catalog import Catalog, money, presence
from horarium.control import activation
from horarium.control.activation import Reviewed
from horarium.errors import NotAdmissible
from horarium.schedule.identity import Scope, instant_text, schedule_key
from tests.control.desk import AGENT, FAR, NOON, Desk, Loop, at, every
from tests.control.operators import Operator, paid

BUDGET = {"usage_classes": ["test_compute", "live"], "pays_by": "wallet", "wallet": "main", "limit": 100}
DUE, DUE_NEXT = 60, 120

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Strict:
    """An environment in which everything is declared that a schedule of Ada's needs, and that schedule."""

    operator: Operator
    desk: Desk

    def pays(self, **changed: Any) -> None:
        self.operator.declare("budget", "team", **{**BUDGET, "currency": "CHF", **changed})

    def enable(self, *, by: str = "ada") -> Loop:
        changed = self.desk.write(
            activation.enable, self.desk.key, Reviewed(), self.desk.content, by=by, now=self.desk.now
        )
        return Loop(self.desk, changed.key)

    def refused(self, *, by: str = "ada") -> list[str]:
        """The reasons why it cannot be enabled."""
        with pytest.raises(NotAdmissible) as refusal:
            self.enable(by=by)
        return [each["code"] for each in refusal.value.objections]

    def decided(self, loop: Loop, offset: int) -> str | None:
        """What becomes of what is due then: the reason against it, or None where it is admitted and succeeds."""
        loop.step_at(offset - 3)
        self.desk.now = at(offset)
        return self._ended(loop.run(offset))

    def decided_by_hand(self) -> str | None:
        return self._ended(self.desk.hold_by_hand(f"receipt-{next(_numbers)}"))

    def _ended(self, run: Any) -> str | None:
        decision = self.desk.admit(run)
        if decision.outcome == "refused":
            return decision.reason
        assert decision.outcome == "admitted"
        self.desk.begin(run)
        self.desk.settle(run)
        return None


@pytest.fixture
def strict(catalog: Catalog) -> Strict:
    desk = Desk(catalog)
    operator = Operator(catalog, Scope(org_id=f"strict{next(_numbers)}", environment_id="strict"))
    desk.key = schedule_key(operator.scope, desk.key.schedule_id)
    operator.open()
    operator.declare_usual(people=("ada", "bob"))
    operator.declare("grant", "mail:read")
    operator.declare("wallet", "main", unpaid_limit=1_000, currency="CHF")
    discovery = {"is_schedulable": True, "task_queue": "agents", "max_run_seconds": 60, "idempotent": False}
    desk.write(presence.register_agent, operator.scope, AGENT, discovery, lease_until=FAR, now=NOON)
    made = Strict(operator, desk)
    made.pays()
    document = paid(every(60))
    document["run"]["grants"] = ["mail:read"]
    desk.publish(document)
    return made


LIFETIMES: dict[str, Callable[[Operator, str], None]] = {
    "grant_expired": lambda operator, until: operator.declare("grant", "mail:read", expires_at=until),
    "input_expired": lambda operator, until: operator.declare("input", "in", readers=["ada"], expires_at=until),
    "consent_expired": lambda operator, until: operator.declare(
        "input", "in", readers=["ada"], consent={"by": "bob", "expires_at": until}
    ),
}


@pytest.mark.parametrize("reason", LIFETIMES)
@pytest.mark.parametrize(("until", "admits"), [(DUE_NEXT, False), (DUE_NEXT + 0.001, True)])
def test_a_calendar_that_goes_on_for_years_extends_nothing_by_a_second(
    strict: Strict, reason: str, until: float, admits: bool
) -> None:
    LIFETIMES[reason](strict.operator, instant_text(at(until)))
    loop = strict.enable()
    assert strict.decided(loop, DUE) is None
    assert strict.decided(loop, DUE_NEXT) == (None if admits else reason)
    if not admits:
        assert strict.refused() == [reason]


def test_a_live_schedule_outlasts_no_approval_and_a_new_version_has_none(strict: Strict) -> None:
    strict.operator.change(mode="live", live_needs_approval=True)
    live = paid(every(60), usage="live")
    version = strict.desk.publish(live, expected=1).version
    assert strict.refused() == ["approval_missing"]
    strict.operator.declare("approval", version.digest, by="grace", expires_at=instant_text(at(DUE_NEXT)))
    loop = strict.enable()
    assert strict.decided(loop, DUE) is None
    assert strict.decided(loop, DUE_NEXT) == "approval_expired"
    strict.operator.declare("approval", version.digest, by="grace", expires_at=instant_text(at(10_000)))
    assert strict.decided(loop, 180) is None
    strict.desk.publish({**live, "name": "Another name"}, expected=2)
    assert strict.refused() == ["approval_missing"]


PAYMENTS = {
    "x402": ({"pays_by": "x402", "wallet": None}, ["payment_x402"]),
    "per run": ({"per_run": True}, ["payment_per_run"]),
    "both": ({"pays_by": "x402", "wallet": None, "per_run": True}, ["payment_x402", "payment_per_run"]),
}


@pytest.mark.parametrize("how", PAYMENTS)
def test_no_schedule_pays_with_x402_or_per_run_neither_at_enabling_nor_later(strict: Strict, how: str) -> None:
    changed, reasons = PAYMENTS[how]
    loop = strict.enable()
    assert strict.decided(loop, DUE) is None
    strict.pays(**changed)
    assert strict.decided(loop, DUE_NEXT) == reasons[0]
    assert strict.refused() == reasons
    strict.pays(pays_by="credits", wallet=None)
    assert strict.decided(loop, 180) is None


def test_an_occurrence_is_admitted_against_the_wallet_like_a_run_by_hand(strict: Strict) -> None:
    """Both while it owes less than its limit, and neither while it owes that, or a collection has failed."""
    desk, operator = strict.desk, strict.operator
    wallet = {"unpaid_limit": 20, "currency": "CHF"}
    operator.declare("wallet", "main", **wallet)
    loop = strict.enable()
    assert strict.decided(loop, DUE) is None
    assert strict.decided_by_hand() is None
    assert strict.decided(loop, DUE_NEXT) == strict.decided_by_hand() == "wallet_unpaid_limit"
    desk.write(money.collect, operator.scope, "main", 20)
    operator.declare("wallet", "main", **wallet, collection_failed=True)
    assert strict.decided(loop, 180) == strict.decided_by_hand() == "wallet_collection_failed"
    operator.declare("wallet", "main", **wallet)
    assert strict.decided(loop, 240) is None
    assert strict.decided_by_hand() is None


def test_whoever_enables_has_to_be_able_to_read_the_input_then_and_at_each_occurrence(
    strict: Strict,
) -> None:
    """Nobody else's reading counts, and the agent's own is never asked about: it has no share and no grant of it."""
    strict.operator.declare("input", "in", readers=["bob", AGENT])
    assert strict.refused() == ["input_unreadable"]
    loop = strict.enable(by="bob")
    assert strict.decided(loop, DUE) is None
    strict.operator.declare("person", "ada", left=True)
    assert strict.decided(loop, DUE_NEXT) is None
    strict.operator.declare("input", "in", readers=["ada", AGENT])
    assert strict.decided(loop, 180) == "input_unreadable"
    strict.operator.declare("input", "in", readers=["*"])
    strict.operator.declare("person", "bob", left=True)
    assert strict.decided(loop, 240) == "principal_left"
    assert strict.refused() == strict.refused(by="bob") == ["principal_left"]
    assert strict.refused(by="a stranger") == ["principal_left"]
