"""What a person who is stuck is told: the word that was meant, what to do next, and what keeps everything from running."""

import json

import pytest
from typer.testing import CliRunner

from starter.cli.commands import app
from starter.cli.words import MEANT

LISTED = ["list", "get"]


@pytest.fixture
def table(installation, horarium):
    """Call a command as at a terminal, and expect it to succeed."""

    def call(*arguments: str) -> str:
        result = horarium(*arguments, "--data", installation.data, "-o", "table")
        assert result.exit_code == 0, result.stderr
        return " ".join(result.stdout.split())

    return call


def publish(table, path: str, schedule_id: str) -> None:
    table("publish", path, "--schedule", schedule_id)


SCHEDULE = "7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11"


@pytest.mark.parametrize("command", LISTED)
def test_a_kill_switch_is_told_where_people_look_for_what_runs(command, table, installation, configuration, write):
    installation.populate()
    publish(table, write(configuration), SCHEDULE)
    asked = ("get", SCHEDULE) if command == "get" else ("list",)
    assert "stopped" not in table(*asked)
    table("authority", "stop", "--because", "The archive is being moved.")
    told = table(*asked)
    assert "Everything in environment 'dev' was stopped at " in told
    assert "The archive is being moved." in told
    assert "authority lift" in told
    table("authority", "lift")
    table("authority", "stop", "--organization", "--because", "All of it.")
    assert "Everything in organization 'local' was stopped at " in table(*asked)


@pytest.mark.parametrize("name", ["triage", "triage@2"])
def test_who_asks_for_an_agent_that_is_not_there_is_told_how_it_comes_there(
    name, horarium, table, installation, configuration, write
):
    installation.populate()
    configuration["run"]["agent_version"] = name
    publish(table, write(configuration), SCHEDULE)
    refused = horarium("enable", SCHEDULE, "--data", installation.data)
    assert (refused.exit_code, "[agent_missing]" in refused.stderr) == (1, True)
    assert "worker agents MODULE" in refused.stderr
    assert "profile classes" in refused.stderr
    assert ("name@version" in refused.stderr) is (name == "triage")


def test_apply_takes_its_file_as_every_other_command_does(horarium, installation, configuration, write):
    path = write(configuration)
    first = horarium("apply", path, "--data", installation.data)
    assert json.loads(first.stdout)["result"] == "published", first.stderr
    again = horarium("apply", "-f", path, "--data", installation.data)
    assert json.loads(again.stdout)["result"] == "unchanged", again.stderr
    for wrong in ((), (path, "-f", path)):
        refused = horarium("apply", *wrong, "--data", installation.data)
        assert (refused.exit_code, "FILE" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("stop", ["'pause'", "'authority stop'"]),
        ("delete", ["'retire'"]),
        ("run", ["'trigger'"]),
        ("status", ["'get'", "'list'"]),
        ("history", ["'occurrences'"]),
        ("occurences", ["'occurrences'"]),
    ],
)
def test_a_word_of_other_schedulers_leads_to_ours(word, meant):
    result = CliRunner().invoke(app, [word, "7b0c7c"])
    assert result.exit_code == 2
    assert f"No such command '{word}'. Did you mean {' or '.join(meant)}?" in result.stderr


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("agents",), "Say which agents: `worker agents MODULE`"),
        (("agent", "greeting"), "Did you mean `worker agents greeting`?"),
        (("schedule",), "'schedule' is no worker"),
    ],
)
def test_half_a_command_for_a_worker_is_told_whole(given, told, horarium):
    result = horarium("worker", *given)
    assert (result.exit_code, told in " ".join(result.stderr.split())) == (2, True), result.stderr


def test_a_name_that_nobody_has_is_not_called_one_that_could_be_erased(table, configuration, write):
    publish(table, write(configuration), SCHEDULE)
    told = table("erase-person", "nobody@acme.example")
    assert "Nobody is called 'nobody@acme.example' in the record of organization 'local'." in told
    assert "--really" not in told


def test_the_folder_of_archives_is_no_damaged_archive(horarium, installation, tmp_path):
    to = tmp_path / "archives"
    made = horarium("archive", "--before", "-90d", "--to", str(to), "--data", installation.data)
    assert made.exit_code == 0, made.stderr
    refused = horarium("archive", "--verify", str(to))
    assert (refused.exit_code, "[not_an_archive]" in refused.stderr) == (1, True)
    (folder,) = to.iterdir()
    assert folder.name in refused.stderr
    assert "[not_an_archive]" in horarium("archive", "--verify", str(tmp_path / "nowhere")).stderr


def test_what_was_meant_is_there():
    for word, meant in MEANT.items():
        assert CliRunner().invoke(app, [word]).exit_code == 2
        for each in meant:
            assert CliRunner().invoke(app, [*each.split(), "--help"]).exit_code == 0, each


def test_a_name_of_an_environment_that_is_none_is_told_by_its_variable_and_an_empty_one_is_none(
    horarium, installation, monkeypatch
):
    monkeypatch.setenv("HORARIUM_ENVIRONMENT", "")
    assert horarium("list", "--data", installation.data).exit_code == 0
    monkeypatch.setenv("HORARIUM_ENVIRONMENT", "no spaces")
    refused = horarium("list", "--data", installation.data)
    assert (refused.exit_code, "HORARIUM_ENVIRONMENT" in refused.stderr) == (1, True)
    assert "'no spaces' is no name of an environment" in refused.stderr
