"""The pages say at their oldest end which archives may hold what they no longer show."""

from datetime import timedelta

import pytest

from horarium.catalog.archive_tables import archives
from tests.control.desk import SCOPE
from tests.pages.browser import HOME, Pages
from tests.pages.night import MORNING, tonight

ID = "0b9c2f66-3d0a-4c36-9a43-6f0f3f1c7d52"


def insert(connection):
    connection.execute(
        archives.insert().values(
            archive_id=ID,
            org_id=SCOPE.org_id,
            environment_id=SCOPE.environment_id,
            before=MORNING + timedelta(days=30),
            began_at=MORNING + timedelta(days=60),
            digest="sha256:0",
            seal=1,
            rows=1,
        )
    )


@pytest.fixture(scope="module")
def night(catalog):
    return tonight(catalog)


@pytest.fixture(scope="module")
def pages(catalog, night):
    made = Pages(catalog, now=lambda: MORNING)
    yield made
    made.close()


def test_what_is_gone_is_not_shown_as_if_it_had_never_been(ada, catalog, night):
    draft = next(each for each in ada.get(f"{HOME}/schedules").text.split('href="') if "Release notes draft" in each)
    schedule = f"{HOME}/schedules/" + draft.partition('"')[0].rpartition("/")[2]
    asked = (f"{HOME}/runs?disposition=failed", schedule, f"{HOME}/runs/{ID}")
    before = [ada.get(each).text for each in asked]
    assert all("archive" not in each for each in before)
    with catalog.writing() as connection:
        insert(connection)
    for each in asked:
        assert ID in ada.get(each).text, each
    assert "Nothing has fallen due so far." in before[1]
    assert "Nothing has fallen due so far." not in ada.get(schedule).text
