# ruff: noqa: DTZ001 - naive datetimes are refused
"""The zone data: ours are those of the package, whatever the host says, and are read as `zoneinfo` reads them."""

import json
import os
import random
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib import resources
from zoneinfo import ZoneInfo

import pytest
import tzdata

from horarium.calendar.tzif import day_of_year
from horarium.calendar.zones import local_time, tzdata_version, zone, zone_names

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NAMES = sorted(zone_names())


def packaged(name: str) -> ZoneInfo:
    """The zone as the standard library reads it from the package, not from the host."""
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def test_every_zone_has_the_offsets_that_the_standard_library_reads():
    """At, before and after every change up to 2100, and at random instants of the years 2 to 9998."""
    chance = random.Random(20260101)
    first, last = (int((datetime(year, 1, 2, tzinfo=UTC) - EPOCH).total_seconds()) for year in (1, 9999))
    horizon = int((datetime(2100, 1, 1, tzinfo=UTC) - EPOCH).total_seconds())
    wrong = []
    for name in NAMES:
        ours, theirs = zone(name), packaged(name)
        seconds = [change.at + near for change in ours.changes(first, horizon) for near in (-1, 0, 1)]
        seconds += [chance.randrange(first, last) for _ in range(50)]
        for second in seconds:
            span = ours.span(second)
            offset = (EPOCH + timedelta(seconds=second)).astimezone(theirs).utcoffset()
            if not span.start <= second < span.end or offset != timedelta(seconds=span.offset):
                wrong.append((name, second, span, offset))
    assert wrong == []


@pytest.mark.parametrize(
    "name", ["Europe/Zurich", "America/New_York", "Africa/Casablanca", "Pacific/Apia", "Asia/Kolkata", "UTC"]
)
def test_spans_meet_without_a_gap(name):
    second = -(10**11)
    for _ in range(500):
        span = zone(name).span(second)
        assert span.start <= second < span.end
        if span.end > 10**12:
            return
        following = zone(name).span(span.end)
        assert (following.start, following.before) == (span.end, span.offset)
        second = span.end


@pytest.mark.parametrize(
    ("day", "leap", "january_first", "expected"),
    [
        ("M3.5.0", False, 5, 86),  # 2027: the last Sunday of March is the 28th
        ("M10.5.0", False, 5, 303),  # 31 October
        ("M3.2.0", True, 1, 69),  # 2024: the second Sunday of March is the 10th
        ("M2.5.4", True, 1, 59),  # 29 February 2024 was a Thursday
        ("J59", True, 1, 58),  # 28 February, always
        ("J60", False, 5, 59),  # 1 March, always
        ("J60", True, 1, 60),
        ("59", True, 1, 59),  # counted with the leap day
        ("0", False, 5, 0),
    ],
)
def test_a_day_of_a_yearly_rule_is_found_in_the_year(day, leap, january_first, expected):
    assert day_of_year(day, leap=leap, weekday_of_january_first=january_first) == expected


def test_the_names_are_those_of_the_package_without_its_placeholder():
    assert {"UTC", "Europe/Zurich", "Europe/Kiev", "Asia/Calcutta", "EST5EDT"} <= zone_names()
    assert not {"Factory", "localtime", "posixrules", ""} & zone_names()
    assert not [name for name in zone_names() if name.startswith(("posix/", "right/", "/")) or ".." in name]


def test_the_version_is_the_one_of_the_package():
    assert tzdata_version() == tzdata.IANA_VERSION


def test_an_instant_is_shown_on_the_wall_of_its_zone():
    assert (
        local_time(datetime(2026, 7, 1, 5, 30, tzinfo=UTC), "Europe/Zurich").isoformat() == "2026-07-01T07:30:00+02:00"
    )
    with pytest.raises(ValueError, match="aware"):
        local_time(datetime(2026, 7, 1), "UTC")


PROBE = """
import json
from datetime import UTC, datetime
import horarium
from horarium.calendar import tzdata_version
found = [horarium.parse_cron("30 2 * * *", "America/New_York").after(datetime(2026, 3, 8, tzinfo=UTC)),
         horarium.parse_cron("30 7 * * *", "Europe/Zurich").after(datetime(2026, 7, 1, tzinfo=UTC)),
         horarium.parse_cron("0 9 * * *", "Asia/Kolkata").after(datetime(2026, 7, 1, tzinfo=UTC))]
print(json.dumps([tzdata_version(), *(instant.isoformat() for instant in found)]))
"""


@pytest.mark.parametrize("host", ["Pacific/Kiritimati", "America/New_York", ":/etc/nowhere"])
def test_neither_the_hosts_zone_nor_its_zone_files_change_an_instant(host, tmp_path):
    """Its files are a trap here: for every name they hold another zone than it says."""
    trap = resources.files("tzdata").joinpath("zoneinfo", "Asia", "Tokyo").read_bytes()
    for name in ("America/New_York", "Europe/Zurich", "Asia/Kolkata", "UTC"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(trap)
    environment = os.environ | {"TZ": host, "PYTHONTZPATH": str(tmp_path), "TZDIR": str(tmp_path)}
    answer = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(answer.stdout) == [
        tzdata.IANA_VERSION,
        "2026-03-08T07:00:00+00:00",
        "2026-07-01T05:30:00+00:00",
        "2026-07-01T03:30:00+00:00",
    ]
