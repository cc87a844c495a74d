"""`diff` says what would change, `apply` publishes what differs, and a key does one thing once."""

import json

import pytest

from starter.cli.differing import changes


@pytest.fixture
def call(installation, horarium):
    """Call a command on the installation; its status, and the answer that a pipe is given."""

    def call(*arguments: str, status: int = 0):
        result = horarium(*arguments, "--data", installation.data)
        assert result.exit_code == status, result.stderr
        return [json.loads(line) for line in result.stdout.splitlines()]

    return call


CHANGES = {
    "equal": ({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}, []),
    "a value": ({"a": 1}, {"a": 2}, [("/a", 1, 2)]),
    "a field more": ({}, {"a/b": 1}, [("/a~1b", "-", 1)]),
    "a field less": ({"a": 1}, {}, [("/a", 1, "-")]),
    "true is not 1": ({"a": 1}, {"a": True}, [("/a", 1, True)]),
    "null is not absent": ({"a": None}, {}, [("/a", None, "-")]),
    "a part of a list": ({"a": [1, 2]}, {"a": [1, 3]}, [("/a/1", 2, 3)]),
    "lists of two lengths": ({"a": [1, 2]}, {"a": [1]}, [("/a", [1, 2], [1])]),
    "another kind": ({"a": [1]}, {"a": {"0": 1}}, [("/a", [1], {"0": 1})]),
}


@pytest.mark.parametrize(("before", "after", "expected"), CHANGES.values(), ids=CHANGES)
def test_documents_differ_at_places(before, after, expected):
    found = [each.as_document() for each in changes(before, after)]
    assert [(each["pointer"], each.get("before", "-"), each.get("after", "-")) for each in found] == expected


def test_a_configuration_is_held_against_the_head_and_the_enabled_version(
    call, horarium, installation, configuration, write
):
    installation.populate()
    path = write(configuration)
    schedule_id = call("publish", path)[0]["schedule_id"]
    (equal,) = call("diff", path, schedule_id)
    assert (equal["different"], [each["version"] for each in equal["against"]]) == (False, ["head"])

    call("enable", schedule_id)
    configuration["policy"]["overlap"] = "buffer_one"
    call("publish", write(configuration), "--schedule", schedule_id)
    configuration["policy"]["max_concurrent_runs"] = 2
    path = write(configuration)
    (different,) = call("diff", path, schedule_id, status=1)
    head, enabled = different["against"]
    assert (head["reference"]["revision"], enabled["reference"]["revision"]) == (2, 1)
    assert head["changes"] == [{"pointer": "/policy/max_concurrent_runs", "after": 2}]
    assert enabled["changes"][0] == {"pointer": "/policy/overlap", "before": "skip", "after": "buffer_one"}
    table = horarium("diff", path, schedule_id, "--data", installation.data, "-o", "table").stdout
    assert "--- head, revision 2\n" in table
    assert '- /policy/overlap: "skip"\n+ /policy/overlap: "buffer_one"\n' in table


def test_what_equals_the_head_still_differs_from_an_older_version_that_is_enabled(
    call, installation, configuration, write
):
    installation.populate()
    schedule_id = call("publish", write(configuration))[0]["schedule_id"]
    call("enable", schedule_id)
    configuration["name"] = "Newer"
    path = write(configuration)
    call("publish", path, "--schedule", schedule_id)
    (answer,) = call("diff", path, schedule_id, status=1)
    assert [(each["version"], each["different"]) for each in answer["against"]] == [("head", False), ("enabled", True)]


def test_another_order_of_keys_is_no_difference(call, configuration, write):
    schedule_id = call("publish", write(configuration))[0]["schedule_id"]
    path = write(dict(reversed(configuration.items())))
    assert call("diff", path, schedule_id)[0]["different"] is False
    assert call("apply", "-f", path, "--schedule", schedule_id)[0]["result"] == "unchanged"


