"""Whoever does not look at the pages, or does not point at them, can use them all the same: keys, roles, names, contrast."""

import re
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from horarium.api.pages import assets
from tests.pages.browser import HOME
from tests.pages.night import MORNING, Night, ended
from tests.pages.served import Served, needs_chromium

STYLE = Path(assets.__file__).parent / "static" / "pages.css"

STOPS = """
() => [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]')]
  .filter((each) => each.checkVisibility() && !each.disabled).length
"""
AT = """
() => {
  const at = document.activeElement;
  if (!at || at === document.body) return null;
  const style = getComputedStyle(at);
  const place = [...document.querySelectorAll('*')].indexOf(at);
  const box = at.getBoundingClientRect();
  const hidden = document.querySelector('.bottom').getBoundingClientRect().top;
  return {
    place, outline: style.outlineStyle + ' ' + style.outlineWidth,
    seen: box.bottom > 0 && box.top < innerHeight, behind: box.top >= hidden && !at.closest('.bottom'),
    what: at.outerHTML.slice(0, 90),
  };
}
"""


def palette() -> dict[str, dict[str, str]]:
    """The colours of the style, by their names, in light and dark."""
    light, dark = re.findall(r":root \{(.*?)\}", STYLE.read_text(), re.DOTALL)[:2]
    found = {}
    for scheme, text in (("light", light), ("dark", dark)):
        found[scheme] = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", text))
    return found


