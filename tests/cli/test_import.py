"""A native schedule of a real Temporal server becomes a configuration that is due when it is, or is refused with every reason."""

import asyncio
import json
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.enums.v1 import ScheduleOverlapPolicy as ProtoOverlap
from temporalio.api.schedule.v1 import IntervalSpec, SchedulePolicies, StructuredCalendarSpec
from temporalio.api.schedule.v1 import Schedule as ProtoSchedule
from temporalio.api.schedule.v1 import ScheduleSpec as ProtoSpec
from temporalio.api.schedule.v1 import ScheduleState as ProtoState
from temporalio.api.workflowservice.v1 import ListScheduleMatchingTimesRequest
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleCalendarSpec,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleRange,
    ScheduleSpec,
    ScheduleState,
)

from horarium import parse_calendar
from horarium.errors import InvalidSchedule
from horarium.schedule.configuration import parse_configuration
from starter.importing import TO_FILL_IN, UNFILLED, Choices, imported

FIRST, LAST = datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)
OURS = ("--agent-version", "triage@1", "--input", "inbox", "--output-target", "reports")
MINUTE = timedelta(minutes=1)
NOON = ScheduleCalendarSpec(hour=[ScheduleRange(12)])


@pytest.fixture
def native(temporal_server, monkeypatch) -> Callable[..., str]:
    """Create a native schedule at the server that the settings name; its id."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", temporal_server.address)

    def create(
        spec: ScheduleSpec, *, schedule_id: str | None = None, state: ScheduleState | None = None, **policy
    ) -> str:
        named = schedule_id or f"native-{uuid.uuid4()}"
        action = ScheduleActionStartWorkflow("Nightly", id=named, task_queue="jobs", run_timeout=MINUTE)
        policies = SchedulePolicy(**{"catchup_window": MINUTE, **policy})
        # Paused: nothing shall start on the server that other tests use.
        standing = state or ScheduleState(paused=True)
        schedule = Schedule(action=action, spec=spec, policy=policies, state=standing)

        async def send() -> None:
            client = await Client.connect(temporal_server.address)
            await client.create_schedule(named, schedule)

        asyncio.run(send())
        return named

    return create


@pytest.fixture
def take(horarium) -> Callable[..., tuple[Any, str]]:
    """Import a schedule: what goes to standard output, read, and what goes beside it."""

    def call(schedule_id: str, *arguments: str) -> tuple[Any, str]:
        result = horarium("import", "temporal", schedule_id, *arguments)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout), result.stderr

    return call


@pytest.fixture
def matching(temporal_server) -> Callable[[str], list[datetime]]:
    """When the server itself says that a schedule is due, in 2027."""

    async def ask(schedule_id: str) -> list[datetime]:
        client = await Client.connect(temporal_server.address)
        found: list[datetime] = []
        first, last = Timestamp(), Timestamp()
        first.FromDatetime(FIRST - timedelta(seconds=1))  # it looks for what is later
        last.FromDatetime(LAST)
        while True:
            request = ListScheduleMatchingTimesRequest(
                namespace=client.namespace, schedule_id=schedule_id, start_time=first, end_time=last
            )
            answer = await client.workflow_service.list_schedule_matching_times(request)
            if not answer.start_time:
                return found
            # It tells a thousand at once.
            found += [each.ToDatetime(tzinfo=UTC) for each in answer.start_time]
            first = answer.start_time[-1]

    return lambda schedule_id: asyncio.run(ask(schedule_id))


# At these times neither changes of the clock nor what the server makes of them can play a part.
SAME = {
    "noon in Berlin": ScheduleSpec(calendars=[NOON], time_zone_name="Europe/Berlin"),
    "weekdays, two ranges and a step": ScheduleSpec(
        calendars=[
            ScheduleCalendarSpec(
                minute=[ScheduleRange(30)],
                hour=[ScheduleRange(15), ScheduleRange(6, 10, 2)],
                day_of_week=[ScheduleRange(1, 5)],
                comment="office hours",
            )
        ]
    ),
    "overlapping ranges": ScheduleSpec(
        calendars=[ScheduleCalendarSpec(hour=[ScheduleRange(8, 12), ScheduleRange(10, 14, 2)], day_of_month=[ScheduleRange(1)])]
    ),
    "two calendars and an interval": ScheduleSpec(
        calendars=[NOON, ScheduleCalendarSpec(month=[ScheduleRange(2)], day_of_month=[ScheduleRange(28, 31)])],
        intervals=[ScheduleIntervalSpec(timedelta(days=2), timedelta(hours=5))],
    ),
    "one calendar twice": ScheduleSpec(
        calendars=[NOON, ScheduleCalendarSpec(hour=[ScheduleRange(12)], comment="the same")]
    ),
    "a year": ScheduleSpec(calendars=[ScheduleCalendarSpec(year=[ScheduleRange(2027), ScheduleRange(2029, 2033, 2)])]),
    "bounds at an instant": ScheduleSpec(
        calendars=[NOON], start_at=datetime(2027, 3, 1, 12, tzinfo=UTC), end_at=datetime(2027, 9, 1, 12, tzinfo=UTC)
    ),
    "bounds with fractions": ScheduleSpec(
        calendars=[NOON],
        start_at=datetime(2027, 3, 1, 12, 0, 0, 500_000, tzinfo=UTC),
        end_at=datetime(2027, 9, 1, 12, 0, 0, 500_000, tzinfo=UTC),
    ),
    "a cron string": ScheduleSpec(cron_expressions=["15 */6 * 1-3 *"]),
    "a cron string of both days": ScheduleSpec(cron_expressions=["0 9 1-7 * MON # first Monday"]),
    "a cron string that is an interval": ScheduleSpec(cron_expressions=["@every 36h/7h"]),
}  # fmt: skip


@pytest.mark.server
@pytest.mark.parametrize("spec", SAME.values(), ids=SAME)
def test_what_is_imported_is_due_when_the_server_says(native, take, matching, spec):
    schedule_id = native(spec)
    configuration, _ = take(schedule_id, *OURS)
    theirs = matching(schedule_id)
    assert theirs
    assert list(parse_configuration(configuration).calendar.between(FIRST, LAST)) == theirs


@pytest.mark.server
def test_policies_and_all_of_the_rest_carry_over(native, take):
    schedule_id = native(
        ScheduleSpec(calendars=[NOON]),
        state=ScheduleState(paused=True, note="Stopped for the audit."),
        overlap=ScheduleOverlapPolicy.BUFFER_ONE,
        catchup_window=timedelta(hours=2),
        pause_on_failure=True,
    )
    configuration, notes = take(schedule_id, *OURS, "--name", "Nightly", "--grant", "mail", "--grant", "files")
    assert configuration["name"] == "Nightly"
    assert configuration["policy"] == {
        "overlap": "buffer_one",
        "catchup_window_seconds": 7200,
        "pause_on_failure": True,
    }
    assert configuration["run"] == {
        "agent_version": "triage@1",
        "input": "inbox",
        "output_target": "reports",
        "grants": ["mail", "files"],
        "budget_id": None,
        "usage_class": "test_simulation",
    }
    for told in ("paused there", "Stopped for the audit.", "'Nightly' on task queue 'jobs'", "workflow_run_timeout"):
        assert told in notes
    assert UNFILLED not in notes


OVERLAPS = {
    ScheduleOverlapPolicy.SKIP: "skip",
    ScheduleOverlapPolicy.BUFFER_ONE: "buffer_one",
    ScheduleOverlapPolicy.BUFFER_ALL: "buffer_all",
    ScheduleOverlapPolicy.ALLOW_ALL: "allow",
}


@pytest.mark.server
@pytest.mark.parametrize(("theirs", "ours"), OVERLAPS.items(), ids=OVERLAPS.values())
def test_an_overlap_policy_is_the_one_that_means_the_same(native, take, theirs, ours):
    configuration, _ = take(native(ScheduleSpec(calendars=[NOON]), overlap=theirs), *OURS)
    assert configuration["policy"]["overlap"] == ours


@pytest.mark.server
def test_what_runs_is_left_to_a_person_and_validate_refuses_it_until_then(native, horarium, tmp_path):
    file = str(tmp_path / "imported.yaml")
    written = horarium("import", "temporal", native(ScheduleSpec(calendars=[NOON])), "-f", file, "-o", "table")
    assert written.exit_code == 0, written.stderr
    assert "/run/agent_version, /run/input, /run/output_target" in written.stdout
    refused = horarium("validate", file)
    assert refused.exit_code == 1
    places = [line.removeprefix(f"{file}: ").split(":")[0] for line in refused.stderr.splitlines()]
    assert places == ["/run/agent_version", "/run/input", "/run/output_target"]
    text = (tmp_path / "imported.yaml").read_text()
    document = yaml.safe_load(text)
    document["run"] |= {"agent_version": "triage@1", "input": "inbox", "output_target": "reports"}
    filled = tmp_path / "filled.json"
    filled.write_text(json.dumps(document))
    assert horarium("validate", str(filled)).exit_code == 0


@pytest.mark.server
def test_a_file_that_is_there_is_left_as_it_is(native, horarium, tmp_path):
    schedule_id, path = native(ScheduleSpec(calendars=[NOON])), tmp_path / "mine.json"
    assert horarium("import", "temporal", schedule_id, *OURS, "-f", str(path)).exit_code == 0
    assert horarium("validate", str(path)).exit_code == 0
    before = path.read_text()
    again = horarium("import", "temporal", schedule_id, "-f", str(path))
    assert again.exit_code == 1
    assert "is there already" in again.stderr
    assert path.read_text() == before
    assert horarium("import", "temporal", schedule_id, "-f", str(tmp_path / "no" / "such.yaml")).exit_code == 1


NO_EQUAL = {
    "jitter": ({"spec": ScheduleSpec(calendars=[NOON], jitter=timedelta(seconds=3))}, ["/spec/jitter"]),
    "exclusions": (
        {"spec": ScheduleSpec(calendars=[NOON], skip=[NOON, ScheduleCalendarSpec(month=[ScheduleRange(8)])])},
        ["/spec/excludeStructuredCalendar/0", "/spec/excludeStructuredCalendar/1"],
    ),
    "no timing": ({"spec": ScheduleSpec()}, ["/spec"]),
    "fractions of a second": (
        {"spec": ScheduleSpec(intervals=[ScheduleIntervalSpec(timedelta(seconds=1.5))])},
        ["/spec/interval/0/interval"],
    ),
    "more rules than there may be": (
        {"spec": ScheduleSpec(intervals=[ScheduleIntervalSpec(timedelta(seconds=60 + each)) for each in range(33)])},
        ["/spec"],
    ),
    "cancel the other": (
        {"spec": ScheduleSpec(calendars=[NOON]), "overlap": ScheduleOverlapPolicy.CANCEL_OTHER},
        ["/policies/overlapPolicy"],
    ),
    "terminate the other": (
        {"spec": ScheduleSpec(calendars=[NOON]), "overlap": ScheduleOverlapPolicy.TERMINATE_OTHER},
        ["/policies/overlapPolicy"],
    ),
    "the usual window of a year": (
        {"spec": ScheduleSpec(calendars=[NOON]), "catchup_window": None},
        ["/policies/catchupWindow"],
    ),
    "a day and a second": (
        {"spec": ScheduleSpec(calendars=[NOON]), "catchup_window": timedelta(seconds=86_401)},
        ["/policies/catchupWindow"],
    ),
    "so many actions": (
        {
            "spec": ScheduleSpec(calendars=[NOON]),
            "state": ScheduleState(paused=True, limited_actions=True, remaining_actions=7),
        },
        ["/state/limitedActions"],
    ),
    "everything at once": (
        {
            "spec": ScheduleSpec(calendars=[NOON], skip=[NOON], jitter=timedelta(seconds=1)),
            "overlap": ScheduleOverlapPolicy.TERMINATE_OTHER,
            "catchup_window": timedelta(days=2),
            "state": ScheduleState(paused=True, limited_actions=True, remaining_actions=7),
        },
        [
            "/spec/jitter",
            "/spec/excludeStructuredCalendar/0",
            "/state/limitedActions",
            "/policies/overlapPolicy",
            "/policies/catchupWindow",
        ],
    ),
}


@pytest.mark.server
@pytest.mark.parametrize(("what", "places"), NO_EQUAL.values(), ids=NO_EQUAL)
def test_what_has_no_equal_is_refused_with_every_place_and_nothing_is_written(native, horarium, tmp_path, what, places):
    file = tmp_path / "imported.yaml"
    result = horarium("import", "temporal", native(**what), *OURS, "-f", str(file), "-o", "json")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert [each["pointer"] for each in json.loads(result.stderr)["faults"]] == places, result.stderr
    assert not file.exists()


@pytest.mark.server
def test_a_window_that_a_person_chooses_takes_the_place_of_one_without_an_equal(native, take):
    schedule_id = native(ScheduleSpec(calendars=[NOON]), catchup_window=None)
    configuration, _ = take(schedule_id, *OURS, "--catchup-window", "900")
    assert configuration["policy"]["catchup_window_seconds"] == 900


@pytest.mark.server
def test_options_are_held_against_the_contract_too(native, horarium):
    schedule_id = native(ScheduleSpec(calendars=[NOON]))
    result = horarium(
        "import", "temporal", schedule_id, *OURS, "--input", "/etc/passwd", "--usage-class", "live", "--name", " "
    )
    assert result.exit_code == 1
    assert [line.split(":")[0] for line in result.stderr.splitlines()] == ["/name", "/run/input", "/run/budget_id"]
    assert horarium("import", "temporal", schedule_id, "--usage-class", "liv").exit_code == 2
    assert horarium("import", "temporal", schedule_id, "--catchup-window", "9").exit_code == 2


@pytest.mark.server
def test_a_schedule_that_is_not_there_and_a_server_that_is_not_there(native, horarium, monkeypatch):
    native(ScheduleSpec(calendars=[NOON]))
    result = horarium("import", "temporal", "nothing-of-that-name")
    assert result.exit_code == 1
    assert "native_schedule_not_found" in result.stderr
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    result = horarium("import", "temporal", "any")
    assert result.exit_code == 1
    assert "No Temporal server answers" in result.stderr


@pytest.mark.server
def test_dates_by_both_days_are_noted_since_a_crontab_takes_either(native, take):
    both = native(ScheduleSpec(cron_expressions=["0 9 1 * MON"]))
    assert "/calendar/calendars/0 selects dates by day of month and day of week at once" in take(both, *OURS)[1]
    one = native(ScheduleSpec(cron_expressions=["0 9 * * MON"]))
    assert "at once" not in take(one, *OURS)[1]


@pytest.mark.server
def test_a_schedule_that_goes_on_is_noted(native, take):
    running = native(
        ScheduleSpec(calendars=[ScheduleCalendarSpec(year=[ScheduleRange(2099)])]), state=ScheduleState(paused=False)
    )
    _, notes = take(running, *OURS)
    assert f"Pause '{running}' before its successor is enabled" in notes


# What the server of today does not send or is not fit to describe, and one of another release may.


TODAY = datetime(2027, 1, 15, tzinfo=UTC)


def each_day(*, hour: dict[str, int]) -> StructuredCalendarSpec:
    return StructuredCalendarSpec(
        second=[{"start": 0}],
        minute=[{"start": 30}],
        hour=[hour],
        day_of_month=[{"start": 1, "end": 31}],
        month=[{"start": 1, "end": 12}],
        day_of_week=[{"start": 0, "end": 6}],
    )


def described(**parts: Any) -> ProtoSchedule:
    spec = ProtoSpec(interval=[IntervalSpec(interval=Duration(seconds=60))])
    schedule = ProtoSchedule(spec=spec, policies=SchedulePolicies(catchup_window=Duration(seconds=60)))
    schedule.MergeFrom(ProtoSchedule(**parts))
    return schedule


UNUSUAL = {
    "a cron string as it was": ({"spec": ProtoSpec(cron_string=["0 9 * * *"])}, "/spec/cronString/0", "unexpanded"),
    "zone data of its own": ({"spec": ProtoSpec(timezone_data=b"TZif")}, "/spec/timezoneData", "zone_data"),
    "a zone that is none": ({"spec": ProtoSpec(timezone_name="Local")}, "/spec/timezoneName", "unknown_timezone"),
    "an overlap policy of later": ({"policies": SchedulePolicies(overlap_policy=99)}, "/policies/overlapPolicy", "overlap"),  # type: ignore[typeddict-item] # unknown on purpose
    "an offset beyond its interval": (
        {"spec": ProtoSpec(interval=[IntervalSpec(interval=Duration(seconds=5), phase=Duration(seconds=5))])},
        "/spec/interval/1",
        "offset_too_large",
    ),
    "a year of the future": (
        {"spec": ProtoSpec(structured_calendar=[StructuredCalendarSpec(**{name: [{}] for name in ("second", "minute", "hour", "day_of_week")}, day_of_month=[{"start": 1}], month=[{"start": 1}], year=[{"start": 2_000_000_000}])])},
        "/spec/structuredCalendar/0/year",
        "out_of_range",
    ),
    # the server searches for the next time of such a calendar until it answers nobody
    "a calendar that never matches": (
        {"spec": ProtoSpec(structured_calendar=[StructuredCalendarSpec()])},
        "/spec/structuredCalendar/0/second",
        "no_ranges",
    ),
    "an end before its start": (
        {"spec": ProtoSpec(start_time=Timestamp(seconds=2_000), end_time=Timestamp(seconds=1_000))},
        "/spec/endTime",
        "end_before_start",
    ),
    "a start beyond the years": ({"spec": ProtoSpec(start_time=Timestamp(seconds=10**15))}, "/spec/startTime", "out_of_range"),
    "a start before year 1": ({"spec": ProtoSpec(start_time=Timestamp(seconds=-62_135_596_801))}, "/spec/startTime", "out_of_range"),
    "an end after year 9999": ({"spec": ProtoSpec(end_time=Timestamp(seconds=253_402_300_800))}, "/spec/endTime", "out_of_range"),
    "an end of the largest number": ({"spec": ProtoSpec(end_time=Timestamp(seconds=2**63 - 1))}, "/spec/endTime", "out_of_range"),
    "an end that its fraction moves on": ({"spec": ProtoSpec(end_time=Timestamp(seconds=253_402_300_799, nanos=2_000_000_000))}, "/spec/endTime", "out_of_range"),
    "a window of the largest number": ({"policies": SchedulePolicies(catchup_window=Duration(seconds=2**63 - 1))}, "/policies/catchupWindow", "catchup_window"),
    "a negative window": ({"policies": SchedulePolicies(catchup_window=Duration(seconds=-(2**63)))}, "/policies/catchupWindow", "catchup_window"),
    "a jitter of the largest number": ({"spec": ProtoSpec(jitter=Duration(seconds=2**63 - 1))}, "/spec/jitter", "jitter"),
    "an interval of the largest number": ({"spec": ProtoSpec(interval=[IntervalSpec(interval=Duration(seconds=2**63 - 1))])}, "/spec/interval/1", "out_of_range"),
    "a negative interval": ({"spec": ProtoSpec(interval=[IntervalSpec(interval=Duration(seconds=-60))])}, "/spec/interval/1", "out_of_range"),
    "a negative offset": ({"spec": ProtoSpec(interval=[IntervalSpec(interval=Duration(seconds=60), phase=Duration(seconds=-1))])}, "/spec/interval/1", "out_of_range"),
    "actions of the largest number": ({"state": ProtoState(limited_actions=True, remaining_actions=2**63 - 1)}, "/state/limitedActions", "limited_actions"),
    "a range that begins below zero": ({"spec": ProtoSpec(structured_calendar=[each_day(hour={"start": -5, "end": 5, "step": 2})])}, "/spec/structuredCalendar/0/hour", "out_of_range"),
    "a range that ends below zero": ({"spec": ProtoSpec(structured_calendar=[each_day(hour={"start": 3, "end": -1})])}, "/spec/structuredCalendar/0/hour", "out_of_range"),
    "a range that ends nowhere": ({"spec": ProtoSpec(structured_calendar=[each_day(hour={"start": 3, "end": 2**31 - 1})])}, "/spec/structuredCalendar/0/hour", "out_of_range"),
    "a step back": ({"spec": ProtoSpec(structured_calendar=[each_day(hour={"start": 3, "end": 9, "step": -2})])}, "/spec/structuredCalendar/0/hour", "out_of_range"),
}  # fmt: skip


@pytest.mark.parametrize(("parts", "place", "code"), UNUSUAL.values(), ids=UNUSUAL)
def test_what_no_server_sends_today_is_refused_at_its_place_all_the_same(parts, place, code):
    with pytest.raises(InvalidSchedule) as refused:
        imported("native", described(**parts), Choices(run={}), since=TODAY)
    assert [(fault.pointer, fault.code) for fault in refused.value.faults] == [(place, code)]


@pytest.mark.parametrize(
    ("window", "told"),
    [
        (Duration(seconds=365 * 86_400), "31,536,000 s (365 days)"),
        (Duration(seconds=90_000, nanos=250_000_000), "90,000.25 s"),
        (Duration(seconds=-1, nanos=-500_000_000), "-1.5 s"),
    ],
)
def test_a_window_is_told_with_all_its_digits(window, told):
    native = described()
    native.policies.catchup_window.CopyFrom(window)
    with pytest.raises(InvalidSchedule) as refused:
        imported("native", native, Choices(run={}), since=TODAY)
    (fault,) = refused.value.faults
    assert f"A catch-up window of {told} has no equal" in fault.sentence


def test_a_policy_that_nobody_set_is_the_one_that_the_server_takes_for_it():
    native = described(policies=SchedulePolicies(overlap_policy=ProtoOverlap.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED))
    found = imported("native", native, Choices(run={}), since=TODAY).configuration
    assert found["policy"]["overlap"] == "skip"
    assert {name: found["run"][name] for name in TO_FILL_IN} == TO_FILL_IN
    assert parse_calendar(found["calendar"]).timezone == "UTC"


EVERY_DAY = each_day(hour={"start": 2})
BERLIN = {"structured_calendar": [EVERY_DAY], "timezone_name": "Europe/Berlin"}
CLOCKS = {
    "in Berlin": (BERLIN, "The clock of Europe/Berlin changes next on 2027-03-28 UTC."),
    "in UTC": ({"structured_calendar": [EVERY_DAY]}, None),
    "where the clock has stopped changing": ({**BERLIN, "timezone_name": "Asia/Tokyo"}, None),
    "over before the next change": ({**BERLIN, "end_time": Timestamp(seconds=1_803_000_000)}, None),
    "in Berlin, begun after the next change": (
        {**BERLIN, "start_time": Timestamp(seconds=1_811_808_000)},
        "The clock of Europe/Berlin changes next on 2027-10-31 UTC.",
    ),
    "an interval, which counts in UTC": (
        {"interval": [IntervalSpec(interval=Duration(seconds=60))], "timezone_name": "Europe/Berlin"},
        None,
    ),
}


@pytest.mark.parametrize(("spec", "told"), CLOCKS.values(), ids=CLOCKS)
def test_the_next_change_of_the_clock_is_noted_since_the_server_errs_there(spec, told):
    native = described()
    native.spec.CopyFrom(ProtoSpec(**spec))
    notes = [note for note in imported("native", native, Choices(run={}), since=TODAY).notes if "clock" in note]
    assert [note.partition(" Around")[0] for note in notes] == ([] if told is None else [told])
