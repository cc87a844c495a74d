"""What is silent and what nobody heard is seen where people look: on the directory, on the schedule, and by operators in full."""

import re
import uuid
from collections.abc import Iterator
from datetime import timedelta

import pytest

from horarium.catalog import Catalog, deliveries, endpoints
from horarium.control.notifications_page import HEARTBEATS, LETTERS
from horarium.control.principals import WRITE_SCOPE
from horarium.schedule.ledger import Disposition, Reason
from horarium.schedule.notifications import Kind
from tests.control.desk import SCOPE
from tests.pages.browser import HOME, Browser, Pages, person, text_of
from tests.pages.night import HOUR, MIDNIGHT, MORNING, Night, ended
from tests.pages.unheard import fail, hear, heartbeat, listening

SCHEDULES, NOTIFICATIONS = f"{HOME}/schedules", f"{HOME}/notifications"
HOSTILE = "<img src=x onerror=alert(1)> \u202eno answer"


@pytest.fixture(scope="module")
def night(catalog: Catalog) -> Night:
    """One schedule that succeeds, one that fails each hour and of which nobody heard, and one that never began."""
    told = Night(catalog)
    pager = listening(catalog, "pager", now=MIDNIGHT)
    good = told.enabled("Inbox triage", every=HOUR)
    heartbeat(catalog, good.desk.key.schedule_id, now=MIDNIGHT)
    for hour in range(1, 9):
        ended(good, MIDNIGHT + timedelta(hours=hour), took=5)
    bad = told.enabled("Nightly report", every=HOUR, catchup_window_seconds=60)
    for hour in range(1, 4):
        ended(bad, MIDNIGHT + timedelta(hours=hour), Disposition.FAILED, reason=Reason.AGENT_REPORTED_FAILURE)
    assert fail(catalog, pager, HOSTILE, now=MIDNIGHT + timedelta(hours=4)) == 3
    gone = told.enabled("Paused meanwhile", every=HOUR, catchup_window_seconds=60)
    gone.desk.now = MIDNIGHT + timedelta(hours=7)
    gone.desk.pause()
    return told


@pytest.fixture(scope="module")
def pages(catalog: Catalog, night: Night) -> Iterator[Pages]:
    made = Pages(catalog, now=lambda: MORNING)
    yield made
    made.close()


def row_of(browser: Browser, name: str) -> str:
    page = browser.get(SCHEDULES)
    (row,) = [each for each in page.text.partition("<tbody>")[2].split("</tr>") if f"<bdi>{name}</bdi>" in each]
    return " ".join(re.sub(r"<[^>]*>", " ", row).split())


def test_the_directory_tells_which_schedule_is_silent_and_since_when(ada: Browser) -> None:
    told = row_of(ada, "Nightly report")
    assert "silent Nothing has succeeded since Mon 30 Nov 2026 01:00 was due." in told
    assert "Nothing has succeeded" not in row_of(ada, "Inbox triage")
    assert "Nothing has succeeded" not in row_of(ada, "Paused meanwhile"), "nobody expects anything of it"


def test_silence_is_told_although_nobody_listens(catalog: Catalog, ada: Browser, night: Night) -> None:
    """What notifiers wrote down is no part of it: where nobody asked to be told, the pages are all that tells."""
    page = ada.get(f"{SCHEDULES}/{night.id_of('Nightly report')}")
    assert "Nothing has succeeded since Mon 30 Nov 2026 01:00 UTC was due" in text_of(page)
    assert "Nothing has succeeded" not in text_of(ada.get(f"{SCHEDULES}/{night.id_of('Inbox triage')}"))


def test_what_nobody_heard_is_told_on_the_directory_and_on_the_schedule(ada: Browser, night: Night) -> None:
    assert "3 notifications about schedules here were given up" in text_of(ada.get(SCHEDULES))
    mine = ada.get(f"{SCHEDULES}/{night.id_of('Nightly report')}")
    assert "3 notifications about it were given up" in text_of(mine)
    assert f'href="{NOTIFICATIONS}"' in mine.text
    assert "were given up" not in text_of(ada.get(f"{SCHEDULES}/{night.id_of('Inbox triage')}"))


