"""The commands of operators: on a data folder and at a server they say the same."""

import json
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from horarium.control.principals import OPERATOR_SCOPE, WRITE_SCOPE

from .conftest import Installation
from .test_server import serving

FILE = """\
organization: local
environment: dev
mode: simulation
runtime_profile: embedded
development: true
people:
  ada@acme.example: {}
  no: {left: true}   # a name like any other
budgets:
  main: {usage_classes: [test_compute], pays_by: wallet, limit: 1000, currency: EUR, wallet: purse}
wallets:
  purse: {unpaid_limit: 500, currency: EUR}
approvals: {}
"""


@pytest.fixture
def on_folder(installation, horarium):
    """Call a command of operators on a data folder; the answer is what a pipe is given."""

    def call(*arguments: str, status: int = 0, **more):
        result = horarium("authority", *arguments, "--data", installation.data, **more)
        assert result.exit_code == status, result.stderr
        return result.stderr if status else [json.loads(line) for line in result.stdout.splitlines()]

    return call


@pytest.fixture
def published(installation, horarium, configuration, write) -> dict:
    result = horarium("publish", write(configuration), "--data", installation.data)
    return json.loads(result.stdout)["reference"]


def test_a_file_is_tried_applied_and_then_what_it_says(on_folder, write):
    path = write(FILE, "environment.yaml")
    (tried,) = on_folder("apply", path, "--dry-run")
    (applied,) = on_folder("apply", path)
    assert tried["changes"] == applied["changes"]
    assert [(each["action"], each["name"]) for each in applied["changes"]] == [
        ("created", "ada@acme.example"),
        ("created", "no"),
        ("created", "main"),
        ("created", "purse"),
    ]
    assert on_folder("apply", path)[0]["changes"] == []
    (seen,) = on_folder("show")
    assert set(seen["declared"]["people"]) == {"ada@acme.example", "no"}


def test_a_file_comes_from_standard_input_too(on_folder):
    (applied,) = on_folder("apply", "-", stdin=FILE)
    assert len(applied["changes"]) == 4


def test_a_file_with_faults_is_refused_with_all_of_them_and_its_name(on_folder, write):
    path = write(FILE.replace("limit: 1000", "limit: a lot").replace("people:", "peeple:"), "environment.yaml")
    told = on_folder("apply", path, status=1)
    lines = [line.removeprefix(f"{path}: ").split(":")[0] for line in told.splitlines()]
    assert lines == ["/budgets/main/limit", "/peeple"]


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_a_file_withdraws_is_told_by_kind_and_name(on_folder, write, dry_run):
    on_folder("apply", write(FILE, "environment.yaml"))
    fewer = FILE.replace("  ada@acme.example: {}\n", "  eve@acme.example: {}\n")
    (told,) = on_folder("apply", write(fewer, "environment.yaml"), *(["--dry-run"] if dry_run else []))
    (warning,) = told["warnings"]
    assert warning.startswith("The file names people, and of what stood there it withdraws 'ada@acme.example': a kind")
    (unnamed,) = on_folder("apply", write(FILE.partition("people:")[0], "environment.yaml"))
    assert unnamed["warnings"] == []


def test_a_reference_to_nothing_is_refused_with_its_place(on_folder, write):
    other = FILE.replace("purse: {unpaid_limit", "other: {unpaid_limit")
    assert "/budgets/main/wallet" in on_folder("apply", write(other, "environment.yaml"), status=1)


def test_a_file_about_another_environment_than_the_command_says_which_is_which(on_folder, write):
    told = on_folder("apply", write(FILE.replace("environment: dev", "environment: production"), "e.yaml"), status=1)
    assert "'production'" in told
    assert "'dev'" in told
    assert "HORARIUM_ENVIRONMENT" in told


def test_an_environment_that_is_not_there_is_created(on_folder, write, monkeypatch):
    monkeypatch.setenv("HORARIUM_ENVIRONMENT", "production")
    on_folder("show", status=1)
    (applied,) = on_folder("apply", write(FILE.replace("environment: dev", "environment: production"), "e.yaml"))
    assert applied["changes"][0]["kind"] == "environment"
    assert on_folder("show")[0]["environment_id"] == "production"


def test_a_stop_is_put_on_once_and_lifted_once(on_folder):
    assert on_folder("stop", "--because", "A drill.")[0]["changed"] is True
    assert on_folder("stop", "--because", "Again.")[0]["because"] == "A drill."
    assert on_folder("lift", "--organization")[0]["changed"] is False
    assert on_folder("lift")[0]["changed"] is True
    assert [each["kind"] for each in on_folder("events")] == ["stopped", "lifted"]


def test_a_stop_says_why(horarium, installation):
    result = horarium("authority", "stop", "--data", installation.data)
    assert result.exit_code == 2
    assert "--because" in result.stderr


def test_a_new_epoch_and_a_reset_send_what_was_enabled_to_review(installation, on_folder, published, horarium):
    installation.populate()
    enabled = horarium("enable", published["schedule_id"], "--data", installation.data)
    assert enabled.exit_code == 0, enabled.stderr
    (told,) = on_folder("epoch", "--because", "A drill.")
    assert (told["from"], told["to"], told["to_review"]) == (1, 2, 1)
    record = json.loads(horarium("get", published["schedule_id"], "--data", installation.data).stdout)
    assert record["runtime"]["state"] == "review"
    assert on_folder("reset", "--because", "A drill.", "--environment-epoch", "1", status=1)
    assert on_folder("reset", "--because", "A drill.", "--environment-epoch", "2")[0]["reset_generation"] == 2