def test_applying_publishes_once_and_enables_nothing(call, installation, configuration, write):
    installation.populate()
    path = write(configuration)
    (first,) = call("apply", "-f", path)
    assert (first["result"], first["reference"]["revision"]) == ("published", 1)
    (second,) = call("apply", "-f", path)
    assert second == {"result": "unchanged", "schedule_id": first["schedule_id"], "reference": first["reference"]}
    configuration["policy"]["catchup_window_seconds"] = 90
    (third,) = call("apply", "-f", write(configuration))
    assert (third["schedule_id"], third["reference"]["revision"]) == (first["schedule_id"], 2)
    assert call("get", first["schedule_id"])[0]["activation"] is None
    assert [each["kind"] for each in call("events", first["schedule_id"])] == ["published", "published"]


def test_applying_leaves_an_enabled_version_enabled(call, installation, configuration, write):
    installation.populate()
    (first,) = call("apply", "-f", write(configuration))
    call("enable", first["schedule_id"])
    configuration["policy"]["catchup_window_seconds"] = 90
    call("apply", "-f", write(configuration))
    record = call("get", first["schedule_id"])[0]
    assert (record["head"]["revision"], record["activation"]["version"]["revision"]) == (2, 1)


def test_applying_to_an_id_that_is_new_publishes_its_first_version(call, configuration, write):
    chosen = "7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11"
    (first,) = call("apply", "-f", write(configuration), "--schedule", chosen)
    assert (first["schedule_id"], first["reference"]["revision"]) == (chosen, 1)


def test_applying_by_a_name_that_two_schedules_have_is_refused(call, horarium, installation, configuration, write):
    path = write(configuration)
    made = {call("publish", path)[0]["schedule_id"] for _ in range(2)}
    result = horarium("apply", "-f", path, "--data", installation.data)
    assert result.exit_code == 1
    assert "[ambiguous_name]" in result.stderr
    assert all(each in result.stderr for each in made)


def test_the_same_key_publishes_once(call, horarium, installation, configuration, write):
    path = write(configuration)
    options = ("--schedule", "7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11", "--expected-revision", "0", "--key", "monday")
    first, again = call("publish", path, *options)[0], call("publish", path, *options)[0]
    assert (first["replayed"], again["replayed"], first["receipt_id"]) == (False, True, again["receipt_id"])
    assert [each["head"]["revision"] for each in call("list")] == [1]
    configuration["name"] = "Another"
    other = horarium("publish", write(configuration), *options, "--data", installation.data)
    assert "[idempotency_key_reused]" in other.stderr


def test_another_epoch_than_the_reviewed_one_is_refused(horarium, installation, configuration, write):
    for option, code in (
        ("--environment-epoch", "environment_epoch_changed"),
        ("--reset-generation", "environment_reset"),
    ):
        result = horarium("publish", write(configuration), option, "7", "--data", installation.data)
        assert (result.exit_code, f"[{code}]" in result.stderr) == (1, True), result.stderr


def test_a_run_by_hand_is_staged_with_who_asked_for_it(call, horarium, installation, configuration, write):
    installation.populate()
    schedule_id = call("publish", write(configuration))[0]["schedule_id"]
    early = horarium("trigger", schedule_id, "--data", installation.data)
    assert (early.exit_code, "[not_enabled]" in early.stderr) == (1, True)
    call("enable", schedule_id)
    receipt = call("trigger", schedule_id)[0]
    (line,) = call("occurrences", schedule_id)
    assert (line["run_id"], line["disposition"]) == (receipt["run_id"], "staged")
    assert line["triggered_by"].startswith("local:")
    second = horarium("trigger", schedule_id, "--data", installation.data)
    assert (second.exit_code, "[overlap]" in second.stderr) == (1, True)
    beside = horarium("trigger", schedule_id, "--overlap", "allow", "--data", installation.data, "-o", "table")
    assert beside.exit_code == 0, beside.stderr
    assert "Triggered" in beside.stdout
