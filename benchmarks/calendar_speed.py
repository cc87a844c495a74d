"""How long the next instant takes: `calendar.after` beside croniter, cronsim and APScheduler's CronTrigger.

Every contender walks from instant to instant, which is what the peers are made for: theirs are iterators that keep their
place, while ours is asked anew each time. The last two kinds of rule have one answer or none, so each
question starts at another instant, or with a calendar that has answered nothing yet.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Any
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger
from croniter import CroniterBadDateError, croniter
from cronsim import CronSim

import horarium
from benchmarks.figures import Budget, Figure, compare, interleave

_ZONE = "Europe/Zurich"
_START = datetime(2027, 1, 1, tzinfo=UTC)
_ROUNDS = 15
_STEPS = 2_000
_PEER_STEPS = 400
_FIELDS = {
    "second": (0, 0, 1),
    "minute": (0, 59, 1),
    "hour": (0, 23, 1),
    "day_of_month": (1, 31, 1),
    "month": (1, 12, 1),
    "day_of_week": (0, 6, 1),
}
_FASTER = {"croniter": Budget(least_ratio=20), "cronsim": Budget(least_ratio=5)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """One rule in the four languages. cronsim and croniter take seconds as a sixth field, at different ends."""

    name: str
    fields: dict[str, tuple[int, int, int]]
    cronsim: str
    croniter: str
    trigger: dict[str, str]


_WALKED = (
    _Rule(
        name="every second",
        fields={"second": (0, 59, 1)},
        cronsim="* * * * * *",
        croniter="* * * * * *",
        trigger={"second": "*"},
    ),
    _Rule(
        name="every 15 s",
        fields={"second": (0, 59, 15)},
        cronsim="*/15 * * * * *",
        croniter="* * * * * */15",
        trigger={"second": "*/15"},
    ),
    _Rule(name="every minute", fields={}, cronsim="* * * * *", croniter="* * * * *", trigger={"minute": "*"}),
    _Rule(
        name="weekdays at 07:30",
        fields={"minute": (30, 30, 1), "hour": (7, 7, 1), "day_of_week": (1, 5, 1)},
        cronsim="30 7 * * 1-5",
        croniter="30 7 * * 1-5",
        trigger={"minute": "30", "hour": "7", "day_of_week": "mon-fri"},
    ),
)
_LEAP_MONDAY = {
    "minute": (0, 0, 1),
    "hour": (2, 2, 1),
    "day_of_month": (29, 29, 1),
    "month": (2, 2, 1),
    "day_of_week": (1, 1, 1),
}
_NEVER = {"minute": (0, 0, 1), "hour": (0, 0, 1), "day_of_month": (30, 30, 1), "month": (2, 2, 1)}


_RANDOM = "after: weekdays at 07:30, random questions"
_SPARSE = "after: 29 February on a Monday"
_IMPOSSIBLE = "after: 30 February"


def names() -> list[str]:
    """The names of all figures, in their order."""
    return [*(_name(rule) for rule in _WALKED), _RANDOM, _SPARSE, _IMPOSSIBLE]


def _name(rule: _Rule) -> str:
    return f"after: {rule.name}"


def measure() -> Iterator[Figure]:
    """Measure all rules. Values are microseconds for one answer."""
    for rule in _WALKED:
        values = interleave(
            {
                "ours": _walk_ours(rule),
                "croniter": _walk_croniter(rule),
                "cronsim": _walk_cronsim(rule),
                "apscheduler": _walk_trigger(rule),
            },
            _ROUNDS,
        )
        yield from compare(_name(rule), "µs", values, _FASTER)
    yield from _measure_random_questions()
    yield from _measure_leap_monday()
    yield from _measure_never()


def _calendar(fields: dict[str, tuple[int, int, int]]) -> horarium.Calendar:
    rule = {
        name: [{"start": start, "end": end, "step": step}] for name, (start, end, step) in (_FIELDS | fields).items()
    }
    return horarium.parse_calendar(
        {
            "timezone": _ZONE,
            "calendars": [rule],
            "intervals": [],
            "start_at": "1970-01-01T00:00:00Z",
            "end_at": "9999-12-31T23:59:59Z",
        }
    )


def _walk_ours(rule: _Rule) -> Callable[[], float]:
    calendar = _calendar(rule.fields)

    def walk() -> float:
        instant: datetime | None = _START
        begun = perf_counter()
        for _ in range(_STEPS):
            assert instant is not None, "the rule goes on"
            instant = calendar.after(instant)
        return (perf_counter() - begun) / _STEPS * 1e6

    return walk


def _walk_croniter(rule: _Rule) -> Callable[[], float]:
    def walk() -> float:
        iterator = croniter(rule.croniter, _START.astimezone(ZoneInfo(_ZONE)))
        begun = perf_counter()
        for _ in range(_PEER_STEPS):
            iterator.get_next(datetime)
        return (perf_counter() - begun) / _PEER_STEPS * 1e6

    return walk


def _walk_cronsim(rule: _Rule) -> Callable[[], float]:
    def walk() -> float:
        iterator = CronSim(rule.cronsim, _START.astimezone(ZoneInfo(_ZONE)))
        begun = perf_counter()
        for _ in range(_PEER_STEPS):
            next(iterator)
        return (perf_counter() - begun) / _PEER_STEPS * 1e6

    return walk


def _walk_trigger(rule: _Rule) -> Callable[[], float]:
    trigger = CronTrigger(timezone=ZoneInfo(_ZONE), **rule.trigger)

    def walk() -> float:
        fired: Any = _START.astimezone(ZoneInfo(_ZONE))
        begun = perf_counter()
        for _ in range(_PEER_STEPS):
            fired = trigger.get_next_fire_time(fired, fired)
        return (perf_counter() - begun) / _PEER_STEPS * 1e6

    return walk


def _measure_random_questions() -> list[Figure]:
    """The weekday rule again, without the help of a last answer that is near. No budget: shown for honesty."""
    calendar = _calendar(_WALKED[-1].fields)
    chance = random.Random(1)
    questions = [_START + timedelta(seconds=chance.randrange(10 * 365 * 86_400)) for _ in range(_STEPS)]

    def ask() -> float:
        begun = perf_counter()
        for question in questions:
            calendar.after(question)
        return (perf_counter() - begun) / _STEPS * 1e6

    return compare(_RANDOM, "µs", interleave({"ours": ask}, _ROUNDS), {})


def _measure_leap_monday() -> list[Figure]:
    calendar = _calendar(_LEAP_MONDAY)
    questions = [_START + timedelta(days=37 * each) for each in range(200)]
    zone = ZoneInfo(_ZONE)
    trigger = CronTrigger(timezone=zone, day_of_week="mon", day=29, month=2, hour=2, minute=0)

    def ours() -> float:
        begun = perf_counter()
        for question in questions:
            calendar.after(question)
        return (perf_counter() - begun) / len(questions) * 1e6

    def theirs() -> float:
        some = questions[::20]
        begun = perf_counter()
        for question in some:
            croniter("0 2 29 2 1", question.astimezone(zone), day_or=False, max_years_between_matches=100).get_next()
        return (perf_counter() - begun) / len(some) * 1e6

    def triggered() -> float:
        some = questions[::20]
        begun = perf_counter()
        for question in some:
            trigger.get_next_fire_time(None, question.astimezone(zone))
        return (perf_counter() - begun) / len(some) * 1e6

    values = interleave({"ours": ours, "croniter": theirs, "apscheduler": triggered}, _ROUNDS)
    return compare(_SPARSE, "µs", values, {"ours": Budget(greatest=100)})


def _measure_never() -> list[Figure]:
    def ours() -> float:
        calendar = _calendar(_NEVER)
        begun = perf_counter()
        assert calendar.after(_START) is None, "there is no 30 February"
        return (perf_counter() - begun) * 1e6

    def theirs() -> float:
        iterator = croniter("0 0 30 2 *", _START.astimezone(ZoneInfo(_ZONE)))
        begun = perf_counter()
        try:
            iterator.get_next(datetime)
        except CroniterBadDateError:
            return (perf_counter() - begun) * 1e6
        raise AssertionError("there is no 30 February")

    trigger = CronTrigger(timezone=ZoneInfo(_ZONE), day=30, month=2, hour=0, minute=0)

    def triggered() -> float:
        begun = perf_counter()
        trigger.get_next_fire_time(None, _START)
        return (perf_counter() - begun) * 1e6

    values = interleave({"ours": ours, "croniter": theirs, "apscheduler": triggered}, 5)
    return compare(_IMPOSSIBLE, "µs", values, {"ours": Budget(greatest=5_000)})
