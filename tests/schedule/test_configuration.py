"""A configuration is taken whole or refused with every fault and its place."""

import copy
import dataclasses
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horarium.errors import Fault, InvalidSchedule
from horarium.schedule.canonical import digest
from horarium.schedule.configuration import RunRequest, UsageClass, parse_configuration
from horarium.schedule.policy import Overlap, Policy

EVERY_HOUR = {
    "timezone": "Europe/Zurich",
    "calendars": [],
    "intervals": [{"every_seconds": 3600, "offset_seconds": 0}],
    "start_at": "2026-01-01T00:00:00Z",
    "end_at": "2027-01-01T00:00:00Z",
}
POLICY = {"overlap": "skip", "catchup_window_seconds": 3600, "pause_on_failure": True}
RUN = {
    "agent_version": "ingestion-check@1",
    "input": "ingestion/manifest",
    "output_target": "reports",
    "grants": ["drive:read", "mail:send"],
    "budget_id": "budget-7",
    "usage_class": "live",
}
DAILY: dict[str, Any] = {"name": "Daily review", "calendar": EVERY_HOUR, "policy": POLICY, "run": RUN}


def changed(**changes: object) -> dict[str, Any]:
    """The example with some members replaced; `policy__overlap` is the member `overlap` of `policy`."""
    document = copy.deepcopy(DAILY)
    for path, value in changes.items():
        *parents, last = path.split("__")
        target = document
        for parent in parents:
            target = target[parent]
        if value is ...:
            del target[last]
        else:
            target[last] = value
    return document


def refusal(document: object) -> tuple[Fault, ...]:
    with pytest.raises(InvalidSchedule) as caught:
        parse_configuration(document)
    return caught.value.faults


def test_a_configuration_becomes_a_value():
    configuration = parse_configuration(DAILY)
    assert configuration.name == "Daily review"
    assert configuration.timing == {"calendar": EVERY_HOUR}
    assert configuration.calendar.after(datetime(2026, 6, 1, tzinfo=UTC)) == datetime(2026, 6, 1, 1, tzinfo=UTC)
    assert configuration.policy == Policy(
        overlap=Overlap.SKIP, catchup_window=timedelta(hours=1), pause_on_failure=True, max_concurrent_runs=1
    )
    assert configuration.run == RunRequest(
        agent_version="ingestion-check@1",
        input="ingestion/manifest",
        output_target="reports",
        grants=("drive:read", "mail:send"),
        budget_id="budget-7",
        usage_class=UsageClass.LIVE,
    )


def test_later_changes_to_the_document_do_not_reach_the_value():
    document = copy.deepcopy(DAILY)
    configuration = parse_configuration(document)
    document["calendar"]["intervals"].clear()
    assert configuration.timing == {"calendar": EVERY_HOUR}
    with pytest.raises(dataclasses.FrozenInstanceError):
        configuration.name = "Another"  # type: ignore[misc] # that is the test


@pytest.mark.parametrize(
    "document",
    [
        changed(name="x" * 200),
        changed(name="Tägliche Prüfung · 日次 \U0001f469\u200d\U0001f4bb"),
        changed(policy__catchup_window_seconds=10),
        changed(policy__catchup_window_seconds=86_400),
        changed(policy__max_concurrent_runs=1_000),
        changed(policy__overlap="buffer_one"),
        changed(policy__overlap="buffer_all"),
        changed(policy__overlap="allow"),
        changed(run__grants=[]),
        changed(run__grants=[f"grant-{number}" for number in range(64)]),
        changed(run__budget_id=None, run__usage_class="test_simulation"),
        changed(run__usage_class="test_simulation"),
        changed(run__usage_class="test_compute"),
        changed(run__input="a" * 200),
        changed(run__input="https://store.example/a.b_c-d@2"),
    ],
)
def test_what_lies_on_a_bound_is_accepted(document):
    assert parse_configuration(document).timing == {"calendar": EVERY_HOUR}


