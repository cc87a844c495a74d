"""Every reason that an authority can be the cause of, by what stands in `deploy/authority.conformance.yaml`."""

import pytest

from horarium.errors import NotFound
from tests.authority.conformance.subjects import APPROVAL_EXPIRED, APPROVED, FURNITURE, NEVER_APPROVED, question

REASONS = [
    ("principal_left", {"person": "gone"}),
    ("principal_left", {"person": "stranger"}),
    ("approval_missing", {"usage": "live", "digest": NEVER_APPROVED}),
    ("approval_expired", {"usage": "live", "digest": APPROVAL_EXPIRED}),
    ("agent_missing", {"agent": "triage@2"}),
    ("agent_withdrawn", {"agent": "triage@withdrawn"}),
    ("agent_not_schedulable", {"agent": "triage@chat"}),
    ("input_unreadable", {"reads": "nothing"}),
    ("input_unreadable", {"reads": "diary"}),
    ("input_expired", {"reads": "old-letters"}),
    ("consent_expired", {"reads": "lapsed-letters"}),
    ("consent_expired", {"reads": "withdrawn-letters"}),
    ("grant_missing", {"grants": ["mail", "unheard-of"]}),
    ("grant_missing", {"grants": ["mail-of-another"]}),
    ("grant_expired", {"grants": ["mail", "mail-until-2020"]}),
    ("grant_revoked", {"grants": ["mail-revoked"]}),
    ("budget_missing", {"budget": "unheard-of"}),
    ("budget_usage_class", {"budget": "for-live-alone"}),
    ("payment_x402", {"budget": "by-x402"}),
    ("payment_per_run", {"budget": "per-run"}),
    ("budget_exhausted", {"budget": "room-for-less-than-one"}),
    ("wallet_unpaid_limit", {"budget": "by-full-wallet"}),
    ("wallet_collection_failed", {"budget": "by-failed-wallet"}),
    ("output_missing", {"writes": "nowhere"}),
    ("output_forbidden", {"writes": "archive"}),
]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"person": "bob", "reads": "diary"},
        {"usage": "live", "digest": APPROVED},
        {"budget": "by-wallet"},
        {"budget": "room-for-three"},
        {"grants": []},
        {"usage": "test_simulation", "budget": None},
    ],
)
def test_nothing_speaks_against_what_everything_speaks_for(subject, change):
    assert subject.ask(question(**change)).codes == []


@pytest.mark.parametrize(("code", "change"), REASONS)
def test_one_thing_that_is_wrong_is_the_first_reason(subject, code, change):
    assert subject.ask(question(**change)).codes[:1] == [code]


def test_a_run_that_is_nobodys_is_asked_about_without_a_person(subject):
    assert subject.ask(question(person=None)).codes == []


def test_only_the_grants_that_were_asked_about_are_told(subject):
    assert set(subject.ask(question(grants=["mail", "unheard-of"])).facts.grants) == {"mail"}


@pytest.mark.parametrize(("reference", "person"), [("letters", "ada"), ("letters", "bob"), ("diary", "bob")])
def test_who_may_read_an_input_gets_its_bytes(subject, reference, person):
    assert subject.read_input(reference, person=person) == FURNITURE["contents"][reference].encode()


@pytest.mark.parametrize(("reference", "person"), [("diary", "ada"), ("nothing", "ada")])
def test_who_may_not_read_an_input_is_told_what_is_told_of_one_that_is_not_there(subject, reference, person):
    with pytest.raises(NotFound):
        subject.read_input(reference, person=person)
