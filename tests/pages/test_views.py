"""What the directory, the runs and the story of a run tell, to whom, and how they are sent."""

import re
from datetime import timedelta

import pytest
from sqlalchemy import event

from horarium.api.pages import moments, words
from horarium.api.pages.rendering import templates
from horarium.catalog import money
from horarium.catalog.declarations import declare
from horarium.catalog.directory import Standing
from horarium.control import directory
from horarium.schedule.ledger import Disposition
from tests.control.desk import SCOPE
from tests.pages.browser import HOME, LOCAL, Pages, person, text_of
from tests.pages.night import HOSTILE, MORNING, TURNING, tonight

SCHEDULES = f"{HOME}/schedules"
RUNS = f"{HOME}/runs"


@pytest.fixture(scope="module")
def night(catalog):
    return tonight(catalog)


@pytest.fixture(scope="module")
def pages(catalog, night):
    made = Pages(catalog, now=lambda: MORNING)
    yield made
    made.close()


def rows(answer):
    """The rows of a page's table, as words."""
    body = answer.text.partition("<tbody>")[2].partition("</tbody>")[0]
    return [text_of(Fake(f"<main>{row}</main>")) for row in body.split("</tr>") if "<tr" in row]


class Fake:
    def __init__(self, text):
        self.text = text


def row_of(answer, name):
    (row,) = [each for each in rows(answer) if each.startswith(name)]
    return row


def test_the_directory_tells_where_each_schedule_stands(ada):
    page = ada.get(SCHEDULES)
    assert page.status_code == 200
    assert "enabled" in row_of(page, "Inbox triage")
    assert "Tue 1 Dec 2026 07:30 Europe/Zurich" in row_of(page, "Inbox triage")
    assert "06:30 UTC" in row_of(page, "Inbox triage")
    assert "succeeded" in row_of(page, "Inbox triage")
    assert "40 ms" in row_of(page, "Inbox triage")
    assert "1 running" in row_of(page, "Ingestion check")
    assert "skipped" in row_of(page, "Ingestion check")
    assert "40 ms" in row_of(page, "Ingestion check"), "of its last run, which the skipped instant was none of"
    assert "1 running" in row_of(page, "Market watch")
    assert "2 waiting" in row_of(page, "Market watch")
    assert "review" in row_of(page, "Nightly report")
    assert "failed" in row_of(page, "Nightly report")
    assert "refused" in row_of(page, "Invoice matching")
    assert "paused" in row_of(page, "Weekly digest")
    assert "nothing yet" in row_of(page, "Release notes draft")
    assert not [each for each in rows(page) if each.startswith("Old crawler")]


@pytest.mark.parametrize(
    ("state", "names"),
    [
        (Standing.REVIEW, ["Nightly report"]),
        (Standing.RETIRED, ["Old crawler"]),
        (Standing.NEVER_ENABLED, ["Release notes draft"]),
        (Standing.PAUSED, ["Weekly digest"]),
        (
            Standing.ENABLED,
            ["<script>", "Inbox triage", "Ingestion check", "Invoice matching", "Market watch", "Second counter"],
        ),
    ],
)
def test_the_directory_can_be_asked_for_one_state(ada, state, names):
    found = rows(ada.get(SCHEDULES, params={"state": state.value}))
    assert len(found) == len(names)
    assert all(any(row.startswith(name) for row in found) for name in names)


@pytest.mark.parametrize("small", [3, 200])
@pytest.mark.parametrize("text", ["TRIAGE", "inbox tri", " Inbox  triage".replace("  ", " ")])
def test_the_directory_can_be_asked_for_a_text_in_any_case(ada, text, small, monkeypatch):
    monkeypatch.setattr(directory, "SMALL", small)
    found = rows(ada.get(SCHEDULES, params={"text": text}))
    assert [row.partition(" \N{BLACK CIRCLE}")[0] for row in found] == ["Inbox triage"]


