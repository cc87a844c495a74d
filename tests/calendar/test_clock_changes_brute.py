# ruff: noqa: DTZ001 - a wall time without a zone is what the scan needs
"""Every zone around the changes of its clock from 1970 to 2040, against a scan that knows nothing of our search.

The scan asks the standard library for the local fields of every UTC second in question and compares them with
the rule. Zones whose files are the same are taken once. The rules are drawn with a fixed seed, near the change.
"""

import random
from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib import resources
from zoneinfo import ZoneInfo

from horarium import parse_calendar, parse_cron
from horarium.calendar import Calendar
from horarium.calendar.zones import Change, zone, zone_names

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = 0
LAST = int((datetime(2040, 12, 31, tzinfo=UTC) - EPOCH).total_seconds())
FIELDS = ("second", "minute", "hour", "day_of_month", "month", "day_of_week")
BOUNDS = {
    "second": (0, 59),
    "minute": (0, 59),
    "hour": (0, 23),
    "day_of_month": (1, 31),
    "month": (1, 12),
    "day_of_week": (0, 6),
}
LIMIT = timedelta(hours=3)


@lru_cache(maxsize=1)
def distinct_zones() -> list[tuple[str, ZoneInfo]]:
    """One name for every file of the zone data, with the standard library's reading of it."""
    seen: dict[bytes, tuple[str, ZoneInfo]] = {}
    for name in sorted(zone_names()):
        file = resources.files("tzdata").joinpath("zoneinfo", *name.split("/"))
        data = file.read_bytes()
        if data not in seen:
            with file.open("rb") as opened:
                seen[data] = (name, ZoneInfo.from_file(opened, key=name))
    return list(seen.values())


def changes_of(name: str) -> list[Change]:
    return list(zone(name).changes(FIRST, LAST))


def half_of(name: str, parity: int) -> list[Change]:
    """Every second change, and all that are not by one hour."""
    changes = enumerate(changes_of(name))
    return [change for number, change in changes if number % 2 == parity or abs(change.after - change.before) != 3600]


def scan(theirs: ZoneInfo, first: int, last: int, step: int = 1) -> list[tuple[int, datetime]]:
    """UTC seconds with the wall clock that the standard library shows at them."""
    return [(second, datetime.fromtimestamp(second, theirs)) for second in range(first, last + 1, step)]


def minutes_around(at: int, hours: int, theirs: ZoneInfo) -> list[tuple[int, datetime]]:
    """The seconds near a change at which a local minute begins. All offsets since 1970 are whole half minutes."""
    first, last = at - hours * 3600, at + hours * 3600 - 1
    odd = any(datetime.fromtimestamp(second, theirs).second for second in (first, last))
    scanned = scan(theirs, first, last, 30 if odd else 60)
    return [(second, local) for second, local in scanned if local.second == 0]


def near(value: int, name: str, chance: random.Random) -> set[int]:
    """Values of a field that are likely to match close to a change, or all of them."""
    low, high = BOUNDS[name]
    style = chance.randrange(4)
    if style == 0:
        return set(range(low, high + 1))
    if style == 1:
        return {value}
    if style == 2:
        return set(range(low, high + 1, chance.randrange(1, 4))) | {value}
    return {low + (value - low + step) % (high - low + 1) for step in (-1, 0, 1)}


def fields_of(local: datetime) -> dict[str, int]:
    return {
        "second": local.second,
        "minute": local.minute,
        "hour": local.hour,
        "day_of_month": local.day,
        "month": local.month,
        "day_of_week": local.isoweekday() % 7,
    }


def ranges(values: set[int]) -> list[dict[str, int]]:
    written: list[dict[str, int]] = []
    for value in sorted(values):
        if written and written[-1]["end"] == value - 1:
            written[-1]["end"] = value
        else:
            written.append({"start": value, "end": value, "step": 1})
    return written


def canonical(name: str, rules: list[dict[str, set[int]]]) -> Calendar:
    return parse_calendar(
        {
            "timezone": name,
            "calendars": [{field: ranges(values) for field, values in rule.items()} for rule in rules],
            "intervals": [],
            "start_at": "1900-01-01T00:00:00Z",
            "end_at": "9999-12-31T23:59:59Z",
        }
    )


def matches(local: datetime, rule: dict[str, set[int]]) -> bool:
    # The minute first: it differs most, and a scan asks a million times.
    if local.minute not in rule["minute"]:
        return False
    fields = fields_of(local)
    return all(fields[name] in rule[name] for name in rule)