def test_operators_see_endpoints_and_what_was_given_up(ada: Browser, night: Night) -> None:
    page = ada.get(NOTIFICATIONS)
    assert page.status_code == 200
    told = text_of(page)
    for part in (
        "https://pager.acme.example/horarium",
        "not heard",
        "review, refused, missed, failed, recovered, overdue",
        "Heartbeat of Inbox triage",
        "each success by the calendar",
        "due Mon 30 Nov 2026 01:00 UTC",
        "Nightly report",
        "1 attempt",
        "horarium notify again",
    ):
        assert part in told, (part, told)
    assert "&lt;img src=x" in page.text
    assert "<img src=x" not in page.text
    assert "\u202e" not in page.text
    assert f'href="{SCHEDULES}/{night.id_of("Nightly report")}"' in page.text


def test_what_was_given_up_is_told_a_page_at_a_time(pages: Pages, catalog: Catalog, ada: Browser, night: Night) -> None:
    loop = night.enabled("Many", every=60, catchup_window_seconds=10)
    for minute in range(1, LETTERS + 3):
        ended(
            loop, MIDNIGHT + timedelta(minutes=minute), Disposition.FAILED, reason=Reason.AGENT_REPORTED_FAILURE, took=1
        )
    with catalog.reading() as connection:
        (pager,) = [each for each in endpoints.list_endpoints(connection, SCOPE) if each.name == "pager"]
    fail(catalog, pager, "It answered with status 500.", now=MORNING)
    first = ada.get(NOTIFICATIONS)
    after = re.search(r'rel="next" href="([^"]+)"', first.text)
    assert after is not None
    second = ada.get(after[1])
    numbers = [re.findall(r'<th scope="row">(\d+)</th>', page.text) for page in (first, second)]
    assert len(numbers[0]) == LETTERS
    assert len(set(numbers[0]) | set(numbers[1])) == len(numbers[0]) + len(numbers[1]) > LETTERS
    loop.desk.pause()


def test_whoever_is_no_operator_is_told_that_there_is_something_and_not_what(pages: Pages) -> None:
    grace = pages.browser(person("grace", scopes=frozenset({WRITE_SCOPE})))
    page = grace.get(SCHEDULES)
    assert "An operator sees which" in text_of(page)
    assert NOTIFICATIONS not in page.text
    refused = grace.get(NOTIFICATIONS)
    assert refused.status_code == 403
    assert "pager" not in refused.text


def test_another_organization_sees_none_of_it(pages: Pages) -> None:
    eve = pages.browser(person("eve", org_id="globex"))
    assert eve.get(NOTIFICATIONS).status_code == 404
    assert "were given up" not in eve.get("/ui/globex/test/schedules").text
    own = eve.get("/ui/globex/test/notifications")
    assert own.status_code == 200
    assert "Nobody is told of anything here yet" in text_of(own)
    assert "Nothing was given up" in text_of(own)


def test_an_endpoint_that_hears_says_so_and_one_that_is_gone_too(catalog: Catalog, pages: Pages, night: Night) -> None:
    browser = pages.browser(person())
    fresh = listening(catalog, "fresh", now=MORNING, kinds=[Kind.MISSED])
    assert "declared" in _endpoint(browser, "fresh")
    loop = night.enabled("Second counter", every=1, when=MORNING, catchup_window_seconds=10)
    loop.desk.now = MORNING + timedelta(minutes=5)
    loop.step()
    assert hear(catalog, fresh, now=MORNING) > 0
    assert "heard" in _endpoint(browser, "fresh")
    assert "not heard" not in _endpoint(browser, "fresh")
    with catalog.writing() as connection:
        deliveries.mark_gone(connection, SCOPE, fresh, status=410, because="It says that it is gone.", now=MORNING)
    assert "stopped" in _endpoint(browser, "fresh")
    assert "It says that it is gone." in _endpoint(browser, "fresh")
    loop.desk.pause()


def _endpoint(browser: Browser, name: str) -> str:
    page = browser.get(NOTIFICATIONS).text
    (row,) = [each for each in page.split("</tr>") if f"<bdi>{name}</bdi>" in each and "Heard last" in each]
    return " ".join(re.sub(r"<[^>]*>", " ", row).split())


def test_of_very_many_heartbeats_it_is_said_how_many_are_left_out(catalog: Catalog, ada: Browser) -> None:
    """The last of these tests, since all others see few."""
    assert "more heartbeat" not in text_of(ada.get(NOTIFICATIONS))
    for _ in range(HEARTBEATS):
        heartbeat(catalog, str(uuid.uuid4()), now=MIDNIGHT)
    assert "And 1 more heartbeat: those that" in text_of(ada.get(NOTIFICATIONS))
