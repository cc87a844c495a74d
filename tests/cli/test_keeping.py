"""`archive` and `erase-person` at the command line."""

import json
import os
import re

import pytest


@pytest.fixture
def here(installation, horarium):
    """Call a command on the installation and expect it to succeed; the answer is what a pipe is given."""

    def call(*arguments: str) -> dict:
        result = horarium(*arguments, "--data", installation.data, "-o", "json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return call


def test_an_archive_is_written_pruned_and_verified(here, horarium, configuration, write, tmp_path):
    here("publish", write(configuration))
    to = tmp_path / "archives"
    made = here("archive", "--before", "-90d", "--to", str(to), "--prune")["archives"]
    assert [each["removed"] for each in made] == [0], "nothing is that old"
    (folder,) = to.iterdir()
    assert made[0]["folder"] == str(folder)
    found = horarium("archive", "--verify", str(folder), "-o", "json")
    assert json.loads(found.stdout)["digest"] == made[0]["digest"]
    (folder / "ledger.jsonl").write_text("{}\n")
    broken = horarium("archive", "--verify", str(folder))
    assert broken.exit_code == 1
    assert "archive_damaged" in broken.stderr
    assert here("audit")["clean"]


def test_what_an_archive_that_was_killed_left_is_cleared_by_the_next_and_named(here, horarium, installation, tmp_path):
    left = tmp_path / ".unfinished-6f1f6a50-3a0f-4b57-8d0e-3f1d0a5c7d11"
    left.mkdir()
    (left / "ledger.jsonl").write_text("{}\n")
    for path in (left / "ledger.jsonl", left):
        os.utime(path, (0, 0))
    asked = ("archive", "--before", "-90d", "--to", str(tmp_path), "--data", installation.data, "-o", "json")
    done = horarium(*asked)
    assert done.exit_code == 0, done.stderr
    assert f"Cleared {str(left)!r}" in done.stderr
    assert not left.exists()
    assert "Cleared" not in horarium(*asked).stderr


def test_an_archive_of_what_is_young_is_refused_and_half_a_command_is_none(here, horarium, installation, tmp_path):
    young = horarium("archive", "--before", "-29d", "--to", str(tmp_path / "a"), "--data", installation.data)
    assert (young.exit_code, "too_young" in young.stderr) == (1, True)
    assert not (tmp_path / "a").exists()
    for half in (["--before", "-90d"], ["--to", "x"], ["--verify", "x", "--prune"]):
        assert horarium("archive", *half).exit_code == 2


def test_a_person_is_first_looked_for_and_then_erased(here, horarium, installation, configuration, write):
    published = here("publish", write(configuration))
    name = here("get", published["schedule_id"])["published_by"]
    dry = here("erase-person", name)
    assert dry["dry"]
    assert dry["instead"] is None
    assert dry["rows"]["versions"] == 1
    assert here("get", published["schedule_id"])["published_by"] == name

    result = horarium("erase-person", name, "--really", "--data", installation.data, "-o", "json")
    assert result.exit_code == 0, result.stderr
    done = json.loads(result.stdout)
    assert re.fullmatch("erased:[0-9a-f]{32}", done["instead"])
    assert f"--as {done['instead']}" in result.stderr
    assert here("get", published["schedule_id"])["published_by"] == done["instead"]
    assert here("audit")["clean"]
