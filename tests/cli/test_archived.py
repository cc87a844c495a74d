"""Commands that list say which archives may hold what stood before; on stderr, beside the answer."""

import json
from datetime import UTC, datetime, timedelta

from horarium.catalog.archive_tables import archives

from .conftest import SCOPE

ID = "0b9c2f66-3d0a-4c36-9a43-6f0f3f1c7d52"


def insert(connection) -> None:
    now = datetime.now(UTC)
    connection.execute(
        archives.insert().values(
            archive_id=ID,
            org_id=SCOPE.org_id,
            environment_id=SCOPE.environment_id,
            before=now + timedelta(hours=1),
            began_at=now,
            digest="sha256:0",
            seal=1,
            rows=1,
        )
    )


def test_lists_say_it(installation, horarium, configuration, write):
    published = horarium("publish", write(configuration), "--data", installation.data, "-o", "json")
    schedule = json.loads(published.stdout)["schedule_id"]
    asked = (("occurrences", schedule), ("events", schedule), ("authority", "events"))
    for each in asked:
        assert "archive" not in horarium(*each, "--data", installation.data).stderr
    installation.write(insert)
    for each in asked:
        found = horarium(*each, "--data", installation.data)
        assert found.exit_code == 0
        assert ID in found.stderr
        assert ID not in found.stdout
    later = horarium("occurrences", schedule, "--since", "2090-01-01T00:00:00Z", "--data", installation.data)
    assert ID not in later.stderr
    assert ID not in horarium("events", schedule, "--after", "1", "--data", installation.data).stderr
