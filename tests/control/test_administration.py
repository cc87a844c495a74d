"""What operators declare and do, on each database: a file is applied whole, and acts touch what they name and nothing else."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from horarium.catalog import money
from horarium.catalog.declarations import list_declarations
from horarium.catalog.environments import find_environment, require_environment
from horarium.catalog.moved_on import count_enabled_before, enabled_before
from horarium.catalog.schedules import require_schedule
from horarium.control import administration, declaring, overview
from horarium.control.activation import Reviewed, enable
from horarium.control.judgement import judge, question_about
from horarium.control.principals import OPERATOR_SCOPE, Principal, PrincipalKind
from horarium.control.stepping import Status
from horarium.control.sweeping import review_enabled_before
from horarium.errors import Conflict, Forbidden, InvalidSchedule, NotFound
from horarium.schedule.identity import Scope, schedule_key
from tests.control.caller import new_key, own_environment, principal
from tests.control.desk import NOON, Desk, Loop, at, every

_organizations = itertools.count(1)


def operator(org_id: str, name: str = "olga", kind: PrincipalKind = PrincipalKind.HUMAN) -> Principal:
    return principal(name, kind, org_id=org_id, scopes=OPERATOR_SCOPE)


@dataclass(slots=True)
class Office:
    """An operator of an organization of her own, and one environment of it."""

    desk: Desk
    scope: Scope
    by: Principal = field(init=False)

    def __post_init__(self) -> None:
        self.by = operator(self.scope.org_id)

    def file(self, **kinds: Any) -> dict[str, Any]:
        settings = {"mode": "test", "runtime_profile": "embedded"}
        names = {"organization": self.scope.org_id, "environment": self.scope.environment_id}
        return {**names, **settings, **kinds}

    def apply(
        self, file: dict[str, Any], *, key: str | None = None, by: Principal | None = None
    ) -> list[dict[str, Any]]:
        return self.act(declaring.apply, file, key=key, by=by)["changes"]

    def preview(self, file: dict[str, Any]) -> list[dict[str, Any]]:
        return self.desk.read(declaring.preview_of, self.by, self.scope, file)["changes"]

    def act(self, what: Any, request: dict[str, Any], *, key: str | None = None, by: Principal | None = None) -> Any:
        receipt = self.desk.write(what, by or self.by, self.scope, request, key or new_key(), now=self.desk.now)
        return receipt.document

    def stop(self, *, everywhere: bool = False, because: str = "A drill.") -> Any:
        return self.act(administration.stop, {"everywhere": everywhere, "because": because})

    def lift(self, *, everywhere: bool = False) -> Any:
        return self.act(administration.lift, {"everywhere": everywhere})

    def change(self, *, epoch: int = 1, reset: int = 1) -> dict[str, Any]:
        return {"because": "A drill.", "expected_environment_epoch": epoch, "expected_reset_generation": reset}

    def see(self) -> dict[str, Any]:
        return self.desk.read(overview.overview, self.scope)

    def acts(self) -> list[tuple[str, bool]]:
        found = self.desk.read(overview.acts, self.scope, after=0, limit=99)
        return [(each["kind"], each["everywhere"]) for each in found]


@pytest.fixture
def office(desk: Desk) -> Office:
    """Nothing is there yet, not even the environment."""
    return Office(desk, Scope(org_id=f"org{next(_organizations)}", environment_id="production"))


def summary(changes: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(each["action"], each["kind"], each["name"]) for each in changes]


PEOPLE = {"ada": {}, "grace": {}}
BUDGET = {"usage_classes": ["test_compute"], "pays_by": "credits", "limit": 100, "currency": "EUR"}
WALLET = {"unpaid_limit": 50, "currency": "EUR"}


def test_a_file_creates_its_environment_with_everything_in_it(office: Office) -> None:
    changes = office.apply(office.file(people=PEOPLE, budgets={"main": BUDGET}))
    assert summary(changes) == [
        ("created", "environment", "production"),
        ("created", "person", "ada"),
        ("created", "person", "grace"),
        ("created", "budget", "main"),
    ]
    environment = office.desk.read(require_environment, office.scope)
    assert (environment.mode, environment.authority_epoch, environment.reset_generation) == ("test", 1, 1)
    assert environment.development is False
    seen = office.see()
    assert seen["declared"]["budgets"]["main"]["facts"] == BUDGET
    assert seen["budgets"]["main"] == {"currency": "EUR", "limit": 100, "reserved": 0, "spent": 0, "room": 100}


def test_the_same_file_again_changes_nothing_and_records_nothing(office: Office) -> None:
    file = office.file(people=PEOPLE, budgets={"main": BUDGET})
    office.apply(file)
    before = office.see()
    assert office.apply(file) == []
    assert office.see() == before


def test_a_dry_run_tells_what_an_application_would_change_and_changes_nothing(office: Office) -> None:
    first = office.file(people=PEOPLE)
    told = office.preview(first)
    assert office.desk.read(find_environment, office.scope) is None
    assert told == office.apply(first)
    second = office.file(people={"ada": {"left": True}}, runtime_profile=None)
    before = office.see()
    told = office.preview(second)
    assert office.see() == before
    assert told == office.apply(second)
    assert [(each["from"], each["to"]) for each in told[1:]] == [({}, {"left": True}), ({}, None)]


def test_a_kind_that_is_left_out_is_left_alone_and_one_that_is_there_is_complete(office: Office) -> None:
    office.apply(office.file(people=PEOPLE, budgets={"main": BUDGET, "other": BUDGET}))
    changes = office.apply(office.file(budgets={"main": {**BUDGET, "limit": 200}}))
    assert summary(changes) == [("changed", "budget", "main"), ("withdrawn", "budget", "other")]
    assert set(office.see()["declared"]["people"]) == set(PEOPLE)
    assert office.apply(office.file(people={})) != []
    assert office.see()["declared"]["people"] == {}


def test_only_what_changes_has_a_new_version_which_is_the_number_of_its_act(office: Office) -> None:
    office.apply(office.file(budgets={"main": BUDGET, "other": BUDGET}))
    before = office.see()["declared"]["budgets"]
    office.apply(office.file(budgets={"main": {**BUDGET, "limit": 7}, "other": BUDGET}))
    seen = office.see()
    assert seen["declared"]["budgets"]["other"] == before["other"]
    assert seen["declared"]["budgets"]["main"]["version"] == seen["acts"][0]["id"] > before["main"]["version"]


def test_what_changes_for_the_organization_stands_in_the_story_of_every_environment(office: Office) -> None:
    office.apply(office.file(people=PEOPLE, budgets={"main": BUDGET}))
    neighbour = Office(office.desk, Scope(org_id=office.scope.org_id, environment_id="staging"))
    neighbour.apply(neighbour.file())
    assert office.acts() == [("applied", True), ("applied", False)]
    assert neighbour.acts() == [("applied", True), ("applied", False)]
    assert set(neighbour.see()["declared"]["people"]) == set(PEOPLE)
    assert neighbour.see()["declared"]["budgets"] == {}


def test_an_application_touches_no_number_no_stop_and_no_counter(office: Office) -> None:
    office.apply(office.file(budgets={"main": BUDGET}))
    office.act(administration.advance_epoch, office.change())
    office.stop()
    money_of = {"budget": "main", "wallet": None, "amount": 30, "remote": False, "now": NOON}
    office.desk.write(money.reserve, office.scope, new_key(), **money_of)
    before = office.see()
    office.apply(office.file(budgets={}, mode="simulation"))
    after = office.see()
    assert after["mode"] == "simulation"
    assert (after["authority_epoch"], after["reset_generation"]) == (2, 1)
    assert after["stops"] == before["stops"] != []
    assert after["budgets"]["main"] == {"currency": None, "limit": None, "reserved": 30, "spent": 0, "room": None}


@pytest.mark.parametrize(
    ("kinds", "pointer"),
    [
        ({"people": {"ada": {"lefft": True}}}, "/people/ada/lefft"),
        ({"budgets": {"main": {**BUDGET, "pays_by": "wallet", "wallet": "purse"}}}, "/budgets/main/wallet"),
    ],
)
def test_a_file_with_a_fault_changes_nothing_and_creates_no_environment(
    office: Office, kinds: dict[str, Any], pointer: str
) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        office.apply(office.file(**kinds))
    assert [fault.pointer for fault in refused.value.faults] == [pointer]
    assert office.desk.read(find_environment, office.scope) is None


def test_what_a_file_refers_to_may_be_declared_already_and_may_not_be_withdrawn(office: Office) -> None:
    paid = {**BUDGET, "pays_by": "wallet", "wallet": "purse"}
    office.apply(office.file(wallets={"purse": WALLET}))
    office.apply(office.file(budgets={"main": paid}))
    with pytest.raises(InvalidSchedule) as refused:
        office.apply(office.file(wallets={}))
    assert [(fault.pointer, fault.code) for fault in refused.value.faults] == [("/wallets", "wallet_missing")]
    assert summary(office.apply(office.file(wallets={}, budgets={}))) == [
        ("withdrawn", "budget", "main"),
        ("withdrawn", "wallet", "purse"),
    ]


@pytest.mark.parametrize("kind", ["budgets", "wallets"])
def test_what_was_counted_is_of_one_currency_and_stays_so(office: Office, kind: str) -> None:
    """Amounts are of minor units, whatever the currency is called: what is owed in euros would be owed in yen."""
    both = {"budgets": {"main": {**BUDGET, "pays_by": "wallet", "wallet": "purse"}}, "wallets": {"purse": WALLET}}
    in_yen = {of: {name: {**each, "currency": "JPY"} for name, each in named.items()} for of, named in both.items()}
    office.apply(office.file(**both))
    office.apply(office.file(**in_yen))
    office.apply(office.file(**both))
    account = {"budgets": (money.BUDGET, "main"), "wallets": (money.WALLET, "purse")}[kind]
    office.desk.write(count, office.scope, *account)
    with pytest.raises(InvalidSchedule) as refused:
        office.apply(office.file(**in_yen))
    at = f"/{kind}/{account[1]}/currency"
    assert [(each.pointer, each.code) for each in refused.value.faults] == [(at, "currency_counted")]
    assert office.apply(office.file(**both)) == []


def count(connection: Any, scope: Scope, kind: str, name: str) -> None:
    """As if something had been spent, or was owed."""
    money.collect(connection, scope, name, -1) if kind == money.WALLET else money.reserve(
        connection, scope, new_key(), budget=name, wallet=None, amount=1, remote=False, now=NOON
    )


def test_a_file_about_another_environment_is_refused(office: Office) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        office.apply({**office.file(), "organization": "else", "environment": "where"})
    assert [fault.code for fault in refused.value.faults] == ["other_organization", "other_environment"]


def test_payments_that_no_schedule_can_make_are_declared_all_the_same(office: Office) -> None:
    declared = {"a": {**BUDGET, "pays_by": "x402"}, "b": {**BUDGET, "per_run": True}}
    assert len(office.apply(office.file(budgets=declared))) == 3


def test_a_key_is_bound_to_one_file(office: Office) -> None:
    first = office.file(people=PEOPLE)
    office.apply(first, key="k")
    office.apply(office.file(people={}))
    again = office.act(declaring.apply, first, key="k")
    assert again["replayed"] is True
    assert office.see()["declared"]["people"] == {}
    with pytest.raises(Conflict):
        office.apply(office.file(people={}), key="k")


def test_a_key_applies_files_and_does_nothing_else(office: Office) -> None:
    program = operator(office.scope.org_id, "ci", PrincipalKind.KEY)
    office.apply(office.file(wallets={"purse": WALLET}), by=program)
    for act, request in ACTS.items():
        with pytest.raises(Forbidden) as refused:
            office.act(getattr(administration, act), request, by=program)
        assert refused.value.code == "human_session_required"


REFERENCE = {"schedule_id": "7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11", "revision": 1, "digest": "sha256:" + "0" * 64}
CHANGE = {"because": "A drill.", "expected_environment_epoch": 1, "expected_reset_generation": 1}
ACTS: dict[str, dict[str, Any]] = {
    "stop": {"because": "A drill."},
    "lift": {},
    "advance_epoch": CHANGE,
    "reset": CHANGE,
    "collect": {"wallet": "purse", "amount": 1},
    "approve": {"version": REFERENCE, "expires_at": "2027-01-31T12:00:00Z"},
}


@pytest.mark.parametrize("act", ACTS)
def test_an_act_is_an_operators_and_of_the_own_organization(office: Office, act: str) -> None:
    office.apply(office.file())
    schedules_only = principal("ada", org_id=office.scope.org_id)
    with pytest.raises(Forbidden) as refused:
        office.act(getattr(administration, act), ACTS[act], by=schedules_only)
    assert refused.value.code == "scope_missing"
    with pytest.raises(NotFound) as hidden:
        office.act(getattr(administration, act), ACTS[act], by=operator("globex"))
    assert hidden.value.code == "environment_not_found"
    assert office.acts() == [("applied", False)]


@pytest.mark.parametrize(
    ("act", "change", "pointer"),
    [
        ("stop", {"because": ""}, "/because"),
        ("stop", {"because": "two\nlines"}, "/because"),
        ("stop", {"because": "x" * 1_001}, "/because"),
        ("stop", {"everywhere": "yes"}, "/everywhere"),
        ("lift", {"because": "no reason is asked"}, "/because"),
        ("reset", {"expected_reset_generation": "1"}, "/expected_reset_generation"),
        ("collect", {"amount": 0}, "/amount"),
        ("collect", {"amount": 1.5}, "/amount"),
        ("collect", {"amount": 10**15 + 1}, "/amount"),
        ("collect", {"wallet": "/"}, "/wallet"),
        ("approve", {"expires_at": "soon"}, "/expires_at"),
        ("approve", {"expires_at": "2026-11-30T12:00:00Z"}, "/expires_at"),
    ],
)
def test_a_request_with_a_fault_is_refused_at_its_place(
    office: Office, act: str, change: dict[str, Any], pointer: str
) -> None:
    office.apply(office.file())
    with pytest.raises(InvalidSchedule) as refused:
        office.act(getattr(administration, act), {**ACTS[act], **change})
    assert [fault.pointer for fault in refused.value.faults] == [pointer]


@pytest.mark.parametrize("everywhere", [False, True])
def test_a_stop_stays_as_it_was_put_on_until_it_is_lifted(office: Office, everywhere: bool) -> None:
    office.apply(office.file())
    assert office.stop(everywhere=everywhere)["changed"] is True
    office.desk.now = at(60)
    again = office.stop(everywhere=everywhere, because="Another reason.")
    assert (again["changed"], again["because"], again["since"]) == (False, "A drill.", "2026-11-30T12:00:00Z")
    assert [each["everywhere"] for each in office.see()["stops"]] == [everywhere]
    assert office.lift(everywhere=not everywhere)["changed"] is False
    assert office.lift(everywhere=everywhere)["changed"] is True
    assert office.lift(everywhere=everywhere)["changed"] is False
    assert office.see()["stops"] == []
    assert office.acts() == [("applied", False), ("stopped", everywhere), ("lifted", everywhere)]


def test_a_stop_of_the_organization_is_on_in_each_of_its_environments_and_in_no_other(office: Office) -> None:
    office.apply(office.file())
    neighbour = Office(office.desk, Scope(org_id=office.scope.org_id, environment_id="staging"))
    stranger = Office(office.desk, Scope(org_id=f"org{next(_organizations)}", environment_id="production"))
    for each in (neighbour, stranger):
        each.apply(each.file())
    office.stop(everywhere=True)
    office.stop()
    assert [len(each.see()["stops"]) for each in (office, neighbour, stranger)] == [2, 1, 0]


def test_a_stop_asks_for_no_state_of_the_environment_and_its_receipt_outlives_a_reset(office: Office) -> None:
    office.apply(office.file())
    request = {"because": "A drill."}
    office.act(administration.stop, request, key="k")
    office.act(administration.reset, office.change(), key="r")
    assert office.act(administration.stop, request, key="k")["replayed"] is True
    again = office.act(administration.reset, office.change(), key="r")
    assert (again["replayed"], again["reset_generation"]) == (True, 2)
    assert office.see()["reset_generation"] == 2


@pytest.mark.parametrize(("act", "number"), [("advance_epoch", "authority_epoch"), ("reset", "reset_generation")])
def test_a_change_of_the_environment_is_of_the_state_that_was_reviewed(office: Office, act: str, number: str) -> None:
    office.apply(office.file())
    told = office.act(getattr(administration, act), office.change())
    assert (told["from"], told["to"]) == (1, 2)
    assert office.see()[number] == 2
    with pytest.raises(Conflict):
        office.act(getattr(administration, act), office.change())
    assert office.see()[number] == 2


def live(desk: Desk, count: int) -> list[Loop]:
    """So many enabled schedules in one environment of their own."""
    scope = own_environment(desk)
    first = desk.enabled(every(3600))
    others = [Desk(desk.catalog) for _ in range(count - 1)]
    for other in others:
        other.key = schedule_key(scope, other.key.schedule_id)
    return [first, *(other.enabled(every(3600)) for other in others)]


@pytest.mark.parametrize("act", ["advance_epoch", "reset"])
def test_what_was_enabled_before_goes_to_review_also_where_the_command_dies_in_the_middle(desk: Desk, act: str) -> None:
    loops = live(desk, 5)
    office = Office(desk, desk.key.scope)
    told = office.act(getattr(administration, act), CHANGE)
    assert told["to_review"] == 5
    page = desk.read(enabled_before, office.scope, limit=2)
    assert desk.write(review_enabled_before, [key for _, key in page], now=desk.now) == 2
    # Here the command dies, and the controller looks.
    assert desk.read(count_enabled_before, office.scope) == 3
    page = desk.read(enabled_before, office.scope, limit=100)
    assert desk.write(review_enabled_before, [key for _, key in page], now=desk.now) == 3
    assert desk.read(count_enabled_before, office.scope) == 0
    assert {loop.desk.activation().ended_as for loop in loops} == {"review"}
    assert {loop.step() for loop in loops} == {Status.ENDED}


def test_what_was_enabled_after_a_reset_is_left_alone(desk: Desk) -> None:
    (loop,) = live(desk, 1)
    office = Office(desk, desk.key.scope)
    office.act(administration.reset, CHANGE)
    stale = desk.read(enabled_before, office.scope, limit=100)
    desk.enable()
    assert desk.write(review_enabled_before, [key for _, key in stale], now=desk.now) == 0
    assert desk.activation().is_live
    assert loop.step() is Status.ENDED


def test_a_collection_takes_what_was_paid_off_what_is_owed_and_never_more(office: Office) -> None:
    office.apply(
        office.file(wallets={"purse": WALLET}, budgets={"main": {**BUDGET, "pays_by": "wallet", "wallet": "purse"}})
    )
    run = new_key()
    office.desk.write(
        money.reserve, office.scope, run, budget="main", wallet="purse", amount=40, remote=False, now=NOON
    )
    office.desk.write(money.settle, run, spent=30, now=NOON)
    request = {"wallet": "purse", "amount": 20}
    assert office.act(administration.collect, request, key="k")["owed"] == 10
    assert office.act(administration.collect, request, key="k")["replayed"] is True
    with pytest.raises(Conflict) as refused:
        office.act(administration.collect, request)
    assert refused.value.code == "owes_less"
    assert "owes 10" in refused.value.sentence
    assert office.see()["wallets"]["purse"]["owed"] == 10
    assert office.act(administration.collect, {"wallet": "purse", "amount": 10})["owed"] == 0


def approval_of(desk: Desk, published: Any, **other: Any) -> dict[str, Any]:
    version = published.version
    reference = {"schedule_id": desk.key.schedule_id, "revision": version.revision, "digest": version.digest}
    return {"version": {**reference, **other}, "expires_at": "2027-01-31T12:00:00Z"}


def test_an_approval_is_of_one_exact_version(desk: Desk) -> None:
    office = Office(desk, own_environment(desk))
    first = desk.publish(every(60))
    second = desk.publish(every(61), expected=1)
    told = office.act(administration.approve, approval_of(desk, first))
    assert (told["changed"], told["by"], told["expires_at"]) == (True, "olga", "2027-01-31T12:00:00Z")
    assert set(office.see()["declared"]["approvals"]) == {first.version.digest}
    assert office.act(administration.approve, approval_of(desk, first))["changed"] is False
    with pytest.raises(Conflict) as refused:
        office.act(administration.approve, approval_of(desk, first, digest=second.version.digest))
    assert refused.value.code == "digest_conflict"
    with pytest.raises(NotFound):
        office.act(administration.approve, approval_of(desk, first, revision=3))
    assert office.acts() == [("approved", False)]


def test_an_approval_is_what_the_rules_ask_for(desk: Desk) -> None:
    office = Office(desk, own_environment(desk))
    document = every(60)
    document["run"] |= {"usage_class": "live", "budget_id": "main"}
    published = desk.publish(document)
    office.apply(
        office.file(
            mode="live",
            live_needs_approval=True,
            people={"ada": {}},
            agents={"worked@1": {"max_cost": 5, "max_run_seconds": 60}},
            inputs={"in": {"readers": ["ada"]}},
            outputs={"out": {}},
            budgets={"main": {**BUDGET, "usage_classes": ["live"]}},
        )
    )

    def against() -> list[str]:
        def judged(connection: Any) -> list[str]:
            schedule = require_schedule(connection, desk.key)
            question = question_about(schedule, published.version, person="ada")
            found = judge(connection, question, desk.content, now=desk.now)
            return [each.reason.value for each in found.objections]

        return desk.read(judged)

    assert against() == ["approval_missing"]
    office.act(administration.approve, approval_of(desk, published))
    assert against() == []
    assert desk.write(enable, desk.key, Reviewed(), desk.content, by="ada", now=desk.now).activation.is_live


def at_once(*acts: Any) -> list[Any]:
    """Let several act at the same time; what each answers, or raises."""
    ready = threading.Barrier(len(acts))

    def one(act: Any) -> Any:
        ready.wait()
        return act()

    with ThreadPoolExecutor(len(acts)) as pool:
        return [future.result() for future in [pool.submit(one, act) for act in acts]]


def test_of_many_who_create_an_environment_at_once_one_does_and_the_others_find_it(office: Office) -> None:
    office.desk.workers_beat = False
    file = office.file(people=PEOPLE, budgets={"main": BUDGET})
    answers = at_once(*[lambda: office.apply(file) for _ in range(8)])
    assert sorted(map(len, answers)) == [0] * 7 + [4]
    assert office.acts() == [("applied", True), ("applied", False)]


@pytest.mark.parametrize("turn", range(5))
def test_of_two_who_declare_the_people_at_once_from_two_environments_one_is_whole(office: Office, turn: int) -> None:
    """Neither sees the other's environment, so nothing but the organization itself keeps them apart."""
    office.desk.workers_beat = False
    neighbour = Office(office.desk, Scope(org_id=office.scope.org_id, environment_id=f"staging{turn}"))
    mine, theirs = ({f"{who}{number}": {} for number in range(20)} for who in ("a", "b"))
    at_once(lambda: office.apply(office.file(people=mine)), lambda: neighbour.apply(neighbour.file(people=theirs)))
    assert set(office.see()["declared"]["people"]) in (set(mine), set(theirs))


@pytest.mark.parametrize("everywhere", [False, True])
def test_of_many_who_stop_at_once_one_is_recorded(office: Office, everywhere: bool) -> None:
    office.desk.workers_beat = False
    office.apply(office.file())
    answers = at_once(*[lambda: office.stop(everywhere=everywhere) for _ in range(6)])
    assert sorted(each["changed"] for each in answers) == [False] * 5 + [True]
    assert office.acts() == [("applied", False), ("stopped", everywhere)]


def test_the_row_of_the_organization_is_no_declaration(office: Office) -> None:
    office.apply(office.file(people=PEOPLE))
    assert {each.kind for each in office.desk.read(list_declarations, office.scope)} == {"person"}
