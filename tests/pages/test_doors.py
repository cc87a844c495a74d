"""Coming and going: who gets in, how, and what keeps others out."""

import re
import time
from datetime import UTC, datetime, timedelta

import pytest

from horarium.api.pages.settings import PagesSettings
from horarium.catalog.environments import ensure_environment
from horarium.control import sessions
from horarium.schedule.identity import Scope
from tests.api.house import PROGRAM, token
from tests.pages.browser import COOKIE, HOME, ORIGIN, Pages, field, person, text_of


def code(pages, who=None):
    with pages.catalog.writing() as connection:
        return sessions.make_code(connection, who or person(), now=datetime.now(UTC))


def alive(pages, secret):
    with pages.catalog.reading() as connection:
        return sessions.resume(connection, secret, now=datetime.now(UTC)) is not None


def test_the_root_leads_a_browser_to_the_pages_and_tells_a_program_that_nothing_is_there(pages):
    assert pages.browser().get("/").headers["location"] == "/ui"
    told = pages.browser().get("/", headers={"Accept": "*/*"})
    assert (told.status_code, told.json()["code"]) == (404, "path_not_found")


def test_whoever_is_not_signed_in_is_led_to_the_sign_in_and_back(pages):
    browser = pages.browser()
    led = browser.get(f"{HOME}/schedules?text=a%20b")
    assert led.status_code == 303
    page = browser.get(led.headers["location"])
    assert page.status_code == 200
    answer = browser.post("/ui/sign-in", {"next": field(page, "next"), "code": code(pages)})
    assert (answer.status_code, answer.headers["location"]) == (303, f"{HOME}/schedules?text=a%20b")
    assert browser.get(answer.headers["location"]).status_code == 200


def test_a_page_that_refreshes_itself_is_told_that_the_session_has_ended(pages):
    assert pages.browser().get(f"{HOME}/schedules", headers={"X-Horarium-Refresh": "1"}).status_code == 401


def test_a_link_with_a_code_signs_in_once(pages):
    link = f"/ui/sign-in?code={code(pages)}"
    browser, other = pages.browser(), pages.browser()
    assert browser.get(link).headers["location"] == "/ui"
    assert "ada" in browser.get("/ui/environments").text
    # A browser loads an address twice at times; somebody else who has the link is not let in by it.
    assert browser.get(link).status_code == 303
    refused = other.get(link)
    assert refused.status_code == 401
    assert COOKIE not in other.cookies


def test_a_link_that_another_site_opened_asks_first(pages):
    browser = pages.browser()
    asked = browser.get(f"/ui/sign-in?code={code(pages)}", headers={"Sec-Fetch-Site": "cross-site"})
    assert asked.status_code == 200
    assert COOKIE not in browser.cookies
    assert browser.post("/ui/sign-in", {"next": "", "code": field(asked, "code")}).status_code == 303


def test_a_link_of_which_the_browser_does_not_say_who_opened_it_asks_first(pages):
    """Browsers say it to https:// and to their own machine only; elsewhere a stranger's page could sign somebody in as itself."""
    browser = pages.browser()
    asked = browser.ask("GET", f"/ui/sign-in?code={code(pages)}")
    assert asked.status_code == 200
    assert COOKIE not in browser.cookies
    assert browser.post("/ui/sign-in", {"next": "", "code": field(asked, "code")}).status_code == 303


def test_a_token_signs_in_as_the_person_it_is_for_and_no_longer_than_it_lives(pages):
    browser = pages.browser()
    assert browser.post("/ui/sign-in", {"code": token(sub="grace", exp=int(time.time()) + 60)}).status_code == 303
    with pages.catalog.reading() as connection:
        secret = browser.cookies[COOKIE]
        assert sessions.resume(connection, secret, now=datetime.now(UTC)).principal.name == "grace"
        assert sessions.resume(connection, secret, now=datetime.now(UTC) + timedelta(seconds=61)) is None


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "AAAA-BBBB-CCCC-DDDD",
        "a.b.c",
        token(exp=int(time.time()) - 60),
        token(org="no organization"),
        "\0",
        "x" * 20_000,
    ],
    ids=["nothing", "no code", "no token", "expired", "bad claims", "a control", "long"],
)
def test_what_is_no_code_and_no_token_lets_nobody_in(pages, entry):
    browser = pages.browser()
    answer = browser.post("/ui/sign-in", {"code": entry})
    assert answer.status_code == 401
    assert "not valid here" in text_of(answer)
    assert COOKIE not in browser.cookies


