"""`POST schedule-previews`: what a calendar would do, of any contract's timing, and nothing stored."""

import pytest

from tests.api.house import PROGRAM
from tests.control.desk import every


def preview(api, spec, **more):
    return api.post("/schedule-previews", {"spec": spec, **more})


def test_a_configuration_a_calendar_and_a_timing_are_previewed_alike(api):
    configuration = every(3600)
    specs = (configuration, configuration["calendar"], {"calendar": configuration["calendar"]})
    answers = [preview(api, spec, **{"from": "2026-12-01T00:00:00Z", "limit": 2}).json() for spec in specs]
    assert answers[0]["occurrences"] == ["2026-12-01T00:00:00Z", "2026-12-01T01:00:00Z"]
    assert answers[0]["runs_per_30_days"] == 721
    assert answers[0].pop("contract") == "schedules"
    assert [each.pop("contract") for each in answers[1:]] == [None, None]
    assert answers[1] == answers[2] == answers[0]


V0 = {
    "type": "cron",
    "spec": {"expr": "30 2 * * *", "timezone": "Europe/Zurich"},
    "target": {"workspace_id": "ws-001", "agent_id": "codex"},
}
CRON = {"minute": "30", "hour": "2", "day_of_month": "*", "month": "*", "day_of_week": "*", "timezone": "Europe/Zurich"}
OTHERS = {"v0": V0, "cron_profiles": {"config": {"cron": CRON}}, None: CRON}


@pytest.mark.parametrize(("contract", "spec"), OTHERS.items())
def test_a_cron_of_any_contract_says_which_change_of_the_clock_tells_it_from_a_calendar(api, contract, spec):
    answer = preview(api, spec, **{"from": "2027-03-27T00:00:00Z", "until": "2027-03-29T00:00:00Z"}).json()
    assert answer["occurrences"] == ["2027-03-27T01:30:00Z", "2027-03-28T01:00:00Z"]
    assert answer["notes"] == ["02:30 does not exist on 2027-03-28; runs at 03:00."]
    assert answer["contract"] == contract
    assert answer["translation"]["calendar"] is None
    assert "02:30 does not exist on 2027-03-28" in answer["translation"]["sentence"]


def test_what_is_shown_as_equal_is_accepted_and_is_due_at_the_same_instants(api):
    spec = {**V0, "spec": {"expr": "*/15 7-9 1 * 1", "timezone": "Europe/Zurich"}}
    window = {"from": "2027-01-01T00:00:00Z", "until": "2028-01-01T00:00:00Z", "limit": 1_000}
    answer = preview(api, spec, **window).json()
    again = preview(api, answer["translation"]["calendar"], **window).json()
    assert answer["translation"]["sentence"] == "Equals the canonical calendar shown."
    assert (again["occurrences"], again["count"]) == (answer["occurrences"], answer["count"])
    assert answer["count"] > 500


def test_a_fault_of_another_contract_is_told_below_spec(api):
    answer = preview(api, {**V0, "spec": {"expr": "61 2 * * *"}})
    assert answer.status_code == 422
    assert [each["pointer"] for each in answer.json()["errors"]] == ["/spec/spec/expr"]


def test_an_instant_is_previewed(api):
    answer = preview(api, {"instant": "2027-01-01T00:00:00Z"}, **{"from": "2026-12-01T00:00:00Z"}).json()
    assert (answer["occurrences"], answer["count"]) == (["2027-01-01T00:00:00Z"], 1)


def test_a_window_counts_all_and_lists_what_was_asked_for(api):
    answer = preview(
        api, every(60), **{"from": "2026-12-01T00:00:00Z", "until": "2026-12-02T00:00:00Z", "limit": 3}
    ).json()
    assert (len(answer["occurrences"]), answer["count"], answer["truncated"]) == (3, 1441, True)


def test_changes_of_the_clock_are_told(api):
    rule = {
        name: [{"start": value, "end": value, "step": 1}]
        for name, value in {"second": 0, "minute": 30, "hour": 2}.items()
    }
    days = {"day_of_month": (1, 31), "month": (1, 12), "day_of_week": (0, 6)}
    rule |= {name: [{"start": first, "end": last, "step": 1}] for name, (first, last) in days.items()}
    calendar = {
        "timezone": "Europe/Zurich",
        "calendars": [rule],
        "intervals": [],
        "start_at": "2026-01-01T00:00:00Z",
        "end_at": "2035-12-31T23:59:59Z",
    }
    answer = preview(api, calendar, **{"from": "2027-03-26T00:00:00Z", "until": "2027-03-30T00:00:00Z"}).json()
    assert any("2027-03-28" in note for note in answer["notes"])
    assert answer["timezone"] == "Europe/Zurich"


def test_a_preview_needs_no_key_stores_nothing_and_may_be_asked_by_a_key(api):
    before = api.get("/schedules?include_retired=true").json()
    assert api.post("/schedule-previews", {"spec": every(60)}, by=PROGRAM).status_code == 200
    assert api.get("/schedules?include_retired=true").json() == before


def test_all_faults_of_a_preview_are_told_at_once(api):
    calendar = {**every(60)["calendar"], "timezone": "Mars/Olympus"}
    body = {"spec": calendar, "from": "yesterday", "until": 7, "limit": 0, "form": 1}
    answer = api.post("/schedule-previews", body)
    assert answer.status_code == 422
    assert [each["pointer"] for each in answer.json()["errors"]] == [
        "/form",
        "/spec/timezone",
        "/from",
        "/until",
        "/limit",
    ]


@pytest.mark.parametrize(
    ("more", "pointer"),
    [
        ({"from": "2026-12-02T00:00:00Z", "until": "2026-12-01T00:00:00Z"}, "/until"),
        ({"from": "2026-12-02T00:00:00Z", "until": "2036-12-01T00:00:00Z"}, "/until"),
        ({"limit": 1_001}, "/limit"),
        ({"limit": True}, "/limit"),
        ({"limit": "5"}, "/limit"),
        ({"from": None}, "/from"),
        ({"from": "2026-12-02"}, "/from"),
    ],
)
def test_the_bounds_of_a_preview(api, more, pointer):
    answer = preview(api, every(60), **more)
    assert answer.status_code == 422
    assert [each["pointer"] for each in answer.json()["errors"]] == [pointer]


@pytest.mark.parametrize("start", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9999-12-15T00:00:00.5Z"])
def test_a_preview_at_the_ends_of_time_is_one(api, start):
    calendar = {**every(86_400)["calendar"], "start_at": "0001-01-01T00:00:00Z", "end_at": "9999-12-31T23:59:59Z"}
    assert preview(api, calendar, **{"from": start}).status_code == 200