@pytest.mark.parametrize("small", [3, 200])
def test_an_id_is_found_and_what_reads_like_a_pattern_is_taken_as_it_is(ada, night, small, monkeypatch):
    monkeypatch.setattr(directory, "SMALL", small)
    (row,) = rows(ada.get(SCHEDULES, params={"text": night.id_of("Market watch")[:13]}))
    assert row.startswith("Market watch")
    for text in ("%", "_nbox", "skip", '"name"', "\\"):
        assert rows(ada.get(SCHEDULES, params={"text": text})) == [], text
    assert "There is no such schedule" in text_of(ada.get(SCHEDULES, params={"text": "%"}))


@pytest.mark.parametrize("small", [3, 200])
def test_letters_beyond_ascii_are_found_in_any_case(ada, night, small, monkeypatch):
    monkeypatch.setattr(directory, "SMALL", small)
    night.published("Ärger im Büro: Größe")
    try:
        for text in ("ärger", "BÜRO", "größe"):
            assert len(rows(ada.get(SCHEDULES, params={"text": text}))) == 1, text
    finally:
        night.desks.pop("Ärger im Büro: Größe").retire()


def test_a_small_environment_is_listed_by_name(ada):
    names = re.findall(r'<th scope="row"><a href="[^"]+"><bdi>([^<]+)', ada.get(SCHEDULES).text)
    assert len(names) > 5
    assert names == sorted(names, key=str.casefold)


def test_a_large_environment_is_listed_by_id(ada, monkeypatch):
    monkeypatch.setattr(directory, "SMALL", 3)
    ids = re.findall(rf'<th scope="row"><a href="{SCHEDULES}/([^"]+)"', ada.get(SCHEDULES).text)
    assert len(ids) > 5
    assert ids == sorted(ids)


@pytest.mark.parametrize("small", [3, 200])
def test_pages_of_the_directory_follow_each_other_and_hold_each_schedule_once(ada, night, monkeypatch, small):
    monkeypatch.setattr(directory, "SMALL", small)
    made = [night.published(f"Many {number:02d}") for number in range(30)]
    try:
        seen, address = [], f"{SCHEDULES}?text=many"
        for _ in range(10):
            page = ada.get(address)
            seen += [row.partition(" \N{WHITE CIRCLE}")[0] for row in rows(page)]
            more = re.search(r'rel="next" href="([^"]+)"', page.text)
            if more is None:
                break
            address = more[1].replace("&amp;", "&")
        assert sorted(seen) == [f"Many {number:02d}" for number in range(30)]
        assert len(rows(ada.get(SCHEDULES))) == 25
    finally:
        for each in made:
            each.retire()


def test_a_page_asks_as_much_for_25_schedules_as_for_few(ada, pages, night):
    def count(path):
        asked = []

        def note(_connection, _cursor, statement, *_):
            asked.append(statement)

        engines = {pages.catalog.engine, pages.catalog._reader}
        for engine in engines:
            event.listen(engine, "before_cursor_execute", note)
        try:
            assert ada.get(path).status_code == 200
        finally:
            for engine in engines:
                event.remove(engine, "before_cursor_execute", note)
        return len(asked)

    few = count(f"{SCHEDULES}?text=second"), count(f"{RUNS}?disposition=failed")
    made = [night.published(f"More {number:02d}") for number in range(16)]
    try:
        assert (count(SCHEDULES), count(RUNS)) == few
    finally:
        for each in made:
            each.retire()


def test_an_empty_environment_tells_how_to_publish_the_first_schedule(pages):
    eve = pages.browser(person("eve", org_id="globex"))
    page = eve.get("/ui/globex/test/schedules")
    assert "No schedule is published here yet" in text_of(page)
    assert "horarium publish" in text_of(page)


def test_the_runs_tell_what_became_of_every_due_instant(ada):
    page = ada.get(RUNS)
    told = rows(page)
    assert "Market watch" in told[0]
    (skipped,) = [row for row in told if "Ingestion check" in row and "skipped" in row]
    assert "held every slot" in skipped
    (missed,) = [row for row in told if "Second counter" in row and "missed" in row]
    assert "more until" in missed
    (succeeded,) = [row for row in told if "Inbox triage" in row]
    assert "42 messages sorted" in succeeded
    assert "1 min 35 s" in succeeded
    assert "worked@1" in succeeded


