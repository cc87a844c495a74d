"""`horarium profile …`: on a data folder and at a server the same answers."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from horarium.agents import AgentRunner
from horarium.catalog import presence
from horarium.control.principals import OPERATOR_SCOPE, WRITE_SCOPE
from tests.api.profile_house import CRON, Assistant, Triage, submission

from .conftest import SCOPE, Installation
from .test_server import serving

BINDING = {
    "run": {
        "agent_version": "triage@1",
        "input": "inbox",
        "output_target": "reports",
        "grants": [],
        "budget_id": None,
        "usage_class": "test_simulation",
    }
}
FILE = {
    "organization": "local",
    "environment": "dev",
    "mode": "simulation",
    "runtime_profile": "embedded",
    "development": True,
    "bindings": {f"cron:Triage/{name}": BINDING for name in ("support", "sales")},
}


def populate(installation: Installation) -> None:
    installation.populate()
    now = datetime.now(UTC)
    for agent in (Triage(), Assistant()):
        (discovery,) = AgentRunner([agent]).discovery()
        installation.write(
            presence.register_agent,
            SCOPE,
            agent.agent_version,
            discovery.model_dump(mode="json"),
            lease_until=now + timedelta(minutes=5),
            now=now,
        )


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """An installation with agents and bindings, and a server of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
        installation = Installation(tmp_path_factory.mktemp("profiles") / "data")
        with serving(installation.data) as address:
            yield installation, address


@pytest.fixture(params=["folder", "server"])
def profile(request, served, horarium, monkeypatch, write):
    """Call a command of profiles at one of both places; the answer is what a pipe is given, or stderr of a refusal."""
    installation, address = served
    populate(installation)
    applied = horarium("authority", "apply", write(FILE, "environment.json"), "--data", installation.data)
    assert applied.exit_code == 0, applied.stderr
    scopes = (each for scope in (WRITE_SCOPE, OPERATOR_SCOPE) for each in ("--scope", scope))
    token = horarium("token", *scopes, "--data", installation.data)
    monkeypatch.setenv("HORARIUM_TOKEN", token.stdout.strip())
    where = ("--data", installation.data) if request.param == "folder" else ("--server", address)

    def call(*arguments: str, status: int = 0, form: str | None = None, stdin: str | None = None):
        more = () if form is None else ("-o", form)
        result = horarium("profile", *arguments, *where, *more, stdin=stdin)
        assert result.exit_code == status, result.stderr + result.stdout
        if status:
            return result.stderr
        return result.stdout if form else [json.loads(line) for line in result.stdout.splitlines()]

    return call


def test_classes_show_which_agents_reported_themselves(profile):
    found = {each["agent_class"]: each for each in profile("classes")}
    assert found["Triage"]["is_schedulable"] is True
    assert found["Assistant"]["is_conversational"] is True
    table = profile("classes", form="table")
    assert "schedulable" in table
    assert "triage@1" in table
    assert "CronStartEvent, Sweep" in table


def test_the_life_of_a_profile(profile, write):
    path = write(submission(), "profile.json")
    (saved,) = profile("save", "Triage", "support", path)
    assert saved["enabled"] is True
    (shown,) = profile("get", "Triage", "support")
    assert (shown["state"], shown["cron"], shown["tenant_id"]) == ("enabled", CRON, "acme-support")
    assert "support" in [each["agent_id"] for each in profile("list", "Triage")]
    (run,) = profile("trigger", "Triage", "support")
    assert run["operation"] == "profile_trigger"
    (swept,) = profile("trigger", "Triage", "support", "--event", "Sweep", "--fields", '{"folder": "Archive"}')
    assert swept["run_id"] != run["run_id"]
    (cleared,) = profile("clear", "Triage", "support")
    assert (cleared["enabled"], cleared["ended_generation"]) == (False, saved["generation"])
    (kept,) = profile("get", "Triage", "support")
    assert (kept["cron"], kept["config"]["folder"], kept["tenant_id"]) == (None, "INBOX", "acme-support")
    assert cleared["operation"] == "profile_clear"
    assert "Save it with a cron" in profile("trigger", "Triage", "support", status=1)
    (deleted,) = profile("delete", "Triage", "support")
    assert deleted["operation"] == "profile_delete"
    assert "profile_not_found" in profile("get", "Triage", "support", status=1)


