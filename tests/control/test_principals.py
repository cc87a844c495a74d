"""Who may do what: by organization, by scope, and by being a person."""

import pytest

from horarium.control import principals
from horarium.control.principals import WRITE_SCOPE, Principal, PrincipalKind, authorize, local_principal
from horarium.errors import Forbidden, NotFound, Refused
from horarium.schedule.identity import Scope
from tests.control.caller import principal

HERE = Scope(org_id="acme", environment_id="test")
ELSEWHERE = Scope(org_id="umbra", environment_id="test")
HUMAN, KEY = principal(), principal("ci", PrincipalKind.KEY)
LOCAL = local_principal("local:ada", HERE)
BARE = principal("bob", scopes="synapse:runs:read")

CASES = [
    ("a person with the scope", HUMAN, {}, None),
    ("a person with the scope, where a person is needed", HUMAN, {"human": True}, None),
    ("a key with the scope", KEY, {}, None),
    ("a key, where a person is needed", KEY, {"human": True}, "human_session_required"),
    ("the person at the command line, who has every scope", LOCAL, {"human": True}, None),
    ("a person without the scope", BARE, {}, "scope_missing"),
    ("a person without the scope, where a person is needed", BARE, {"human": True}, "scope_missing"),
    ("a person whose scope is the one that the installation wants", BARE, {"required": "synapse:runs:read"}, None),
    ("a person with the usual scope where the installation wants another", HUMAN, {"required": "x"}, "scope_missing"),
]


@pytest.mark.parametrize(("who", "asking", "needed", "code"), CASES, ids=[case[0] for case in CASES])
def test_a_principal_is_let_through_or_told_what_is_missing(who, asking, needed, code):
    if code is None:
        authorize(asking, HERE, **needed)
        return
    with pytest.raises(Forbidden) as refused:
        authorize(asking, HERE, **needed)
    assert refused.value.code == code
    assert repr(asking.name) in refused.value.sentence
    assert refused.value.next_step


@pytest.mark.parametrize("asking", [HUMAN, KEY, LOCAL, BARE])
def test_another_organization_is_answered_as_if_it_were_not_there(asking):
    """Before anything else: whoever may not see it learns nothing about scopes either."""
    with pytest.raises(NotFound) as refused:
        authorize(asking, ELSEWHERE, human=True)
    assert refused.value.code == "environment_not_found"
    assert refused.value.sentence == "There is no environment 'test' in organization 'umbra'."


def test_a_scope_is_a_whole_word():
    almost = principal("eve", scopes=f"{WRITE_SCOPE}s {WRITE_SCOPE[:-1]}")
    with pytest.raises(Forbidden, match="scope_missing"):
        principals.require_scope(almost, WRITE_SCOPE)


@pytest.mark.parametrize("name", ["", "x" * 201, "ada\n", "a\0b"])
def test_a_name_can_stand_in_the_record(name):
    with pytest.raises(Refused, match="invalid_principal"):
        Principal(name=name, kind=PrincipalKind.HUMAN, org_id="acme")
