"""Whatever a person can meet under `/ui` that is no page is told by one: in their words, with what to do, and the right status."""

from contextlib import contextmanager

import pytest

from horarium.api.limits import Limits, Rate
from horarium.catalog.failures import OutcomeUnknown
from horarium.errors import Misconfigured, Unavailable
from tests.api.house import UNLIMITED
from tests.pages.browser import HOME, Pages, person, text_of
from tests.pages.night import Night

SCHEDULES = f"{HOME}/schedules"
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
ABSENT = "7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11"
OF_PROGRAMS = ("token", "JSON", "openapi", "Idempotency", " key ", "cursor", "caller", "parameter", " body", "/v1")
"""Words of the API that say nothing to a reader of pages."""


def is_told(answer, status, *parts):
    """Assert that an answer is a page about a refusal that a person can use."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"
    assert answer.text.count("<h1") == 1
    told = text_of(answer)
    for part in ("What to do:", f"Status {status}", answer.headers["x-request-id"], *parts):
        assert part in told, (part, told)
    said = told.partition("Status ")[0]
    assert [word for word in OF_PROGRAMS if word in said] == []


@pytest.mark.parametrize("signed_in", [True, False])
@pytest.mark.parametrize(
    ("method", "path", "more", "status", "part"),
    [
        ("GET", SCHEDULES, {"headers": {"X-Padding": "x" * 20_000}}, 431, "cookies"),
        ("GET", f"{SCHEDULES}?text={'x' * 5_000}", {}, 414, "Look for less"),
        ("GET", f"{HOME}/{'x' * 3_000}", {}, 414, "address"),
        ("POST", "/ui/sign-out", {"content": b"a=" + b"x" * 300_000, "headers": FORM}, 413, "Nothing changed"),
        ("POST", "/ui/sign-in", {"content": b"a=" + b"x" * 300_000, "headers": FORM}, 413, "Nothing changed"),
        ("GET", "/ui/no/such/page/at/all", {}, 404, "no such page"),
        ("PUT", SCHEDULES, {}, 405, "use what it shows"),
        ("OPTIONS", SCHEDULES, {}, 405, "use what it shows"),
        ("GET", "/ui/static/none.js", {}, 404, "no such page"),
    ],
)
def test_what_is_refused_before_any_page_is_asked(pages, method, path, more, status, part, signed_in):
    browser = pages.browser(person() if signed_in else None)
    is_told(browser.ask(method, path, **more), status, part)


@pytest.mark.parametrize(
    ("path", "status", "part"),
    [
        (f"{SCHEDULES}/{ABSENT}", 404, "schedule"),
        (f"{SCHEDULES}/{ABSENT}/review", 404, "schedule"),
        (f"{SCHEDULES}/{ABSENT}/retirement", 404, "schedule"),
        (f"{SCHEDULES}/{ABSENT}/receipts/x", 404, "receipt"),
        (f"{SCHEDULES}/{ABSENT}/receipts/%20", 422, "Nothing changed"),
        (f"{SCHEDULES}/not-an-id", 404, "schedule"),
        (f"{HOME}/runs/{ABSENT}", 404, "run"),
        (f"{HOME}/runs/{'9' * 500}", 404, "run"),
        (f"{HOME}/runs?after=x", 400, "first page of the list"),
        (f"{SCHEDULES}/{ABSENT}?after=%00", 400, "first page of the list"),
        (f"{SCHEDULES}/{ABSENT}?events_before={'9' * 40}", 422, "Go back"),
        (f"{SCHEDULES}/{ABSENT}/review?revision=-1", 422, "Go back"),
        (f"{SCHEDULES}?after={'9' * 200}", 422, "Go back"),
        ("/ui/globex/test/schedules", 404, "an environment of yours"),
        ("/ui/acme/nowhere/schedules", 404, "an environment of yours"),
        ("/ui/%ff/%fe/schedules", 404, "an environment of yours"),
        (f"{SCHEDULES}/%ff%00", 404, "schedule"),
    ],
)
def test_what_is_not_there(ada, path, status, part):
    is_told(ada.get(path), status, part)


@pytest.mark.parametrize("signed_in", [True, False])
def test_whoever_asks_too_often_is_told_when_to_come_again(catalog, signed_in):
    slow = Rate(per_second=0.001, burst=1)
    limits = Limits(per_principal=slow if signed_in else UNLIMITED, per_peer=UNLIMITED if signed_in else slow)
    house = Pages(catalog, limits=limits)
    try:
        browser = house.browser(person() if signed_in else None)
        path = f"{SCHEDULES}?text=a" if signed_in else "/ui/sign-in"
        assert browser.get(path).status_code == 200
        answer = browser.get(path)
        is_told(answer, 429, "Wait a moment")
        assert int(answer.headers["retry-after"]) > 0
        assert "Try again" in text_of(answer)
        assert not signed_in or f'href="{path}"' in answer.text
    finally:
        house.close()


@contextmanager
def failing(pages, error, *, write=False):
    """While this lasts, the catalog fails with an error."""

    async def fails(*_, **__):
        raise error

    found = pages.app.state.service.catalog
    name = "write" if write else "read"
    setattr(found, name, fails)
    try:
        yield
    finally:
        delattr(found, name)


def test_a_catalog_that_does_not_answer_is_told_without_its_words(pages, ada, capsys):
    down = Unavailable("catalog_unavailable", "The catalog does not answer: host=db.internal refused.")
    with failing(pages, down):
        answer = ada.get(f"{SCHEDULES}?text=a")
        sent = ada.post("/ui/sign-out", {"form_token": "x"})
    is_told(answer, 503, "does not answer now", "Try again in a few seconds")
    assert answer.headers["retry-after"] == "5"
    assert f'href="{SCHEDULES}?text=a"' in answer.text
    is_told(sent, 503, "Nothing changed", "send the form again")
    assert "db.internal" not in answer.text + sent.text
    assert "db.internal" in capsys.readouterr().out


def test_an_installation_that_is_not_as_it_has_to_be_is_told_to_its_log_alone(pages, ada, capsys):
    with failing(pages, Misconfigured("The file /secret/place cannot be opened.")):
        answer = ada.get(SCHEDULES)
    is_told(answer, 500, "Tell whoever runs this installation")
    assert "/secret/place" not in answer.text
    assert "/secret/place" in capsys.readouterr().out


def test_what_fails_before_a_page_is_reached_is_told_by_a_page_too(pages, ada, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("hunter2")

    monkeypatch.setattr("horarium.api.app._methods", broken)
    answer = ada.ask("PUT", SCHEDULES)
    is_told(answer, 500, "number of the request")
    assert "hunter2" not in answer.text


def test_where_not_even_the_refusal_can_be_shown_a_problem_says_so(pages, ada, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("hunter2")

    monkeypatch.setattr("horarium.api.pages.site.render", broken)
    answer = ada.get(SCHEDULES)
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    assert "hunter2" not in answer.text


def test_a_program_is_told_a_problem_as_ever(pages, ada):
    for path in ("/", "/uix", "/v1/nothing", "/ui.json"):
        answer = ada.get(path, headers={"Accept": "*/*"})
        assert (answer.status_code, answer.json()["code"]) == (404, "path_not_found")


def test_a_form_that_is_sent_after_the_session_has_ended_is_said_to_be_undone(pages, ada):
    """Whoever pressed a button would else take it for done, once they have signed in."""
    address = f"{SCHEDULES}/{ABSENT}/review"
    ada.cookies.clear()
    led = ada.post(address, {"form_token": "x", "act": "pause"})
    assert led.status_code == 303
    page = ada.get(led.headers["location"])
    assert page.status_code == 200
    assert "what you sent was not done" in text_of(page)
    assert f'value="{address}"' in page.text


def test_a_person_without_the_scope_is_told_whom_to_ask(pages):
    browser = pages.browser(person("grace", scopes=frozenset()))
    is_told(browser.get(SCHEDULES), 403, "synapse:schedules:write", "Ask whoever runs this installation")


@pytest.mark.parametrize("lost", [False, True])
def test_a_change_whose_outcome_is_not_known_is_never_said_to_be_undone(pages, catalog, lost):
    """Also where the catalog, once it was lost in the middle, cannot even say how the schedule stands."""
    desk = Night(catalog).published("Lost in the middle")
    service, browser = pages.app.state.service, pages.browser(person())
    fields = {
        "form_token": browser.form_token(),
        "key": "a key of the form",
        "act": "pause",
        "revision": "1",
        "digest": "sha256:" + "0" * 64,
        "generation": "0",
        "environment_epoch": "1",
        "reset_generation": "1",
        "seen": "0",
    }
    original, asked = service.catalog.read, []

    async def read(function, *args, **kwargs):
        asked.append(function.__name__)
        if lost and function.__name__ == "meanwhile":
            raise Unavailable("catalog_unavailable", "gone")
        return await original(function, *args, **kwargs)

    async def write(*_, **__):
        raise OutcomeUnknown("catalog_unavailable", "The connection ended at COMMIT.")

    service.catalog.read, service.catalog.write = read, write
    try:
        answer = browser.post(f"{SCHEDULES}/{desk.key.schedule_id}/review", fields)
    finally:
        del service.catalog.read, service.catalog.write
    assert answer.status_code == 500
    told = text_of(answer)
    assert "It is not known whether it was done" in told
    assert "Nothing changed" not in told
    assert 'value="a key of the form"' in answer.text, "it can be sent again as it is"
    assert "meanwhile" in asked
