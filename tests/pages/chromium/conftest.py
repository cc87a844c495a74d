"""One night, served on a port of its own for the tests of a module, and windows of a real Chromium on it."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from horarium.catalog import Catalog
from tests.api.house import make_catalog
from tests.pages.night import MORNING, Night, tonight
from tests.pages.served import ARGUMENTS, CHROMIUM, PATIENCE, Served, served
from tests.pages.windows import Watched

expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    """One database is enough here: what a browser shows does not depend on it."""
    opened = make_catalog(tmp_path_factory.mktemp("catalog"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def night(catalog: Catalog) -> Night:
    return tonight(catalog)


@pytest.fixture(scope="module")
def site(catalog: Catalog, night: Night) -> Iterator[Served]:
    with served(catalog, MORNING) as found:
        yield found


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def window(chromium: Browser, site: Served) -> Iterator[Watched]:
    watched = Watched(chromium)
    yield watched
    watched.close(site)


@pytest.fixture
def page(window: Watched, site: Served) -> Page:
    """A window in which ada is signed in."""
    window.context.add_cookies([site.session()])
    return window.page
