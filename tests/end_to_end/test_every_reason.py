"""Every reason to refuse, on a real server: one fact changes, the next occurrence is refused by its code, the schedule goes on.

Each has an environment of its own and a schedule of five seconds: one process does them all. All are told at the same time,
since they mostly wait.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from horarium.schedule.ledger import Disposition, Reason
from tests.end_to_end.strict import AGENT, Place, Strict, now, strict_house

pytestmark = pytest.mark.server

BUDGET = {"usage_classes": ["test_compute"], "pays_by": "credits", "limit": 10_000, "currency": "CHF"}
BY_WALLET = {**BUDGET, "pays_by": "wallet", "wallet": "main"}
WALLET = {"unpaid_limit": 10_000, "currency": "CHF"}
AGENT_FACTS = {"max_cost": 10, "max_run_seconds": 60}
ELSEWHERE = {
    Reason.ENVIRONMENT_EPOCH_CHANGED: "sends the activation to review: below",
    Reason.ENVIRONMENT_RESET: "as above",
    Reason.CEILING_EXCEEDED: "a setting of the run worker: test_ceilings.py",
    "breaker_open": "a fault of ours, which no operator can make",
    Reason.NOT_IN_CALENDAR: "a fault of ours, which no operator can make: tests/control/test_admission.py",
    Reason.VERSION_UNUSABLE: "a stored version that is damaged, which goes to review: tests/control/test_unusable_versions.py",
}


@dataclass(frozen=True)
class Case:
    """What is done to a place, and undone again. `paid_by` is the budget's declaration, and None for no money at all."""

    change: Callable[[Place], object]
    back: Callable[[Place], object]
    live: bool = False
    paid_by: Any = None
    window: int = 60


