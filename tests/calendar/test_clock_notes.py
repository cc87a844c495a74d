"""What a preview says about changes of the clock."""

from datetime import UTC, datetime

import pytest

from horarium import Calendar, parse_calendar, parse_cron
from horarium.calendar import clock_changes, parse_instant

FULL = {
    "second": (0, 0),
    "minute": (0, 0),
    "hour": (0, 0),
    "day_of_month": (1, 31),
    "month": (1, 12),
    "day_of_week": (0, 6),
}


def canonical(
    timezone: str, *, start="1970-01-01T00:00:00Z", end="9999-12-31T23:59:59Z", **rule: tuple[int, int]
) -> Calendar:
    fields = {name: [{"start": low, "end": high, "step": 1}] for name, (low, high) in (FULL | rule).items()}
    document = {"timezone": timezone, "calendars": [fields], "intervals": [{"every_seconds": 60, "offset_seconds": 0}]}
    return parse_calendar(document | {"start_at": start, "end_at": end})


def sentences(calendar: Calendar, first: datetime, last: datetime) -> list[str]:
    return [note.sentence for note in clock_changes(calendar, first, last)]


YEAR_2026 = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))
YEAR_2027 = (datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("calendar", "window", "expected"),
    [
        (canonical("Europe/Zurich", hour=(2, 2), minute=(30, 30)), YEAR_2027, ["02:30 does not exist on 2027-03-28; no run", "02:30 happens twice on 2027-10-31; two runs"]),
        (parse_cron("30 2 * * *", "Europe/Zurich"), YEAR_2027, ["02:30 does not exist on 2027-03-28; runs at 03:00", "02:30 happens twice on 2027-10-31; one run, at the first"]),
        (canonical("America/New_York", hour=(1, 1), minute=(30, 30)), YEAR_2026, ["01:30 happens twice on 2026-11-01; two runs"]),
        (parse_cron("30 1 * * *", "America/New_York"), YEAR_2026, ["01:30 happens twice on 2026-11-01; one run, at the first"]),
        (canonical("Europe/Zurich", hour=(2, 2), second=(15, 15)), YEAR_2027, ["02:00:15 does not exist on 2027-03-28; no run", "02:00:15 happens twice on 2027-10-31; two runs"]),
        # the clock concerns only the dates that are selected
        (parse_cron("30 2 * * 1-5", "Europe/Zurich"), YEAR_2027, []),
        (canonical("Europe/Zurich", hour=(7, 7)), YEAR_2027, []),
        # a star follows the clock
        (parse_cron("0 * * * *", "Europe/Zurich"), YEAR_2027, ["02:00 does not exist on 2027-03-28; no run", "02:00 happens twice on 2027-10-31; two runs"]),
        # half an hour, midnight, a day
        (parse_cron("15 2 * * *", "Australia/Lord_Howe"), YEAR_2026, ["02:15 does not exist on 2026-10-04; runs at 02:30"]),
        (parse_cron("30 0 * * *", "Africa/Cairo"), YEAR_2026, ["00:30 does not exist on 2026-04-24; runs at 01:00"]),
        (parse_cron("0 9 * * *", "Pacific/Apia"), (datetime(2011, 12, 1, tzinfo=UTC), datetime(2012, 1, 31, tzinfo=UTC)), ["09:00 does not exist on 2011-12-30; no run"]),
        # many times become one sentence
        (canonical("Europe/Zurich", hour=(0, 23), minute=(0, 59)), YEAR_2027, ["02:00 on 2027-03-28 to 02:59:59 do not exist; 60 times have no run", "02:00 on 2027-10-31 to 02:59:59 happen twice; 60 times have two runs"]),
        (parse_cron(f"{','.join(map(str, range(60)))} 2 * * *", "Europe/Zurich"), YEAR_2027, ["02:00 on 2027-03-28 to 02:59:59 do not exist; 60 times run together once, at 03:00", "02:00 on 2027-10-31 to 02:59:59 happen twice; 60 times have one run, at the first"]),
        # no wall clock, no notes
        (parse_instant("2027-03-28T01:00:00Z"), YEAR_2027, []),
        (parse_cron("* * * * *", "UTC"), YEAR_2027, []),
    ],
)  # fmt: skip
def test_a_preview_says_what_a_change_does(calendar, window, expected):
    assert sentences(calendar, *window) == expected


def test_a_note_knows_its_instant_and_effect():
    note = clock_changes(parse_cron("30 2 * * *", "Europe/Zurich"), *YEAR_2027)[0]
    assert (note.at, note.effect, note.local_times) == (datetime(2027, 3, 28, 1, tzinfo=UTC), "moved", 1)


def test_a_change_at_either_end_of_the_window_counts():
    calendar, change = parse_cron("30 2 * * *", "Europe/Zurich"), datetime(2027, 3, 28, 1, tzinfo=UTC)
    assert len(sentences(calendar, change, change)) == 1
    assert sentences(calendar, change.replace(second=1), change.replace(second=2)) == []


def test_changes_outside_the_bounds_of_the_calendar_are_left_out():
    calendar = canonical("Europe/Zurich", hour=(2, 2), start="2027-04-01T00:00:00Z", end="2027-09-01T00:00:00Z")
    assert sentences(calendar, *YEAR_2027) == []


def test_a_naive_window_is_refused():
    with pytest.raises(ValueError, match="aware"):
        clock_changes(parse_cron("0 0 * * *", "UTC"), datetime(2027, 1, 1), datetime(2028, 1, 1, tzinfo=UTC))  # noqa: DTZ001 - refused