@pytest.mark.parametrize(
    ("document", "place", "code"),
    [
        (None, "", "not_an_object"),
        ([DAILY], "", "not_an_object"),
        (changed(name=...), "/name", "missing_field"),
        (changed(name=None), "/name", "not_text"),
        (changed(name=""), "/name", "blank"),
        (changed(name=" \u2003 "), "/name", "blank"),
        (changed(name="x" * 201), "/name", "too_long"),
        (changed(name="two\nlines"), "/name", "not_printable"),
        (changed(name="nul\x00"), "/name", "not_printable"),
        (changed(name="half \ud83d"), "/name", "not_printable"),
        (changed(name="revers\u202ed"), "/name", "not_printable"),
        (changed(name="line\u2028separator"), "/name", "not_printable"),
        (changed(description="why"), "/description", "unknown_field"),
        (changed(calendar=...), "/calendar", "missing_field"),
        (changed(calendar=None), "/calendar", "not_an_object"),
        (changed(calendar__calendars=None), "/calendar/calendars", "null_array"),
        (changed(calendar__timezone="europe/zurich"), "/calendar/timezone", "unknown_timezone"),
        (
            changed(calendar__intervals=[{"every_seconds": True, "offset_seconds": 0}]),
            "/calendar/intervals/0/every_seconds",
            "not_an_integer",
        ),
        (changed(cron="* * * * *"), "/cron", "unknown_field"),
        (changed(policy=...), "/policy", "missing_field"),
        (changed(policy="skip"), "/policy", "not_an_object"),
        (changed(policy__overlap=...), "/policy/overlap", "missing_field"),
        (changed(policy__overlap="Skip"), "/policy/overlap", "unknown_value"),
        (changed(policy__overlap=None), "/policy/overlap", "unknown_value"),
        (changed(policy__catchup_window_seconds=...), "/policy/catchup_window_seconds", "missing_field"),
        (changed(policy__catchup_window_seconds=9), "/policy/catchup_window_seconds", "out_of_range"),
        (changed(policy__catchup_window_seconds=86_401), "/policy/catchup_window_seconds", "out_of_range"),
        (changed(policy__catchup_window_seconds=60.0), "/policy/catchup_window_seconds", "not_an_integer"),
        (changed(policy__catchup_window_seconds="60"), "/policy/catchup_window_seconds", "not_an_integer"),
        (changed(policy__catchup_window_seconds=True), "/policy/catchup_window_seconds", "not_an_integer"),
        pytest.param(
            changed(policy__catchup_window_seconds=10**5_000),
            "/policy/catchup_window_seconds",
            "out_of_range",
            id="huge",
        ),
        (changed(policy__pause_on_failure=...), "/policy/pause_on_failure", "missing_field"),
        (changed(policy__pause_on_failure=1), "/policy/pause_on_failure", "not_a_boolean"),
        (changed(policy__pause_on_failure="true"), "/policy/pause_on_failure", "not_a_boolean"),
        (changed(policy__max_concurrent_runs=0), "/policy/max_concurrent_runs", "out_of_range"),
        (changed(policy__max_concurrent_runs=1_001), "/policy/max_concurrent_runs", "out_of_range"),
        (changed(policy__max_concurrent_runs=None), "/policy/max_concurrent_runs", "not_an_integer"),
        (
            changed(policy={**POLICY, "overlap": "allow", "max_concurrent_runs": 1}),
            "/policy/max_concurrent_runs",
            "contradiction",
        ),
        (changed(run=...), "/run", "missing_field"),
        (changed(run=[]), "/run", "not_an_object"),
        (changed(run__agent_version=...), "/run/agent_version", "missing_field"),
        (changed(run__agent_version=""), "/run/agent_version", "not_a_reference"),
        (changed(run__agent_version=1), "/run/agent_version", "not_a_reference"),
        (changed(run__input="a b"), "/run/input", "not_a_reference"),
        (changed(run__input="a\n"), "/run/input", "not_a_reference"),
        (changed(run__input="/etc/passwd"), "/run/input", "not_a_reference"),
        (changed(run__input="a/../b"), "/run/input", "not_a_reference"),
        (changed(run__input="über"), "/run/input", "not_a_reference"),
        (changed(run__input="a" * 201), "/run/input", "not_a_reference"),
        (changed(run__output_target=None), "/run/output_target", "not_a_reference"),
        (changed(run__grants=...), "/run/grants", "missing_field"),
        (changed(run__grants=None), "/run/grants", "null_array"),
        (changed(run__grants="drive:read"), "/run/grants", "not_an_array"),
        (changed(run__grants=["a", "b", "a"]), "/run/grants/2", "duplicate_grant"),
        (changed(run__grants=["a", {}]), "/run/grants/1", "not_a_reference"),
        (changed(run__grants=[f"grant-{number}" for number in range(65)]), "/run/grants", "too_many_grants"),
        (changed(run__budget_id=...), "/run/budget_id", "missing_field"),
        (changed(run__budget_id=None), "/run/budget_id", "budget_required"),
        (changed(run__budget_id=None, run__usage_class="test_compute"), "/run/budget_id", "budget_required"),
        (changed(run__budget_id=""), "/run/budget_id", "not_a_reference"),
        (changed(run__usage_class=...), "/run/usage_class", "missing_field"),
        (changed(run__usage_class="LIVE"), "/run/usage_class", "unknown_value"),
        (changed(run__token="secret"), "/run/token", "unknown_field"),
    ],
)
def test_a_fault_is_told_with_its_place_and_code_and_alone(document, place, code):
    assert [(fault.pointer, fault.code) for fault in refusal(document)] == [(place, code)]


