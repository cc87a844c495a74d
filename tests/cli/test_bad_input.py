"""Every fault of a file is named at its place, on stderr, with status 1; and nothing is stored."""

import json

import pytest
from sqlalchemy import func, select

from horarium.catalog.tables import schedules, versions

RANGE = {"start": 0, "end": 0, "step": 1}


def rule(document) -> dict:
    return document["calendar"]["calendars"][0]


def put(*path):
    """A change that puts a value at a place of the document."""
    *way, last, value = path

    def change(document):
        for step in way:
            document = document[step]
        document[last] = value

    return change


BAD = {
    "unknown field": (put("colour", "red"), "/colour"),
    "unknown field in the policy": (put("policy", "retries", 3), "/policy/retries"),
    "unknown field in a range": (
        put("calendar", "calendars", 0, "hour", [{**RANGE, "every": 2}]),
        "/calendar/calendars/0/hour/0/every",
    ),
    "null array": (put("calendar", "intervals", None), "/calendar/intervals"),
    "null grants": (put("run", "grants", None), "/run/grants"),
    "boolean for an integer": (
        put("calendar", "calendars", 0, "hour", [{"start": True, "end": 1, "step": 1}]),
        "/calendar/calendars/0/hour/0/start",
    ),
    "boolean window": (put("policy", "catchup_window_seconds", True), "/policy/catchup_window_seconds"),
    "range reversed": (
        put("calendar", "calendars", 0, "hour", [{"start": 5, "end": 3, "step": 1}]),
        "/calendar/calendars/0/hour/0",
    ),
    "ranges overlapping": (
        put("calendar", "calendars", 0, "hour", [{"start": 1, "end": 5, "step": 1}, {"start": 5, "end": 9, "step": 1}]),
        "/calendar/calendars/0/hour/1",
    ),
    "65 ranges": (
        put("calendar", "calendars", 0, "second", [{"start": n, "end": n, "step": 1} for n in range(65)]),
        "/calendar/calendars/0/second",
    ),
    "33 rules": (
        put("calendar", "intervals", [{"every_seconds": 60 + n, "offset_seconds": 0} for n in range(32)]),
        "/calendar",
    ),
    "duplicate rules": (
        put("calendar", "intervals", [{"every_seconds": 60, "offset_seconds": 0}] * 2),
        "/calendar/intervals/1",
    ),
    "foreign zone name": (put("calendar", "timezone", "W. Europe Standard Time"), "/calendar/timezone"),
    "zone name in the wrong case": (put("calendar", "timezone", "europe/zurich"), "/calendar/timezone"),
    "timestamp without Z": (put("calendar", "start_at", "2026-01-01T00:00:00"), "/calendar/start_at"),
    "start after end": (put("calendar", "end_at", "2025-01-01T00:00:00Z"), "/calendar/end_at"),
    "window too long": (put("policy", "catchup_window_seconds", 86_401), "/policy/catchup_window_seconds"),
    "missing budget": (put("run", "usage_class", "live"), "/run/budget_id"),
}


def stored(connection) -> tuple[int, int]:
    return tuple(
        connection.execute(select(func.count()).select_from(table)).scalar_one() for table in (schedules, versions)
    )


@pytest.mark.parametrize(("change", "place"), BAD.values(), ids=BAD)
def test_a_fault_is_named_at_its_place_and_nothing_is_stored(
    horarium, installation, configuration, write, change, place
):
    change(configuration)
    path = write(configuration)
    for command in (["validate", path], ["publish", path, "--data", installation.data]):
        result = horarium(*command)
        assert result.exit_code == 1, command
        assert result.stdout == ""
        assert any(
            line.startswith(f"{path}: {place}: ") and line.endswith("]") for line in result.stderr.splitlines()
        ), result.stderr
    assert installation.write(stored) == (0, 0)


def test_all_faults_are_named_at_once(program, configuration, write):
    configuration["calendar"]["timezone"] = "Mars/Olympus"
    configuration["policy"]["overlap"] = "sometimes"
    rule(configuration)["hour"] = [{"start": 3, "end": 24, "step": 1}]
    path = write(configuration)
    result = program("validate", path)
    assert result.returncode == 1
    places = [line.removeprefix(f"{path}: ").split(":")[0] for line in result.stderr.splitlines()]
    assert places == ["/calendar/timezone", "/calendar/calendars/0/hour/0/end", "/policy/overlap"]


