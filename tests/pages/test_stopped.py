"""While operators have stopped everything, each page of the environment says so, and no next instant is shown as if it fired."""

import uuid
from datetime import timedelta

import pytest

from horarium.catalog.declarations import lift_stop, set_stop
from tests.control.desk import SCOPE
from tests.pages.browser import HOME, Pages, person, text_of
from tests.pages.night import HOSTILE, MORNING, tonight
from tests.pages.test_views import row_of

SCHEDULES = f"{HOME}/schedules"
SINCE = MORNING - timedelta(minutes=20)


@pytest.fixture(scope="module")
def night(catalog):
    return tonight(catalog)


@pytest.fixture(scope="module")
def pages(catalog, night):
    made = Pages(catalog, now=lambda: MORNING)
    yield made
    made.close()


@pytest.fixture
def stop(catalog):
    def put(because, *, everywhere=False):
        with catalog.writing() as connection:
            set_stop(connection, SCOPE, everywhere=everywhere, by="root", because=because, now=SINCE)

    yield put
    with catalog.writing() as connection:
        for everywhere in (True, False):
            lift_stop(connection, SCOPE, everywhere=everywhere, now=MORNING)


def addresses(night):
    triage = f"{SCHEDULES}/{night.id_of('Inbox triage')}"
    return {
        SCHEDULES: 200,
        triage: 200,
        f"{triage}/review": 200,
        f"{triage}/retirement": 200,
        f"{HOME}/runs": 200,
        f"{HOME}/notifications": 200,
        f"{HOME}/runs/{uuid.uuid4()}": 404,
    }


def test_every_page_says_since_when_by_whom_and_why(ada, night, stop):
    stop("Archive moves")
    for address, status in addresses(night).items():
        page = ada.get(address)
        assert page.status_code == status, address
        told = text_of(page)
        said = "Everything in this environment is stopped since Mon 30 Nov 2026 07:40 UTC by root : Archive moves."
        assert told.startswith(said), (address, told)
        assert "horarium authority lift" in told, address


def test_that_of_the_organization_is_told_as_that_and_both_are_told(ada, night, stop):
    stop("Everybody off!", everywhere=True)
    stop("Archive moves.")
    for address in addresses(night):
        told = text_of(ada.get(address))
        assert told.startswith("Everything in this organization is stopped since"), told
        assert (
            "by root : Everybody off! Nothing runs until an operator lifts it: horarium authority lift --organization"
            in told
        )
        assert "by root : Archive moves. Nothing runs" in told


def test_what_is_due_next_is_not_shown_as_if_it_fired(ada, night, stop):
    triage = f"{SCHEDULES}/{night.id_of('Inbox triage')}"
    before = row_of(ada.get(SCHEDULES), "Inbox triage"), text_of(ada.get(triage))
    for told in before:
        assert "in 22 h 30 min" in told
        assert "refused" not in told
    stop("Archive moves")
    for told in (row_of(ada.get(SCHEDULES), "Inbox triage"), text_of(ada.get(triage))):
        assert "Tue 1 Dec 2026 07:30" in told
        assert "in 22 h 30 min" not in told
        assert "refused, unless the stop is lifted before" in told


def test_where_nothing_is_stopped_nothing_is_said(ada, pages, night, stop):
    stop("Archive moves")
    assert "stopped since" not in text_of(
        pages.browser(person("eve", org_id="globex")).get("/ui/globex/test/schedules")
    )
    with pages.catalog.writing() as connection:
        lift_stop(connection, SCOPE, everywhere=False, now=MORNING)
    for address in addresses(night):
        assert "stopped since" not in text_of(ada.get(address))


def test_a_hostile_reason_does_no_harm(ada, stop):
    stop(HOSTILE)
    page = ada.get(SCHEDULES).text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(" in page.partition("<h1")[0]