@pytest.mark.parametrize("wanted", [Disposition.FAILED, Disposition.REFUSED, Disposition.BUFFERED])
def test_the_runs_can_be_asked_for_one_outcome(ada, wanted):
    told = rows(ada.get(RUNS, params={"disposition": wanted.value}))
    assert told
    assert all(words.disposition(wanted).text in row for row in told)


def test_only_those_that_were_given_a_run(ada):
    told = rows(ada.get(RUNS, params={"only": "runs"}))
    assert told
    assert not any("missed" in row or "skipped" in row for row in told)


def test_an_empty_choice_of_the_form_asks_for_everything(ada):
    assert len(rows(ada.get(f"{RUNS}?disposition=&only="))) == len(rows(ada.get(RUNS)))
    assert len(rows(ada.get(f"{SCHEDULES}?text=&state="))) == len(rows(ada.get(SCHEDULES)))


def run_page(ada, name, **params):
    """The page of the newest run of a schedule."""
    listed = ada.get(RUNS, params={"only": "runs", **params}).text
    (row, *_) = [each for each in listed.split("</tr>") if name in each]
    return ada.get(re.search(rf'href="({RUNS}/[^"]+)"', row)[1])


def test_the_story_of_a_run_is_whole(ada, night):
    page = run_page(ada, "Inbox triage")
    told = text_of(page)
    for part in (
        "due Mon 30 Nov 2026 07:30 Europe/Zurich",
        "Admitted Mon 30 Nov 2026 07:30:00.003",
        "40 ms late",
        "after 1 min 35 s",
        "42 messages sorted",
        "reports/triage/2026-11-30.md",
        "12 minor units",
        "On whose word ada",
        "reset_generation 1",
        "revision 1 sha256:",
        "generation 1, by ada",
    ):
        assert part in told, (part, told)
    assert 'href="http://127.0.0.1:8233/namespaces/default/workflows/run%2Facme%2Ftest%2F' in page.text


def test_the_story_of_a_refused_run_says_what_spoke_against_it(ada):
    told = text_of(run_page(ada, "Invoice matching"))
    assert "input_unreadable" in told
    assert "The input 'mail/inbox' does not exist, or 'ada' cannot read it." in told


def test_what_others_wrote_does_no_harm(ada):
    for page in (ada.get(SCHEDULES), ada.get(RUNS), run_page(ada, "&lt;script&gt;")):
        assert "&lt;script&gt;alert(" in page.text
        assert "<script>alert" not in page.text
        assert "<img src=x" not in page.text
        assert "{{ 7 * 7 }}" in page.text
        for each in re.findall("[\u202a-\u202e\u2066-\u2069\x1b]", TURNING):
            assert each not in page.text
    assert "\N{REPLACEMENT CHARACTER}" in run_page(ada, "&lt;script&gt;").text
    assert len(HOSTILE) == 200


@pytest.mark.parametrize(
    "path", [SCHEDULES, RUNS, "/ui/sign-in", "/ui/environments", f"{HOME}/nothing", "/ui/static/pages.css"]
)
def test_every_page_is_sent_with_a_policy_that_lets_nothing_in(ada, path):
    answer = ada.get(path)
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self'",
        "connect-src": "'self'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
    }
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "same-origin"
    cached = answer.headers["cache-control"]
    assert cached == ("public, max-age=31536000, immutable" if "static" in path else "no-store")


@pytest.mark.parametrize("path", [SCHEDULES, RUNS, "/ui/sign-in", "/ui/environments", f"{HOME}/nothing"])
def test_a_page_has_its_landmarks_one_heading_and_nothing_inline_or_from_elsewhere(ada, path):
    text = ada.get(path).text
    assert text.count("<h1") == text.count("<main") == text.count("<header") == text.count("<footer") == 1
    assert '<html lang="en"' in text
    assert '<a class="skip" href="#main">' in text
    assert re.findall(r"<script(?![^>]* src=)", text) == []
    tags = re.findall(r"<[a-z][^>]*>", text)
    assert [each for each in tags if re.search(r"<style|\sstyle=|\son\w+=|javascript:", each)] == []
    assert [
        each for each in re.findall(r'(?:src|href|action)="([^"]*)"', text) if not each.startswith(("/ui", "#"))
    ] == []
    assert all("scope=" in each for each in re.findall(r"<th[ >][^>]*", text))
    ids = re.findall(r'\sid="([^"]*)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'<label for="([^"]*)"', text)) <= set(ids)


