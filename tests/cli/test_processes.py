"""Commands as the processes that a person starts: their speed, signals and pipes, and setting up a real server."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client

from activities.search_attributes import ALL
from horarium.catalog.schedules import require_schedule
from horarium.catalog.tables import entries
from horarium.schedule.identity import schedule_key
from starter.temporal_server import TemporalServer

from .conftest import SCOPE, without_ours

IMPORTED = """
import sys
from starter.cli.commands import app
try:
    app(sys.argv[1:], prog_name="horarium")
finally:
    print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", [["--help"], ["validate"], ["preview"]], ids=" ".join)
def test_what_needs_no_installation_imports_nothing_slow(configuration, write, tmp_path, arguments):
    """A time limit would fail on a busy machine; what costs the time is known by name."""
    more = [] if arguments == ["--help"] else [write(configuration)]
    found = subprocess.run(
        [sys.executable, "-c", IMPORTED, *arguments, *more], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert not {"temporalio", "sqlalchemy", "alembic", "rich", "httpx", "fastapi"} & set(found.stderr.split())


def test_the_command_is_also_a_module_of_either_name(tmp_path):
    for module in ("starter", "horarium"):
        found = subprocess.run(
            [sys.executable, "-m", module, "--help"], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert (found.returncode, found.stdout.splitlines()[0]) == (
            0,
            "Usage: horarium [OPTIONS] COMMAND [ARGS]...",
        )


def test_setting_up_prepares_everything_and_says_so_and_twice_changes_nothing(program, tmp_path):
    first = program("setup", "--no-temporal", "--data", "here")
    assert first.returncode == 0
    (told,) = json.loads(first.stdout)["done"]
    assert "local/dev are ready" in told
    assert (tmp_path / "here" / "content" / "local" / "dev" / "inputs").is_dir()
    assert program("setup", "--no-temporal", "--data", "here").returncode == 0
    assert program("list", "--data", "here").returncode == 0
    assert program("list", HORARIUM_DATA="here").returncode == 0


def test_a_folder_that_cannot_be_made_is_one_sentence(program, tmp_path):
    (tmp_path / "file").write_text("")
    result = program("setup", "--no-temporal", "--data", "file/below")
    assert result.returncode == 1
    assert "Cannot write to the folder" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_given_folder_counts_more_than_the_catalog_of_the_environment(program, tmp_path):
    for folder in ("one", "two"):
        assert program("setup", "--no-temporal", "--data", folder).returncode == 0
    url = f"sqlite:///{tmp_path / 'one' / 'catalog.db'}"
    (tmp_path / "two" / "catalog.db").unlink()
    assert program("list", HORARIUM_DATA="one", HORARIUM_CATALOG=url).returncode == 0
    assert program("list", "--data", "two", HORARIUM_DATA="one", HORARIUM_CATALOG=url).returncode == 1


@pytest.fixture
def bare_server(tmp_path):
    """A server that nobody has told anything of ours."""
    server = TemporalServer(tmp_path / "temporal", port=0, headless=True, search_attributes={})
    asyncio.run(server.start())
    yield server
    asyncio.run(server.stop())


@pytest.mark.server
def test_setting_up_registers_what_workflows_are_found_by(program, bare_server):
    result = program("setup", "--data", "here", TEMPORAL_ADDRESS=bare_server.address)
    assert result.returncode == 0, result.stderr

    async def look() -> tuple[set[str], float]:
        client = await Client.connect(bare_server.address)
        known = await client.operator_service.list_search_attributes(ListSearchAttributesRequest(namespace="default"))
        namespace = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace="default"))
        kept = namespace.config.workflow_execution_retention_ttl.ToTimedelta()
        return set(known.custom_attributes), kept.total_seconds() / 86_400

    attributes, days = asyncio.run(look())
    assert attributes >= {each.name for each in ALL}
    assert days >= 3
    again = program("setup", "--data", "here", TEMPORAL_ADDRESS=bare_server.address)
    assert json.loads(again.stdout)["done"][1] == "Temporal's namespace 'default' has all that is needed."


@pytest.fixture
def schedule_id(installation, program, configuration, write) -> str:
    installation.populate()
    published = program("publish", write(configuration), "--data", installation.data)
    return json.loads(published.stdout)["schedule_id"]


def enter(connection, schedule_id: str, nominal: datetime, disposition: str = "succeeded") -> None:
    schedule = require_schedule(connection, schedule_key(SCOPE, schedule_id))
    values = {"disposition": disposition, "closed_at": None if disposition == "started" else datetime.now(UTC)}
    changed = connection.execute(entries.update().where(entries.c.first_at == nominal).values(**values))
    if changed.rowcount == 0:
        connection.execute(
            entries.insert().values(
                schedule=schedule.row,
                generation=1,
                trigger="schedule",
                first_at=nominal,
                last_at=nominal,
                count=1,
                **values,
            )
        )


def remark(connection, nominal: datetime) -> None:
    connection.execute(entries.update().where(entries.c.first_at == nominal).values(reason="agent_lost"))


def test_following_prints_what_is_new_and_what_changed_until_ctrl_c(installation, schedule_id):
    first, second = (datetime(2027, 1, day, 1, 30, tzinfo=UTC) for day in (1, 2))
    installation.write(enter, schedule_id, first)
    follower = subprocess.Popen(
        [sys.executable, "-m", "starter", "occurrences", schedule_id, "--follow", "--data", installation.data],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=without_ours(),
    )
    try:
        assert follower.stdout is not None

        def told() -> tuple[str, str, str | None]:
            row = json.loads(follower.stdout.readline())
            return row["first_at"], row["disposition"], row.get("was")

        assert told() == ("2027-01-01T01:30:00Z", "succeeded", None)
        installation.write(enter, schedule_id, second, "started")
        assert told() == ("2027-01-02T01:30:00Z", "started", None)
        time.sleep(1.2)
        installation.write(remark, second)  # which changes the entry, and not how it stands
        time.sleep(1.2)
        installation.write(enter, schedule_id, second, "failed")
        assert told() == ("2027-01-02T01:30:00Z", "failed", "started")
        time.sleep(1.2)  # two more looks, which have nothing to tell
        follower.send_signal(signal.SIGINT)
        rest, errors = follower.communicate(timeout=60)
        assert (follower.returncode, rest, errors) == (130, "", "")
    finally:
        follower.kill()
        follower.wait()


def test_a_reader_that_goes_away_ends_a_command_without_a_traceback(installation, schedule_id):
    reading, writing = os.pipe()
    listing = subprocess.Popen(
        [sys.executable, "-m", "starter", "list", "--data", installation.data],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        env=without_ours(),
    )
    os.close(writing)
    os.close(reading)
    _, errors = listing.communicate(timeout=60)
    assert (listing.returncode, errors) == (141, "")