def answers(calendar: Calendar, first: int, last: int) -> list[int]:
    """What the calendar says, asked in both ways; the count has to agree."""
    start, end = EPOCH + timedelta(seconds=first), EPOCH + timedelta(seconds=last)
    walked = [(instant - EPOCH) // timedelta(seconds=1) for instant in calendar.between(start, end)]
    assert calendar.count(start, end) == len(walked)
    instant: datetime | None = start - timedelta(microseconds=1)
    for second in walked[:30]:
        instant = calendar.after(instant)
        assert instant == EPOCH + timedelta(seconds=second)
    return walked


def test_rules_by_the_minute_match_a_scan_around_the_changes_of_every_zone():
    chance = random.Random(1)
    wrong = []
    for name, theirs in distinct_zones():
        for number, change in enumerate(half_of(name, 0)):
            # Most windows hold the change alone; now and then whole days around it.
            hours = 28 if number % 100 == 0 else 2 if abs(change.after - change.before) <= 3600 else 5
            scanned = minutes_around(change.at, hours, theirs)
            anchor = fields_of(chance.choice(scanned[len(scanned) // 3 : -len(scanned) // 3])[1])
            rules = [
                {field: near(anchor[field], field, chance) for field in FIELDS} | {"second": {0}}
                for _ in range(chance.randrange(1, 3))
            ]
            rules = [rule for index, rule in enumerate(rules) if rule not in rules[:index]]
            expected = [second for second, local in scanned if any(matches(local, rule) for rule in rules)]
            found = answers(canonical(name, rules), change.at - hours * 3600, change.at + hours * 3600 - 1)
            if found != expected:
                wrong.append((name, change, rules))
    assert wrong == []


def test_rules_by_the_second_match_a_scan_at_the_changes_of_every_zone():
    chance = random.Random(2)
    wrong = []
    for name, theirs in distinct_zones():
        for change in changes_of(name)[::3]:
            first, last = change.at - 40, change.at + 40
            scanned = scan(theirs, first, last)
            anchor = fields_of(chance.choice(scanned)[1])
            rule = {field: near(anchor[field], field, chance) for field in FIELDS}
            expected = [second for second, local in scanned if matches(local, rule)]
            if answers(canonical(name, [rule]), first, last) != expected:
                wrong.append((name, change, rule))
    assert wrong == []


def fixed_cron_by_scan(scanned: list[tuple[int, datetime]], change: Change, rule: dict[str, set[int]]) -> list[int]:
    """Vixie's rule for a fixed time, by the book: look at each local time that matches, and where the change left it."""
    shift = timedelta(seconds=change.after - change.before)
    back = change.before - change.after if -LIMIT <= shift < timedelta(0) else 0
    repeated = range(change.at, change.at + back)
    expected = {second for second, local in scanned if second not in repeated and matches(local, rule)}
    if timedelta(0) < shift <= LIMIT:
        wall = datetime(1970, 1, 1) + timedelta(seconds=change.at + change.before)
        end = wall + shift
        wall += timedelta(seconds=-wall.second % 60)
        while wall < end:
            if matches(wall, rule):
                expected.add(change.at)
            wall += timedelta(minutes=1)
    return sorted(expected)


def test_fixed_cron_times_run_once_around_the_changes_of_every_zone():
    chance = random.Random(3)
    wrong = []
    for name, theirs in distinct_zones():
        for change in half_of(name, 1):
            hours = 2 if abs(change.after - change.before) <= 3600 else 5
            scanned = minutes_around(change.at, hours, theirs)
            gap = datetime(1970, 1, 1) + timedelta(
                seconds=change.at + min(change.before, change.after), minutes=chance.randrange(0, 60)
            )
            anchor = fields_of(gap)
            minutes = near(anchor["minute"], "minute", chance)
            times = {"minute": minutes, "hour": near(anchor["hour"], "hour", chance)}
            text = " ".join([",".join(map(str, sorted(times["minute"]))), ",".join(map(str, sorted(times["hour"])))])
            days = {"day_of_month": {anchor["day_of_month"]}} if chance.random() < 0.5 else {}
            calendar = parse_cron(f"{text} {anchor['day_of_month'] if days else '*'} * *", name)
            expected = fixed_cron_by_scan(scanned, change, times | days)
            if answers(calendar, change.at - hours * 3600, change.at + hours * 3600 - 1) != expected:
                wrong.append((name, change, calendar.rules, days))
    assert wrong == []


def test_cron_with_a_star_follows_the_clock_as_a_canonical_rule_does():
    everything = {field: set(range(low, high + 1)) for field, (low, high) in BOUNDS.items()}
    hourly = everything | {"second": {0}, "minute": {30}}
    for name, _ in distinct_zones():
        cron, rule = parse_cron("30 * * * *", name), canonical(name, [hourly])
        for change in changes_of(name)[::4]:
            window = (change.at - 4 * 3600, change.at + 4 * 3600)
            assert answers(cron, *window) == answers(rule, *window)


def test_what_comes_after_an_instant_is_later_and_the_first_such():
    """A hundred thousand random instants, microseconds included, close to changes in all zones."""
    chance = random.Random(4)
    places = [(name, change.at) for name, _ in distinct_zones() for change in changes_of(name)]
    texts = ["* * * * *", "*/15 * * * *", "30 2 * * *", "0 0 * * 0", "15,45 1-3 * * *", "0 */4 1 * *", "30 23 29 2 *"]
    asked = 0
    while asked < 100_000:
        name, at = chance.choice(places)
        calendar = parse_cron(chance.choice(texts), name)
        start = EPOCH + timedelta(seconds=at)
        due = list(calendar.between(start - timedelta(hours=6), start + timedelta(hours=6)))
        for _ in range(200):
            instant = start + timedelta(microseconds=chance.randrange(-5 * 3600 * 10**6, 5 * 3600 * 10**6))
            found = calendar.after(instant)
            assert found is None or found > instant
            index = bisect_left(due, instant)
            if index < len(due):
                assert found == (
                    due[index] if due[index] > instant else due[index + 1] if index + 1 < len(due) else found
                )
            asked += 1


def test_there_are_zones_and_changes_to_test():
    names = [name for name, _ in distinct_zones()]
    assert len(names) > 300
    assert sum(len(changes_of(name)) for name in names) > 15_000
