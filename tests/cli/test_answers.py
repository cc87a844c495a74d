"""The forms of an answer, and what a person sees of a mistake."""

import importlib.metadata
import json

import pytest
import yaml

from starter.cli.printing import printable


def test_a_preview_follows_the_wall_clock_and_tells_what_the_clock_change_does(horarium, configuration, write):
    path = write(configuration)
    window = ("--from", "2027-03-27T00:00:00Z", "--until", "2027-03-29T23:59:59Z")
    answer = json.loads(horarium("preview", path, *window, "-o", "json").stdout)
    assert answer["occurrences"] == ["2027-03-27T01:30:00Z", "2027-03-29T00:30:00Z"]
    assert answer["count"] == 2
    assert answer["notes"] == ["02:30 does not exist on 2027-03-28; no run."]
    assert answer["truncated"] is False
    assert answer["tzdata"]


def test_a_preview_shows_a_number_of_instants_from_a_time_on(horarium, configuration, write):
    path = write(configuration)
    answer = json.loads(horarium("preview", path, "--from", "2027-01-01", "--count", "3", "-o", "json").stdout)
    assert answer["occurrences"] == [f"2027-01-0{day}T01:30:00Z" for day in (1, 2, 3)]
    assert len(json.loads(horarium("preview", path).stdout)["occurrences"]) == 10


def test_a_preview_counts_all_and_says_where_its_list_was_cut(horarium, configuration, write):
    configuration["calendar"]["intervals"] = [{"every_seconds": 1, "offset_seconds": 0}]
    path = write(configuration)
    window = ("--from", "2027-01-01", "--until", "2027-01-03")
    answer = json.loads(horarium("preview", path, *window, "-o", "json").stdout)
    assert (answer["count"], len(answer["occurrences"]), answer["truncated"]) == (172_801, 100_000, True)
    table = horarium("preview", path, *window, "-o", "table").stdout
    assert "172801 due, of which the first 1000 are shown." in table


def test_a_preview_takes_a_calendar_or_another_timing_alone(horarium, configuration, write):
    window = ("--from", "2027-01-01", "--until", "2027-01-02", "-o", "json")
    calendar = write(configuration["calendar"])
    assert json.loads(horarium("preview", calendar, *window).stdout)["occurrences"] == ["2027-01-01T01:30:00Z"]
    cron = {"minute": "0", "hour": "7", "day_of_month": "*", "month": "*", "day_of_week": "*", "timezone": "UTC"}
    timing = write({"cron": cron}, "cron.json")
    assert json.loads(horarium("preview", timing, *window).stdout)["occurrences"] == ["2027-01-01T07:00:00Z"]


def test_a_calendar_that_can_never_match_is_a_warning(horarium, configuration, write):
    rule = configuration["calendar"]["calendars"][0]
    rule["day_of_month"] = [{"start": 30, "end": 30, "step": 1}]
    rule["month"] = [{"start": 2, "end": 2, "step": 1}]
    path = write(configuration)
    sentence = "The calendar can never select an instant within its bounds."
    assert json.loads(horarium("preview", path).stdout)["notes"] == [sentence]
    assert json.loads(horarium("validate", path).stdout)["warnings"] == [sentence]


def test_a_window_of_more_than_a_century_is_refused(horarium, configuration, write):
    result = horarium("preview", write(configuration), "--from", "2027-01-01", "--until", "2200-01-01")
    assert result.exit_code == 1
    assert "[invalid_window]" in result.stderr


def test_one_answer_has_three_forms(horarium, configuration, write):
    path = write(configuration)
    as_json = json.loads(horarium("validate", path, "-o", "json").stdout)
    as_yaml = yaml.safe_load(horarium("validate", path, "-o", "yaml").stdout)
    in_a_pipe = horarium("validate", path).stdout
    assert as_json == as_yaml == json.loads(in_a_pipe)
    assert in_a_pipe.count("\n") == 1
    table = horarium("validate", path, "-o", "table").stdout
    assert "Europe/Zurich" in table
    assert not table.startswith("{")


