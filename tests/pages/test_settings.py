"""What the environment says of the pages, and what it may not say."""

import pytest

from horarium.api.pages.settings import PagesSettings
from horarium.errors import Misconfigured
from worker.page_settings import read_page_variables
from worker.settings import load

ISSUER = {"HORARIUM_OIDC_ISSUER": "https://id.example/realm", "HORARIUM_OIDC_CLIENT_ID": "horarium"}


def test_nothing_said_is_no_issuer():
    found = read_page_variables({})
    assert (found.oidc, found.temporal_ui_of("default")) == (None, None)


def test_the_secret_is_read_from_the_variable_that_is_named_and_never_shown():
    named = {**ISSUER, "HORARIUM_OIDC_CLIENT_SECRET": "HORARIUM_SECRET_OIDC", "HORARIUM_SECRET_OIDC": "hunter2"}
    oidc = read_page_variables(named).issuer(named)
    assert oidc.client_secret == "hunter2"
    assert "hunter2" not in repr(oidc)
    assert "hunter2" not in repr(load(named))


def test_only_the_api_needs_the_secret():
    named = {**ISSUER, "HORARIUM_OIDC_CLIENT_SECRET": "HORARIUM_SECRET_OIDC"}
    with pytest.raises(Misconfigured, match="HORARIUM_SECRET_OIDC, which is not set"):
        load(named).pages.issuer({})


def test_the_claims_can_be_named():
    said = {
        "HORARIUM_OIDC_SUBJECT_CLAIM": "email",
        "HORARIUM_OIDC_ORGANIZATION_CLAIM": "tenant",
        "HORARIUM_OIDC_SCOPE_CLAIM": "groups",
        "HORARIUM_OIDC_ORGANIZATION": "acme",
        "HORARIUM_OIDC_SCOPES": "openid email groups",
    }
    oidc = read_page_variables({**ISSUER, **said}).oidc
    assert (oidc.subject_claim, oidc.organization_claim, oidc.scope_claim) == ("email", "tenant", "groups")
    assert (oidc.organization, oidc.asked_scope) == ("acme", "openid email groups")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"HORARIUM_OIDC_ISSUER": "https://id.example"}, "HORARIUM_OIDC_CLIENT_ID is not"),
        ({"HORARIUM_OIDC_CLIENT_ID": "horarium"}, "HORARIUM_OIDC_ISSUER is not"),
        ({**ISSUER, "HORARIUM_OIDC_ISSUER": "http://id.example"}, "over https"),
        ({**ISSUER, "HORARIUM_OIDC_ISSUER": "https://user@id.example"}, "over https"),
        ({**ISSUER, "HORARIUM_OIDC_CLIENT_SECRET": "hunter2"}, "does not hold the secret itself"),
        ({**ISSUER, "HORARIUM_OIDC_ORGANIZATION": "a/b"}, "no name of an organization"),
        ({"HORARIUM_TEMPORAL_UI": "javascript:alert(1)"}, "Temporal's own pages"),
        ({"HORARIUM_TEMPORAL_UI": "localhost:8233"}, "Temporal's own pages"),
    ],
)
def test_what_cannot_be_meant_is_told_at_the_start(said, told):
    with pytest.raises(Misconfigured, match=told) as refused:
        load(said)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("http://localhost:8233/", "http://localhost:8233/namespaces/default"),
        ("https://cloud.temporal.io/namespaces/acme.x1", "https://cloud.temporal.io/namespaces/acme.x1"),
    ],
)
def test_temporals_pages_are_those_of_our_namespace(said, shown):
    assert read_page_variables({"HORARIUM_TEMPORAL_UI": said}).temporal_ui_of("default") == shown


def test_two_installations_on_one_machine_do_not_share_a_cookie():
    one, other = PagesSettings(public_url="http://127.0.0.1:8080"), PagesSettings(public_url="http://127.0.0.1:8081")
    assert one.session_cookie != other.session_cookie
    assert one.sign_in_cookie != one.session_cookie


def test_what_would_cross_a_network_in_the_clear_is_known():
    exposed = [
        PagesSettings(public_url=url).is_exposed
        for url in ("http://a.example", "https://a.example", "http://localhost:1")
    ]
    assert exposed == [True, False, False]