TEXTS = {
    "not json": ("{", "not_json"),
    "a key twice": ('{"name": "a", "name": "b"}', "duplicate_key"),
    "no object": ("[]", "not_an_object"),
    "empty": ("", "not_json"),
    "NaN": ('{"name": NaN}', "NaN"),
}


@pytest.mark.parametrize(("text", "told"), TEXTS.values(), ids=TEXTS)
def test_a_text_that_is_no_document_is_refused_in_a_sentence(horarium, write, text, told):
    result = horarium("validate", write(text))
    assert result.exit_code == 1
    assert told in result.stderr
    assert "Traceback" not in result.stderr


def test_yaml_is_read_with_places_too(horarium, write):
    result = horarium("validate", write("name: x\nname: y\n", "schedule.yaml"))
    assert result.exit_code == 1
    assert "/name: " in result.stderr
    assert "line 2" in result.stderr


def test_a_fault_of_the_notation_hides_none_of_the_configuration(horarium, write):
    result = horarium("validate", write("name: x\nname: y\npolicy: {overlap: sometimes}\n", "schedule.yaml"))
    assert "[duplicate_key]" in result.stderr
    assert "/policy/overlap: " in result.stderr


def test_equal_ranges_without_end_are_a_few_sentences(horarium, configuration, write):
    rule(configuration)["second"] = [RANGE] * 65
    told = horarium("validate", write(configuration)).stderr.splitlines()
    assert [line.rpartition(" ")[2] for line in told] == ["[too_many_ranges]", *["[ranges_overlap]"] * 4]
    assert "60 more ranges begin where an earlier one ends" in told[-1]


def test_standard_input_is_named_in_words(program):
    assert program("validate", "-", stdin="{}").stderr.startswith("standard input: ")


def test_standard_input_is_read_where_a_dash_stands(program, configuration):
    assert program("validate", "-", stdin=json.dumps(configuration)).returncode == 0


@pytest.mark.parametrize("command", ["validate", "preview", "publish"])
def test_a_file_that_is_not_there_is_one_sentence(horarium, command):
    result = horarium(command, "nowhere.yaml")
    assert result.exit_code == 1
    assert result.stderr.startswith("There is no file 'nowhere.yaml'")
    assert len(result.stderr.splitlines()) == 1


def test_faults_are_one_json_object_where_json_was_asked_for(horarium, configuration, write):
    configuration["policy"]["overlap"] = "sometimes"
    result = horarium("validate", write(configuration), "-o", "json")
    error = json.loads(result.stderr)
    assert result.exit_code == 1
    assert error["code"] == "invalid_schedule"
    assert [(fault["pointer"], fault["code"]) for fault in error["faults"]] == [("/policy/overlap", "unknown_value")]
    assert error["file"].endswith("schedule.json")


@pytest.mark.parametrize("key", ["", " ", "k ", "é", "k" * 201])
def test_a_key_that_is_none_is_refused_and_no_other_is_taken_for_it(horarium, installation, configuration, write, key):
    installation.populate()
    result = horarium("publish", write(configuration), "--key", key, "--data", installation.data)
    assert result.exit_code == 1
    assert "[invalid_idempotency_key]" in result.stderr
    assert installation.write(stored) == (0, 0)


NUMBERS = {
    "revision": ["get", "ID", "--revision"],
    "generation": ["occurrences", "ID", "--generation"],
    "reviewed generation": ["pause", "ID", "--generation"],
    "epoch": ["enable", "ID", "--environment-epoch"],
    "reset": ["retire", "ID", "--reset-generation"],
    "head": ["publish", "FILE", "--expected-revision"],
    "event": ["events", "ID", "--after"],
}


@pytest.mark.parametrize("command", NUMBERS.values(), ids=NUMBERS)
def test_a_number_beyond_all_is_a_mistake_in_the_command(horarium, command):
    result = horarium(*command, "9" * 30)
    assert result.exit_code == 2
    assert command[-1] in result.stderr