def test_what_is_not_yours_is_not_there(pages, night):
    eve = pages.browser(person("eve", org_id="globex"))
    mine = text_of(eve.get("/ui/globex/nothing/schedules"))
    for path in (SCHEDULES, RUNS, f"{RUNS}/{night.id_of('Inbox triage')}", "/ui/acme/nothing/schedules"):
        answer = eve.get(path)
        assert answer.status_code == 404, path
        assert "Inbox" not in answer.text
    other = text_of(eve.get(SCHEDULES)).replace("acme", "globex").replace("'test'", "'nothing'")
    assert other.partition("Status")[0] == mine.partition("Status")[0]


def test_a_run_of_another_organization_is_not_there_under_ones_own_address(pages, ada):
    listed = ada.get(RUNS, params={"only": "runs"}).text
    run_id = re.search(rf'href="{RUNS}/([^"]+)"', listed)[1]
    assert ada.get(f"{RUNS}/{run_id}").status_code == 200
    eve = pages.browser(person("eve", org_id="globex"))
    assert eve.get(f"/ui/globex/test/runs/{run_id}").status_code == 404


def test_a_person_without_the_scope_sees_no_schedule(pages):
    browser = pages.browser(person("bob", scopes=frozenset({"other"})))
    answer = browser.get(SCHEDULES)
    assert answer.status_code == 403
    assert "synapse:schedules:write" in text_of(answer)
    assert browser.get("/ui").status_code == browser.get("/ui/environments").status_code == 403


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{SCHEDULES}?state=lost", 422),
        (f"{SCHEDULES}?after=x", 422),
        (f"{SCHEDULES}?text={'x' * 101}", 422),
        (f"{RUNS}?after=x", 400),
        (f"{RUNS}?disposition=lost", 422),
        (f"{RUNS}/x", 404),
        (f"{RUNS}/7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11", 404),
        ("/ui/a%2Fb/test/schedules", 404),
        ("/ui/static/nothing.js", 404),
        ("/ui/acme/test/nothing/at/all", 404),
    ],
)
def test_what_cannot_be_shown_is_a_page_that_says_what_to_do(ada, path, status):
    answer = ada.get(path)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    assert "code" in text_of(answer)


def test_another_method_is_refused_by_a_page(ada):
    answer = ada.post(SCHEDULES, {"a": "b"})
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    assert answer.headers["content-type"].startswith("text/html")


def test_what_fails_inside_is_not_told(ada, monkeypatch, capsys):
    def broken(*_, **__):
        raise ZeroDivisionError("hunter2")

    monkeypatch.setattr("horarium.api.pages.routes.directory.directory", broken)
    answer = ada.get(SCHEDULES)
    assert answer.status_code == 500
    assert "hunter2" not in answer.text
    assert answer.headers["x-request-id"] in text_of(answer)
    assert "ZeroDivisionError" in capsys.readouterr().out


def test_the_log_names_the_person_and_no_secret(ada, capsys):
    ada.get(f"{SCHEDULES}?text=hunter2")
    said = capsys.readouterr().out
    assert "principal=acme/ada" in said
    for secret in (ada.cookies[LOCAL.session_cookie], "hunter2"):
        assert secret not in said


def test_a_page_that_nobody_uses_but_refreshes_keeps_no_session_alive(pages):
    browser = pages.browser(person("idle"))
    service = pages.app.state.service
    asked = []
    original = service.catalog.write

    async def write(function, *args, **kwargs):
        asked.append(getattr(function, "__name__", ""))
        return await original(function, *args, **kwargs)

    object.__setattr__(service, "now", lambda: MORNING + timedelta(minutes=5))
    service.catalog.write = write
    try:
        assert browser.get(SCHEDULES, headers={"X-Horarium-Refresh": "1"}).status_code == 200
        assert asked == []
        assert browser.get(SCHEDULES).status_code == 200
        assert len(asked) == 1
    finally:
        del service.catalog.write
        object.__setattr__(service, "now", lambda: MORNING)


