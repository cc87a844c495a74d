"""A file of declarations is read strictly, with every fault at its place."""

import copy

import pytest

from horarium.authority.file import MAX_DECLARATIONS, read_declarations
from horarium.authority.references import check_references
from horarium.calendar.faults import Faults
from horarium.errors import InvalidSchedule

BARE = {"organization": "acme", "environment": "test", "mode": "test", "runtime_profile": None}
RUN = {
    "agent_version": "inbox@1",
    "input": "letters",
    "output_target": "reports",
    "grants": ["mail"],
    "budget_id": "main",
    "usage_class": "test_compute",
}
WHOLE = {
    **BARE,
    "people": {"ada@acme.example": {}, "Ada Lovelace": {"left": True}},
    "agents": {
        "inbox@1": {"max_cost": 5, "max_run_seconds": 60},
        "posted@1": {"max_cost": 5, "max_run_seconds": 60, "gateway": "http", "destination": "platform"},
    },
    "inputs": {"letters": {"readers": ["*"], "consent": {"by": "ada", "expires_at": "2027-01-31T12:00:00Z"}}},
    "outputs": {"reports": {}},
    "grants": {"mail": {"agents": ["inbox@1"]}},
    "budgets": {
        "main": {
            "usage_classes": ["test_compute"],
            "pays_by": "wallet",
            "limit": 100,
            "currency": "EUR",
            "wallet": "purse",
        },
        "refused": {"usage_classes": ["live"], "pays_by": "x402", "limit": 1, "currency": "EUR", "per_run": True},
    },
    "wallets": {"purse": {"unpaid_limit": 50, "currency": "EUR"}},
    "approvals": {"sha256:" + "0" * 64: {"by": "ada", "expires_at": "2027-01-31T12:00:00Z"}},
    "destinations": {"platform": {"url": "https://agents.example/runs", "secret": "HORARIUM_SECRET_PLATFORM"}},
    "bindings": {"v0:ws-001/codex": {"run": RUN}, "cron:InboxTriage/daily": {"run": RUN}},
}
NOTHING = object()


def at(document, path, value):
    """A document with another value at a place; `NOTHING` takes out what stands there."""
    changed = copy.deepcopy(document)
    *inside, last = path
    place = changed
    for part in inside:
        place = place[part]
    if value is NOTHING:
        del place[last]
    else:
        place[last] = value
    return changed


def faults(document):
    with pytest.raises(InvalidSchedule) as refused:
        read_declarations(document)
    return [(fault.pointer, fault.code) for fault in refused.value.faults]


def test_a_whole_file_is_read_kind_by_kind():
    read = read_declarations(WHOLE)
    assert {kind: len(named) for kind, named in read.kinds.items()} == {
        "person": 2,
        "agent": 2,
        "input": 1,
        "output": 1,
        "grant": 1,
        "budget": 2,
        "wallet": 1,
        "approval": 1,
        "destination": 1,
        "binding": 2,
    }
    assert read.document == WHOLE


def test_a_kind_that_the_file_does_not_name_is_not_there_and_an_empty_one_is():
    assert set(read_declarations(BARE).kinds) == set()
    assert read_declarations({**BARE, "grants": {}}).kinds == {"grant": {}}


FAULTY = [
    (("organization",), "a/b", "/organization", "invalid_name"),
    (("environment",), NOTHING, "/environment", "missing_field"),
    (("mode",), "production", "/mode", "unknown_value"),
    (("runtime_profile",), NOTHING, "/runtime_profile", "missing_field"),
    (("runtime_profile",), "", "/runtime_profile", "wrong_length"),
    (("development",), True, "/development", "development_and_mode"),
    (("development",), "yes", "/development", "not_a_boolean"),
    (("peeple",), {}, "/peeple", "unknown_field"),
    (("people",), None, "/people", "not_an_object"),
    (("people", " ada"), {}, "/people/ ada", "invalid_name"),
    (("people", "bob"), {"lefft": True}, "/people/bob/lefft", "unknown_field"),
    (("agents", "/inbox"), WHOLE["agents"]["inbox@1"], "/agents/~1inbox", "invalid_name"),
    (("agents", "inbox@1", "max_cost"), 0.5, "/agents/inbox@1/max_cost", "not_an_integer"),
    (("agents", "inbox@1", "max_cost"), True, "/agents/inbox@1/max_cost", "not_an_integer"),
    (("agents", "inbox@1", "max_cost"), 10**16, "/agents/inbox@1/max_cost", "out_of_range"),
    (("agents", "inbox@1", "max_run_seconds"), NOTHING, "/agents/inbox@1/max_run_seconds", "missing_field"),
    (("agents", "posted@1", "destination"), NOTHING, "/agents/posted@1", "destination_and_gateway"),
    (("inputs", "letters", "readers"), "*", "/inputs/letters/readers", "not_an_array"),
    (("inputs", "letters", "readers"), ["ada", "ada"], "/inputs/letters/readers", "duplicate"),
    (("inputs", "letters", "consent", "by"), 7, "/inputs/letters/consent/by", "not_text"),
    (
        ("inputs", "letters", "consent", "expires_at"),
        "2027-01-31T12:00:00",
        "/inputs/letters/consent/expires_at",
        "not_an_instant",
    ),
    (("budgets", "main", "currency"), "eur", "/budgets/main/currency", "invalid_name"),
    (("budgets", "main", "wallet"), NOTHING, "/budgets/main", "wallet_and_payment"),
    (
        ("approvals", "sha256:00"),
        {"by": "ada", "expires_at": "2027-01-31T12:00:00Z"},
        "/approvals/sha256:00",
        "invalid_name",
    ),
    (("destinations", "platform", "url"), "nonsense", "/destinations/platform/url", "not_an_address"),
    (("destinations", "platform", "url"), "http://agents.example", "/destinations/platform", "not_https"),
    (("destinations", "platform", "secret"), "hunter2", "/destinations/platform/secret", "invalid_name"),
    (("bindings", "v1:a/b"), {"run": RUN}, "/bindings/v1:a~1b", "invalid_name"),
    (("bindings", "v0:ws-001"), {"run": RUN}, "/bindings/v0:ws-001", "invalid_name"),
    (("bindings", "v0:a/b"), {"run": {**RUN, "budget_id": None}}, "/bindings/v0:a~1b/run/budget_id", "budget_missing"),
]


