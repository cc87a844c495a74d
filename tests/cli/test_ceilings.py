"""The command line on a data folder holds what it enables to the ceilings of its environment, and refuses bad ones."""

import json

import pytest


def test_enabling_beyond_a_ceiling_is_refused_with_its_code_and_what_was_counted(
    horarium, installation, configuration, write, monkeypatch
):
    installation.populate()
    schedule = json.loads(horarium("publish", write(configuration), "--data", installation.data).stdout)["schedule_id"]
    monkeypatch.setenv("SCHEDULER_MAX_TOTAL_RUNS_PER_MONTH", "1")
    refused = horarium("enable", schedule, "--data", installation.data)
    assert refused.exit_code == 1
    assert "[ceiling_exceeded]" in refused.stderr
    assert "SCHEDULER_MAX_TOTAL_RUNS_PER_MONTH" in refused.stderr
    monkeypatch.setenv("SCHEDULER_MAX_TOTAL_RUNS_PER_MONTH", "31")
    assert horarium("enable", schedule, "--data", installation.data).exit_code == 0


@pytest.mark.parametrize("command", [("enable", "x"), ("worker",), ("controller",), ("api",)])
def test_a_bad_setting_is_refused_by_its_name_whatever_is_called(horarium, installation, monkeypatch, command):
    monkeypatch.setenv("SCHEDULER_MAX_RUNS_PER_PROFILE_PER_MONTH", "unlimited")
    refused = horarium(*command, "--data", installation.data)
    assert refused.exit_code != 0
    assert "SCHEDULER_MAX_RUNS_PER_PROFILE_PER_MONTH is 'unlimited'; it is a whole number from 1" in refused.stderr
    assert "Traceback" not in refused.stderr
