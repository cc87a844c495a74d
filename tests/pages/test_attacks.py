"""Who would get in, get out, or get at somebody through the pages, and does not."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from horarium.control import sessions
from horarium.schedule.ledger import Disposition, Reason
from tests.pages.browser import COOKIE, HOME, Pages, person, text_of
from tests.pages.forms import form
from tests.pages.night import MORNING, document, ended, tonight

SCHEDULES, RUNS = f"{HOME}/schedules", f"{HOME}/runs"
MARKUP = "\"><script>alert(1)</script><b onmouseover=alert(2)>'&lt;"


@pytest.fixture(scope="module")
def night(catalog):
    return tonight(catalog)


@pytest.fixture(scope="module")
def pages(catalog, night):
    made = Pages(catalog, now=lambda: MORNING)
    yield made
    made.close()


def is_harmless(answer):
    """Nothing of what others wrote is markup: only tags of ours, with attributes of ours."""
    assert "<script>alert" not in answer.text
    assert not re.search(r"<b\s", answer.text)
    tags = re.findall(r"<[a-z][^>]*>", answer.text)
    assert [
        each for each in tags if re.search(r"\son\w+\s*=|javascript:|\sstyle=", re.sub(r'"[^"]*"', '""', each))
    ] == []


def test_what_authors_people_and_agents_write_is_never_markup(catalog, pages, night):
    """Names, inputs, outputs, agents, grants, reasons, summaries, people: each in every place that shows it."""
    hostile = document(MARKUP, every=3_600)
    loop = night.desk(MARKUP).enabled(hostile)
    run = ended(
        loop,
        MORNING - timedelta(hours=7),
        Disposition.FAILED,
        reason=Reason.AGENT_REPORTED_FAILURE,
        summary=MARKUP,
        outputs=(MARKUP, "javascript:alert(3)"),
    )
    changed = document(MARKUP + "2", every=7_200)
    loop.desk.publish(changed)
    browser = pages.browser(person("<script>alert(1)</script>"))
    where = f"{SCHEDULES}/{loop.desk.key.schedule_id}"
    for path in (
        SCHEDULES,
        RUNS,
        where,
        f"{where}/review",
        f"{where}/review?revision=1",
        f"{where}/retirement",
        f"{RUNS}/{run.run_id}",
        f"{SCHEDULES}?text=%3Cscript%3Ealert(1)%3C/script%3E%22%20onfocus=alert(1)%20x=%22",
        f"{SCHEDULES}?state=%3Cscript%3Ealert(1)%3C/script%3E",
        f"{SCHEDULES}/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        f"{RUNS}?after=%3Cscript%3Ealert(1)%3C/script%3E",
        f"{HOME}/%3Cscript%3Ealert(1)%3C/script%3E",
        "/ui/sign-in?next=%22%3E%3Cscript%3Ealert(1)%3C/script%3E&code=%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
    ):
        is_harmless(browser.get(path))
    is_harmless(
        pages.browser().get("/ui/sign-in?code=%22%3E%3Cscript%3Ealert(1)%3C/script%3E&unsent=%3Cscript%3Ealert(1)")
    )
    loop.desk.pause()
    loop.desk.retire()


def run_ids(browser):
    return re.findall(rf"{RUNS}/([0-9a-f-]{{36}})", browser.get(f"{RUNS}?only=runs").text)


def test_ids_of_another_organization_are_told_as_ids_of_nothing(pages, night, ada):
    eve = pages.browser(person("eve", org_id="globex"))
    schedule, run = night.id_of("Inbox triage"), run_ids(ada)[0]
    absent = "7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11"
    for path in (
        "schedules/{schedule}",
        "schedules/{schedule}/review",
        "schedules/{schedule}/retirement",
        "schedules/{schedule}/receipts/k",
        "runs/{run}",
    ):
        theirs = eve.get(f"/ui/globex/test/{path.format(schedule=schedule, run=run)}")
        nothing = eve.get(f"/ui/globex/test/{path.format(schedule=absent, run=absent)}")
        said = [
            text_of(each).replace(schedule, absent).replace(run, absent).partition(" request ")[0]
            for each in (theirs, nothing)
        ]
        assert (theirs.status_code, said[0]) == (404, said[1])
        assert "Inbox triage" not in theirs.text
        assert eve.get(f"{HOME}/{path.format(schedule=schedule, run=run)}").status_code == 404
    listed = eve.get(f"/ui/globex/test/schedules?after={schedule}")
    assert listed.status_code == 200
    assert "Inbox triage" not in listed.text


def test_nobody_decides_on_what_is_another_organizations(pages, night, ada):
    eve = pages.browser(person("eve", org_id="globex"))
    schedule = night.id_of("Inbox triage")
    address, fields = form(ada.get(f"{SCHEDULES}/{schedule}/review"), "Pause")
    fields["form_token"] = eve.form_token()
    for path in (address, address.replace("/acme/", "/globex/"), f"{SCHEDULES}/{schedule}/retirement"):
        assert eve.post(path, fields).status_code == 404
    assert night.desks["Inbox triage"].activation().is_live


def test_two_tabs_each_say_what_they_were_shown(pages, night, ada):
    """One tab decides; what the other one was shown is outdated, and it is told so, although both belong to one person."""
    desk = night.published("Two tabs")
    desk.now = MORNING
    desk.write(lambda _: None)
    where = f"{SCHEDULES}/{desk.key.schedule_id}/review"
    one, other = ada.get(where), ada.get(where)
    done = ada.post(*form(one, "Enable revision 1"))
    assert done.status_code == 303
    late = ada.post(*form(other, "Enable revision 1"))
    assert late.status_code == 409
    assert "It was not enabled" in text_of(late)
    # The same tab, sent twice, is one act.
    assert ada.post(*form(one, "Enable revision 1")).headers["location"] == done.headers["location"]
    assert desk.activation().generation == 1
    desk.pause()


def test_a_tab_of_somebody_who_signed_out_in_another_does_nothing(pages, night):
    browser = pages.browser(person("grace"))
    schedule = night.id_of("Inbox triage")
    address, fields = form(browser.get(f"{SCHEDULES}/{schedule}/review"), "Pause")
    kept = dict(browser.cookies)
    browser.post("/ui/sign-out", {"form_token": browser.form_token()})
    browser.cookies = kept
    assert browser.post(address, fields).headers["location"].startswith("/ui/sign-in?")
    assert night.desks["Inbox triage"].activation().is_live


def test_a_tab_of_somebody_else_who_used_the_browser_before_does_nothing(pages, night):
    grace, ada = pages.browser(person("grace")), pages.browser(person())
    schedule = night.id_of("Inbox triage")
    address, fields = form(grace.get(f"{SCHEDULES}/{schedule}/review"), "Pause")
    answer = ada.post(address, fields)
    assert answer.status_code == 403
    assert "made for another session" in text_of(answer)
    assert night.desks["Inbox triage"].activation().is_live


@pytest.mark.parametrize("planted", ["chosen-by-mallory", "../../x", "a" * 5_000, "\u00e9", "", '"', "%00"])
def test_a_secret_that_somebody_planted_is_no_session_and_becomes_none(pages, catalog, planted):
    """Session fixation: what the browser showed before it signed in is worth nothing afterwards."""
    browser = pages.browser()
    headers = {"Cookie": f"{COOKIE}={planted}".encode()}
    assert browser.get(SCHEDULES, headers=headers).status_code == 303
    with catalog.writing() as connection:
        code = sessions.make_code(connection, person(), now=MORNING)
    answer = browser.post("/ui/sign-in", {"code": code}, headers=headers)
    assert answer.status_code == 303
    secret = browser.cookies[COOKIE]
    assert secret != planted
    assert len(secret) >= 43
    assert browser.get(SCHEDULES, headers=headers).status_code == 303
    assert pages.browser().get(SCHEDULES).status_code == 303


def test_mallorys_session_in_anothers_browser_ends_when_they_sign_in(pages, catalog):
    mallory, ada = pages.browser(person("mallory")), pages.browser()
    ada.cookies = dict(mallory.cookies)
    with catalog.writing() as connection:
        code = sessions.make_code(connection, person(), now=MORNING)
    ada.post("/ui/sign-in", {"code": code})
    assert mallory.get(SCHEDULES).status_code == 303
    assert ada.get(SCHEDULES).status_code == 200


def test_a_session_that_is_over_lets_nobody_look_refresh_or_send(pages, night, catalog):
    browser = pages.browser(person("late"))
    with catalog.writing() as connection:
        old = sessions.begin(connection, person("late"), now=MORNING - timedelta(hours=2))
    browser.cookies[COOKIE] = old
    assert browser.get(SCHEDULES).status_code == 303
    assert browser.get(SCHEDULES, headers={"X-Horarium-Refresh": "1"}).status_code == 401
    sent = browser.post("/ui/sign-out", {"form_token": sessions.form_token(old)})
    assert sent.headers["location"].startswith("/ui/sign-in?")


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example/ui",
        "/ui//evil.example",
        "/ui/..%2f..%2fv1",
        "/ui/%2e%2e/%2e%2e/etc",
        "/ui/static/..%2f..%2fsettings.py",
        "/ui/static/%2e%2e%2fsettings.py",
        "/ui/static/pages.css%00.html",
        "/ui/acme%2ftest/schedules",
        "/ui/acme/test/schedules/%c0%ae%c0%ae",
        "/ui/acme/test/%ff%fe%fd",
        "/ui/\u202e/\u2066",
        "/ui/" + "a/" * 400,
        "/ui/acme/test/schedules/" + "f" * 1_900,
        "/ui/acme/test/schedules?text=%00",
        "/ui/acme/test/schedules?text=%ff%fe",
        "/ui/acme/test/schedules?text=%ed%a0%80",
        "/ui/acme/test/schedules?after=%00",
        "/ui/acme/test/runs?disposition=%00",
        "/ui/acme/test/runs?after=" + "A" * 1_000,
        "/ui/acme/test/notifications?after=99999999999999999999999",
        "/ui/acme/test/schedules?text=a&text=b&state=enabled&state=review",
        "/ui/sign-in?next=//evil.example",
        "/ui/sign-in?code=%00&next=%ff",
    ],
)
@pytest.mark.parametrize("signed_in", [True, False])
def test_addresses_that_nobody_types_break_nothing_and_lead_nowhere_else(pages, path, signed_in):
    browser = pages.browser(person() if signed_in else None)
    for method in ("GET", "HEAD", "OPTIONS", "POST"):
        answer = browser.ask(method, path)
        assert answer.status_code < 500, (method, answer.text)
        led = answer.headers.get("location", "/ui")
        assert led == "/ui" or led.startswith("/ui/"), led
        assert "settings" not in answer.headers.get("content-disposition", "")
        assert "HORARIUM_OIDC_ISSUER is" not in answer.text


@pytest.mark.parametrize("small", [3, 200])
@pytest.mark.parametrize(
    "text", ["\0", "a\0b", "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "\U0010ffff", "'; --", "%_!"]
)
def test_a_text_that_no_database_likes_is_looked_for_all_the_same(ada, text, small, monkeypatch):
    monkeypatch.setattr("horarium.control.directory.SMALL", small)
    answer = ada.get(SCHEDULES, params={"text": text})
    assert answer.status_code == 200, answer.text
    assert "There is no such schedule" in text_of(answer)


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE"])
def test_another_method_does_nothing_and_signs_nobody_in_or_out(pages, catalog, method):
    browser = pages.browser(person())
    with catalog.writing() as connection:
        code = sessions.make_code(connection, person("grace"), now=MORNING)
    for path in (SCHEDULES, "/ui/sign-out", f"/ui/sign-in?code={code}", "/ui/static/pages.css"):
        answer = browser.ask(method, path)
        assert answer.status_code == 405, path
        assert "set-cookie" not in answer.headers
        assert method not in answer.headers["allow"]
    assert browser.get(SCHEDULES).status_code == 200
    assert pages.browser().get(f"/ui/sign-in?code={code}").status_code == 303, "the code was not used up"


def test_a_session_is_never_kept_by_anything_in_between(pages, ada):
    for path in (SCHEDULES, "/ui/environments", "/ui/sign-in", f"{HOME}/nothing"):
        answer = ada.get(path)
        assert answer.headers["cache-control"] == "no-store"
    assert "no-store" in ada.get("/ui").headers["cache-control"]


def test_no_page_says_who_else_is_signed_in(pages, catalog, ada):
    with catalog.writing() as connection:
        sessions.begin(connection, person("somebody-else"), now=datetime.now(UTC))
    for path in (SCHEDULES, "/ui/environments"):
        assert "somebody-else" not in ada.get(path).text