@pytest.mark.parametrize(
    ("instant", "zone", "shown"),
    [
        ("2026-11-30T06:30:00Z", "Europe/Zurich", "Mon 30 Nov 2026 07:30"),
        ("2026-11-30T06:30:05Z", "UTC", "Mon 30 Nov 2026 06:30:05"),
        ("2026-11-30T06:30:00.040000Z", "UTC", "Mon 30 Nov 2026 06:30:00.040"),
        ("2026-11-30T06:30:00Z", "Nowhere/Else", "Mon 30 Nov 2026 06:30"),
        ("2026-10-24T23:59:59Z", "Europe/Zurich", "Sun 25 Oct 2026 01:59:59"),
        ("2026-10-25T00:00:00Z", "Europe/Zurich", "Sun 25 Oct 2026 02:00 (UTC+02:00)"),
        ("2026-10-25T00:30:00Z", "Europe/Zurich", "Sun 25 Oct 2026 02:30 (UTC+02:00)"),
        ("2026-10-25T01:30:00Z", "Europe/Zurich", "Sun 25 Oct 2026 02:30 (UTC+01:00)"),
        ("2026-10-25T02:00:00Z", "Europe/Zurich", "Sun 25 Oct 2026 03:00"),
        ("2026-11-01T05:30:00Z", "America/New_York", "Sun 1 Nov 2026 01:30 (UTC-04:00)"),
        ("2026-04-04T15:15:00Z", "Australia/Lord_Howe", "Sun 5 Apr 2026 01:45 (UTC+10:30)"),
        ("9999-12-30T23:59:59Z", "UTC", "Thu 30 Dec 9999 23:59:59"),
        ("0001-01-02T00:00:00Z", "Europe/Zurich", "Tue 2 Jan 1 00:34:08"),
    ],
)
def test_an_instant_on_the_wall_clock_of_a_zone(instant, zone, shown):
    assert moments.wall(instant, zone) == shown


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (None, moments.NOTHING),
        (0, "0 ms"),
        (999, "999 ms"),
        (1_450, "1.4 s"),
        (59_999, "60.0 s"),
        (125_000, "2 min 5 s"),
        (7_200_000, "2 h"),
    ],
)
def test_lateness_in_words(milliseconds, shown):
    assert moments.lateness(milliseconds) == shown


def test_every_disposition_has_words_and_a_sign_of_its_own_tone():
    for each in Disposition:
        badge = words.disposition(each.value)
        assert badge.text
        assert badge.sign


def test_templates_never_switch_escaping_off():
    environment = templates()
    for name in environment.list_templates():
        source, _, _ = environment.loader.get_source(environment, name)
        assert re.findall(r"\|\s*safe|autoescape|Markup", source) == [], name


def test_a_cost_is_told_in_the_units_that_it_is_counted_in(ada, catalog, night):
    told = text_of(run_page(ada, "Inbox triage"))
    assert "12 minor units As the agent reported it, in whole minor units; no declared budget says of which" in told
    listed = ada.get(RUNS, params={"only": "runs"}).text
    (row, *_) = [each for each in listed.split("</tr>") if "Inbox triage" in each]
    run_id = re.search(rf'href="{RUNS}/([^"]+)"', row)[1]
    with catalog.writing() as connection:
        facts = {"usage_classes": [], "pays_by": "credits", "limit": 9_000, "currency": "JPY"}
        declare(connection, SCOPE, "budget", "team", facts, version=1, everywhere=False)
        money.reserve(connection, SCOPE, run_id, budget="team", wallet=None, amount=1_500, remote=False, now=MORNING)
    told = text_of(run_page(ada, "Inbox triage"))
    assert "12 minor units of JPY" in told
    assert "1,500 minor units of JPY of the budget team" in told
    assert "no declared budget" not in told
