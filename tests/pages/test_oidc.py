"""Sign-in with an issuer that really listens and signs: what lets a person in, and what never does."""

import asyncio
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from horarium.api.pages.oidc import Issuer, Pending, read_pending
from horarium.api.pages.settings import OidcSettings, PagesSettings
from horarium.catalog import Catalog
from horarium.control import sessions
from horarium.errors import Unavailable
from tests.api.house import make_catalog
from tests.pages.browser import HOME, ORIGIN, Browser, Pages, person, text_of
from tests.pages.issuer import CLIENT, KEY, OTHER_KEY, SECRET, TestIssuer


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    opened = make_catalog(tmp_path_factory.mktemp("catalog"))
    yield opened
    opened.close()


@pytest.fixture
def issuer() -> Iterator[TestIssuer]:
    made = TestIssuer()
    yield made
    made.close()


def site(catalog, issuer, **said):
    told = {"issuer": issuer.url, "client_id": CLIENT, "client_secret": SECRET, **said}
    return Pages(catalog, settings=PagesSettings(public_url=ORIGIN, oidc=OidcSettings(**told)))


@pytest.fixture
def house(stored, issuer):
    made = site(stored, issuer)
    yield made
    made.close()


def begin(browser: Browser, place: str = f"{HOME}/schedules") -> str:
    """The address at the issuer that a browser is led to."""
    answer = browser.get(f"/ui/sign-in/with-issuer?{urlencode({'next': place})}")
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def come_back(browser: Browser, address: str):
    parts = urlsplit(address)
    return browser.get(f"{parts.path}?{parts.query}", headers={"Sec-Fetch-Site": "cross-site"})


def sign_in(browser: Browser, issuer: TestIssuer):
    return come_back(browser, issuer.authorize(begin(browser)))


def principal(pages: Pages, browser: Browser):
    secret = browser.cookies[pages.settings.session_cookie]
    with pages.catalog.reading() as connection:
        return sessions.resume(connection, secret, now=datetime.now(UTC)).principal


def is_out(pages, browser, answer, told):
    assert answer.status_code == 403, answer.text
    assert told in text_of(answer)
    assert "Sign in again" in text_of(answer)
    return pages.settings.session_cookie not in browser.cookies


def test_a_person_comes_back_from_the_issuer_to_where_they_were_going(house, issuer):
    browser = house.browser()
    page = browser.get(browser.get(f"{HOME}/runs?only=runs").headers["location"])
    assert f"Sign in with {urlsplit(issuer.url).netloc}" in text_of(page)
    answer = come_back(browser, issuer.authorize(begin(browser, f"{HOME}/runs?only=runs")))
    assert (answer.status_code, answer.headers["location"]) == (303, f"{HOME}/runs?only=runs")
    assert browser.get(answer.headers["location"]).status_code == 200
    found = principal(house, browser)
    assert (found.name, found.kind, found.org_id, set(found.scopes)) == (
        "ada",
        "human",
        "acme",
        {"synapse:schedules:write"},
    )
    assert house.settings.sign_in_cookie not in browser.cookies


def test_the_issuer_is_asked_with_pkce_state_and_nonce_that_are_never_the_same(house, issuer):
    asked = [parse_qs(urlsplit(begin(house.browser())).query) for _ in range(2)]
    for name in ("state", "nonce", "code_challenge"):
        one, other = (each[name][0] for each in asked)
        assert one != other
        assert len(one) >= 43
    assert asked[0]["redirect_uri"] == [f"{ORIGIN}/ui/sign-in/callback"]
    assert "code_verifier" not in asked[0]


def test_what_the_browser_keeps_meanwhile_is_out_of_reach_of_scripts(house):
    browser = house.browser()
    answer = browser.get("/ui/sign-in/with-issuer")
    (cookie,) = answer.headers.get_list("set-cookie")
    assert {"httponly", "samesite=lax", "path=/", "max-age=600"} <= {each.strip().lower() for each in cookie.split(";")}


def test_another_state_is_refused(house, issuer):
    browser = house.browser()
    back = issuer.authorize(begin(browser))
    forged = back.replace("state=", "state=x")
    assert is_out(house, browser, come_back(browser, forged), "did not begin")
    assert issuer.token_requests == []