@pytest.mark.parametrize(("path", "value", "pointer", "code"), FAULTY)
def test_a_fault_is_told_at_its_place(path, value, pointer, code):
    assert faults(at(WHOLE, path, value)) == [(pointer, code)]


def test_all_faults_are_told_at_once():
    document = WHOLE
    for path, value, _, _ in [FAULTY[2], FAULTY[8], FAULTY[16], FAULTY[22]]:
        document = at(document, path, value)
    assert len(faults(document)) == 4


def test_a_live_environment_has_to_say_whether_it_needs_approvals():
    live = {**BARE, "mode": "live"}
    assert faults(live) == [("/live_needs_approval", "missing_field")]
    assert read_declarations({**live, "live_needs_approval": False}).file.live_needs_approval is False


def test_what_may_be_a_secret_is_not_repeated():
    for field in ("secret", "url"):
        with pytest.raises(InvalidSchedule) as refused:
            read_declarations(at(WHOLE, ("destinations", "platform", field), "hunter2"))
        assert "hunter2" not in str(refused.value)


def test_so_many_declarations_of_a_kind_are_read_and_no_more():
    people = {f"person-{number}": {} for number in range(MAX_DECLARATIONS)}
    assert len(read_declarations({**BARE, "people": people}).kinds["person"]) == MAX_DECLARATIONS
    assert faults({**BARE, "people": {**people, "one more": {}}}) == [("/people", "too_many")]


@pytest.mark.parametrize("document", [None, [], "file", 7])
def test_a_file_is_an_object(document):
    assert faults(document) == [("", "not_an_object")]


def misfits(document, *, left_alone=(), development=False):
    """The faults between declarations. The file does not name the kinds that are left alone."""
    kinds = read_declarations(document).kinds
    found = Faults()
    named = {kind: each for kind, each in kinds.items() if kind not in left_alone}
    check_references(kinds, named=named, development=development, faults=found)
    return [(fault.pointer, fault.code) for fault in found.found]


def test_a_whole_file_fits_together():
    assert misfits(WHOLE) == []


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("wallets", "purse"), [("/budgets/main/wallet", "wallet_missing")]),
        (("destinations", "platform"), [("/agents/posted@1/destination", "destination_missing")]),
        (
            ("grants", "mail"),
            [
                (f"/bindings/{name}/run/grants/0", "grant_missing")
                for name in ("v0:ws-001~1codex", "cron:InboxTriage~1daily")
            ],
        ),
        (
            ("budgets", "main"),
            [
                (f"/bindings/{name}/run/budget_id", "budget_missing")
                for name in ("v0:ws-001~1codex", "cron:InboxTriage~1daily")
            ],
        ),
        (
            ("inputs", "letters"),
            [
                (f"/bindings/{name}/run/input", "input_missing")
                for name in ("v0:ws-001~1codex", "cron:InboxTriage~1daily")
            ],
        ),
    ],
)
def test_a_reference_leads_to_what_is_declared(path, expected):
    assert misfits(at(WHOLE, path, NOTHING)) == expected


def test_a_budget_and_its_wallet_have_one_currency():
    other = at(WHOLE, ("wallets", "purse", "currency"), "CHF")
    assert misfits(other) == [("/budgets/main/currency", "currency_mismatch")]
    assert misfits(other, left_alone=("budget",)) == [("/wallets/purse/currency", "currency_mismatch")]


def test_what_is_left_alone_keeps_what_it_refers_to():
    without = at(WHOLE, ("wallets", "purse"), NOTHING)
    assert misfits(without, left_alone=("budget",)) == [("/wallets", "wallet_missing")]


def test_a_development_environment_takes_agents_and_contents_as_they_are():
    without = {**WHOLE, "agents": {}, "inputs": {}, "outputs": {}}
    assert misfits(without, development=True) == []
    assert len(misfits(without)) == 6