@pytest.mark.parametrize(
    ("document", "advice"),
    [
        (changed(policy=POLICY | {"catch_up_window_seconds": 60}), "Did you mean 'catchup_window_seconds'?"),
        (changed(policy__overlap="buffer-one"), 'Did you mean "buffer_one"?'),
        (changed(run__usage_class="Test simulation"), 'Did you mean "test_simulation"?'),
        (changed(policy__catchup_window_seconds="60"), "an integer from 10 to 86,400, without quotes"),
        (changed(run__grants=None), "Write [] for none"),
        (changed(name="two\nlines"), "character 4 is U+000A"),
        (changed(run__grants=["a", "a"]), "stands at /run/grants/0 already"),
    ],
)
def test_a_fault_says_what_to_write_instead(document, advice):
    (fault,) = refusal(document)
    assert advice in fault.sentence


def test_all_faults_are_told_at_once_in_the_order_of_the_parts():
    document = {
        "name": "",
        "calender": EVERY_HOUR,
        "policy": {"overlap": "queue", "catchup_window_seconds": 5, "pause_on_failure": None, "extra": 1},
        "run": {"agent_version": "a b", "input": "x", "grants": ["a", "a"], "budget_id": None, "usage_class": "live"},
    }
    assert [(fault.pointer, fault.code) for fault in refusal(document)] == [
        ("/calendar", "missing_field"),
        ("/calender", "unknown_field"),
        ("/name", "blank"),
        ("/policy/extra", "unknown_field"),
        ("/policy/overlap", "unknown_value"),
        ("/policy/catchup_window_seconds", "out_of_range"),
        ("/policy/pause_on_failure", "not_a_boolean"),
        ("/run/output_target", "missing_field"),
        ("/run/agent_version", "not_a_reference"),
        ("/run/grants/1", "duplicate_grant"),
        ("/run/budget_id", "budget_required"),
    ]


def test_the_faults_of_the_calendar_are_among_all_the_others_with_their_places():
    rule = {
        "second": [{"start": 0, "end": 0, "step": 1}],
        "minute": [{"start": 0, "end": 60, "step": 1}],
        "hour": [{"start": 9, "end": 8, "step": 0}],
        "day_of_month": [{"start": 1, "end": 31, "step": 1}],
        "month": None,
        "day_of_week": [{"start": 0, "end": 6, "step": 1}],
    }
    faults = refusal(
        changed(calendar__calendars=[rule], name="", run__input="..", calendar__end_at="2025-01-01T00:00:00Z")
    )
    places = {fault.pointer for fault in faults}
    assert places >= {
        "/name",
        "/calendar/calendars/0/minute/0/end",
        "/calendar/calendars/0/hour/0/step",
        "/calendar/calendars/0/month",
        "/calendar/end_at",
        "/run/input",
    }


def test_a_thousand_faults_are_cut_short_and_counted():
    faults = refusal(changed(policy=POLICY | {f"extra_{number}": 1 for number in range(1_000)}))
    assert len(faults) == 200
    assert faults[-1].code == "more_faults"


def test_a_valid_calendar_that_no_person_writes_is_too_large():
    def each(low: int, high: int) -> list[dict[str, int]]:
        return [{"start": at, "end": at, "step": 10**15} for at in range(low, high + 1)]

    single = {
        "second": each(0, 59),
        "minute": each(0, 59),
        "hour": each(0, 23),
        "day_of_month": each(1, 31),
        "month": each(1, 12),
        "day_of_week": each(0, 6),
    }
    # Each rule has other years, so that none is a duplicate.
    calendars = [single | {"year": each(2000 + rule, 2063 + rule)} for rule in range(31)]
    assert [(fault.pointer, fault.code) for fault in refusal(changed(calendar__calendars=calendars))] == [
        ("", "too_large")
    ]
    assert parse_configuration(changed(calendar__calendars=calendars[:16])).policy.slots == 1


def test_the_digest_is_that_of_the_document_as_submitted_and_no_default_is_filled_in():
    assert digest(changed(policy__max_concurrent_runs=1)) != digest(DAILY)
    assert parse_configuration(changed(policy__max_concurrent_runs=1)) == parse_configuration(DAILY)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("skip") | st.just("live"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text() | st.sampled_from([*DAILY, *POLICY, *RUN, *EVERY_HOUR]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(anything)
def test_any_value_is_refused_with_faults_and_nothing_else_happens(value):
    assert refusal(value)


@given(st.sampled_from([(part, name) for part in ("calendar", "policy", "run") for name in DAILY[part]]), anything)
def test_any_value_in_the_place_of_any_member_is_taken_or_refused_at_that_place(where, value):
    part, name = where
    with suppress(InvalidSchedule):
        parse_configuration(changed(**{f"{part}__{name}": value}))
        return
    faults = refusal(changed(**{f"{part}__{name}": value}))
    assert all(fault.pointer.startswith((f"/{part}", "/run/budget_id")) for fault in faults)