def test_a_browser_that_did_not_begin_it_is_refused(house, issuer):
    """Somebody who sends their own way back to another person would have that person act as themselves."""
    mallory, ada = house.browser(), house.browser()
    back = issuer.authorize(begin(mallory))
    assert is_out(house, ada, come_back(ada, back), "did not begin")
    begin(ada)
    assert is_out(house, ada, come_back(ada, back), "did not begin")
    assert issuer.token_requests == []


def test_the_way_back_works_once(house, issuer):
    browser = house.browser()
    back = issuer.authorize(begin(browser))
    assert come_back(browser, back).status_code == 303
    assert come_back(browser, back).status_code == 403


def test_what_the_browser_kept_of_a_sign_in_that_was_refused_is_gone(house, issuer):
    issuer.claims = {"aud": "another-client"}
    browser = house.browser()
    assert is_out(house, browser, sign_in(browser, issuer), "not valid here")
    assert house.settings.sign_in_cookie not in browser.cookies


def test_a_way_back_that_is_none_does_not_end_a_sign_in_that_is_under_way(house, issuer):
    """Any page can lead a browser there."""
    browser = house.browser()
    back = issuer.authorize(begin(browser))
    assert is_out(
        house, browser, come_back(browser, "/ui/sign-in/callback?state=x&error=access_denied"), "did not begin"
    )
    assert come_back(browser, back).status_code == 303


def test_an_issuer_that_falls_silent_on_the_way_back_may_be_asked_again(house, issuer):
    browser = house.browser()
    back = issuer.authorize(begin(browser))
    issuer.is_up = False
    assert come_back(browser, back).status_code == 503
    issuer.is_up = True
    assert come_back(browser, back).status_code == 303


def test_a_code_that_was_used_is_refused_by_the_issuer(house, issuer):
    browser = house.browser()
    kept = dict(browser.cookies)
    back = issuer.authorize(begin(browser))
    kept = dict(browser.cookies)
    assert come_back(browser, back).status_code == 303
    other = house.browser()
    other.cookies = kept  # as if somebody had copied all that the browser had
    assert is_out(house, other, come_back(other, back), "was used, or is over")


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"nonce": ["a"]},
        {"exp": timedelta(minutes=-1)},
        {"exp": None},
        {"iat": timedelta(hours=1)},
        {"aud": "another-client"},
        {"aud": ["another-client", CLIENT]},
        {"aud": None},
        {"azp": "another-client"},
        {"iss": "https://evil.example"},
        {"sub": None},
    ],
    ids=str,
)
def test_a_token_that_is_not_for_this_sign_in_is_refused(house, issuer, claims):
    now = int(time.time())
    issuer.claims = {
        name: now + int(claim.total_seconds()) if isinstance(claim, timedelta) else claim
        for name, claim in claims.items()
    }
    browser = house.browser()
    assert is_out(house, browser, sign_in(browser, issuer), "not valid here")


def test_a_token_that_another_key_signed_is_refused(house, issuer):
    issuer.sign_with = OTHER_KEY
    browser = house.browser()
    assert is_out(house, browser, sign_in(browser, issuer), "not valid here")


@pytest.mark.parametrize(("algorithm", "key"), [("none", None), ("HS256", "k" * 64), ("RS512", KEY)])
def test_a_token_signed_in_another_way_is_refused(house, issuer, algorithm, key):
    issuer.algorithm, issuer.sign_with = algorithm, key
    browser = house.browser()
    assert is_out(house, browser, sign_in(browser, issuer), "not valid here")


@pytest.mark.parametrize("answer", [{}, {"id_token": 5}, {"id_token": "a.b"}, {"id_token": "x" * 10_000}], ids=str)
def test_an_answer_without_a_token_is_refused(house, issuer, answer):
    issuer.answer = {"access_token": "a", "token_type": "Bearer", **answer}
    browser = house.browser()
    is_out(house, browser, sign_in(browser, issuer), "ssuer")
    assert house.settings.session_cookie not in browser.cookies