def declared(kind: str, name: str, *, usual: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """A declaration says something else, and then what it usually says."""
    return {
        "change": lambda place: place.operator.declare(kind, name, **{**usual, **changed}),
        "back": lambda place: place.operator.declare(kind, name, **usual),
    }


def withdrawn(kind: str, name: str, *, usual: dict[str, Any]) -> dict[str, Any]:
    return {
        "change": lambda place: place.operator.withdraw(kind, name),
        "back": lambda place: place.operator.declare(kind, name, **usual),
    }


def environment(usual: dict[str, Any], **changed: Any) -> dict[str, Any]:
    return {
        "change": lambda place: place.operator.change(**changed),
        "back": lambda place: place.operator.change(**usual),
    }


def approve(place: Place, *, seconds: float = 3_600) -> None:
    until = now() + timedelta(seconds=seconds)
    place.operator.declare("approval", place.digest, by="grace", expires_at=until.isoformat())


def past() -> str:
    return (now() - timedelta(seconds=1)).isoformat()


CASES: dict[Reason, Case] = {
    Reason.RUNTIME_UNCONFIGURED: Case(**environment({"runtime_profile": "embedded"}, runtime_profile=None)),
    Reason.STOPPED_BY_OPERATOR: Case(
        lambda place: place.operator.stop(now=now()), lambda place: place.operator.lift(now=now())
    ),
    Reason.PRINCIPAL_LEFT: Case(**declared("person", "ada", usual={}, left=True)),
    Reason.USAGE_CLASS_MISMATCH: Case(**environment({"mode": "test"}, mode="live"), paid_by=BUDGET),
    Reason.APPROVAL_MISSING: Case(
        lambda place: place.operator.withdraw("approval", place.digest), approve, live=True, paid_by=BUDGET
    ),
    Reason.APPROVAL_EXPIRED: Case(lambda place: approve(place, seconds=0), approve, live=True, paid_by=BUDGET),
    Reason.AGENT_MISSING: Case(**withdrawn("agent", AGENT, usual=AGENT_FACTS)),
    Reason.AGENT_NOT_SCHEDULABLE: Case(**declared("agent", AGENT, usual=AGENT_FACTS, schedulable=False)),
    Reason.AGENT_WITHDRAWN: Case(**declared("agent", AGENT, usual=AGENT_FACTS, withdrawn=True)),
    Reason.AGENT_NOT_READY: Case(Place.release, Place.register),
    Reason.AGENT_OFFLINE: Case(lambda place: place.register(lease=timedelta(seconds=-30)), Place.register),
    Reason.INPUT_UNREADABLE: Case(**declared("input", "letters", usual={"readers": ["ada"]}, readers=["bob"])),
    Reason.INPUT_EXPIRED: Case(**declared("input", "letters", usual={"readers": ["ada"]}, expires_at=past())),
    Reason.CONSENT_EXPIRED: Case(
        **declared("input", "letters", usual={"readers": ["ada"]}, consent={"by": "bob", "expires_at": past()})
    ),
    Reason.GRANT_MISSING: Case(**declared("grant", "mail.read", usual={"agents": [AGENT]}, agents=["other@1"])),
    Reason.GRANT_EXPIRED: Case(**declared("grant", "mail.read", usual={"agents": [AGENT]}, expires_at=past())),
    Reason.GRANT_REVOKED: Case(**declared("grant", "mail.read", usual={"agents": [AGENT]}, revoked=True)),
    Reason.BUDGET_MISSING: Case(**withdrawn("budget", "team", usual=BUDGET), paid_by=BUDGET),
    Reason.BUDGET_USAGE_CLASS: Case(**declared("budget", "team", usual=BUDGET, usage_classes=["live"]), paid_by=BUDGET),
    Reason.PAYMENT_X402: Case(**declared("budget", "team", usual=BUDGET, pays_by="x402"), paid_by=BUDGET),
    Reason.PAYMENT_PER_RUN: Case(**declared("budget", "team", usual=BUDGET, per_run=True), paid_by=BUDGET),
    Reason.BUDGET_EXHAUSTED: Case(**declared("budget", "team", usual=BUDGET, limit=9), paid_by=BUDGET),
    Reason.WALLET_UNPAID_LIMIT: Case(**declared("wallet", "main", usual=WALLET, unpaid_limit=10), paid_by=BY_WALLET),
    Reason.WALLET_COLLECTION_FAILED: Case(
        **declared("wallet", "main", usual=WALLET, collection_failed=True), paid_by=BY_WALLET
    ),
    Reason.OUTPUT_MISSING: Case(**withdrawn("output", "reports", usual={})),
    Reason.OUTPUT_FORBIDDEN: Case(**declared("output", "reports", usual={}, writable=False)),
    Reason.AUTHORITY_UNAVAILABLE: Case(
        lambda place: place.strict.silent.add(place.operator.scope),
        lambda place: place.strict.silent.discard(place.operator.scope),
        window=15,
    ),
}


async def refused_for_one_fact(strict: Strict, reason: Reason, case: Case) -> None:
    mode, usage = ("live", "live") if case.live else ("test", "test_compute") if case.paid_by else ("simulation",) * 2
    place = strict.place(reason.replace("_", "-"), mode=mode, live_needs_approval=case.live)
    place.declare_usual()
    run = {"usage_class": usage if case.paid_by else "test_simulation", "budget_id": None}
    if case.paid_by:
        run["budget_id"] = "team"
        budget = {**case.paid_by, "usage_classes": [usage]}
        place.operator.declare("wallet", "main", **WALLET)
        place.operator.declare("budget", "team", **budget)
    await place.publish(5, run=run, window=case.window)
    if case.live:
        approve(place)
    changed = await place.enable()
    began = now()
    entry, run_row = await place.until_decided(since=began)
    assert entry.disposition is Disposition.SUCCEEDED, place.told()
    assert run_row.evidence["version"]["digest"] == place.digest

    case.change(place)
    changed_at = now()
    entry, run_row = await place.until_decided(since=changed_at)
    assert (entry.disposition, entry.reason) == (Disposition.REFUSED, reason), place.told()
    assert run_row.begun_at is None
    if reason is not Reason.AUTHORITY_UNAVAILABLE:
        looked_at(place, run_row.evidence)

    refused_until = now()
    case.back(place)
    back_at = now()
    # What fell due before it was taken back may still be refused for it, however late that is decided.
    entry, _ = await place.until_decided(since=back_at, due_since=back_at)
    assert entry.disposition is Disposition.SUCCEEDED, place.told()
    between = [each for each, row in place.decided(since=changed_at) if row.decided_at < refused_until]
    assert {each.reason for each in between} == {reason}
    assert place.activation(changed.key.generation).is_live, "a refusal ends nothing"
    await place.proven()


def looked_at(place: Place, evidence: dict[str, Any]) -> None:
    """The evidence is a sentence, and what was looked at by its version; nothing else of the declarations."""
    assert evidence["sentence"].endswith(".")
    assert evidence["person"] == "ada"
    assert evidence["looked_at"], "something was looked at"
    assert all(isinstance(version, int) and version > 0 for version in evidence["looked_at"].values())
    assert not {"readers", "url", "secret"} & set(json.dumps(evidence).replace('"', " ").split())


def test_every_reason_to_refuse_is_tried_here_or_elsewhere() -> None:
    refusals = list(Reason)[list(Reason).index(Reason.RUNTIME_UNCONFIGURED) : list(Reason).index(Reason.RUN_LOST)]
    assert set(refusals) <= {*CASES, *ELSEWHERE}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory, request) -> dict[Reason, BaseException | None]:
    """How each case ended."""
    wanted = {item.callspec.params["reason"] for item in request.session.items if _is_case(item, request)}

    async def told() -> list[BaseException | None]:
        async with strict_house(tmp_path_factory.mktemp("strict"), monkeypatch) as strict:
            return await asyncio.gather(
                *(refused_for_one_fact(strict, reason, CASES[reason]) for reason in CASES if reason in wanted),
                return_exceptions=True,
            )

    with pytest.MonkeyPatch.context() as monkeypatch:
        ends = asyncio.run(told())
    return dict(zip((reason for reason in CASES if reason in wanted), ends, strict=True))


def _is_case(item: pytest.Item, request: pytest.FixtureRequest) -> bool:
    return item.path == request.path and hasattr(item, "callspec") and "reason" in item.callspec.params


@pytest.mark.parametrize("reason", CASES)
def test_a_fact_that_changes_refuses_the_next_occurrence_by_its_code_and_the_schedule_goes_on(outcomes, reason):
    if (failure := outcomes[reason]) is not None:
        raise failure
