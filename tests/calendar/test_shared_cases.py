"""Facts computed elsewhere, if they are at hand beside the checkout. What we rely on stands in the other tests."""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from horarium import InvalidSchedule, parse_calendar, parse_cron
from horarium.calendar import parse_instant

CASES = Path(__file__).parents[3] / "shared" / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="there is no folder shared/cases beside the checkout")


def lines_of(name: str) -> list[dict]:
    path = CASES / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def by_id(cases: list[dict]) -> dict:
    return {"argvalues": cases, "ids": [case["id"] for case in cases]}


def written(instants) -> list[str]:
    return [instant.strftime("%Y-%m-%dT%H:%M:%SZ") for instant in instants]


@pytest.mark.parametrize("case", **by_id(lines_of("calendar_random.jsonl")))
def test_a_random_calendar_selects_what_the_scan_found(case):
    calendar = parse_calendar(case["calendar"])
    first, last = datetime.fromisoformat(case["from"]), datetime.fromisoformat(case["until"])
    found = written(calendar.between(first, last))
    assert found[:40] == case["first"]
    assert found[-3:] == case["last"]
    assert len(found) == case["count"] == calendar.count(first, last)
    assert hashlib.sha256("\n".join(found).encode()).hexdigest() == case["sha256"]


@pytest.mark.parametrize("case", **by_id(lines_of("calendar_reports.jsonl")))
def test_a_reported_calendar_selects_what_it_should(case):
    calendar = parse_calendar(case["calendar"])
    first, last = datetime.fromisoformat(case["from"]), datetime.fromisoformat(case["until"])
    assert written(calendar.between(first, last)) == case["expected"]
    assert calendar.count(first, last) == len(case["expected"])


@pytest.mark.parametrize("case", **by_id(lines_of("cron_reports.jsonl")))
def test_a_reported_cron_selects_what_it_should(case):
    calendar = parse_cron(case["cron"], case["timezone"])
    instant: datetime | None = datetime.fromisoformat(case["after"])
    found = []
    for _ in range(len(case["expected"]) + ("until" in case)):
        instant = calendar.after(instant)
        if instant is None or ("until" in case and instant > datetime.fromisoformat(case["until"])):
            break
        found.append(instant)
    assert written(found) == case["expected"]


SCENARIOS = {case["id"]: case for case in lines_of("scenarios.jsonl")}
EVERY = {
    "second": (0, 0),
    "minute": (0, 0),
    "hour": (0, 0),
    "day_of_month": (1, 31),
    "month": (1, 12),
    "day_of_week": (0, 6),
}


def completed(calendar: dict) -> dict:
    """The scenarios write a calendar in short; this is the canonical form of what they mean."""
    rules = [
        {
            name: [
                {"start": part["start"], "end": part.get("end", part["start"]), "step": part.get("step", 1)}
                for part in rule[name]
            ]
            if name in rule
            else [{"start": low, "end": high, "step": 1}]
            for name, (low, high) in EVERY.items()
        }
        | ({"year": rule["year"]} if "year" in rule else {})
        for rule in calendar.get("calendars", [])
    ]
    intervals = [{"offset_seconds": 0} | interval for interval in calendar.get("intervals", [])]
    bounds = {"start_at": "1970-01-01T00:00:00Z", "end_at": "9999-12-31T23:59:59Z"}
    given = {name: calendar[name] for name in bounds if name in calendar}
    return {"timezone": calendar["timezone"], "calendars": rules, "intervals": intervals} | bounds | given


@pytest.mark.parametrize(
    "name",
    [
        "cal-feb-29-sunday",
        "cal-quarterly-8th-wednesday",
        "interval-start-at-half-second",
        "calendar-start-at-half-second",
        "bound-2100",
    ],
)
def test_a_calendar_of_a_scenario_selects_what_it_should(name):
    case = SCENARIOS[name]
    calendar = parse_calendar(completed(case["input"]["calendar"]))
    after, until = datetime.fromisoformat(case["input"]["after"]), datetime.fromisoformat(case["input"]["until"])
    found = list(calendar.between(after + timedelta(microseconds=1), until))
    assert written(found) == case["expected"]["times_utc"]


def test_the_refused_crons_of_the_scenarios_are_refused():
    for name in ("cron-macros-and-tz-prefix", "cron-out-of-range", "cron-empty-and-huge"):
        for text in SCENARIOS[name]["input"]["crons"]:
            with pytest.raises(InvalidSchedule):
                parse_cron(text, "UTC")


def test_the_zone_names_of_the_scenario_are_told_apart():
    names = SCENARIOS["tz-name-validation"]["input"]
    for name in names["timezones_accepted"]:
        assert parse_cron("0 0 * * *", name).timezone == name
    for name in names["timezones_refused"]:
        with pytest.raises(InvalidSchedule) as refused:
            parse_cron("0 0 * * *", name)
        assert [fault.pointer for fault in refused.value.faults] == ["/timezone"]


def test_the_timestamps_of_the_scenario_are_told_apart():
    given = SCENARIOS["ts-formats"]["input"]
    for text, expected in given["run_at_accepted"].items():
        instant = datetime.fromisoformat(expected)
        whole = instant.replace(microsecond=0) + timedelta(seconds=instant.microsecond > 0)
        assert parse_instant(text).after(datetime(2020, 1, 1, tzinfo=UTC)) == whole
    for text in given["run_at_refused"]:
        with pytest.raises(InvalidSchedule):
            parse_instant(text)


def test_the_sparse_questions_of_the_scenario_are_answered():
    case = SCENARIOS["perf-sparse-next"]
    after = datetime.fromisoformat(case["input"]["after"])
    for text, expected in case["expected"]["values_utc"].items():
        *cron, zone = text.split()
        if len(cron) == 5 and "Feb" not in cron:
            assert written([parse_cron(" ".join(cron), zone).after(after)]) == [expected]


@pytest.mark.parametrize("name", ["interval-bad-values", "cal-step-zero-negative", "cal-empty-field-list"])
def test_the_bad_values_of_the_scenarios_are_each_refused(name):
    given = SCENARIOS[name]["input"]
    calendars = given.get(
        "calendars", [{"timezone": "UTC", "intervals": [interval]} for interval in given.get("intervals", [])]
    )
    assert calendars
    for calendar in calendars:
        with pytest.raises(InvalidSchedule):
            parse_calendar(completed(calendar))