@pytest.mark.parametrize(
    "claims",
    [
        {"org": None},
        {"org": "a/b"},
        {"org": ["acme"]},
        {"sub": "local:ada"},
        {"sub": "system:x"},
        {"sub": " ada"},
        {"sub": "a\u202eb"},
    ],
    ids=str,
)
def test_a_person_whom_the_issuer_does_not_name_as_the_record_needs_is_refused(house, issuer, claims):
    issuer.claims = claims
    browser = house.browser()
    assert is_out(house, browser, sign_in(browser, issuer), "does not say who you are")


def test_a_program_is_no_person(house, issuer):
    issuer.claims = {"kind": "key"}
    browser = house.browser()
    assert is_out(house, browser, sign_in(browser, issuer), "no person")


def test_the_claims_that_are_named_are_taken(stored, issuer):
    pages = site(stored, issuer, subject_claim="email", organization="acme", scope_claim="groups")
    try:
        issuer.claims = {
            "email": "ada@acme.example",
            "email_verified": True,
            "org": None,
            "groups": ["synapse:schedules:write", "two words", 5],
        }
        browser = pages.browser()
        assert sign_in(browser, issuer).status_code == 303
        found = principal(pages, browser)
        assert (found.name, found.org_id, set(found.scopes)) == (
            "ada@acme.example",
            "acme",
            {"synapse:schedules:write"},
        )
    finally:
        pages.close()


@pytest.mark.parametrize("said", [None, False, "true", 1])
def test_an_address_that_the_issuer_has_not_verified_is_nobodys_name(stored, issuer, said):
    """At many issuers people type their own address, and would be whom they name."""
    pages = site(stored, issuer, subject_claim="email")
    try:
        issuer.claims = {"email": "ada@acme.example", "email_verified": said}
        browser = pages.browser()
        assert is_out(pages, browser, sign_in(browser, issuer), "has not verified")
        issuer.claims = {"email": "ada@acme.example", "email_verified": True}
        assert sign_in(browser, issuer).status_code == 303
    finally:
        pages.close()


def test_a_person_of_another_organization_sees_nothing_of_ours(house, issuer):
    issuer.claims = {"org": "globex"}
    browser = house.browser()
    assert sign_in(browser, issuer).status_code == 303
    assert browser.get(f"{HOME}/schedules").status_code == 404


def test_a_person_without_the_scope_is_told_which_one_is_missing(house, issuer):
    issuer.claims = {"scope": "something:else"}
    browser = house.browser()
    assert sign_in(browser, issuer).status_code == 303
    page = browser.get(f"{HOME}/schedules")
    assert page.status_code == 403
    assert "synapse:schedules:write" in text_of(page)


def test_a_person_who_declines_is_told_so(house, issuer):
    browser = house.browser()
    state = parse_qs(urlsplit(begin(browser)).query)["state"][0]
    answer = come_back(browser, f"/ui/sign-in/callback?{urlencode({'error': 'access_denied', 'state': state})}")
    assert is_out(house, browser, answer, "access_denied")


def test_an_issuer_that_does_not_answer_is_told_and_asked_again(house, issuer):
    issuer.is_up = False
    browser = house.browser()
    answer = browser.get("/ui/sign-in/with-issuer")
    assert answer.status_code == 503
    assert "does not answer now" in text_of(answer)
    issuer.is_up = True
    assert sign_in(browser, issuer).status_code == 303


def test_whoever_waits_for_an_issuer_that_hangs_waits_for_one_answer_and_not_one_behind_another(issuer, monkeypatch):
    monkeypatch.setattr("horarium.api.pages.oidc.ANSWER_WITHIN", timedelta(seconds=1))
    issuer.answers.clear()

    async def several():
        asks = Issuer(OidcSettings(issuer=issuer.url, client_id=CLIENT), f"{ORIGIN}/ui/sign-in/callback")
        try:
            told = await asyncio.gather(*(asks.begin("/ui") for _ in range(5)), return_exceptions=True)
            asked = issuer.asked.count("/.well-known/openid-configuration")
            issuer.answers.set()
            address, _ = await asks.begin("/ui")
        finally:
            await asks.close()
        return told, asked, address

    told, asked, address = asyncio.run(several())
    assert [type(each) for each in told] == [Unavailable] * 5
    assert asked == 1
    assert address.startswith(f"{issuer.url}/authorize?"), "whoever comes later asks anew"


