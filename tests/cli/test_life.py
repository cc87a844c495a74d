"""The life of a schedule at the command line, without any process that carries it."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from sqlalchemy import delete

from horarium.catalog.schedules import change_activation, find_activation, require_schedule
from horarium.catalog.tables import entries
from horarium.schedule.identity import schedule_key

from .conftest import SCOPE


def lines(result) -> list[dict]:
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def here(installation, horarium):
    """Call a command on the installation and expect it to succeed; the answer is what a pipe is given."""

    def call(*arguments: str) -> list[dict]:
        result = horarium(*arguments, "--data", installation.data)
        assert result.exit_code == 0, result.stderr
        return lines(result)

    return call


@pytest.fixture
def published(here, configuration, write) -> str:
    return here("publish", write(configuration))[0]["schedule_id"]


def test_publishing_makes_a_new_schedule_and_enables_nothing(here, configuration, write):
    receipt = here("publish", write(configuration))[0]
    assert receipt["reference"]["revision"] == 1
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", receipt["reference"]["digest"])
    record = here("get", receipt["schedule_id"])[0]
    assert record["configuration"] == configuration
    assert record["activation"] is None
    assert record["runtime"] == {"state": "paused", "generation": 0}


def test_the_second_version_needs_the_schedule_and_may_name_the_head(
    here, horarium, installation, published, write, configuration
):
    configuration["name"] = "Inbox triage, later"
    path = write(configuration)
    wrong = horarium("publish", path, "--schedule", published, "--expected-revision", "0", "--data", installation.data)
    assert wrong.exit_code == 1
    assert "[revision_conflict]" in wrong.stderr
    assert here("publish", path, "--schedule", published, "--expected-revision", "1")[0]["reference"]["revision"] == 2
    assert here("get", published)[0]["configuration"]["name"] == "Inbox triage, later"
    assert here("get", published, "--revision", "1")[0]["configuration"]["name"] == "Inbox triage"


def test_enabling_without_workers_is_refused_with_the_next_step(horarium, installation, published):
    result = horarium("enable", published, "--data", installation.data)
    assert result.exit_code == 1
    assert "[execution_unavailable]" in result.stderr
    assert "horarium worker" in result.stderr


def test_enabling_tells_people_each_reason_with_its_code_and_where_things_are_expected(
    horarium, installation, published
):
    installation.populate()
    content = installation.settings.content
    (content.inputs / "inbox.json").unlink()
    (content.outputs / "reports").rmdir()
    result = horarium("enable", published, "--data", installation.data)
    assert result.exit_code == 1
    _, no_input, no_output, _ = result.stderr.splitlines()
    assert "[input_unreadable]" in no_input
    assert "data/content/local/dev/inputs/inbox" in no_input
    assert "[output_missing]" in no_output
    assert "data/content/local/dev/outputs/reports/" in no_output


def test_publishing_the_head_again_is_done_with_a_warning_and_so_is_publishing_beside_an_enabled_one(
    here, installation, published, configuration, write
):
    installation.populate()
    path = write(configuration)
    (again,) = here("publish", path, "--schedule", published)
    assert again["reference"]["revision"] == 2
    (same,) = again["warnings"]
    assert "same configuration as revision 1" in same
    here("enable", published, "--revision", "1")
    configuration["name"] = "Another"
    (beside,) = here("publish", write(configuration), "--schedule", published)[0]["warnings"]
    assert beside == "Revision 1 stays enabled until another one is."


def test_the_beginning_of_an_id_that_is_too_short_says_how_long_it_must_be(horarium, installation):
    for command in (["get", "7b0"], ["audit", "7b0c7"]):
        result = horarium(*command, "--data", installation.data)
        assert result.exit_code == 1
        assert "too short for the beginning of a schedule id: at least 6 characters" in result.stderr


def test_enabling_names_everything_that_is_missing(horarium, installation, published):
    installation.populate()
    (installation.settings.content.inputs / "inbox.json").unlink()
    (installation.settings.content.outputs / "reports").rmdir()
    result = horarium("enable", published, "--data", installation.data, "-o", "json")
    error = json.loads(result.stderr)
    assert error["code"] == "input_unreadable"
    assert "'inbox'" in error["sentence"]
    assert "'reports'" in error["sentence"]


def test_a_schedule_is_enabled_paused_enabled_again_and_retired(here, horarium, installation, published):
    installation.populate()
    enabled = here("enable", published, "--revision", "1", "--generation", "0")[0]
    assert (enabled["activation"]["generation"], enabled["activation"]["enabled"]) == (1, True)
    assert enabled["runtime"] == {"state": "pending", "generation": 1}
    assert enabled["execution_ready"] is True
    assert here("list")[0]["next_due"] is not None
    paused = here("pause", published[:8])[0]
    assert (paused["activation"]["generation"], paused["activation"]["enabled"]) == (2, False)
    assert paused["runtime"] == {"state": "stopping", "generation": 2}
    again = horarium("pause", published, "--data", installation.data)
    assert again.exit_code == 1
    assert "[already_paused]" in again.stderr
    stale = horarium("enable", published, "--generation", "1", "--data", installation.data)
    assert "[generation_conflict]" in stale.stderr
    here("enable", published, "--digest", enabled["reference"]["digest"])
    assert here("retire", published)[0]["retired"] is True
    assert here("list") == []
    assert [each["schedule_id"] for each in here("list", "--include-retired")] == [published]
    assert [each["kind"] for each in here("events", published)] == [
        "published",
        "enabled",
        "paused",
        "enabled",
        "retired",
    ]
    final = horarium("enable", published, "--data", installation.data)
    assert "[schedule_retired]" in final.stderr
    assert here("audit", published)[0]["clean"] is True


def test_the_wrong_digest_changes_nothing(horarium, here, installation, published):
    installation.populate()
    result = horarium("enable", published, "--digest", "sha256:" + "0" * 64, "--data", installation.data)
    assert (result.exit_code, "[digest_conflict]" in result.stderr) == (1, True)
    assert here("get", published)[0]["activation"] is None


def ledger_of_an_hour(connection, schedule_id: str, *, leave_out: int | None = None):
    """An activation that began an hour ago and was due each minute since, half of it skipped."""
    schedule = require_schedule(connection, schedule_key(SCOPE, schedule_id))
    start = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(hours=1)
    for minute in range(1, 61):
        if minute == leave_out:
            continue
        due = start + timedelta(minutes=minute)
        odd = minute % 2
        connection.execute(
            entries.insert().values(
                schedule=schedule.row,
                generation=1,
                trigger="schedule",
                first_at=due,
                last_at=due,
                count=1,
                disposition="succeeded" if odd else "skipped",
                reason=None if odd else "overlap",
                closed_at=due,
            )
        )
    activation = find_activation(connection, schedule, 1)
    change_activation(connection, activation, activated_at=start, accounted_through=start + timedelta(hours=1))
    return start


@pytest.fixture
def each_minute(here, installation, configuration, write) -> str:
    """An enabled schedule that is due each minute."""
    installation.populate()
    configuration["calendar"]["calendars"] = []
    configuration["calendar"]["intervals"] = [{"every_seconds": 60, "offset_seconds": 0}]
    schedule_id = here("publish", write(configuration))[0]["schedule_id"]
    here("enable", schedule_id)
    return schedule_id


def test_occurrences_are_told_by_time_disposition_and_number(here, horarium, installation, each_minute):
    start = installation.write(ledger_of_an_hour, each_minute)
    everything = here("occurrences", each_minute)
    assert len(everything) == 60
    assert everything == sorted(everything, key=lambda row: row["first_at"])
    skipped = here("occurrences", each_minute, "--disposition", "skipped")
    assert len(skipped) == 30
    assert {row["sentence"] for row in skipped} == {"Other runs of this schedule held every slot when its turn came."}
    since, until = (start + timedelta(minutes=minute) for minute in (10, 12))
    some = here("occurrences", each_minute, "--from", since.isoformat(), "--until", until.isoformat())
    assert len(some) == 3
    newest = horarium("occurrences", each_minute, "--limit", "2", "--data", installation.data)
    assert [row["first_at"] for row in lines(newest)] == [row["first_at"] for row in everything[-2:]]
    assert "Only the newest 2" in newest.stderr


@pytest.mark.parametrize("command", ["get", "list", "occurrences", "events", "audit"])
def test_yaml_and_json_tell_the_same(horarium, installation, each_minute, command):
    installation.write(ledger_of_an_hour, each_minute)
    arguments = [command] if command == "list" else [command, each_minute]
    as_json, as_yaml = (
        horarium(*arguments, "--data", installation.data, "-o", form).stdout for form in ("json", "yaml")
    )
    told, again = json.loads(as_json), yaml.safe_load(as_yaml)
    if command == "audit":
        assert told.pop("at") <= again.pop("at")
    assert told == again


def test_an_audit_of_an_honest_ledger_exits_0_and_sums_up(horarium, installation, each_minute):
    installation.write(ledger_of_an_hour, each_minute)
    result = horarium("audit", "--data", installation.data, "-o", "table")
    assert result.exit_code == 0
    assert "30 skipped + 30 succeeded" in result.stdout
    assert "Every due instant has exactly one entry." in result.stdout


def test_an_audit_that_finds_something_exits_1_and_names_it(horarium, installation, each_minute):
    start = installation.write(ledger_of_an_hour, each_minute, leave_out=30)
    lost = f"{start + timedelta(minutes=30):%Y-%m-%dT%H:%M:%SZ}"
    result = horarium("audit", each_minute, "--data", installation.data, "-o", "table")
    assert result.exit_code == 1
    assert f"MISSING: {each_minute}, generation 1: 1 due instant is in no entry: {lost}." in result.stdout
    assert "1 missing" in result.stdout
    answer = json.loads(horarium("audit", "--data", installation.data, "-o", "json").stdout)
    assert (answer["clean"], answer["missing"]) == (False, 1)
    assert answer["schedules"][0]["problems"][0]["first_at"] == lost


def test_the_grace_of_an_audit_can_be_chosen(horarium, installation, each_minute):
    def lose_the_end(connection):
        start = ledger_of_an_hour(connection, each_minute)
        schedule = require_schedule(connection, schedule_key(SCOPE, each_minute))
        last = start + timedelta(minutes=30)
        connection.execute(delete(entries).where(entries.c.first_at > last))
        change_activation(connection, find_activation(connection, schedule, 1), accounted_through=last)

    installation.write(lose_the_end)
    assert horarium("audit", "--data", installation.data).exit_code == 1
    assert horarium("audit", "--grace", "7200", "--data", installation.data).exit_code == 0


def test_a_schedule_is_named_by_the_beginning_of_its_id_where_only_one_begins_so(
    horarium, here, installation, configuration, write
):
    path = write(configuration)
    alike = [f"abcdef00-0000-4000-8000-00000000000{number}" for number in (1, 2)]
    for each in [*alike, "abcdee00-0000-4000-8000-000000000001"]:
        here("publish", path, "--schedule", each)
    assert here("get", "ABCDEE")[0]["schedule_id"] == "abcdee00-0000-4000-8000-000000000001"
    several = horarium("get", "abcdef", "--data", installation.data)
    assert several.exit_code == 1
    assert "[ambiguous_schedule_id]" in several.stderr
    assert all(each in several.stderr for each in alike)
    for written, code in (
        ("999999", "schedule_not_found"),
        ("abcde", "invalid_schedule_id"),
        ("nonsense", "invalid_schedule_id"),
    ):
        result = horarium("get", written, "--data", installation.data)
        assert (result.exit_code, f"[{code}]" in result.stderr) == (1, True), result.stderr


def test_the_directory_is_walked_page_by_page(here, horarium, installation, configuration, write):
    path = write(configuration)
    ids = [f"0000000{number}-0000-4000-8000-000000000000" for number in range(5)]
    for each in ids:
        here("publish", path, "--schedule", each)
    seen, after = [], []
    while True:
        page = json.loads(horarium("list", "--limit", "2", *after, "--data", installation.data, "-o", "json").stdout)
        seen += [each["schedule_id"] for each in page["schedules"]]
        if page["next_cursor"] is None:
            break
        after = ["--after", page["next_cursor"]]
    assert seen == ids
