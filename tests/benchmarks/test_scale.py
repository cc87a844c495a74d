"""What is said of ten thousand schedules is of schedules as people have them, and of what was seen of their processes."""

from datetime import UTC, datetime, timedelta

import pytest

from benchmarks import scale
from benchmarks.mixed_schedules import ZONES, mixed
from benchmarks.scale import SIZES, Sample, cpu_percent, growth
from benchmarks.size import FULL, SHORT, SIZE
from horarium.schedule.configuration import parse_configuration

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
TOGETHER = NOON + timedelta(minutes=37, seconds=11)


@pytest.fixture(scope="module")
def calendars():
    return [
        parse_configuration(each).calendar
        for each in mixed(300, together_at=TOGETHER, begins_at=NOON - timedelta(days=1))
    ]


def test_all_are_due_together_at_one_second(calendars):
    assert all(list(each.between(TOGETHER, TOGETHER)) == [TOGETHER] for each in calendars)


def test_the_others_of_their_instants_are_from_hourly_to_weekly(calendars):
    week = [each.count(NOON, NOON + timedelta(days=7) - timedelta(seconds=1)) - 1 for each in calendars]
    assert min(week) <= 1
    assert 160 <= max(week) <= 168
    hour = sum(each.count(NOON, NOON + timedelta(hours=1)) - 1 for each in calendars)
    assert 60 <= hour <= 200, "something fires all the time, and not much"


def test_they_are_in_many_zones_and_the_same_each_time():
    first, again = (mixed(100, together_at=TOGETHER, begins_at=NOON) for _ in range(2))
    assert first == again
    assert {each["calendar"]["timezone"] for each in first} == set(ZONES)
    assert len({each["name"] for each in first}) == 100


def samples(*resident):
    return [
        Sample(at=60.0 * minute, cpu={"controller": 3.0 * minute}, resident={"controller": kib})
        for minute, kib in enumerate(resident)
    ]


def test_growth_is_the_slope_of_all_samples_a_minute():
    assert growth(samples(100, 110, 120, 130), "controller") == pytest.approx(10)
    assert growth(samples(100, 130, 100, 130, 100), "controller") == pytest.approx(0)


def test_cpu_is_the_share_of_a_core_between_the_first_and_the_last_sample():
    assert cpu_percent(samples(1, 1, 1), "controller") == pytest.approx(5)


@pytest.mark.parametrize("size", [FULL, SHORT])
def test_every_figure_has_its_name(monkeypatch, size):
    monkeypatch.setenv(SIZE, size)
    assert len(set(scale.names())) == len(scale.names()) == 14
    assert all(f"{SIZES[size].count:,} enabled" in name for name in scale.names())


def test_what_was_measured_before_something_failed_is_kept(monkeypatch):
    async def few(_size):
        return 1.0

    async def fails(_size, _few, figures):
        figures.append("established")
        raise TimeoutError("late")

    monkeypatch.setattr(scale, "_few", few)
    monkeypatch.setattr(scale, "_all", fails)
    measured = scale.measured(SIZES[SHORT])
    assert next(measured) == "established"
    with pytest.raises(TimeoutError, match="late"):
        next(measured)
