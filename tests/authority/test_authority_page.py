"""The contract with a platform's authority: the page says what is sent, and what counts as an answer."""

import json
from pathlib import Path

import pytest
import yaml
from jsonschema_rs import Draft202012Validator
from pydantic import ValidationError

from horarium.authority.contract import QuestionAnswered
from starter.authority_page import page, written
from tests.authority.conformance.subjects import FURNITURE, question
from tests.authority.platform import KINDS, Platform

FILE = Path(__file__).parents[2] / "deploy" / "authority.openapi.yaml"
REQUEST = {
    "agent_version": "triage@1",
    "input": "letters",
    "output_target": "reports",
    "grants": ["mail"],
    "budget_id": "by-wallet",
    "usage_class": "test_compute",
}
ASKED = {
    "scope": {"org_id": "acme", "environment_id": "live"},
    "request": REQUEST,
    "person": "ada",
    "digest": question().digest,
    "run_id": None,
    "asked_at": "2027-01-01T00:00:00Z",
}


def valid(name, value):
    """Whether the page's schema of a message takes a value."""
    whole = {"$ref": f"#/components/schemas/{name}", "components": page()["components"]}
    return Draft202012Validator(json.loads(json.dumps(whole))).is_valid(value)


def answer():
    """What the example of a platform answers to the question above."""
    platform = Platform()
    platform.declared = {
        (kind, name): KINDS[kind].model_validate(facts)
        for kind, names in FURNITURE["declarations"].items()
        for name, facts in names.items()
    }
    platform.contents = {"letters": b""}
    return json.loads(platform.answer("/horarium/v1/questions", ASKED)[1])


def test_the_file_is_what_the_messages_make():
    assert FILE.read_text(encoding="utf-8") == written()


def test_the_file_is_read_as_the_page():
    assert yaml.safe_load(FILE.read_text(encoding="utf-8")) == page()


def test_every_reference_of_the_page_leads_somewhere():
    whole = page()
    text = json.dumps(whole)
    places = {each.split('"')[0] for each in text.split('"$ref": "#/')[1:]}
    assert len(places) > 10
    for place in places:
        found = whole
        for part in place.split("/"):
            found = found[part]


def test_a_full_answer_is_one_by_the_page_and_by_the_adapter():
    assert valid("QuestionAsked", ASKED)
    assert valid("QuestionAnswered", answer())
    assert QuestionAnswered.model_validate_json(json.dumps(answer()), strict=True).room == 10**9


WRONG = [
    ("member", None),
    ("member", "yes"),
    ("member", 1),
    ("room", "12"),
    ("room", 1.5),
    ("room", 10**16),
    ("owed", -1),
    ("owed", None),
    ("reserved", -1),
    ("reserved", True),
    ("grants", []),
    ("grants", {"mail": None}),
    ("grants", {"mail": {"revoked": "no"}}),
    ("agent", {}),
    ("agent", {"max_cost": 1, "max_run_seconds": 0}),
    ("agent", {"max_cost": 1, "max_run_seconds": 1, "a_restriction_of_tomorrow": True}),
    ("input", {"readable": "true"}),
    ("input", {}),
    ("output", "reports"),
    ("budget", {"limit": 1}),
    ("wallet", {"unpaid_limit": 1, "currency": "francs"}),
    ("approval", {"by": "bob"}),
    ("versions", {"budget": None}),
    ("versions", {"budget": -1}),
    ("versions", {str(each): 1 for each in range(201)}),
]


@pytest.mark.parametrize(("part", "value"), WRONG)
def test_what_is_no_answer_by_the_page_is_none_for_the_adapter(part, value):
    wrong = {**answer(), part: value}
    assert not valid("QuestionAnswered", wrong)
    with pytest.raises(ValidationError):
        QuestionAnswered.model_validate_json(json.dumps(wrong), strict=True)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("versions", {"a\u0000b": 1}),
        ("versions", {"budget": "\ud800"}),
        ("input", {"readable": True, "expires_at": "2027-01-01T00:00:00+01:00"}),
        ("input", {"readable": True, "expires_at": "tomorrow"}),
        ("input", {"readable": True, "expires_at": 1798718400}),
    ],
)
def test_what_a_schema_cannot_say_is_refused_by_the_adapter(part, value):
    with pytest.raises(ValidationError):
        QuestionAnswered.model_validate_json(json.dumps({**answer(), part: value}), strict=True)


def test_a_part_beside_the_others_that_is_not_known_is_passed_over():
    assert QuestionAnswered.model_validate_json(json.dumps({**answer(), "weather": "fine"}), strict=True).member
