"""The commands of scheduler v0: on a data folder and at a server they say the same."""

import json

import pytest
import yaml

from horarium.schedule.v0 import ScheduleEvent
from tests.schedule.test_v0 import CRON, ONE_SHOT, RUN

from .conftest import Installation
from .test_server import serving

ENVIRONMENT = {
    "organization": "local",
    "environment": "dev",
    "mode": "simulation",
    "runtime_profile": "embedded",
    "development": True,
}
BOUND = {**RUN, "agent_version": "triage@1", "input": "inbox", "output_target": "reports"}
TARGETS = ("ws-001/codex", "ws-001/opencode")
HOURLY = {**CRON, "spec": {"expr": "0 * * * *", "timezone": "Europe/Zurich"}}
NOWHERE = "7b0c7c3e-4f0e-4f53-9f0b-000000000000"


def bind(horarium, write, data: str) -> None:
    bindings = {f"v0:{target}": {"run": BOUND} for target in TARGETS}
    path = write({**ENVIRONMENT, "bindings": bindings}, "bindings.json")
    applied = horarium("authority", "apply", path, "--data", data)
    assert applied.exit_code == 0, applied.stderr


@pytest.fixture
def bound(installation, horarium, write) -> Installation:
    """An installation where what stands behind both of the contract's examples is declared, and is there."""
    installation.populate()
    bind(horarium, write, installation.data)
    return installation


@pytest.fixture
def on_folder(bound, horarium):
    """Call a command of the contract on a data folder; the answer is what a pipe is given."""

    def call(*arguments: str, status: int = 0, **more):
        bound.populate()  # a slow machine may have let the leases of agents run out
        result = horarium("v0", *arguments, "--data", bound.data, **more)
        assert result.exit_code == status, result.stderr
        return result.stderr if status else [json.loads(line) for line in result.stdout.splitlines()]

    return call


def kinds(events) -> list[str]:
    """The events of the contract."""
    return [each["kind"] for each in events if each["kind"] in list(ScheduleEvent)]


def test_a_schedule_is_created_changed_and_ended(on_folder, write):
    (created,) = on_folder("create", write(CRON))
    schedule_id = created["schedule_id"]
    assert (created["operation"], created["enabled"]) == ("v0_create", True)
    (seen,) = on_folder("get", schedule_id[:8])
    assert (seen["state"], seen["schedule"]) == ("enabled", CRON)
    assert on_folder("pause", schedule_id)[0]["enabled"] is False
    assert on_folder("update", schedule_id, write(HOURLY, "hourly.json"))[0]["enabled"] is False
    assert on_folder("get", schedule_id)[0]["state"] == "paused"
    assert on_folder("resume", schedule_id)[0]["enabled"] is True
    assert on_folder("update", schedule_id, write(CRON))[0]["enabled"] is True
    assert on_folder("disable", schedule_id)[0]["enabled"] is False
    assert [each["state"] for each in on_folder("list")] == ["disabled"]
    told = kinds(on_folder("events", schedule_id))
    assert sorted(set(told)) == [
        "SCHEDULE_CREATED",
        "SCHEDULE_DISABLED",
        "SCHEDULE_PAUSED",
        "SCHEDULE_RESUMED",
        "SCHEDULE_UPDATED",
    ]


def test_the_one_shot_of_the_contract_has_passed_and_says_so(on_folder, write):
    (created,) = on_folder("create", write(ONE_SHOT))
    assert created["enabled"] is False
    assert "2026-03-25T09:00:00Z has passed" in created["warnings"][0]
    (seen,) = on_folder("get", created["schedule_id"])
    assert (seen["state"], seen["reason"].split(":")[0]) == ("review", "calendar_exhausted")
    assert "MISFIRED_SKIPPED" in kinds(on_folder("events", created["schedule_id"]))


def test_yaml_and_standard_input_are_read_too(on_folder):
    (created,) = on_folder("create", "-", stdin=yaml.safe_dump(CRON))
    assert on_folder("get", created["schedule_id"])[0]["schedule"] == CRON


def test_a_bad_document_is_refused_with_every_fault_and_nothing_is_stored(on_folder, write):
    bad = {**ONE_SHOT, "spec": {"expr": "* * * * *"}, "policy": {"misfire": "defer_once"}, "session_id": "s"}
    path = write(bad, "bad.json")
    for arguments in (["create", path], ["update", NOWHERE, path]):
        lines = on_folder(*arguments, status=1).splitlines()
        places = {line.removeprefix(f"{path}: ").split(":")[0] for line in lines}
        assert places == {"/session_id", "/spec/expr", "/spec/run_at", "/policy/misfire"}
    assert on_folder("list") == []


def test_a_bad_document_needs_no_installation_to_be_refused(horarium, write, tmp_path):
    result = horarium("v0", "create", write({"type": "weekly"}), "--data", str(tmp_path / "none"))
    assert result.exit_code == 1
    assert "/type" in result.stderr


@pytest.mark.parametrize("act", ["get", "pause", "resume", "disable", "events"])
def test_what_is_not_there_is_refused(on_folder, act):
    assert "schedule_not_found" in on_folder(act, NOWHERE, status=1)


def test_a_schedule_of_another_contract_is_none_here(on_folder, bound, horarium, configuration, write):
    published = json.loads(horarium("publish", write(configuration), "--data", bound.data).stdout)
    for act in ("get", "pause", "events"):
        assert "schedule_not_found" in on_folder(act, published["schedule_id"], status=1)
    assert on_folder("list") == []


