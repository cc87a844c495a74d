"""Other programs, where we trust them: cronsim and croniter away from clock changes, dateutil for sparse dates."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from croniter import croniter
from cronsim import CronSim
from dateutil.rrule import YEARLY, rrule

from horarium import parse_calendar, parse_cron
from horarium.calendar.zones import local_time

# No clock of theirs has changed in these years, nor will.
STEADY = ["UTC", "Asia/Tokyo", "Asia/Kolkata", "America/Phoenix", "Etc/GMT+11", "Pacific/Honolulu"]


def position(chance: random.Random, low: int, high: int) -> str:
    style = chance.randrange(6)
    value = chance.randrange(low, high + 1)
    if style <= 1:
        return "*"
    if style == 2:
        return f"*/{chance.randrange(1, high)}"
    if style == 3 and value > low:  # croniter reads `5-5` as every value
        return f"{chance.randrange(low, value)}-{value}"
    if style == 4:
        return ",".join(str(each) for each in sorted({value, chance.randrange(low, high + 1)}))
    return str(value)


def random_cron(chance: random.Random) -> str:
    day, weekday = position(chance, 1, 31), position(chance, 0, 6)
    if day.startswith("*/") or weekday.startswith("*/"):  # Vixie and the libraries disagree, see the known answers
        day = "*"
    if "*" not in day and "*" not in weekday and chance.random() < 0.5:
        weekday = "*"
    return " ".join([position(chance, 0, 59), position(chance, 0, 23), day, position(chance, 1, 12), weekday])


# None of these seeds makes a cron that never runs: both libraries would search for years.
@pytest.mark.parametrize("seed", range(60))
def test_a_random_cron_runs_when_cronsim_and_croniter_say(seed):
    chance = random.Random(seed)
    text, timezone = random_cron(chance), chance.choice(STEADY)
    calendar = parse_cron(text, timezone)
    start = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=chance.randrange(5 * 365 * 86400))
    local = local_time(start, timezone)
    simulated, iterated = CronSim(text, local), croniter(text, local)
    instant: datetime | None = start
    for _ in range(25):
        instant = calendar.after(instant)
        assert instant == next(simulated).astimezone(UTC)
        assert instant == iterated.get_next(datetime).astimezone(UTC)


def every(low: int, high: int) -> list[dict[str, int]]:
    return [{"start": low, "end": high, "step": 1}]


@pytest.mark.parametrize("seed", range(40))
def test_a_sparse_date_is_the_one_that_dateutil_finds(seed):
    chance = random.Random(seed)
    day, month, weekday = chance.randrange(1, 32), chance.randrange(1, 13), chance.randrange(7)
    rule = {
        "second": every(0, 0),
        "minute": every(0, 0),
        "hour": every(3, 3),
        "day_of_month": every(day, day),
        "month": every(month, month),
        "day_of_week": every(weekday, weekday),
    }
    bounds = {"start_at": "1970-01-01T00:00:00Z", "end_at": "2400-01-01T00:00:00Z"}
    calendar = parse_calendar({"timezone": "UTC", "calendars": [rule], "intervals": []} | bounds)
    oracle = rrule(
        YEARLY,
        dtstart=datetime(1970, 1, 1, 3, tzinfo=UTC),
        until=datetime(2400, 1, 1, tzinfo=UTC),
        bymonth=month,
        bymonthday=day,
        byweekday=(weekday - 1) % 7,
    )
    first, last = datetime(1970, 1, 1, tzinfo=UTC), datetime(2400, 1, 1, tzinfo=UTC)
    expected = list(oracle)
    assert list(calendar.between(first, last)) == expected
    assert calendar.count(first, last) == len(expected)
    assert calendar.is_empty == (not expected)