def contrast(one: str, other: str) -> float:
    """The contrast of two colours (WCAG 2.2, "contrast ratio")."""

    def light(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_palette_stands_out(scheme: str) -> None:
    """Texts by 4.5 : 1 (1.4.3) on every ground that they stand on; borders of fields and the focus by 3 : 1 (1.4.11)."""
    colours = palette()[scheme]
    grounds = ("ground", "raised")
    texts = ("text", "soft", "link", "good", "bad", "warn", "busy", "calm")
    pairs = [(text, ground, 4.5) for text in texts for ground in grounds]
    pairs += [(tone, f"{tone}-ground", 4.5) for tone in ("good", "bad", "warn", "busy", "calm")]
    pairs += [
        ("link", "warn-ground", 4.5),
        ("link", "bad-ground", 4.5),
        ("soft", "busy-ground", 4.5),
        ("soft", "bad-ground", 4.5),
    ]
    pairs += [("text", "busy-ground", 4.5), ("text", "calm-ground", 4.5), ("ground", "link", 4.5)]
    pairs += [(name, ground, 3) for name in ("focus", "soft") for ground in grounds]
    poor = [
        (one, other, round(contrast(colours[one], colours[other]), 2))
        for one, other, least in pairs
        if contrast(colours[one], colours[other]) < least
    ]
    assert len(colours) >= 17
    assert poor == []


def address(site: Served, night: Night, name: str) -> str:
    if name.startswith("/"):
        return f"{site.url}{name}"
    schedule, _, more = name.partition("|")
    return f"{site.url}{HOME}/schedules/{night.id_of(schedule)}{more}"


PAGES = (
    f"{HOME}/schedules",
    f"{HOME}/runs",
    f"{HOME}/notifications",
    "Ingestion check",
    "Release notes draft|/review",
    "Inbox triage|/retirement",
    "/ui/environments",
)


@needs_chromium
@pytest.mark.parametrize("name", PAGES)
def test_the_keyboard_reaches_everything_and_shows_where_it_is(
    page: Page, site: Served, night: Night, name: str
) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.goto(address(site, night, name))
    expected = page.evaluate(STOPS)
    assert expected > 3
    seen: dict[int, Any] = {}
    for _ in range(3 * expected):
        page.keyboard.press("Tab")
        at = page.evaluate(AT)
        if at is None or at["place"] in seen:
            break
        seen[at["place"]] = at
    assert len(seen) == expected, [each["what"] for each in seen.values()]
    assert [
        each for each in seen.values() if each["outline"] != "solid 3px" or not each["seen"] or each["behind"]
    ] == []


@needs_chromium
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_a_screen_reader_finds_names_and_order(page: Page, site: Served, night: Night, name: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(address(site, night, name))
    for role in ("banner", "main", "contentinfo"):
        expect(page.get_by_role(role)).to_have_count(1)  # type: ignore[arg-type]  # a text in a loop is a role too
    told = page.locator("body").aria_snapshot()
    assert (
        re.findall(r"- (link|button|textbox|searchbox|combobox|table|region|navigation|img|heading)(?:$|:$| \[)", told)
        == []
    )
    levels = [int(each) for each in re.findall(r"- heading .*\[level=(\d)\]", told)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    for table in page.get_by_role("table").all():
        columns = table.get_by_role("columnheader").count()
        assert columns > 1
        for row in table.get_by_role("row").all()[1:]:
            assert row.get_by_role("rowheader").count() == 1


@needs_chromium
def test_the_tree_of_the_directory(page: Page, site: Served) -> None:
    page.goto(f"{site.url}{HOME}/schedules?text=nightly")
    expect(page.get_by_role("main")).to_match_aria_snapshot(
        """
        - main:
          - heading "Schedules" [level=1]
          - search "Schedules":
            - text: Name, id, agent or input
            - searchbox "Name, id, agent or input": nightly
            - text: State
            - combobox "State"
            - button "Show"
            - link "Show all"
          - region "Schedules":
            - table:
              - rowgroup:
                - row "Name State Next due Last outcome Late Now"
              - rowgroup:
                - row:
                  - rowheader "Nightly report"
        """
    )


@needs_chromium
def test_a_refresh_leaves_everything_where_it_was(page: Page, site: Served, night: Night) -> None:
    """The very same elements stay: what is focused, unfolded, scrolled to, and what somebody is about to click."""
    loop = night.enabled("Kept", when=MORNING - timedelta(hours=3), every=1_800)
    for number in range(1, 4):
        ended(loop, MORNING - timedelta(hours=3) + number * timedelta(minutes=30))
    page.set_viewport_size({"width": 700, "height": 500})
    page.goto(address(site, night, "Kept"))
    page.locator("summary").nth(1).click()
    expect(page.locator("details[open]")).to_have_count(1)
    link = page.get_by_role("rowheader").get_by_role("link").nth(1)
    due = link.text_content()
    link.focus()
    page.evaluate("window.marked = document.activeElement; window.region = document.querySelectorAll('.scroll')[0]")
    page.evaluate("window.region.scrollLeft = 40; window.row = window.marked.closest('tr')")
    before = page.evaluate("[window.scrollY, window.region.scrollLeft]")
    heading = page.get_by_role("heading", level=1)
    page.evaluate("window.heading = document.querySelector('h1')")
    ended(loop, MORNING - timedelta(hours=1))
    expect(page.locator("#timeline ~ .scroll tbody tr")).to_have_count(4)
    expect(heading).to_be_visible()
    assert page.evaluate("document.activeElement === window.marked && window.marked.isConnected")
    assert page.evaluate("window.row.isConnected && window.heading.isConnected")
    assert page.evaluate("document.activeElement.textContent") == due
    expect(page.locator("details[open]")).to_have_count(1)
    assert page.evaluate("[window.scrollY, window.region.scrollLeft]") == before
    expect(page.locator("[data-told]")).to_have_text("The page was updated.")
    loop.desk.pause()


@needs_chromium
def test_whoever_reviews_is_told_that_something_changed_and_nothing_moves(
    page: Page, site: Served, night: Night
) -> None:
    desk = night.published("Reviewed by two", zone="Europe/Zurich")
    desk.now = MORNING
    desk.write(lambda _: None)  # and the workers are there
    page.goto(f"{site.url}{HOME}/schedules/{desk.key.schedule_id}/review")
    notice = page.get_by_role("main").get_by_text("What is shown here has changed meanwhile.")
    expect(notice).to_be_hidden()
    generation = page.locator("input[name=generation]").first.get_attribute("value")
    desk.enable()
    expect(notice).to_be_visible()
    expect(page.locator("[data-told]")).to_contain_text("has changed meanwhile")
    assert page.locator("input[name=generation]").first.get_attribute("value") == generation
    page.get_by_role("link", name="Load it again").click()
    expect(notice).to_be_hidden()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    desk.pause()


@needs_chromium
def test_nobody_who_only_waits_is_told_anything(page: Page, site: Served) -> None:
    """Time passes on the page, and nothing else does."""
    page.goto(f"{site.url}{HOME}/schedules?text=market")
    site.clock.now = MORNING + timedelta(minutes=3)
    try:
        expect(page.get_by_role("row").filter(has_text="Market watch")).to_contain_text("in 17 min")
        expect(page.locator("[data-told]")).to_be_empty()
        assert page.locator("[aria-live]").count() == 1
    finally:
        site.clock.now = MORNING
