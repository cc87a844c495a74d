"""Answers of the API say which archives may hold what they no longer show."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from horarium.catalog.archive_tables import archives
from tests.api.house import OPERATOR, Api, make_catalog, new, publication

ID = "0b9c2f66-3d0a-4c36-9a43-6f0f3f1c7d52"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    catalog = make_catalog(tmp_path)
    made = Api(catalog)
    yield made
    made.close()
    catalog.close()


def archived(api: Api) -> dict[str, str]:
    """Let an archive have been made, of what was older than in an hour."""
    before, began = (datetime.now(UTC).replace(microsecond=0) + timedelta(hours=each) for each in (1, 2))
    with api.catalog.writing() as connection:
        connection.execute(
            archives.insert().values(
                archive_id=ID,
                org_id="acme",
                environment_id="test",
                before=before,
                began_at=began,
                digest="sha256:0",
                seal=1,
                rows=1,
            )
        )
    return {"archive_id": ID, "before": f"{before:%FT%TZ}", "archived_at": f"{began:%FT%TZ}"}


def test_a_list_that_begins_with_what_is_left_names_the_archives(api: Api) -> None:
    body = publication()
    assert api.post("/schedules", body, key=new()).status_code == 201
    schedule = f"/schedules/{body['schedule_id']}"
    asked = (f"{schedule}/occurrences", f"{schedule}/events", "/occurrences", "/runs")
    assert [api.get(path).json()["archived"] for path in asked] == [[]] * 4
    found = archived(api)
    assert [api.get(path).json()["archived"] for path in asked] == [[found]] * 4
    assert api.get("/authority/events", by=OPERATOR).json()["archived"] == [found]
    assert api.get(f"{schedule}/events?after=1").json()["archived"] == []
    assert api.get("/occurrences?from=2040-01-01T00:00:00Z").json()["archived"] == []


@pytest.mark.parametrize("path", ["/receipts/a-key", f"/runs/{ID}"])
def test_what_is_not_there_may_be_archived(api: Api, path: str) -> None:
    answer = api.get(path)
    assert answer.status_code == 404
    assert "archive" not in answer.text
    archived(api)
    assert ID in api.get(path).json()["next_step"]