def test_the_token_of_a_program_lets_nobody_in(pages):
    browser = pages.browser()
    answer = browser.post("/ui/sign-in", {"code": PROGRAM})
    assert answer.status_code == 403
    assert "for people" in text_of(answer)
    assert COOKIE not in browser.cookies


@pytest.mark.parametrize(
    "place",
    [
        "https://evil.example/",
        "//evil.example/ui",
        "/\\evil.example",
        "/ui/../../evil",
        "/ui/%2e%2E/v1",
        "/ui//evil.example",
        "/ui/x\r\nSet-Cookie: a=b",
        "/uixyz",
        "javascript:alert(1)",
        "/v1/organizations/acme",
        "/ui/sign-out",
        "/ui?next=https://evil.example\\",
        "/ui/" + "a" * 2_000,
    ],
)
def test_nobody_is_led_elsewhere_after_signing_in(pages, place):
    browser = pages.browser()
    answer = browser.post("/ui/sign-in", {"code": code(pages), "next": place})
    assert answer.status_code == 303
    assert answer.headers["location"] == "/ui"
    assert pages.browser().get("/ui/sign-in", params={"next": place}).text.count(f'value="{place}"') == 0


def test_signing_in_gives_a_new_secret_and_ends_the_one_that_was_there(pages):
    browser = pages.browser(person())
    before = browser.cookies[COOKIE]
    browser.post("/ui/sign-in", {"code": code(pages)})
    assert browser.cookies[COOKIE] != before
    assert (alive(pages, before), alive(pages, browser.cookies[COOKIE])) == (False, True)


def test_the_cookie_is_for_the_server_alone(pages, catalog):
    answer = pages.browser().post("/ui/sign-in", {"code": code(pages)})
    (cookie,) = answer.headers.get_list("set-cookie")
    assert cookie.startswith("horarium-session-8080=")
    assert {"httponly", "samesite=lax", "path=/"} <= {part.strip().lower() for part in cookie.split(";")}
    secure = Pages(catalog, settings=PagesSettings(public_url="https://horarium.example", takes_codes=True))
    try:
        (cookie,) = secure.browser().post("/ui/sign-in", {"code": code(pages)}).headers.get_list("set-cookie")
    finally:
        secure.close()
    assert cookie.startswith("__Host-horarium-session=")
    assert {"secure", "httponly", "samesite=lax", "path=/"} <= {part.strip().lower() for part in cookie.split(";")}
    assert "domain" not in cookie.lower()


def test_who_comes_and_goes_is_in_the_log(pages, capsys):
    browser = pages.browser()
    made = code(pages)
    browser.post("/ui/sign-in", {"code": made})
    browser.post("/ui/sign-out", {"form_token": browser.form_token()})
    said = capsys.readouterr().out
    for told in ("signed_in", "signed_out"):
        assert re.search(rf"{told} .*principal=acme/ada", said)
    assert made not in said


def test_signing_out_ends_the_session_on_the_server(pages, ada):
    secret = ada.cookies[COOKIE]
    answer = ada.post("/ui/sign-out", {"form_token": ada.form_token()})
    assert answer.status_code == 200
    assert "Signed out" in text_of(answer)
    assert not alive(pages, secret)
    ada.cookies[COOKIE] = secret
    assert ada.get(f"{HOME}/schedules").status_code == 303


@pytest.mark.parametrize("given", [None, "", "0" * 64, "é"])
def test_a_form_without_the_sessions_own_token_changes_nothing(pages, ada, given):
    answer = ada.post("/ui/sign-out", {} if given is None else {"form_token": given})
    assert answer.status_code == 403
    assert "Load the page" in text_of(answer)
    assert alive(pages, ada.cookies[COOKIE])


