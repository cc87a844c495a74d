"""Two configurations side by side: each field that differs, in words, and none passed over."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horarium.schedule.differences import MOST, Difference, differences, settings


def document(**changes: Any) -> dict[str, Any]:
    """A configuration, with other values at some places: `policy__overlap="skip"`."""
    single = {"second": 0, "minute": 30, "hour": 7}
    rule = {name: [{"start": value, "end": value, "step": 1}] for name, value in single.items()} | {
        "day_of_month": [{"start": 1, "end": 31, "step": 1}],
        "month": [{"start": 1, "end": 12, "step": 1}],
        "day_of_week": [{"start": 1, "end": 5, "step": 1}],
    }
    made: dict[str, Any] = {
        "name": "Inbox triage",
        "calendar": {
            "timezone": "Europe/Zurich",
            "calendars": [rule],
            "intervals": [],
            "start_at": "0001-01-01T00:00:00Z",
            "end_at": "9999-12-31T23:59:59Z",
        },
        "policy": {"overlap": "skip", "catchup_window_seconds": 3_600, "pause_on_failure": False},
        "run": {
            "agent_version": "triage@1",
            "input": "mail/inbox",
            "output_target": "reports",
            "grants": ["mail.read"],
            "budget_id": None,
            "usage_class": "test_simulation",
        },
    }
    for place, value in changes.items():
        part, _, name = place.partition("__")
        if name:
            made[part][name] = value
        else:
            made[part] = value
    return made


def told(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, str, str | None, str | None]]:
    return [(each.pointer, each.what, each.old, each.new) for each in differences(old, new)]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"name": "Inbox"}, ("/name", "Name", "Inbox triage", "Inbox")),
        (
            {"policy__overlap": "buffer_one"},
            ("/policy/overlap", "When a run is due while others run", "skip it", "let one wait"),
        ),
        ({"policy__max_concurrent_runs": 3}, ("/policy/max_concurrent_runs", "Runs at once", "not said, so 1", "3")),
        (
            {"policy__catchup_window_seconds": 900},
            ("/policy/catchup_window_seconds", "How late a run may still start", "1 h", "15 min"),
        ),
        ({"policy__catchup_window_seconds": 10}, ("/policy/catchup_window_seconds", "How late a run may still start", "1 h", "10 s")),
        ({"policy__catchup_window_seconds": 5_430}, ("/policy/catchup_window_seconds", "How late a run may still start", "1 h", "1:30:30 h")),
        ({"policy__pause_on_failure": True}, ("/policy/pause_on_failure", "Review after a failed run", "no", "yes")),
        ({"run__agent_version": "triage@2"}, ("/run/agent_version", "Agent", "triage@1", "triage@2")),
        ({"run__grants": []}, ("/run/grants", "Grants", "mail.read", "none")),
        ({"run__grants": ["mail.read", "mail.send"]}, ("/run/grants", "Grants", "mail.read", "mail.read, mail.send")),
        ({"run__budget_id": "team"}, ("/run/budget_id", "Budget", "none", "team")),
        ({"run__odd": 1}, ("/run/odd", "run/odd", None, "1")),
        ({"source": {"a": [1, {"b": "x"}]}}, None),
    ],
)  # fmt: skip
def test_each_field_is_told_by_its_name(change: dict[str, Any], expected: tuple[str, ...] | None) -> None:
    found = told(document(), document(**change))
    if expected is None:
        assert found == [("/source/a/0", "source/a/0", None, "1"), ("/source/a/1/b", "source/a/1/b", None, '"x"')]
    else:
        assert found == [expected]


def test_the_same_twice_differs_in_nothing() -> None:
    assert differences(document(), document()) == []


def test_a_calendar_is_told_in_words() -> None:
    new = document()
    new["calendar"]["calendars"][0]["hour"] = [{"start": 9, "end": 9, "step": 1}]
    assert told(document(), new) == [
        ("/calendar", "When", "weekdays at 07:30 Europe/Zurich", "weekdays at 09:30 Europe/Zurich")
    ]


def test_calendars_of_the_same_words_are_told_by_their_fields() -> None:
    new = document()
    new["calendar"]["calendars"][0]["day_of_week"] = [
        {"start": 1, "end": 2, "step": 1},
        {"start": 3, "end": 5, "step": 1},
    ]
    places = [each.pointer for each in differences(document(), new)]
    assert "/calendar/calendars/0/day_of_week/1/start" in places


def test_a_zone_that_this_release_does_not_know_is_told_as_it_stands() -> None:
    old = document()
    old["calendar"]["timezone"] = "Mars/Olympus"
    assert told(old, document()) == [("/calendar/timezone", "calendar/timezone", '"Mars/Olympus"', '"Europe/Zurich"')]


def test_a_cron_stands_beside_its_words() -> None:
    def stored(hour: str) -> dict[str, Any]:
        cron = {"minute": "0", "hour": hour, "day_of_month": "*", "month": "*", "day_of_week": "1-5", "timezone": "UTC"}
        made = document(timing={"cron": cron}, contract="cron_profiles")
        del made["calendar"]
        return made

    assert told(stored("7"), stored("9")) == [
        ("/timing", "When", "weekdays at 07:00 UTC (cron 0 7 * * 1-5)", "weekdays at 09:00 UTC (cron 0 9 * * 1-5)")
    ]


def test_very_many_differences_are_counted() -> None:
    new = document(source={"config": {f"k{number}": number for number in range(500)}})
    found = differences(document(), new)
    assert len(found) == MOST + 1
    assert found[-1] == Difference(pointer="", what="400 more fields differ", old=None, new=None)


def test_settings_are_told_by_the_same_names() -> None:
    assert dict(settings(document()))["Agent"] == "triage@1"
    assert dict(settings({})) == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(["name", "calendar", "timing", "policy", "run", "source"]), JSON)
def test_whatever_was_stored_is_told_and_never_a_crash(part: str, value: object) -> None:
    new = document(**{part: copy.deepcopy(value)})
    found = differences(document(), new)
    assert all(len(each.old or "") <= 300 and len(each.new or "") <= 300 for each in found)
    assert not differences(new, copy.deepcopy(new))
