"""Make the pictures of the pages that the README shows: `python -m tests.pages.pictures docs/pages`."""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from horarium.catalog import Catalog, presence
from horarium.catalog.schedules import require_schedule
from tests.api.house import make_catalog
from tests.pages.browser import HOME
from tests.pages.night import HOSTILE, MORNING, Night, tonight
from tests.pages.served import ARGUMENTS, CHROMIUM, Served, served

WIDE, NARROW = {"width": 1_120, "height": 760}, {"width": 390, "height": 844}


def settled(catalog: Catalog, night: Night) -> None:
    """Let the controller have looked at everything, and take what is there for tests alone out of sight."""
    night.desks[HOSTILE].pause()
    night.desks.pop(HOSTILE).retire()
    with catalog.writing() as connection:
        for desk in night.desks.values():
            schedule = require_schedule(connection, desk.key)
            if schedule.generation and schedule.retired_at is None:
                is_live = desk.activation().is_live
                state = "active" if is_live else "paused"
                presence.observe(
                    connection, schedule.row, generation=schedule.generation, state=state, reason=None, now=MORNING
                )


def run_of(page: Page, site: Served, name: str) -> None:
    page.goto(f"{site.url}{HOME}/runs?only=runs")
    page.get_by_role("row").filter(has_text=name).first.get_by_role("rowheader").get_by_role("link").click()
    page.get_by_role("heading", name="Admission").wait_for()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        catalog = make_catalog(Path(place))
        settled(catalog, tonight(catalog))
        with served(catalog, MORNING) as site, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            for scheme, size, name in (
                ("light", WIDE, "directory"),
                ("dark", WIDE, "run"),
                ("dark", NARROW, "narrow"),
            ):
                context = browser.new_context(
                    color_scheme=scheme, viewport=size, timezone_id="Europe/Berlin", locale="en-GB"
                )
                context.add_cookies([site.session()])
                page = context.new_page()
                if name == "run":
                    run_of(page, site, "Inbox triage")
                else:
                    page.goto(f"{site.url}{HOME}/schedules")
                page.screenshot(path=folder / f"{name}.png")
                context.close()
            browser.close()
        catalog.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
