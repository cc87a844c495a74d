"""The commands about notifications: on a data folder and at a server they say the same."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from horarium.catalog.deliveries import claim, mark_failed, spread
from horarium.catalog.endpoints import find_endpoint
from horarium.control.principals import OPERATOR_SCOPE, WRITE_SCOPE
from starter.cli import printing
from starter.cli.notify import print_endpoints

from .conftest import SCOPE
from .test_server import serving

PAGER = ("--url", "https://pager.example/hook", "--secret", "HORARIUM_SECRET_PAGER")


@pytest.fixture
def notify(installation, horarium):
    """Call a command on a data folder; the answer is what a pipe is given."""

    def call(*arguments: str, status: int = 0, **more):
        result = horarium("notify", *arguments, "--data", installation.data, **more)
        assert result.exit_code == status, result.stderr
        return result.stderr if status else [json.loads(line) for line in result.stdout.splitlines()]

    return call


@pytest.fixture
def schedule_id(installation, horarium, configuration, write) -> str:
    result = horarium("publish", write(configuration), "--data", installation.data)
    return json.loads(result.stdout)["reference"]["schedule_id"]


def test_an_endpoint_is_added_shown_tried_and_removed(notify, schedule_id):
    (added,) = notify("add", "pager", *PAGER, "--on", "failed,missed", "--schedule", schedule_id[:8])
    assert (added["on"], added["schedule_id"]) == (["missed", "failed"], schedule_id)
    (shown,) = notify("list")
    assert (shown["name"], shown["url"], shown["waiting"], shown["dead"]) == ("pager", PAGER[1], 0, 0)
    (tried,) = notify("test", "pager")
    assert tried["message_id"]
    assert notify("remove", "pager")[0]["name"] == "pager"
    assert notify("list") == []
    assert "endpoint_not_found" in notify("remove", "pager", status=1)


def test_without_a_word_an_endpoint_is_told_of_everything(notify):
    (added,) = notify("add", "pager", *PAGER)
    assert added["on"] == ["review", "refused", "missed", "failed", "recovered", "overdue"]


def test_what_is_wrong_is_refused_with_all_faults_and_changes_nothing(notify):
    told = notify("add", "pager.", "--url", "ftp://x", "--secret", "the-secret", "--on", "some", status=1)
    for code in ("invalid_name", "not_an_address", "not_a_variable", "unknown_kinds"):
        assert code in told
    assert "the-secret" not in told
    assert notify("list") == []


def test_a_heartbeat_is_named_after_its_schedule(notify, schedule_id):
    (declared,) = notify("heartbeat", schedule_id[:8], *PAGER)
    assert declared["name"] == f"heartbeat:{schedule_id}"
    (shown,) = notify("list")
    assert (shown["on"], shown["silent_since"]) == (["heartbeat"], None)
    notify("remove", declared["name"])


def give_up(connection, *, now: datetime) -> None:
    """What waits for the pager is given up."""
    spread(connection, SCOPE, now=now, limit=10)
    endpoint = find_endpoint(connection, SCOPE, "pager")
    (claimed,) = claim(connection, endpoint.row, now=now, lease=timedelta(0), limit=1)
    mark_failed(connection, claimed, status=500, error="It answered with status 500.", next_at=None, now=now)


def test_dead_letters_are_shown_and_sent_again(installation, notify, horarium):
    notify("add", "pager", *PAGER)
    message_id = notify("test", "pager")[0]["message_id"]
    now = datetime.now(UTC)
    installation.write(give_up, now=now)
    (letter,) = notify("dead")
    assert (letter["message_id"], letter["last_status"]) == (message_id, 500)
    table = horarium("notify", "dead", "--data", installation.data, "-o", "table").stdout
    assert "It answered with status 500." in table
    assert horarium("notify", "list", "--data", installation.data, "-o", "table").exit_code == 0
    assert notify("again", str(letter["id"]))[0]["message_id"] == message_id
    assert notify("dead") == []
    assert "dead_letter_not_found" in notify("again", str(letter["id"]), status=1)


def test_a_server_and_a_folder_answer_alike(installation, horarium, schedule_id, monkeypatch):
    scopes = ("--scope", WRITE_SCOPE, "--scope", OPERATOR_SCOPE)
    monkeypatch.setenv("HORARIUM_TOKEN", horarium("token", *scopes, "--data", installation.data).stdout.strip())
    commands = (
        ("add", "pager", *PAGER, "--on", "failed"),
        ("heartbeat", schedule_id, *PAGER),
        ("list",),
        ("test", "pager"),
        ("dead",),
        ("remove", "pager"),
        ("remove", "pager"),
        ("remove", f"heartbeat:{schedule_id}"),
    )
    with serving(installation.data) as address:
        answers = [
            [plain(horarium("notify", *each, *where)) for each in commands]
            for where in (("--server", address), ("--data", installation.data))
        ]
    assert answers[0] == answers[1]


def plain(result) -> tuple[int, list[dict], str]:
    """An answer without what is different each time."""
    changing = {"receipt_id", "created_at", "message_id", "declared_at", "declared_by"}
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    return result.exit_code, [{k: v for k, v in each.items() if k not in changing} for each in lines], result.stderr


@pytest.mark.parametrize("width", [100, 120])
def test_a_table_has_room_for_why_somebody_was_not_heard(width, monkeypatch, capsys):
    why = "It could not be reached: The environment variable HORARIUM_SECRET_PAGER holds no secret. Set it."
    schedule = "7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11"
    common = {"delivered_at": None, "waiting": 1, "dead": 0, "stopped_at": None, "silent_since": None}
    found = [
        {"name": f"heartbeat:{schedule}", "on": ["heartbeat"], "url": "https://watcher.example/daily-review"},
        {"name": "pager", "on": ["failed", "refused"], "url": "https://pager.example/horarium"},
    ]
    monkeypatch.setattr(printing, "columns", lambda: width)
    print_endpoints([{**each, **common, "schedule_id": schedule, "last_error": why} for each in found])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) < 25
    (beat,) = [line for line in lines if line.startswith(schedule)]
    assert "not heard" in beat
    assert "notify remove heartbeat:ID" in lines[-1]
