"""The command line at an installation whose catalog is a PostgreSQL database, as the program that a person starts."""

import json

import pytest

from tests.postgres.databases import Database

from .conftest import Installation


@pytest.fixture
def at(postgres, program, tmp_path):
    """Call a command at such an installation and expect that it succeeds; the answer is what a pipe is given."""
    with Database(postgres).empty(tmp_path) as url:

        def call(*arguments: str) -> list[dict]:
            ended = program(*arguments, "--data", "data", HORARIUM_CATALOG=url)
            assert ended.returncode == 0, ended.stderr
            return [json.loads(line) for line in ended.stdout.splitlines()]

        call("setup", "--no-temporal")
        Installation(tmp_path / "data", HORARIUM_CATALOG=url).populate()
        yield call


def test_a_schedule_lives_there_as_in_a_file(at, configuration, write, tmp_path):
    at("db", "upgrade")
    receipt = at("publish", write(configuration))[0]
    schedule = receipt["schedule_id"]
    assert not (tmp_path / "data" / "catalog.db").exists()
    assert [each["schedule_id"] for each in at("list")] == [schedule]
    assert at("enable", schedule)[0]["activation"]["enabled"] is True
    assert at("get", schedule)[0]["activation"]["generation"] == 1
    assert at("trigger", schedule)[0]["operation"] == "trigger"
    (run,) = at("occurrences", schedule)
    assert (run["disposition"], run["trigger"].partition(":")[0]) == ("staged", "manual")
    assert at("pause", schedule)[0]["activation"]["enabled"] is False
    assert at("retire", schedule)[0]["retired"] is True
    kinds = [each["kind"] for each in at("events", schedule)]
    assert kinds == ["published", "enabled", "triggered", "paused", "retired"]
    assert at("audit")[0]["clean"] is True


def test_operators_act_there_too(at):
    assert at("authority", "stop", "--because", "an incident")[0]["operation"] == "stop"
    assert at("authority", "lift")[0]["operation"] == "lift"
    assert [each["kind"] for each in at("authority", "events")] == ["stopped", "lifted"]
