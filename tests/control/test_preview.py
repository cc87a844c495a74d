"""A preview tells what a calendar will do, counts all of it, and is bounded."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from horarium.calendar import parse_calendar
from horarium.control.preview import MAX_NOTES, about, calendar_of, preview, read_spec
from horarium.errors import InvalidSchedule, Refused

ANY = {
    "second": [{"start": 0, "end": 0, "step": 1}],
    "minute": [{"start": 0, "end": 59, "step": 1}],
    "hour": [{"start": 0, "end": 23, "step": 1}],
    "day_of_month": [{"start": 1, "end": 31, "step": 1}],
    "month": [{"start": 1, "end": 12, "step": 1}],
    "day_of_week": [{"start": 0, "end": 6, "step": 1}],
}


def calendar(
    *, rules=(), intervals=(), timezone="Europe/Zurich", start_at="1970-01-01T00:00:00Z", end_at="9999-12-31T23:59:59Z"
):
    return calendar_of(
        {
            "timezone": timezone,
            "calendars": [{**ANY, **rule} for rule in rules],
            "intervals": [{"every_seconds": every, "offset_seconds": 0} for every in intervals],
            "start_at": start_at,
            "end_at": end_at,
        }
    )


def one(value: int):
    return [{"start": value, "end": value, "step": 1}]


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


HALF_PAST_TWO = {"hour": one(2), "minute": one(30)}


def test_both_ends_are_included():
    told = preview(calendar(intervals=[3600]), start=day("2027-01-01T01:00"), until=day("2027-01-01T03:00"))
    assert told["occurrences"] == [f"2027-01-01T0{hour}:00:00Z" for hour in (1, 2, 3)]
    assert (told["count"], told["truncated"], told["notes"]) == (3, False, [])


def test_a_repeated_hour_is_told():
    told = preview(calendar(rules=[HALF_PAST_TWO]), start=day("2027-10-31"), until=day("2027-11-01"))
    assert told["occurrences"] == ["2027-10-31T00:30:00Z", "2027-10-31T01:30:00Z"]
    assert told["notes"] == ["02:30 happens twice on 2027-10-31; two runs."]


def test_the_count_is_true_where_the_list_is_cut():
    told = preview(calendar(intervals=[1]), start=day("2027-01-01"), until=day("2028-01-01"), limit=5)
    assert (len(told["occurrences"]), told["count"], told["truncated"]) == (5, 365 * 86_400 + 1, True)


def test_a_number_of_instants_needs_no_end_and_is_not_cut():
    told = preview(calendar(intervals=[3600]), start=day("2027-01-01"), limit=3)
    assert (len(told["occurrences"]), told["count"], told["truncated"]) == (3, 3, False)


def test_a_number_of_instants_beyond_the_end_of_the_calendar_is_what_there_is():
    told = preview(calendar(intervals=[3600], end_at="2027-01-01T01:30:00Z"), start=day("2027-01-01"), limit=10)
    assert (told["count"], told["truncated"], told["notes"]) == (2, False, [])


@pytest.mark.parametrize(
    ("changes", "until", "sentence"),
    [
        ({"rules": [{"month": one(2), "day_of_month": one(30)}]}, None, "can never select an instant"),
        ({"intervals": [60], "end_at": "2026-01-01T00:00:00Z"}, None, "its last one has passed"),
        ({"rules": [HALF_PAST_TWO]}, "2027-01-01T00:10", "The next one is 2027-01-01T01:30:00Z."),
    ],
    ids=["never", "over", "later"],
)
def test_nothing_to_list_is_explained(changes, until, sentence):
    told = preview(calendar(**changes), start=day("2027-01-01"), until=until and day(until), limit=10)
    assert told["occurrences"] == []
    assert len(told["warnings"]) == 1
    assert sentence in told["warnings"][0]


@pytest.mark.parametrize("length", [timedelta(seconds=-1), timedelta(days=36_526)])
def test_a_window_that_runs_backwards_or_is_longer_than_a_century_is_refused(length):
    start = day("2027-01-01")
    with pytest.raises(Refused, match="invalid_window"):
        preview(calendar(intervals=[60]), start=start, until=start + length)


def test_notes_are_bounded():
    rule = {"hour": one(2), "minute": [{"start": 0, "end": 23, "step": 1}]}
    told = preview(calendar(rules=[rule]), start=day("2027-01-01"), until=day("2126-01-01"), limit=0)
    assert len(told["notes"]) == MAX_NOTES + 1
    assert told["notes"][-1].endswith("more notes on changes of the clock are not shown.")


def test_a_preview_of_a_dense_year_is_quick():
    dense = calendar(rules=[{}], intervals=[7])
    began = time.process_time()
    told = preview(dense, start=day("2027-01-01"), until=day("2028-01-01"), limit=10)
    assert time.process_time() - began < 1
    # Each minute, each seventh second, and what both select once.
    assert told["count"] == 525_601 + 4_505_143 - 75_086


KINDS = {
    "calendar": {
        "calendar": {
            "timezone": "UTC",
            "calendars": [],
            "intervals": [{"every_seconds": 60, "offset_seconds": 0}],
            "start_at": "2027-01-01T00:00:00Z",
            "end_at": "2027-01-01T00:00:30Z",
        }
    },
    "instant": {"instant": "2027-01-01T01:00:00+01:00"},
    "cron": {
        "cron": {"minute": "0", "hour": "0", "day_of_month": "1", "month": "1", "day_of_week": "*", "timezone": "UTC"}
    },
}


@pytest.mark.parametrize("document", KINDS.values(), ids=KINDS)
def test_a_stored_timing_can_be_previewed(document):
    told = preview(calendar_of(document), start=day("2026-12-31"), until=day("2027-01-02"))
    assert told["occurrences"] == ["2027-01-01T00:00:00Z"]


POSITIONS = {"minute": "30", "hour": "2", "day_of_month": "*", "month": "*", "day_of_week": "*"}
IN_BERLIN = {**POSITIONS, "timezone": "Europe/Berlin"}
AT_NOON = {**POSITIONS, "hour": "12", "timezone": "Europe/Berlin"}
TARGET = {"workspace_id": "ws-001", "agent_id": "codex"}
RUN = {
    "agent_version": "triage@1",
    "input": "inbox",
    "output_target": "reports",
    "grants": [],
    "budget_id": None,
    "usage_class": "test_simulation",
}
POLICY = {"overlap": "skip", "catchup_window_seconds": 60, "pause_on_failure": False}
CONFIGURATION = {"name": "Review", **KINDS["calendar"], "policy": POLICY, "run": RUN}
V0_CRON = {"type": "cron", "spec": {"expr": "30 2 * * *", "timezone": "Europe/Berlin"}, "target": TARGET}
V0_INTERVAL = {"type": "interval", "spec": {"every_seconds": 60}, "target": TARGET}
V0_ONE_SHOT = {
    "type": "one-shot",
    "spec": {"run_at": "2026-03-25T09:00:00Z"},
    "target": TARGET,
    "policy": {"misfire": "skip", "max_concurrent_runs": 1},
}
SPECS = {
    "a configuration": (CONFIGURATION, "schedules", True),
    "scheduler v0, interval": (V0_INTERVAL, "v0", True),
    "scheduler v0, one-shot": (V0_ONE_SHOT, "v0", True),
    "scheduler v0, cron": (V0_CRON, "v0", False),
    "scheduler v0, cron without a zone": ({**V0_CRON, "spec": {"expr": "30 2 * * *"}}, "v0", True),
    "a profile": ({"config": {"cron": IN_BERLIN, "folder": "in"}, "tenant_id": None}, "cron_profiles", False),
    "a profile at noon": ({"config": {"cron": AT_NOON}}, "cron_profiles", True),
    "five positions and a zone": (IN_BERLIN, None, False),
    "a text of five positions, which is UTC": ("30 2 * * *", None, True),
    "an expression without a zone": ({"expr": "30 2 * * *"}, None, True),
    "an expression and a zone": ({"expr": "30 2 * * *", "timezone": "Europe/Berlin"}, None, False),
    "five positions and UTC": ({**POSITIONS, "timezone": "UTC"}, None, True),
    "a calendar": (KINDS["calendar"]["calendar"], None, True),
    **{f"a stored {name}": (document, None, True) for name, document in KINDS.items()},
}


@pytest.mark.parametrize(("document", "contract", "equal"), SPECS.values(), ids=SPECS)
def test_a_document_of_any_contract_is_previewed_and_translated(document, contract, equal):
    spec = read_spec(document)
    told = about(spec, since=day("2027-01-01"))
    assert told["contract"] == contract
    if not equal:
        assert told["translation"] == {
            "calendar": None,
            "sentence": "A canonical calendar of the same fields differs: 02:30 does not exist on 2027-03-28; runs at 03:00; "
            "a canonical calendar would skip it.",
        }
        return
    assert told["translation"]["sentence"] == "Equals the canonical calendar shown."
    shown = parse_calendar(told["translation"]["calendar"])
    window = {"start": day("2026-01-01"), "until": day("2027-12-31")}
    assert preview(shown, **window)["count"] == preview(spec.calendar, **window)["count"] > 0
    assert preview(shown, **window)["occurrences"] == preview(spec.calendar, **window)["occurrences"]


def test_a_canonical_calendar_is_shown_as_it_was_written():
    written = {**KINDS["calendar"]["calendar"], "start_at": "2027-01-01T00:00:00.5Z"}
    assert about(read_spec(written), since=day("2027-01-01"))["translation"]["calendar"] == written
    assert (
        about(read_spec(CONFIGURATION), since=day("2027-01-01"))["translation"]["calendar"]
        == (CONFIGURATION["calendar"])
    )


CHANGES = {
    "New York": ("America/New_York", "30 2 * * *", "2027-03-14", ["2027-03-14T07:00:00Z"], "02:30 does not exist on 2027-03-14; runs at 03:00."),
    "New York, back": ("America/New_York", "30 1 * * *", "2027-11-07", ["2027-11-07T05:30:00Z"], "01:30 happens twice on 2027-11-07; one run, at the first."),
    "Berlin": ("Europe/Berlin", "30 2 * * *", "2027-03-28", ["2027-03-28T01:00:00Z"], "02:30 does not exist on 2027-03-28; runs at 03:00."),
    "Berlin, back": ("Europe/Berlin", "30 2 * * *", "2027-10-31", ["2027-10-31T00:30:00Z"], "02:30 happens twice on 2027-10-31; one run, at the first."),
}  # fmt: skip


@pytest.mark.parametrize(("zone", "expression", "date", "instants", "note"), CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("form", ["v0", "profile", "bare"])
def test_a_cron_of_any_contract_is_noted_alike_at_a_change_of_the_clock(zone, expression, date, instants, note, form):
    positions = {**dict(zip(POSITIONS, expression.split(), strict=True)), "timezone": zone}
    document = {
        "v0": {**V0_CRON, "spec": {"expr": expression, "timezone": zone}},
        "profile": {"config": {"cron": positions}},
        "bare": positions,
    }[form]
    told = preview(calendar_of(document), start=day(f"{date}T00:00"), until=day(f"{date}T23:00"))
    assert (told["occurrences"], told["notes"]) == (instants, [note])


@pytest.mark.parametrize("run_at", ["2027-03-28T02:30:00+01:00", "2027-10-31T02:30:00+01:00"])
def test_a_one_shot_has_an_offset_of_its_own_so_no_change_of_a_clock_concerns_it(run_at):
    document = {"type": "one-shot", "spec": {"run_at": run_at}, "target": TARGET}
    told = preview(calendar_of(document), start=day("2027-01-01"), until=day("2028-01-01"))
    assert (told["count"], told["notes"]) == (1, [])


FAULTY = {
    "scheduler v0": ({**V0_CRON, "spec": {"expr": "61 2 * * *"}, "session_id": 1}, ["/session_id", "/spec/expr"]),
    "scheduler v0 without its type": ({"spec": {"expr": "1 2 * * *"}, "target": TARGET}, ["/type"]),
    "a profile": ({"config": {"cron": {**IN_BERLIN, "hour": "24"}}}, ["/config/cron/hour"]),
    "a profile without a cron": ({"config": {"cron": None}}, ["/config/cron"]),
    "a profile of nothing": ({"config": None}, ["/config"]),
    "positions": ({**IN_BERLIN, "minute": "61", "hours": "1"}, ["/hours", "/minute"]),
    "positions without a zone": (POSITIONS, ["/timezone"]),
    "a text": ("61 2 * * *", [""]),
    "an expression": ({"expr": "61 2 * * *", "timezone": "Mars/Base", "zone": 1}, ["/expr", "/timezone", "/zone"]),
    "an expression that is no text": ({"expr": 5}, ["/expr"]),
    "a stored cron": ({"cron": POSITIONS}, ["/cron/timezone"]),
}


@pytest.mark.parametrize(("document", "places"), FAULTY.values(), ids=FAULTY)
def test_each_kind_of_document_is_refused_at_the_places_of_its_own_form(document, places):
    with pytest.raises(InvalidSchedule) as refused:
        calendar_of(document)
    assert sorted(fault.pointer for fault in refused.value.faults) == places


@pytest.mark.parametrize("document", [None, [], {}, "x", {"cron": {}}, {"calendars": []}, {"cron": 1, "instant": 2}])
def test_what_has_no_calendar_is_refused_with_faults(document):
    with pytest.raises(InvalidSchedule):
        calendar_of(document)