def test_the_token_of_another_session_is_no_good(pages, ada):
    other = pages.browser(person("bob"))
    assert ada.post("/ui/sign-out", {"form_token": other.form_token()}).status_code == 403
    assert alive(pages, ada.cookies[COOKIE])


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "cross-site", "Origin": ORIGIN},
    ],
)
def test_a_form_that_another_site_sent_changes_nothing(pages, ada, headers):
    answer = ada.post("/ui/sign-out", {"form_token": ada.form_token()}, headers=headers)
    assert answer.status_code == 403
    assert alive(pages, ada.cookies[COOKIE])


@pytest.mark.parametrize("origin", [None, "null", "https://evil.example", "http://127.0.0.1:8081", "http://127.0.0.1"])
def test_where_the_browser_tells_no_more_than_an_origin_it_has_to_be_ours(pages, ada, origin):
    headers = {} if origin is None else {"Origin": origin}
    fields = {"form_token": ada.form_token()}
    assert ada.ask("POST", "/ui/sign-out", data=fields, headers=headers).status_code == 403
    assert alive(pages, ada.cookies[COOKIE])
    assert ada.ask("POST", "/ui/sign-out", data=fields, headers={"Origin": ORIGIN}).status_code == 200


def test_another_site_cannot_sign_somebody_in_as_itself(pages):
    browser = pages.browser()
    answer = browser.post("/ui/sign-in", {"code": code(pages)}, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 403
    assert COOKIE not in browser.cookies


@pytest.mark.parametrize(
    ("content", "media_type", "status"),
    [
        (b"a=1&a=2", "application/x-www-form-urlencoded", 400),
        (b"%ff=1", "application/x-www-form-urlencoded", 400),
        (b"&".join(b"f%d=1" % number for number in range(200)), "application/x-www-form-urlencoded", 400),
        (b"a=" + b"x" * 70_000, "application/x-www-form-urlencoded", 413),
        (b"{}", "application/json", 415),
    ],
)
def test_a_form_that_is_none_is_refused(ada, content, media_type, status):
    headers = {"Sec-Fetch-Site": "same-origin", "Content-Type": media_type}
    assert ada.ask("POST", "/ui/sign-out", content=content, headers=headers).status_code == status


def test_without_an_issuer_and_without_a_key_the_page_says_what_is_missing(catalog):
    bare = Pages(catalog, settings=PagesSettings(public_url="https://horarium.example/base"))
    try:
        page = bare.browser().get("/ui/sign-in")
        assert page.status_code == 200
        for name in (
            "HORARIUM_OIDC_ISSUER",
            "HORARIUM_OIDC_CLIENT_ID",
            "https://horarium.example/base/ui/sign-in/callback",
        ):
            assert name in text_of(page)
        browser = bare.browser()
        for answer in (
            browser.post("/ui/sign-in", {"code": token()}),
            browser.get("/ui/sign-in/with-issuer"),
            browser.get("/ui/sign-in/callback"),
        ):
            assert answer.status_code == 404
        assert browser.cookies == {}
    finally:
        bare.close()


def test_a_page_behind_a_path_links_there(catalog):
    based = Pages(catalog, settings=PagesSettings(public_url="https://horarium.example/base", takes_codes=True))
    try:
        page = based.browser(person()).get(f"{HOME}/schedules")
        links = re.findall(r'(?:href|src|action)="([^"#]+)"', page.text)
        assert links
        assert {link for link in links if not link.startswith("/base/ui/") and link != "/base/ui"} == set()
        led = based.browser().get(f"{HOME}/schedules")
        assert led.headers["location"] == "/base/ui/sign-in?next=%2Fbase%2Fui%2Facme%2Ftest%2Fschedules"
    finally:
        based.close()


def test_a_person_with_one_environment_is_led_there_and_with_several_chooses(pages, ada):
    assert ada.get("/ui").headers["location"] == f"{HOME}/schedules"
    assert ada.get(HOME).headers["location"] == f"{HOME}/schedules"
    with pages.catalog.writing() as connection:
        ensure_environment(connection, Scope(org_id="acme", environment_id="zeta"), mode="test", runtime_profile="p")
    page = ada.get("/ui")
    assert "zeta" in text_of(page)
    assert "globex" not in page.text
