"""Looking at a schedule and deciding on it in a real headless Chromium: by click and by key, twice, too late, narrow and dark."""

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import update

from horarium.catalog import Catalog, presence
from horarium.catalog.tables import workers
from tests.control.desk import Desk
from tests.pages.browser import HOME
from tests.pages.night import HOSTILE, MORNING, Night, document
from tests.pages.served import Served, needs_chromium
from tests.pages.windows import CONTRAST, Watched

pytestmark = needs_chromium


@pytest.fixture
def desk(catalog: Catalog, night: Night) -> Desk:
    """One that was published and never enabled, with both workers there by the clock of the pages."""
    made = night.published("Morning mail", zone="Europe/Zurich")
    made.now = MORNING
    with catalog.writing() as connection:
        there = workers.c.role.in_(presence.ROLES)
        connection.execute(update(workers).where(there).values(seen_at=MORNING))
    return made


def address(site: Served, desk: Desk, *more: str) -> str:
    return "/".join([f"{site.url}{HOME}/schedules", desk.key.schedule_id, *more])


def heading(page: Page) -> Any:
    return page.get_by_role("heading", level=1)


def test_a_person_enables_pauses_and_retires(page: Page, site: Served, desk: Desk) -> None:
    page.goto(address(site, desk))
    expect(page.locator("main")).to_contain_text("Nothing was ever enabled.")
    page.get_by_role("link", name="Review, enable or pause").click()
    page.get_by_role("button", name="Enable revision 1").click()
    expect(heading(page)).to_have_text("Enabled")
    page.get_by_role("link", name="To the schedule").click()
    expect(page.locator("main")).to_contain_text("Revision 1 is enabled: generation 1")
    page.get_by_role("link", name="Review, enable or pause").click()
    page.get_by_role("button", name="Pause").click()
    expect(heading(page)).to_have_text("Paused")
    page.get_by_role("link", name="To the schedule").click()
    page.get_by_role("link", name="Review, enable or pause").click()
    page.get_by_role("link", name="Retire …").click()
    expect(heading(page)).to_have_text("Retire Morning mail?")
    page.get_by_role("button", name="Retire for good").click()
    expect(heading(page)).to_have_text("Retired")
    page.get_by_role("link", name="To the schedule").click()
    expect(page.locator("main")).to_contain_text("Retired at revision 1: generation 3")
    expect(page.get_by_role("link", name="Review, enable or pause")).to_have_count(0)


def test_the_keyboard_is_enough_to_enable(page: Page, site: Served, desk: Desk) -> None:
    page.goto(address(site, desk, "review"))
    button = page.get_by_role("button", name="Enable revision 1")
    for _ in range(40):
        page.keyboard.press("Tab")
        if button.evaluate("(each) => each === document.activeElement"):
            break
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    expect(heading(page)).to_have_text("Enabled")
    assert desk.activation().is_live


def test_a_double_click_enables_once(page: Page, site: Served, desk: Desk) -> None:
    page.goto(address(site, desk, "review"))
    page.get_by_role("button", name="Enable revision 1").dblclick()
    expect(heading(page)).to_have_text("Enabled")
    assert desk.activation().generation == 1


def test_who_decides_too_late_is_shown_what_changed(window: Watched, page: Page, site: Served, desk: Desk) -> None:
    window.allowed.append("status of 409")
    page.goto(address(site, desk, "review"))
    desk.enable()
    page.get_by_role("button", name="Enable revision 1").click()
    expect(heading(page)).to_have_text("It was not enabled")
    expect(page.get_by_role("alert")).to_contain_text("is at generation 1, not 0")
    expect(page.get_by_role("row").filter(has_text="enabled")).to_contain_text("ada")
    page.get_by_role("link", name="Review what is there now").click()
    expect(page.get_by_role("button", name="Enable again revision 1")).to_be_visible()
    assert desk.activation().generation == 1


def test_the_page_of_a_schedule_shows_by_itself_what_changed(page: Page, site: Served, desk: Desk) -> None:
    page.goto(address(site, desk))
    page.get_by_text("The same as a list").click()
    expect(page.get_by_text("Tuesday 1 December 2026: 07:30")).to_be_visible()
    desk.enable()
    expect(page.locator("main")).to_contain_text("Revision 1 is enabled: generation 1")
    expect(page.get_by_text("Tuesday 1 December 2026: 07:30")).to_be_visible()


def test_a_hostile_name_does_no_harm(page: Page, site: Served, night: Night) -> None:
    for more in ((), ("review",), ("retirement",)):
        page.goto(address(site, night.desks[HOSTILE], *more))
        expect(heading(page)).to_contain_text("<script>alert('x')</script>")
        assert page.locator("main script, main img").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


NAMES = ("Ingestion check", "Second counter", "Nightly report", "Two versions", HOSTILE)


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_no_page_of_a_schedule_is_wider_than_its_window(page: Page, site: Served, night: Night, width: int) -> None:
    _two_versions(night)
    page.set_viewport_size({"width": width, "height": 800})
    for name in NAMES:
        for more in ((), ("review",), ("retirement",)):
            page.goto(address(site, night.desks[name], *more))
            fits = page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
            assert fits, (name, more)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_can_be_read(chromium: Browser, site: Served, night: Night, scheme: str) -> None:
    _two_versions(night)
    watched = Watched(chromium, color_scheme=scheme)
    watched.context.add_cookies([site.session()])
    for name in NAMES:
        for more in ((), ("review",), ("retirement",)):
            watched.page.goto(address(site, night.desks[name], *more))
            assert watched.page.evaluate(CONTRAST) == [], (name, more)
    watched.close(site)


def _two_versions(night: Night) -> None:
    if "Two versions" in night.desks:
        return
    loop = night.enabled("Two versions")
    changed = document("Two versions", zone="Europe/Zurich", overlap="buffer_one")
    changed["run"]["input"] = "a/very/long/" + "reference" * 18
    loop.desk.publish(changed)


def test_the_strip_is_a_picture_with_words(page: Page, site: Served, night: Night) -> None:
    page.goto(address(site, night.desks["Ingestion check"]))
    picture = page.get_by_role("img", name=re.compile("^Oldest first: 6 succeeded"))
    expect(picture).to_be_visible()
    expect(picture.locator("rect")).to_have_count(8)
    fills = picture.locator("rect").evaluate_all(
        "(all) => new Set(all.map((each) => getComputedStyle(each).fill)).size"
    )
    assert fills == 3
