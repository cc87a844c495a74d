"""Make the pictures of the pages that the README shows: `python -m tests.pages.pictures docs/pages`.

With `all` behind the folder, each page in light and dark, wide and narrow, to be looked at.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.api.house import make_catalog
from tests.pages.browser import HOME
from tests.pages.example import NOW, example
from tests.pages.night import Night
from tests.pages.served import ARGUMENTS, CHROMIUM, Served, served

WIDTHS = {"wide": 1_120, "narrow": 390}


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One page as it is to be shown. `height` is that of the window; None where the whole page is."""

    name: str
    scheme: str
    width: int
    height: int | None


def _run(page: Page, site: Served, _firm: Night) -> None:
    page.goto(f"{site.url}{HOME}/runs?only=runs&disposition=failed")
    page.get_by_role("row").filter(has_text="Inbox triage").first.get_by_role("rowheader").get_by_role("link").click()
    page.get_by_role("heading", name="Admission").wait_for()


def _of(name: str, *more: str) -> Callable[[Page, Served, Night], object]:
    return lambda page, site, firm: page.goto("/".join([f"{site.url}{HOME}/schedules", firm.id_of(name), *more]))


def _at(path: str) -> Callable[[Page, Served, Night], object]:
    return lambda page, site, _firm: page.goto(f"{site.url}{path}")


PAGES: dict[str, Callable[[Page, Served, Night], object]] = {
    "directory": _at(f"{HOME}/schedules"),
    "schedule": _of("Inbox triage"),
    "review": _of("Inbox triage", "review"),
    "blocked": _of("Contract clauses", "review"),
    "silent": _of("Invoice matching"),
    "waiting": _of("Price watch"),
    "retirement": _of("Nightly report", "retirement"),
    "runs": _at(f"{HOME}/runs"),
    "run": _run,
    "notifications": _at(f"{HOME}/notifications"),
    "refused": _at(f"{HOME}/runs/none"),
    "environments": _at("/ui/environments"),
    "sign-in": _at("/ui/sign-in"),
}
SHOWN = (
    Picture(name="directory", scheme="light", width=WIDTHS["wide"], height=880),
    Picture(name="schedule", scheme="light", width=WIDTHS["wide"], height=1_960),
    Picture(name="blocked", scheme="dark", width=WIDTHS["wide"], height=1_900),
    Picture(name="run", scheme="dark", width=WIDTHS["wide"], height=760),
    Picture(name="schedule", scheme="dark", width=WIDTHS["narrow"], height=844),
)
"""What stands in the README. The last one is called `narrow` there."""


def _all() -> Iterator[Picture]:
    for name, scheme, width in product(PAGES, ("light", "dark"), WIDTHS.values()):
        yield Picture(name=name, scheme=scheme, width=width, height=None)


def take(browser: Browser, site: Served, firm: Night, picture: Picture, path: Path) -> None:
    """Take one picture."""
    context = browser.new_context(
        color_scheme="dark" if picture.scheme == "dark" else "light",
        viewport={"width": picture.width, "height": picture.height or 800},
        timezone_id="Europe/Berlin",
        locale="en-GB",
    )
    if picture.name != "sign-in":
        context.add_cookies([site.session()])
    page = context.new_page()
    PAGES[picture.name](page, site, firm)
    page.screenshot(path=path, full_page=picture.height is None)
    context.close()


def main(folder: Path, *, everything: bool) -> None:
    """Take all of them, over one catalog."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        catalog = make_catalog(Path(place))
        firm = example(catalog)
        with served(catalog, NOW) as site, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            for picture in _all() if everything else SHOWN:
                narrow = picture.width == WIDTHS["narrow"]
                called = "narrow" if narrow else {"blocked": "review"}.get(picture.name, picture.name)
                if everything:
                    called = f"{picture.name}-{picture.scheme}-{'narrow' if narrow else 'wide'}"
                take(browser, site, firm, picture, folder / f"{called}.png")
            browser.close()
        catalog.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), everything="all" in sys.argv[2:])