def test_tables_are_for_people(profile, write):
    path = write(submission(), "profile.json")
    told = profile("save", "Triage", "sales", path, form="table")
    assert "Triage/sales" in told
    assert "30 7 * * 1-5 Europe/Zurich" in profile("get", "Triage", "sales", form="table")
    assert "30 7 * * 1-5 Europe/Zurich" in profile("list", "Triage", form="table")
    assert "profile thread Triage sales" in profile("trigger", "Triage", "sales", form="table")


def test_every_fault_of_a_file_is_named_with_the_file_and_its_place(profile, write):
    path = write(submission(cron={**CRON, "minute": "61", "timezone": "Mars/Base"}), "profile.json")
    told = profile("save", "Triage", "support", path, status=1)
    for line, place in zip(told.splitlines(), ("/config/cron/minute", "/config/cron/timezone"), strict=True):
        assert line.startswith(f"{path}: {place}")
    # What only the class knows of is told in the same way, and beside them.
    path = write(submission(folder=7), "profile.json")
    assert profile("save", "Triage", "support", path, status=1).startswith(f"{path}: /config/folder")
    path = write(submission(folder=7, cron={**CRON, "minute": "61"}), "profile.json")
    told = profile("save", "Triage", "support", path, status=1)
    assert [line.split(": ")[1] for line in told.splitlines()] == ["/config/cron/minute", "/config/folder"]
    told = profile("save", "Triage", "support", "-", status=1, stdin=Path(path).read_text())
    assert [line.split(": ")[1] for line in told.splitlines()] == ["/config/cron/minute", "/config/folder"]


def test_a_bad_file_needs_no_installation_to_be_told(horarium, write, tmp_path):
    path = write({"config": {"cron": "0 12 * * *"}}, "profile.json")
    result = horarium("profile", "save", "Triage", "support", path, "--data", str(tmp_path / "none"))
    assert (result.exit_code, result.stderr.startswith(f"{path}: /config/cron")) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("get", "Nobody", "x"), "not_found"),
        (("list", "Nobody"), "agent_class_not_found"),
        (("delete", "Triage", "nobody"), "profile_not_found"),
        (("trigger", "Triage", "nobody"), "profile_not_found"),
        (("thread", "Triage", "nobody"), "not_found"),
        (("clear", "Triage", "nobody"), "profile_not_found"),
    ],
)
def test_what_is_not_there_is_told_in_the_same_words_at_both_places(profile, arguments, code):
    assert code in profile(*arguments, status=1)


def test_fields_that_are_no_json_are_refused_at_their_place(profile, write):
    profile("save", "Triage", "support", write(submission(), "profile.json"))
    assert "not_json" in profile("trigger", "Triage", "support", "--event", "Sweep", "--fields", "{", status=1)
    assert "--fields" in profile("trigger", "Triage", "support", "--event", "Sweep", "--fields", "page=3", status=1)
    assert "/event" in profile("trigger", "Triage", "support", "--event", "Sweep", "--fields", "[]", status=1)
    assert "start_event_not_found" in profile("trigger", "Triage", "support", "--event", "Other", status=1)


@pytest.mark.parametrize("profile", ["folder"], indirect=True)
def test_the_ceilings_of_the_installation_hold_on_the_folder_too(profile, write, monkeypatch):
    monkeypatch.setenv("SCHEDULER_MAX_RUNS_PER_PROFILE_PER_MONTH", "10")
    assert "ceiling_exceeded" in profile("save", "Triage", "support", write(submission(), "p.json"), status=1)


def test_the_same_key_does_the_same_thing_once(profile, write):
    path = write(submission(), "profile.json")
    profile("save", "Triage", "support", path)
    key = f"key-{datetime.now(UTC).timestamp()}"
    first, again = (profile("trigger", "Triage", "support", "--key", key)[0] for _ in range(2))
    assert (first["replayed"], again["replayed"], first["run_id"]) == (False, True, again["run_id"])