def test_names_from_outside_cannot_steer_a_terminal(horarium, installation, configuration, write):
    configuration["name"] = "[bold]all[/bold] is [link=x]well[/link]"
    horarium("publish", write(configuration), "--data", installation.data)
    assert (
        "[bold]all[/bold] is [link=x]well[/link]" in horarium("list", "--data", installation.data, "-o", "table").stdout
    )
    assert printable("a\x1b[2Jb\nc\u202ed\x9b") == "a�[2Jb c�d�"


MISTAKES = {
    "no such command": ["explode"],
    "no such option": ["list", "--colour"],
    "no file": ["validate"],
    "naive time": ["preview", "x", "--from", "2027-01-01T00:00:00"],
    "time that ends before it begins": ["preview", "x", "--from", "2027-01-02", "--until", "2027-01-01"],
    "page too large": ["list", "--limit", "51"],
    "no such disposition": ["occurrences", "abcdef", "--disposition", "eaten"],
    "no such form": ["list", "-o", "xml"],
    "no such worker": ["worker", "bees"],
    "two agent modules": ["worker", "agents", "a", "b"],
    "negative grace": ["audit", "--grace", "-1"],
}


@pytest.mark.parametrize("arguments", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_the_command_is_status_2_with_nothing_on_stdout(horarium, arguments):
    result = horarium(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Error" in result.stderr or "Usage" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["occurrences", "abcdef", "--disposition", "suceeded"], "'suceeded' is unknown. Did you mean 'succeeded'?"),
        (["occurrences", "abcdef", "--disposition", "x"], "'x' is unknown. It is one of buffered, staged,"),
        (["list", "-o", "jsn"], "'jsn' is unknown. Did you mean 'json'?"),
    ],
)
def test_a_name_that_is_misspelt_is_told_with_the_one_that_was_meant(horarium, arguments, sentence):
    assert sentence in " ".join(horarium(*arguments).stderr.split())


def test_the_version_is_told(horarium):
    assert horarium("--version").stdout == f"horarium {importlib.metadata.version('horarium')}\n"


@pytest.mark.parametrize(
    "arguments", [["list"], ["audit"], ["setup", "--no-temporal"], ["dev", "--temporal-port", "0"]]
)
def test_a_file_in_place_of_the_folder_is_said(program, tmp_path, arguments):
    (tmp_path / "file").touch()
    result = program(*arguments, "--data", "file")
    assert result.returncode == 1
    assert f"{str(tmp_path / 'file')!r} is a file" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_naive_time_is_refused_with_an_example(horarium):
    result = horarium("preview", "x", "--until", "2027-01-01 07:30")
    assert "names no zone" in result.stderr
    assert "2027-03-28T07:30:00Z" in result.stderr


NEEDS_AN_INSTALLATION = {
    "list": ["list"],
    "get": ["get", "abcdef"],
    "enable": ["enable", "abcdef"],
    "occurrences": ["occurrences", "abcdef"],
    "events": ["events", "abcdef"],
    "audit": ["audit"],
    "worker": ["worker"],
    "controller": ["controller"],
    "db upgrade": ["db", "upgrade"],
}


@pytest.mark.parametrize("arguments", NEEDS_AN_INSTALLATION.values(), ids=NEEDS_AN_INSTALLATION)
def test_a_folder_without_an_installation_is_told_and_not_made(program, tmp_path, arguments):
    result = program(*arguments, "--data", "nowhere")
    assert result.returncode == 1
    assert "`horarium dev`" in result.stderr
    assert "`horarium setup`" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "nowhere").exists()


BROKEN = {
    "no database": (
        "catalog.db",
        "this is a text and was never a database, whatever it is called",
        "is no SQLite database",
    ),
    "no tables": ("catalog.db", "", "horarium db upgrade"),
}


@pytest.mark.parametrize(("name", "content", "told"), BROKEN.values(), ids=BROKEN)
def test_a_catalog_that_is_none_is_told_in_a_sentence(horarium, tmp_path, name, content, told):
    (tmp_path / name).write_text(content)
    result = horarium("list", "--data", str(tmp_path))
    assert result.exit_code == 1
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("url", ["nonsense", "unheard-of://localhost/x"])
def test_a_catalog_url_that_cannot_be_used_is_told_in_a_sentence(program, url):
    result = program("list", HORARIUM_CATALOG=url)
    assert result.returncode == 1
    assert "postgresql+psycopg://" in result.stderr
    assert "Traceback" not in result.stderr
