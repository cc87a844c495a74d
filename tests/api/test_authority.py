"""What operators do over HTTP: a file of declarations, and acts with receipts."""

import asyncio
import itertools

import pytest

from horarium.api import examples, models
from horarium.api.routes import authority
from horarium.control.principals import OPERATOR_SCOPE
from tests.api.house import EXPECTED, HUMAN, OPERATOR, Api, make_catalog, new, token
from tests.control.caller import refusing

PROGRAM = token(sub="ci", kind="key", scope=OPERATOR_SCOPE)
_numbers = itertools.count(1)


class Office:
    """An environment of acme that a test has to itself."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.name = f"own{next(_numbers)}"

    def path(self, end: str = "") -> str:
        return f"!/v1/organizations/acme/environments/{self.name}/authority{end}"

    def file(self, **kinds):
        settings = {"mode": "test", "runtime_profile": "embedded"}
        return {"organization": "acme", "environment": self.name, **settings, **kinds}

    def apply(self, file, *, dry_run: bool = False, by: str = OPERATOR, key: str | None = None):
        end = "?dry_run=true" if dry_run else ""
        return self.api.ask("PUT", self.path(end), json=file, key=key or new(), by=by)

    def act(self, name, body, *, by: str = OPERATOR, key: str | None = None):
        return self.api.post(self.path(f"/{name}"), body, key=key or new(), by=by)

    def see(self):
        return self.api.get(self.path(), by=OPERATOR)


@pytest.fixture
def office(api) -> Office:
    return Office(api)


def test_a_file_creates_an_environment_of_the_tokens_organization(office):
    assert office.see().status_code == 404
    told = office.apply(office.file(outputs={"reports": {}}), dry_run=True)
    assert (told.status_code, told.json()["dry_run"]) == (200, True)
    assert office.see().status_code == 404
    answer = office.apply(office.file(outputs={"reports": {}}), by=PROGRAM)
    assert answer.status_code == 200, answer.text
    assert answer.json()["changes"] == told.json()["changes"]
    assert [(each["kind"], each["name"]) for each in answer.json()["changes"]] == [
        ("environment", office.name),
        ("output", "reports"),
    ]
    assert office.see().json()["declared"]["outputs"] == {
        "reports": {"version": office.see().json()["acts"][0]["id"], "facts": {}}
    }
    assert office.apply(office.file(outputs={"reports": {}})).json()["changes"] == []


def test_a_file_that_was_applied_is_answered_again_where_this_release_would_refuse_it(office, monkeypatch):
    file, key = office.file(outputs={"reports": {}}), new()
    first = office.apply(file, key=key).json()
    monkeypatch.setattr(authority, "read_declarations", refusing)
    assert office.apply(file, key=key).json() == {**first, "replayed": True}
    assert office.apply(file, key=new()).status_code == 422
    assert office.apply(file, dry_run=True).status_code == 422


def test_answers_are_what_the_page_promises(office):
    models.Applied.model_validate(office.apply(office.file(), dry_run=True).json())
    models.Applied.model_validate(office.apply({**examples.AUTHORITY_FILE, "environment": office.name}).json())
    for name, body in {"stop": examples.STOP, "lift": examples.LIFT, "epoch": examples.CHANGE_ENVIRONMENT}.items():
        answer = office.act(name, body)
        assert answer.status_code == 201, answer.text
        models.AuthorityReceipt.model_validate(answer.json())
    models.AuthorityOverview.model_validate(office.see().json())
    models.Acts.model_validate(office.api.get(office.path("/events"), by=OPERATOR).json())


def test_a_receipt_of_an_operator_is_found_by_its_key(office):
    office.apply(office.file())
    receipt = office.act("stop", {"because": "A drill."}, key="mine").json()
    environment = office.path().removesuffix("/authority")
    found = office.api.get(f"{environment}/receipts/mine", by=OPERATOR).json()
    assert found == {**receipt, "replayed": True}
    models.Receipt.model_validate(found)


def test_all_faults_of_a_file_are_told_at_once_with_their_places(office):
    budget = {"usage_classes": ["live"], "pays_by": "cash", "limit": -1, "currency": "EUR"}
    answer = office.apply(office.file(budgets={"main": budget}, peeple={}))
    assert answer.status_code == 422
    assert [each["pointer"] for each in answer.json()["errors"]] == [
        "/budgets/main/pays_by",
        "/budgets/main/limit",
        "/peeple",
    ]
    assert office.see().status_code == 404


@pytest.mark.parametrize(
    ("method", "end"),
    [
        ("GET", ""),
        ("PUT", ""),
        ("GET", "/events"),
        *(("POST", f"/{name}") for name in ("stop", "lift", "epoch", "reset", "collections", "approvals")),
    ],
)
def test_the_scope_of_schedules_allows_nothing_of_operators(office, method, end):
    parts = {} if method == "GET" else {"json": {}, "key": new()}
    answer = office.api.ask(method, office.path(end), by=HUMAN, **parts)
    assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")
    assert OPERATOR_SCOPE in answer.json()["detail"]


@pytest.mark.parametrize("name", ["stop", "lift", "epoch", "reset", "collections", "approvals"])
def test_what_only_a_person_may_do_is_refused_to_a_key(office, name):
    office.apply(office.file())
    answer = office.act(name, {}, by=PROGRAM)
    assert (answer.status_code, answer.json()["code"]) == (403, "human_session_required")


def test_an_installation_may_name_another_scope(catalog):
    named = Api(catalog, operator_scope="ops")
    try:
        assert named.get("/authority", by=OPERATOR).status_code == 403
        assert named.get("/authority", by=token(scope="ops")).status_code == 200
    finally:
        named.close()


def test_a_stop_refuses_enabling_with_its_reason_until_it_is_lifted(api):
    receipt = api.publish()
    try:
        stopped = api.post("/authority/stop", {"because": "A drill."}, key=new(), by=OPERATOR)
        assert stopped.json()["changed"] is True
        refused = api.change(receipt, 0, "enable")
        assert (refused.status_code, refused.json()["code"]) == (409, "stopped_by_operator")
        assert "A drill." in refused.json()["detail"]
    finally:
        api.post("/authority/lift", {}, key=new(), by=OPERATOR)
    assert api.change(receipt, 0, "enable").status_code == 201


def test_a_stop_needs_no_state_that_was_reviewed_and_a_reset_does(office):
    office.apply(office.file())
    assert office.act("reset", {"because": "A drill.", **EXPECTED}).status_code == 201
    stale = office.act("reset", {"because": "A drill.", **EXPECTED})
    assert (stale.status_code, stale.json()["code"]) == (409, "environment_reset")
    assert office.act("stop", {"because": "A drill."}).status_code == 201


def test_after_a_reset_what_was_enabled_goes_to_review_while_nobody_waits(tmp_path):
    """In a catalog of its own, whose environment other tests do not need any more."""
    own = make_catalog(tmp_path)
    api = Api(own)
    receipts = [api.publish() for _ in range(3)]
    for receipt in receipts:
        assert api.change(receipt, 0, "enable").status_code == 201
    answer = api.post("/authority/reset", {"because": "A drill.", **EXPECTED}, key=new(), by=OPERATOR)
    assert (answer.status_code, answer.json()["to_review"]) == (201, 3)
    errands = api.app.state.service.errands
    if errands:
        api.run(asyncio.wait(errands))
    for receipt in receipts:
        runtime = api.get(f"/schedules/{receipt['schedule_id']}").json()["runtime"]
        assert runtime["state"] == "review"
        assert "environment_reset" in runtime["reason"]
    api.close()
    own.close()


def test_a_collection_of_more_than_is_owed_says_what_is_owed(office):
    office.apply(office.file(wallets={"purse": {"unpaid_limit": 1, "currency": "EUR"}}))
    answer = office.act("collections", {"wallet": "purse", "amount": 7})
    assert (answer.status_code, answer.json()["code"]) == (409, "owes_less")
    assert "owes 0" in answer.json()["detail"]


def test_an_approval_of_a_version_stands_under_its_digest(api):
    receipt = api.publish()
    body = {"version": receipt["reference"], "expires_at": "2099-01-01T00:00:00Z"}
    answer = api.post("/authority/approvals", body, key=new(), by=OPERATOR)
    assert answer.status_code == 201, answer.text
    assert answer.json()["reference"] == receipt["reference"]
    approvals = api.get("/authority", by=OPERATOR).json()["declared"]["approvals"]
    assert approvals[receipt["reference"]["digest"]]["facts"] == {"by": "olga", "expires_at": "2099-01-01T00:00:00Z"}


def test_events_come_in_pages(office):
    office.apply(office.file())
    for name in ("stop", "lift", "stop"):
        office.act(name, {"because": "A drill."} if name == "stop" else {})
    kinds, after = [], 0
    while after is not None:
        page = office.api.get(office.path(f"/events?limit=2&after={after}"), by=OPERATOR).json()
        assert len(page["events"]) <= 2
        # Other tests declare people of the organization.
        kinds += [each["kind"] for each in page["events"] if not each["everywhere"]]
        after = page["next_cursor"]
    assert kinds == ["applied", "stopped", "lifted", "stopped"]


def test_a_file_may_be_larger_than_any_other_body_and_is_bounded_all_the_same(office):
    """Ten thousand inputs, and their readers by name."""
    inputs = {f"inbox/{number}": {"readers": ["ada@acme.example"]} for number in range(10_000)}
    answer = office.apply(office.file(inputs=inputs))
    assert answer.status_code == 200, answer.text[:500]
    assert len(answer.json()["changes"]) == 10_001
    assert len(office.see().json()["declared"]["inputs"]) == 10_000
    larger = office.apply(office.file(inputs={"a": {"readers": ["x" * 200] * 22_000}}))
    assert (larger.status_code, larger.json()["code"]) == (413, "body_too_large")
    small = office.act("stop", {"because": "x" * 300_000})
    assert (small.status_code, small.json()["code"]) == (413, "body_too_large")