def test_the_same_key_does_the_same_thing_once(on_folder, write):
    first, again = (on_folder("create", write(CRON), "--key", "k")[0] for _ in range(2))
    assert (first["replayed"], again["replayed"]) == (False, True)
    assert first["schedule_id"] == again["schedule_id"]
    assert len(on_folder("list")) == 1
    assert "idempotency_key_reused" in on_folder("create", write(HOURLY), "--key", "k", status=1)


def test_what_nobody_bound_and_what_would_be_refused_is_not_created(installation, horarium, write):
    result = horarium("v0", "create", write(CRON), "--data", installation.data)
    assert result.exit_code == 1
    assert "binding_missing" in result.stderr
    assert "v0:ws-001/opencode" in result.stderr
    bind(horarium, write, installation.data)
    # Bound, and no worker and no agent is there.
    result = horarium("v0", "create", write(CRON), "--data", installation.data)
    assert result.exit_code == 1
    assert horarium("v0", "list", "--data", installation.data).stdout == ""


def test_pages_go_on_where_they_ended(on_folder, write):
    ids = sorted(on_folder("create", write(CRON))[0]["schedule_id"] for _ in range(3))
    seen = [each["schedule_id"] for each in on_folder("list", "--limit", "2")]
    seen += [each["schedule_id"] for each in on_folder("list", "--limit", "2", "--after", seen[-1])]
    assert seen == ids
    events = on_folder("events", ids[0])
    assert on_folder("events", ids[0], "--after", str(events[0]["id"]), "--limit", "1") == [events[1]]


def test_tables_for_people_tell_what_was_done_and_when_it_is_due(bound, horarium, write):
    def table(*arguments: str) -> str:
        result = horarium("v0", *arguments, "--data", bound.data, "-o", "table")
        assert result.exit_code == 0, result.stderr
        return result.stdout

    assert "There are no schedules of scheduler v0 here." in table("list")
    created = table("create", write(CRON))
    schedule_id = created.splitlines()[0].split()[-1]
    assert "Created" in created
    assert f"v0 get {schedule_id}" in created
    seen = table("get", schedule_id)
    for told in ("enabled", "expr */15 * * * *", "ws-001/opencode", 'misfire "defer_once"', "Next due"):
        assert told in seen
    assert "expr */15 * * * *" in table("list")
    assert "SCHEDULE_CREATED" in table("events", schedule_id)
    assert "Paused" in table("pause", schedule_id)
    assert f"v0 events {schedule_id} --after" in table("events", schedule_id, "--limit", "1")


def test_a_mistake_in_the_command_is_status_2(horarium, tmp_path):
    for arguments in (["create"], ["update", NOWHERE], ["list", "--limit", "51"], ["events", NOWHERE, "--limit", "0"]):
        assert horarium("v0", *arguments, "--data", str(tmp_path)).exit_code == 2, arguments


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
        installation = Installation(tmp_path_factory.mktemp("served") / "data")
        with serving(installation.data) as address:
            yield installation, address


def test_a_server_and_a_folder_answer_alike(served, horarium, write, monkeypatch):
    installation, address = served
    installation.populate()
    bind(horarium, write, installation.data)
    monkeypatch.setenv("HORARIUM_TOKEN", horarium("token", "--data", installation.data).stdout.strip())
    places = {"server": ("--server", address), "folder": ("--data", installation.data)}
    path, faulty = write(CRON, "cron.json"), write({**CRON, "type": "weekly"}, "faulty.json")

    def at_server(*arguments: str):
        installation.populate()
        result = horarium("v0", *arguments, *places["server"])
        assert result.exit_code == 0, result.stderr
        return [json.loads(line) for line in result.stdout.splitlines()]

    def alike(*arguments: str) -> None:
        for form in ("json", "table"):
            there, here = (horarium("v0", *arguments, *where, "-o", form) for where in places.values())
            assert there.exit_code == here.exit_code, arguments
            # Proposed commands name the place where they act.
            assert there.stdout.replace(address, "") == here.stdout.replace(installation.data, "").replace(
                "--data", "--server"
            ), arguments
            assert there.stderr == here.stderr, arguments

    (created,) = at_server("create", path)
    schedule_id = created["schedule_id"]
    assert at_server("pause", schedule_id)[0]["operation"] == "v0_pause"
    assert at_server("resume", schedule_id)[0]["enabled"] is True
    assert at_server("update", schedule_id, write(HOURLY, "hourly.json"))[0]["reference"]["revision"] == 2
    assert at_server("create", path, "--key", "k")[0]["replayed"] is False
    assert at_server("create", path, "--key", "k")[0]["replayed"] is True
    for arguments in (
        ["get", schedule_id],
        ["get", schedule_id[:8]],
        ["get", NOWHERE],
        ["get", "nonsense"],
        ["list"],
        ["list", "--limit", "1"],
        ["events", schedule_id],
        ["events", schedule_id, "--limit", "1"],
        ["events", NOWHERE],
        ["pause", NOWHERE],
        ["resume", schedule_id],
        ["create", faulty],
    ):
        alike(*arguments)
    assert at_server("disable", schedule_id)[0]["operation"] == "v0_disable"
    alike("disable", schedule_id)