def test_a_document_of_another_issuer_is_not_believed(house, issuer):
    issuer.discovered_issuer = "https://evil.example"
    assert house.browser().get("/ui/sign-in/with-issuer").status_code == 503


def test_a_wrong_secret_of_the_client_lets_nobody_in(stored, issuer):
    pages = site(stored, issuer, client_secret="another")
    try:
        browser = pages.browser()
        answer = sign_in(browser, issuer)
        assert answer.status_code in {403, 503}
        assert pages.settings.session_cookie not in browser.cookies
    finally:
        pages.close()


@pytest.mark.parametrize("place", ["https://evil.example/", "//evil.example", "/ui/%2e%2e/x"])
def test_nobody_is_led_elsewhere_on_the_way_back(house, issuer, place):
    browser = house.browser()
    answer = come_back(browser, issuer.authorize(begin(browser, place)))
    assert answer.headers["location"] == "/ui"


def test_a_place_that_was_put_into_the_cookie_by_hand_leads_nowhere_else(house, issuer):
    browser = house.browser()
    back = issuer.authorize(begin(browser))
    pending = read_pending(browser.cookies[house.settings.sign_in_cookie])
    forged = Pending(state=pending.state, nonce=pending.nonce, verifier=pending.verifier, place="https://evil.example")
    browser.cookies[house.settings.sign_in_cookie] = forged.as_cookie()
    assert come_back(browser, back).headers["location"] == "/ui"


@pytest.mark.parametrize("cookie", ["", "x", "e30", "W10", "bnVsbA", "é", "A" * 5_000])
def test_a_cookie_that_is_none_of_ours_begins_nothing(house, cookie):
    assert read_pending(cookie) is None


def test_neither_code_nor_secret_nor_token_gets_into_the_log(house, issuer, capsys):
    browser = house.browser()
    back = issuer.authorize(begin(browser))
    come_back(browser, back)
    issuer.claims = {"aud": "another"}
    sign_in(browser, issuer)
    said = capsys.readouterr()
    code = parse_qs(urlsplit(back).query)["code"][0]
    for secret in (code, SECRET, browser.cookies[house.settings.session_cookie], "eyJ"):
        assert secret not in said.out + said.err
    assert "id_token_refused" in said.out


def sign_out(browser: Browser):
    return browser.post("/ui/sign-out", {"form_token": browser.form_token()})


@pytest.mark.parametrize(
    ("end", "address"),
    [("/leave", "/leave?client_id=horarium"), ("/leave?realm=a%20b#x", "/leave?realm=a+b&client_id=horarium")],
)
def test_whoever_signs_out_here_is_led_to_sign_out_there_too(house, issuer, end, address):
    issuer.discovered = {"end_session_endpoint": issuer.url + end}
    browser = house.browser()
    sign_in(browser, issuer)
    page = sign_out(browser)
    assert page.status_code == 200
    assert "whoever uses this browser next could come back in as you" in text_of(page)
    assert issuer.url + address in unescape(page.text)
    assert house.settings.session_cookie not in browser.cookies


@pytest.mark.parametrize(
    "end", [None, 5, "javascript:alert(1)", "ftp://id.example/", "//evil.example", "https://id.example/\u202e", "x\ny"]
)
def test_an_issuer_without_a_place_to_sign_out_is_named_all_the_same(house, issuer, end):
    issuer.discovered = {"end_session_endpoint": end}
    browser = house.browser()
    assert sign_in(browser, issuer).status_code == 303
    page = sign_out(browser)
    assert "Sign out there too if others use it" in text_of(page)
    assert re.findall(r'href="((?!/)[^"#][^"]*)"', page.text) == []


def test_an_issuer_that_is_silent_keeps_nobody_from_signing_out(stored, issuer):
    pages = site(stored, issuer)
    try:
        issuer.is_up = False
        browser = pages.browser(person())
        page = sign_out(browser)
        assert page.status_code == 200
        assert "Signed out" in text_of(page)
        assert pages.settings.session_cookie not in browser.cookies
    finally:
        pages.close()
