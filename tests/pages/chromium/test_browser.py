"""The pages in a real headless Chromium: signing in, reading, the keyboard, refreshing, and nothing from anywhere else."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from horarium.api.pages.settings import OidcSettings
from tests.pages.browser import HOME
from tests.pages.issuer import CLIENT, SECRET, TestIssuer
from tests.pages.night import HOSTILE, MORNING, ended
from tests.pages.served import needs_chromium, served
from tests.pages.windows import CONTRAST, Watched

pytestmark = needs_chromium


def test_a_link_signs_in_and_a_button_signs_out(window, site):
    page = window.page
    page.goto(site.link())
    expect(page).to_have_url(f"{site.url}{HOME}/schedules")
    expect(page.get_by_role("link", name="Inbox triage")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Signed out")
    page.goto(f"{site.url}{HOME}/schedules")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def test_a_code_is_typed_in(window, site):
    page = window.page
    page.goto(f"{site.url}{HOME}/runs")
    expect(page.get_by_label("Code")).to_be_focused()
    page.keyboard.type(site.link().partition("code=")[2].lower())
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{site.url}{HOME}/runs")


def test_an_issuer_signs_in(chromium, catalog, night):
    issuer = TestIssuer()
    oidc = OidcSettings(issuer=issuer.url, client_id=CLIENT, client_secret=SECRET)
    try:
        with served(catalog, MORNING, oidc=oidc, takes_codes=False) as site:
            watched = Watched(chromium)
            page = watched.page
            page.goto(f"{site.url}{HOME}/runs")
            page.get_by_role("link", name=re.compile("^Sign in with")).click()
            expect(page).to_have_url(f"{site.url}{HOME}/runs")
            expect(page.get_by_role("heading", level=1)).to_have_text("Runs")
            watched.hosts.discard(issuer.url)
            watched.close(site)
    finally:
        issuer.close()


def test_times_are_told_in_the_zone_of_the_schedule_and_of_the_reader(page, site):
    page.goto(f"{site.url}{HOME}/schedules")
    tokyo = page.get_by_role("row").filter(has_text="Invoice matching")
    expect(tokyo).to_contain_text("Mon 30 Nov 2026 21:00 Asia/Tokyo")
    expect(tokyo).to_contain_text("13:00 CET yours")
    # The same wall clock is told once.
    zurich = page.get_by_role("row").filter(has_text="Inbox triage")
    expect(zurich).to_contain_text("Tue 1 Dec 2026 07:30 Europe/Zurich")
    expect(zurich).not_to_contain_text("yours")


def test_without_a_script_the_page_says_the_same_in_utc(chromium, site):
    context = chromium.new_context(java_script_enabled=False)
    context.add_cookies([site.session()])
    page = context.new_page()
    page.goto(f"{site.url}{HOME}/schedules")
    expect(page.get_by_role("row").filter(has_text="Invoice matching")).to_contain_text("12:00 UTC")
    expect(page.locator("footer")).to_contain_text("As of 08:00:00 UTC")
    context.close()


def test_the_story_of_a_run_is_reached_from_the_runs(page, site):
    page.goto(f"{site.url}{HOME}/runs")
    row = page.get_by_role("row").filter(has_text="Inbox triage")
    row.get_by_role("rowheader").get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Run of Inbox triage")
    expect(page.get_by_role("heading", name="Admission")).to_be_visible()
    address = page.get_by_role("link", name="This run in Temporal").get_attribute("href")
    assert address.startswith("http://127.0.0.1:8233/namespaces/default/workflows/run%2Facme%2Ftest%2F")


def test_the_keyboard_is_enough(page, site):
    page.goto(f"{site.url}{HOME}/schedules")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Name, id, agent or input")).to_be_focused()
    page.keyboard.type("triage")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("text=triage"))
    expect(page.get_by_role("rowheader")).to_have_count(1)
    link = page.get_by_role("link", name="Inbox triage")
    for _ in range(20):
        page.keyboard.press("Tab")
        if link.evaluate("(each) => each === document.activeElement"):
            break
    expect(link).to_be_focused()
    outline = link.evaluate("(each) => getComputedStyle(each).outlineStyle + getComputedStyle(each).outlineWidth")
    assert outline == "solid3px"


def test_a_page_shows_by_itself_what_changed_and_keeps_where_the_reader_was(page, site, night):
    loop = night.enabled("Fresh", when=MORNING - timedelta(hours=2, minutes=30), every=3_600)
    page.goto(f"{site.url}{HOME}/schedules?text=fresh")
    row = page.get_by_role("row").filter(has_text="Fresh")
    expect(row).to_contain_text("nothing yet")
    link = page.get_by_role("link", name="Fresh")
    link.focus()
    ended(loop, MORNING - timedelta(hours=2))
    expect(row).to_contain_text("succeeded")
    expect(page.get_by_role("link", name="Fresh")).to_be_focused()
    expect(page.locator("[data-told]")).to_have_text("The page was updated.")
    night.desks["Fresh"].pause()
    night.desks["Fresh"].retire()


def test_a_page_keeps_what_was_unfolded_when_it_refreshes(page, site):
    page.goto(f"{site.url}{HOME}/runs?only=runs&disposition=started")
    page.get_by_role("row").filter(has_text="Ingestion check").get_by_role("rowheader").get_by_role("link").click()
    page.get_by_text("Ids and dispatch").click()
    expect(page.get_by_text("Workflow", exact=True)).to_be_visible()
    expect(page.locator("main")).to_contain_text("59 min")
    site.clock.now = MORNING + timedelta(minutes=30)
    try:
        expect(page.locator("main")).to_contain_text("1 h 29 min")
        expect(page.get_by_text("Workflow", exact=True)).to_be_visible()
    finally:
        site.clock.now = MORNING


def test_a_part_that_was_marked_stays_marked(page, site):
    page.goto(f"{site.url}{HOME}/schedules")
    link = page.get_by_role("link", name="Market watch")
    link.evaluate("(each) => window.getSelection().selectAllChildren(each)")
    site.clock.now = MORNING + timedelta(minutes=1)
    try:
        # Longer than two refreshes take.
        page.wait_for_timeout(12_000)
        assert page.evaluate("window.getSelection().toString()") == "Market watch"
        page.evaluate("window.getSelection().removeAllRanges()")
        expect(page.get_by_role("row").filter(has_text="Market watch")).to_contain_text("in 19 min")
    finally:
        site.clock.now = MORNING


def test_whoever_listens_is_not_told_that_time_passes(page, site):
    page.goto(f"{site.url}{HOME}/schedules?text=market")
    site.clock.now = MORNING + timedelta(minutes=2)
    try:
        expect(page.get_by_role("row").filter(has_text="Market watch")).to_contain_text("in 18 min")
        expect(page.locator("[data-told]")).to_be_empty()
    finally:
        site.clock.now = MORNING


def test_nothing_is_replaced_while_somebody_types(page, site):
    page.goto(f"{site.url}{HOME}/schedules")
    field = page.get_by_label("Name, id, agent or input")
    field.fill("half a wo")
    made = page.locator("[data-made] time").get_attribute("datetime")
    site.clock.now = MORNING + timedelta(minutes=1)
    try:
        # Longer than two refreshes take.
        page.wait_for_timeout(12_000)
        expect(field).to_have_value("half a wo")
        assert page.locator("[data-made] time").get_attribute("datetime") == made
    finally:
        site.clock.now = MORNING


def test_a_server_that_does_not_answer_is_told_and_so_is_its_return(window, page, site):
    page.goto(f"{site.url}{HOME}/schedules")
    window.allowed.append("net::ERR_FAILED")
    page.route("**/*", lambda route: route.abort())
    expect(page.locator("footer")).to_contain_text("the server does not answer")
    expect(page.locator("[data-told]")).to_have_text("the server does not answer")
    expect(page.get_by_role("link", name="Inbox triage")).to_be_visible()
    page.unroute("**/*")
    expect(page.locator("footer")).not_to_contain_text("the server does not answer")
    expect(page.locator("[data-told]")).to_have_text("The server answers again.")


def test_a_session_that_ends_is_told_on_the_page_that_was_open(window, page, site):
    page.goto(f"{site.url}{HOME}/schedules")
    window.allowed.append("status of 401")
    window.context.clear_cookies()
    expect(page.locator("footer")).to_contain_text("you are signed out")


def test_a_hostile_name_does_no_harm(window, page, site):
    page.goto(f"{site.url}{HOME}/schedules")
    expect(page.get_by_role("link", name=re.compile("^<script>alert"))).to_have_text(HOSTILE)
    page.goto(f"{site.url}{HOME}/runs?disposition=succeeded")
    page.get_by_role("row").filter(has_text="<script>").get_by_role("rowheader").get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("<script>alert('x')</script>")
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert page.locator("main script, main img").count() == 0


@pytest.mark.parametrize("path", ["schedules", "runs", "runs?only=runs&disposition=succeeded"])
@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_no_page_is_wider_than_its_window(page, site, path, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{site.url}{HOME}/{path}")
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_in_light_and_dark(chromium, site, scheme):
    watched = Watched(chromium, color_scheme=scheme)
    watched.context.add_cookies([site.session()])
    for path in (f"{HOME}/schedules", f"{HOME}/runs", "/ui/sign-in", "/ui/environments"):
        watched.page.goto(site.url + path)
        assert watched.page.evaluate(CONTRAST) == [], path
    watched.close(site)


def test_a_screen_reader_is_told_what_a_page_is_made_of(page, site):
    page.goto(f"{site.url}{HOME}/schedules")
    for role in ("banner", "main", "contentinfo"):
        expect(page.get_by_role(role)).to_have_count(1)
    expect(page.get_by_role("navigation", name="Pages")).to_have_count(1)
    expect(page.get_by_role("link", name="Schedules")).to_have_attribute("aria-current", "page")
    expect(page.get_by_role("columnheader")).to_have_count(6)
    expect(page.get_by_role("row").filter(has_text="Nightly report").locator(".badge.warn")).to_contain_text("review")
    unnamed = page.locator("input:visible, select:visible, button:visible").evaluate_all(
        "(all) => all.filter((each) => !(each.labels && each.labels.length) && !each.textContent.trim()).length"
    )
    assert unnamed == 0
