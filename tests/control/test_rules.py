"""The rules of admission by themselves: what admits, and which one fact speaks against a run (DESIGN.md, section 8)."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from horarium.authority.declared import Agent, Approval, Budget, Grant, Output, Wallet
from horarium.authority.facts import Facts, InputFacts, Presence, Question, Stop, Surroundings, evidence_of
from horarium.authority.rules import Objection, input_objections, objections, person_objections, reservation_of
from horarium.schedule.configuration import RunRequest, UsageClass
from horarium.schedule.ledger import Reason
from tests.control.desk import NOON, SCOPE, at

MOMENT = timedelta(microseconds=1)
REQUEST = RunRequest(
    agent_version="triage@3",
    input="inbox",
    output_target="reports",
    grants=("mail.read", "mail.send"),
    budget_id="team",
    usage_class=UsageClass.LIVE,
)
AGENT = Agent(max_cost=40, max_run_seconds=60)
BUDGET = Budget(usage_classes=("test_compute", "live"), pays_by="wallet", limit=1_000, currency="CHF", wallet="main")
WALLET = Wallet(unpaid_limit=500, currency="CHF")


QUESTION = Question(scope=SCOPE, request=REQUEST, person="ada", digest="sha256:1")
FACTS = Facts(
    member=True,
    agent=AGENT,
    input=InputFacts(readable=True),
    output=Output(),
    grants={"mail.read": Grant(), "mail.send": Grant()},
    budget=BUDGET,
    room=40,
    wallet=WALLET,
    owed=499,
    approval=Approval(by="grace", expires_at=at(3_600)),
)
AROUND = Surroundings(
    mode="live",
    runtime_profile="production",
    live_needs_approval=True,
    environment_epoch=7,
    environment_reset_generation=2,
    epoch=7,
    reset_generation=2,
    stop=None,
    presence=Presence(lifecycle="ready", lease_until=at(30)),
)


@dataclass(frozen=True)
class Case:
    """Everything that is looked at; as it stands here, nothing speaks against the run."""

    question: Question = QUESTION
    facts: Facts = FACTS
    around: Surroundings = AROUND

    def asking(self, **changes: Any) -> "Case":
        return replace(self, question=replace(self.question, request=replace(self.question.request, **changes)))

    def knowing(self, **changes: Any) -> "Case":
        return replace(self, facts=self.facts.model_copy(update=changes))

    def amid(self, **changes: Any) -> "Case":
        return replace(self, around=replace(self.around, **changes))

    def against(self) -> list[Objection]:
        return list(objections(self.question, self.facts, self.around, now=NOON))

    def codes(self) -> list[str]:
        return [each.reason.value for each in self.against()]


Change = Callable[[Case], Case]


def has(fact: str, **changes: Any) -> Change:
    """One declaration says something else."""
    return lambda case: case.knowing(**{fact: getattr(case.facts, fact).model_copy(update=changes)})


def knows(**changes: Any) -> Change:
    return lambda case: case.knowing(**changes)


def amid(**changes: Any) -> Change:
    return lambda case: case.amid(**changes)


def grant(**changes: Any) -> Change:
    """The second of the two grants is another one."""
    return lambda case: case.knowing(grants={**case.facts.grants, "mail.send": Grant(**changes)})


STOP = Stop(everywhere=False, since=at(-5), by="grace", because="A wave of nonsense.")

BREAKS: Mapping[Reason, Change] = {
    Reason.RUNTIME_UNCONFIGURED: amid(runtime_profile=None),
    Reason.STOPPED_BY_OPERATOR: amid(stop=STOP),
    Reason.ENVIRONMENT_EPOCH_CHANGED: amid(environment_epoch=8),
    Reason.ENVIRONMENT_RESET: amid(environment_reset_generation=3),
    Reason.PRINCIPAL_LEFT: knows(member=False),
    Reason.USAGE_CLASS_MISMATCH: amid(mode="test"),
    Reason.APPROVAL_MISSING: knows(approval=None),
    Reason.APPROVAL_EXPIRED: has("approval", expires_at=NOON),
    Reason.AGENT_MISSING: knows(agent=None),
    Reason.AGENT_NOT_SCHEDULABLE: has("agent", schedulable=False),
    Reason.AGENT_WITHDRAWN: has("agent", withdrawn=True),
    Reason.AGENT_NOT_READY: amid(presence=Presence(lifecycle="paused", lease_until=at(30))),
    Reason.AGENT_OFFLINE: amid(presence=Presence(lifecycle="ready", lease_until=at(-60))),
    Reason.INPUT_UNREADABLE: has("input", readable=False),
    Reason.INPUT_EXPIRED: has("input", expires_at=NOON),
    Reason.CONSENT_EXPIRED: has("input", consent_expires_at=NOON),
    Reason.GRANT_MISSING: lambda case: case.knowing(grants={"mail.read": Grant()}),
    Reason.GRANT_EXPIRED: grant(expires_at=NOON),
    Reason.GRANT_REVOKED: grant(revoked=True),
    Reason.BUDGET_MISSING: knows(budget=None),
    Reason.BUDGET_USAGE_CLASS: has("budget", usage_classes=("test_compute",)),
    Reason.PAYMENT_X402: has("budget", pays_by="x402", wallet=None),
    Reason.PAYMENT_PER_RUN: has("budget", per_run=True),
    Reason.BUDGET_EXHAUSTED: knows(room=39),
    Reason.WALLET_UNPAID_LIMIT: knows(owed=500),
    Reason.WALLET_COLLECTION_FAILED: has("wallet", collection_failed=True),
    Reason.OUTPUT_MISSING: knows(output=None),
    Reason.OUTPUT_FORBIDDEN: has("output", writable=False),
}
"""In the order of section 8, one fact that is not as it should be."""
HIDES: Mapping[Reason, set[Reason]] = {
    Reason.APPROVAL_MISSING: {Reason.APPROVAL_EXPIRED},
    Reason.AGENT_MISSING: {
        Reason.AGENT_NOT_SCHEDULABLE,
        Reason.AGENT_WITHDRAWN,
        Reason.AGENT_NOT_READY,
        Reason.AGENT_OFFLINE,
        Reason.BUDGET_EXHAUSTED,  # what it would reserve is not known
    },
    Reason.AGENT_NOT_READY: {Reason.AGENT_OFFLINE},
    Reason.INPUT_UNREADABLE: {Reason.INPUT_EXPIRED, Reason.CONSENT_EXPIRED},
    Reason.GRANT_MISSING: {Reason.GRANT_EXPIRED, Reason.GRANT_REVOKED},
    Reason.GRANT_EXPIRED: {Reason.GRANT_REVOKED},  # here: the same grant, declared again
    Reason.BUDGET_MISSING: {
        Reason.BUDGET_USAGE_CLASS,
        Reason.PAYMENT_X402,
        Reason.PAYMENT_PER_RUN,
        Reason.BUDGET_EXHAUSTED,
        Reason.WALLET_UNPAID_LIMIT,
        Reason.WALLET_COLLECTION_FAILED,
    },
    Reason.PAYMENT_X402: {Reason.WALLET_UNPAID_LIMIT, Reason.WALLET_COLLECTION_FAILED},
    Reason.OUTPUT_MISSING: {Reason.OUTPUT_FORBIDDEN},
}
"""What is not there has no faults of its own, and is not paid from."""
ELSEWHERE = {
    Reason.NOT_IN_CALENDAR: "a matter of the stored calendar: test_admission.py",
    Reason.VERSION_UNUSABLE: "a matter of the stored version: test_unusable_versions.py",
    Reason.AUTHORITY_UNAVAILABLE: "no fact at all, but none: test_asking.py",
    Reason.CEILING_EXCEEDED: "a setting of the installation, and no declaration: test_ceilings.py",
    "breaker_open": "a fault of ours, which no declaration makes",
}


def test_with_everything_as_it_should_be_nothing_speaks_against_a_run() -> None:
    assert Case().codes() == []


@pytest.mark.parametrize("reason", BREAKS)
def test_one_fact_that_has_changed_is_objected_to_by_exactly_its_code(reason: Reason) -> None:
    [objection] = BREAKS[reason](Case()).against()
    assert objection.reason is reason
    assert objection.sentence.endswith(".")
    assert objection.sentence != reason.sentence, "it names what it speaks of"


def test_every_reason_to_refuse_is_tried() -> None:
    refusals = list(Reason)[list(Reason).index(Reason.RUNTIME_UNCONFIGURED) : list(Reason).index(Reason.RUN_LOST)]
    assert set(refusals) <= {*BREAKS, *ELSEWHERE}


PAIRS = list(itertools.combinations(BREAKS, 2))


@pytest.mark.parametrize(("earlier", "later"), PAIRS, ids=[f"{one}-{other}" for one, other in PAIRS])
def test_of_two_reasons_the_one_that_stands_earlier_wins(earlier: Reason, later: Reason) -> None:
    broken = BREAKS[earlier](BREAKS[later](Case())).codes()
    assert broken == ([earlier] if later in HIDES.get(earlier, ()) else [earlier, later])


def test_enabling_is_told_all_reasons_at_once_in_their_order() -> None:
    together = [reason for reason in BREAKS if not any(reason in hidden for hidden in HIDES.values())]
    case = Case()
    for reason in reversed(together):
        case = BREAKS[reason](case)
    assert case.codes() == together
    assert len(together) == 12


class TestBoundaries:
    """What ends at an instant has ended at that instant; a lease that ends at it is still valid."""

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (lambda end: has("approval", expires_at=end), "approval_expired"),
            (lambda end: has("input", expires_at=end), "input_expired"),
            (lambda end: has("input", consent_expires_at=end), "consent_expired"),
            (lambda end: grant(expires_at=end), "grant_expired"),
        ],
        ids=["approval", "input", "consent", "grant"],
    )
    def test_what_expires_now_has_expired(self, change: Callable[[Any], Change], reason: str) -> None:
        assert change(NOON)(Case()).codes() == [reason]
        assert change(NOON - MOMENT)(Case()).codes() == [reason]
        assert change(NOON + MOMENT)(Case()).codes() == []

    def test_a_lease_is_valid_until_its_end_and_with_it(self) -> None:
        assert amid(presence=Presence(lifecycle="running", lease_until=NOON))(Case()).codes() == []
        late = amid(presence=Presence(lifecycle="running", lease_until=NOON - timedelta(seconds=1.5)))(Case())
        [objection] = late.against()
        assert (objection.reason, objection.evidence["offline_seconds"]) == ("agent_offline", 1.5)
        assert "1.5 s ago" in objection.sentence

    def test_a_lease_that_need_not_be_renewed_never_lapses(self) -> None:
        assert amid(presence=Presence(lifecycle="ready", lease_until=None))(Case()).codes() == []

    @pytest.mark.parametrize(("room", "admits"), [(40, True), (39, False), (0, False), (-5, False)])
    def test_a_budget_has_room_for_exactly_what_the_run_reserves(self, room: int, admits: bool) -> None:
        assert (knows(room=room)(Case()).codes() == []) is admits

    def test_a_run_that_may_cost_nothing_still_needs_a_budget_that_is_not_used_up(self) -> None:
        free = has("agent", max_cost=0)(Case())
        assert knows(room=1)(free).codes() == []
        assert knows(room=0)(free).codes() == ["budget_exhausted"]

    @pytest.mark.parametrize(("owed", "admits"), [(499, True), (500, False), (501, False), (-3, True)])
    def test_a_wallet_that_owes_its_limit_pays_no_more(self, owed: int, admits: bool) -> None:
        assert (knows(owed=owed)(Case()).codes() == []) is admits


class TestAfterAStop:
    """Lifting it catches nothing up: what fell due until then is refused, whenever it comes to its decision."""

    @pytest.mark.parametrize(("due", "admits"), [(at(-1), False), (NOON, False), (NOON + MOMENT, True), (None, True)])
    def test_only_what_falls_due_after_it_was_lifted_runs(self, due: Any, admits: bool) -> None:
        against = amid(lifted_at=NOON, due=due)(Case()).against()
        assert [each.reason for each in against] == ([] if admits else ["stopped_by_operator"])
        assert all("before the stop was lifted at 2026-11-30T12:00:00Z" in each.sentence for each in against)

    def test_a_stop_that_is_on_is_told_once(self) -> None:
        assert amid(lifted_at=NOON, due=at(-1), stop=STOP)(Case()).codes() == ["stopped_by_operator"]


class TestWhatIsAsked:
    def test_a_run_of_nobody_is_not_asked_about_a_person_or_an_input(self) -> None:
        case = replace(Case(), question=replace(QUESTION, person=None))
        assert knows(member=False, input=None)(case).codes() == []

    @pytest.mark.parametrize("usage", UsageClass)
    @pytest.mark.parametrize("mode", ["simulation", "test", "live"])
    def test_each_usage_class_fits_one_mode(self, usage: UsageClass, mode: str) -> None:
        fits = {"test_simulation": "simulation", "test_compute": "test", "live": "live"}[usage] == mode
        budget = BUDGET.model_copy(update={"usage_classes": ("test_simulation", "test_compute", "live")})
        case = Case().asking(usage_class=usage).knowing(budget=budget).amid(mode=mode)
        assert case.codes() == ([] if fits else ["usage_class_mismatch"])

    def test_a_simulation_costs_nothing(self) -> None:
        case = Case().asking(usage_class=UsageClass.TEST_SIMULATION, budget_id=None)
        case = case.knowing(budget=None, room=None, wallet=None).amid(mode="simulation")
        assert case.codes() == []
        assert reservation_of(case.question, case.facts) == 0
        assert reservation_of(QUESTION, FACTS) == 40

    def test_a_test_run_needs_no_approval(self) -> None:
        case = Case().asking(usage_class=UsageClass.TEST_COMPUTE).amid(mode="test").knowing(approval=None)
        assert case.codes() == []

    def test_a_live_run_needs_none_where_its_environment_asks_for_none(self) -> None:
        assert Case().knowing(approval=None).amid(live_needs_approval=False).codes() == []

    def test_a_grant_may_be_held_by_named_agents_only(self) -> None:
        assert grant(agents=("triage@3", "other@1"))(Case()).codes() == []
        assert grant(agents=("triage@2",))(Case()).codes() == ["grant_missing"]

    def test_each_grant_is_asked_about(self) -> None:
        assert Case().knowing(grants={}).codes() == ["grant_missing", "grant_missing"]

    def test_credits_need_no_wallet_and_a_wallet_that_is_gone_pays_nothing(self) -> None:
        prepaid = has("budget", pays_by="credits", wallet=None)(Case())
        assert prepaid.knowing(wallet=None, owed=0).codes() == []
        gone = Case().knowing(wallet=None, owed=0)
        assert gone.codes() == ["wallet_unpaid_limit"]
        assert "There is no wallet 'main'" in gone.against()[0].sentence

    def test_an_activation_of_a_release_that_kept_no_epoch_is_not_held_to_one(self) -> None:
        assert amid(epoch=None, reset_generation=None)(Case()).codes() == []

    @pytest.mark.parametrize("lifecycle", ["starting", "paused", "stopped", "failed", "something new"])
    def test_an_agent_that_does_not_say_that_it_takes_runs_gets_none(self, lifecycle: str) -> None:
        case = amid(presence=Presence(lifecycle=lifecycle, lease_until=at(-2)))(Case())
        [objection] = case.against()
        assert (objection.reason, objection.evidence["lifecycle"]) == ("agent_not_ready", lifecycle)
        assert f"is {lifecycle} for 2.0 s" in objection.sentence

    def test_an_agent_that_no_runner_has_ever_reported_is_offline(self) -> None:
        assert amid(presence=None)(Case()).codes() == ["agent_offline"]


class TestReading:
    """A started run is asked at each read about its person and its input, and about nothing else."""

    ABOUT_READING = (
        Reason.PRINCIPAL_LEFT,
        Reason.INPUT_UNREADABLE,
        Reason.INPUT_EXPIRED,
        Reason.CONSENT_EXPIRED,
    )

    @pytest.mark.parametrize("reason", BREAKS)
    def test_only_person_and_input_stop_a_read(self, reason: Reason) -> None:
        case = BREAKS[reason](Case())
        told = [
            *person_objections(case.question, case.facts),
            *input_objections(case.question, case.facts, now=NOON),
        ]
        assert [each.reason for each in told] == ([reason] if reason in self.ABOUT_READING else [])


def test_the_evidence_names_what_was_looked_at_and_holds_no_amounts_of_anybody() -> None:
    case = Case().knowing(versions={"budget/team": 4, "agent/triage@3": 2})
    assert evidence_of(case.question, case.facts, case.around) == {
        "person": "ada",
        "environment": {"mode": "live", "epoch": 7, "reset_generation": 2},
        "looked_at": {"agent/triage@3": 2, "budget/team": 4},
        "agent": {"lifecycle": "ready", "lease_until": at(30).isoformat()},
    }