def test_an_approval_is_of_the_head_unless_a_revision_is_named(on_folder, published):
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(days=30)
    (told,) = on_folder("approve", published["schedule_id"][:8], "--until", until.isoformat())
    assert told["reference"] == published
    assert datetime.fromisoformat(told["expires_at"]) == until
    assert set(on_folder("show")[0]["declared"]["approvals"]) == {published["digest"]}
    refused = on_folder(
        "approve", published["schedule_id"], "--until", "+1d", "--digest", "sha256:" + "0" * 64, status=1
    )
    assert "digest_conflict" in refused
    assert "passed" in on_folder("approve", published["schedule_id"], "--until", "-1d", status=1)


def test_a_collection_is_never_more_than_is_owed(on_folder):
    assert "owes 0" in on_folder("collect", "purse", "5", status=1)


def test_the_same_key_does_the_same_thing_once(on_folder):
    first, again = (on_folder("stop", "--because", "A drill.", "--key", "k")[0] for _ in range(2))
    assert (first["replayed"], again["replayed"]) == (False, True)
    assert "idempotency_key_reused" in on_folder("lift", "--key", "k", status=1)


def test_tables_for_people_tell_what_changed_and_what_is_there(installation, horarium, write):
    def table(*arguments: str) -> str:
        return horarium("authority", *arguments, "--data", installation.data, "-o", "table").stdout

    path = write(FILE, "environment.yaml")
    assert "4 changes would be made in local/dev. Nothing was changed." in table("apply", path, "--dry-run")
    assert "4 changes made in local/dev." in table("apply", path)
    assert "Nothing changes" in table("apply", path)
    changed = write(FILE.replace("limit: 1000", "limit: 2000"), "environment.yaml")
    assert "limit: 1000 → 2000" in table("apply", changed)
    assert "Warning" not in table("apply", changed)
    withdrawing = write(FILE.replace("  ada@acme.example: {}\n", ""), "fewer.yaml")
    assert "Warning: The file names people, and of what stood there it withdraws 'ada@acme.example'" in table(
        "apply", withdrawing
    )
    table("apply", changed)
    assert "since 20" not in table("show")
    table("stop", "--because", "A drill.")
    seen = table("show")
    assert "A drill." in seen
    assert "people 2, budgets 1, wallets 1" in seen


def test_yaml_is_what_was_asked_for(installation, horarium):
    seen = horarium("authority", "show", "--data", installation.data, "-o", "yaml").stdout
    assert yaml.safe_load(seen)["environment_id"] == "dev"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
        installation = Installation(tmp_path_factory.mktemp("served") / "data")
        with serving(installation.data) as address:
            yield installation, address


def test_a_server_and_a_folder_answer_alike(served, horarium, write, monkeypatch):
    installation, address = served
    scopes = ("--scope", WRITE_SCOPE, "--scope", OPERATOR_SCOPE)
    monkeypatch.setenv("HORARIUM_TOKEN", horarium("token", *scopes, "--data", installation.data).stdout.strip())
    places = {"server": ("--server", address), "folder": ("--data", installation.data)}
    path = write(FILE, "environment.yaml")
    faulty = write(FILE.replace("limit: 1000", "limit: a lot"), "faulty.yaml")

    def differs(name: str) -> bool:
        return name in {"receipt_id", "created_at", "since"}

    def plain(text: str):
        return [
            {name: value for name, value in json.loads(line).items() if not differs(name)} for line in text.splitlines()
        ]

    for arguments in (
        ["apply", path, "--dry-run"],
        ["apply", faulty],
        ["collect", "purse", "5"],
        ["lift"],
        ["show"],
        ["events"],
        ["reset", "--because", "A drill.", "--reset-generation", "9"],
    ):
        answers = {name: horarium("authority", *arguments, *where) for name, where in places.items()}
        at_server, on_folder = answers["server"], answers["folder"]
        assert at_server.exit_code == on_folder.exit_code, arguments
        assert plain(at_server.stdout) == plain(on_folder.stdout), arguments
        assert at_server.stderr == on_folder.stderr, arguments
    applied = horarium("authority", "apply", path, *places["server"])
    assert len(json.loads(applied.stdout)["changes"]) == 4
    for act in (["stop", "--because", "A drill."], ["epoch", "--because", "A drill."]):
        result = horarium("authority", *act, *places["server"])
        assert result.exit_code == 0, result.stderr
    kinds = [
        json.loads(line)["kind"] for line in horarium("authority", "events", *places["folder"]).stdout.splitlines()
    ]
    assert kinds == ["applied", "applied", "stopped", "epoch_advanced"]


def test_a_token_without_the_scope_is_told_how_to_get_one(served, horarium, monkeypatch):
    installation, address = served
    monkeypatch.setenv("HORARIUM_TOKEN", horarium("token", "--data", installation.data).stdout.strip())
    result = horarium("authority", "show", "--server", address)
    assert result.exit_code == 1
    assert f"horarium token --scope {OPERATOR_SCOPE}" in result.stderr
