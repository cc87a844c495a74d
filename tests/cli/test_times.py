"""A time that a person types means one instant, on any computer, or is refused with an example."""

import time
from datetime import UTC, datetime

import pytest

from starter.cli.times import parse_time

NOW = datetime(2026, 11, 29, 23, 30, 15, tzinfo=UTC)

MEANT = {
    "now": "2026-11-29T23:30:15Z",
    "NOW": "2026-11-29T23:30:15Z",
    "+2h": "2026-11-30T01:30:15Z",
    "-1d": "2026-11-28T23:30:15Z",
    "+1d12h": "2026-12-01T11:30:15Z",
    "-1w30s": "2026-11-22T23:29:45Z",
    "2027-03-28": "2027-03-28T00:00:00Z",
    "2027-03-28T07:30:00Z": "2027-03-28T07:30:00Z",
    "2027-03-28t07:30:00z": "2027-03-28T07:30:00Z",
    "2027-03-28T07:30:00.25Z": "2027-03-28T07:30:00.25Z",
    "2027-03-28T07:30:00+02:00": "2027-03-28T05:30:00Z",
    "2027-03-28 07:30 Europe/Zurich": "2027-03-28T05:30:00Z",
    "2027-01-28 07:30 Europe/Zurich": "2027-01-28T06:30:00Z",
    "2027-10-31 03:00 Europe/Zurich": "2027-10-31T02:00:00Z",
    "2027-03-28 07:30 UTC": "2027-03-28T07:30:00Z",
    "28 March 2027 7:30 pm UTC": "2027-03-28T19:30:00Z",
    "07:30Z": "2026-11-29T07:30:00Z",
    "07:30 Asia/Kolkata": "2026-11-29T02:00:00Z",
}


@pytest.mark.parametrize(("text", "instant"), MEANT.items())
def test_a_time_with_a_zone_is_one_instant(text, instant):
    assert parse_time(text, now=NOW) == datetime.fromisoformat(instant)


REFUSED = {
    "2027-03-28T07:30:00": "names no zone",
    "2027-03-28 07:30": "names no zone",
    "07:30": "names no zone",
    "tomorrow": "is no time",
    "": "is no time",
    "2027-02-30": "is no time",
    "2027-03-28T24:00:00Z": "is no time",
    "2027-03-28T07:30:60Z": "is no time",
    "2027-03-28 07:30 Europe/zurich": "'Europe/zurich' is no zone that is known. Did you mean 'Europe/Zurich'?",
    "2027-03-28 07:30 Europe/Zuerich": "'Europe/Zuerich' is no zone that is known. Did you mean 'Europe/Zurich'?",
    "2027-03-28 07:30 Mars/Olympus": "'Mars/Olympus' is no zone that is known. Names look like",
    "01/02/2027 10:00Z": "different days",
    "1.2.2027 Europe/Zurich": "different days",
    "2027-03-28 07:30 UTC+3": "east by some and as west by others",
    "2027-03-28 07:30+02:00 Europe/Zurich": "names an offset and a zone",
    "2027-03-28 02:30 Europe/Zurich": "does not exist",
    "2027-10-31 02:30 Europe/Zurich": "happens twice",
    "2011-12-30 10:00 Pacific/Apia": "does not exist",
    "+99999999w": "out of the years",
    "0001-01-01T00:00:00+10:00": "outside of the years",
    "0001-01-01 00:00 Asia/Tokyo": "outside of the years",
    "7" * 5000: "is no time",
}


@pytest.mark.parametrize(("text", "sentence"), REFUSED.items(), ids=lambda text: text[:40])
def test_what_is_no_single_instant_is_refused_with_a_sentence(text, sentence):
    with pytest.raises(ValueError, match=sentence) as refusal:
        parse_time(text, now=NOW)
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_the_zone_of_the_computer_has_no_say(monkeypatch, zone):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert parse_time("07:30Z", now=NOW) == datetime(2026, 11, 29, 7, 30, tzinfo=UTC)
        for name in ("EDT", "IST"):  # what such a computer calls its own time, and no zone of the data
            with pytest.raises(ValueError, match="names no zone"):
                parse_time(f"2027-07-28 07:30 {name}", now=NOW)
    finally:
        monkeypatch.undo()
        time.tzset()
