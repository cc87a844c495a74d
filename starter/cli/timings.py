"""Calendars and instants in few words, for tables and records that people read."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from horarium.calendar.cron import POSITION_NAMES
from horarium.schedule.timing import TIMING

_DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
_MONTHS = ("", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_FULL = {
    "second": (0, 59),
    "minute": (0, 59),
    "hour": (0, 23),
    "day_of_month": (1, 31),
    "month": (1, 12),
    "day_of_week": (0, 6),
    "year": (1970, 9999),
}
STALE = timedelta(seconds=30)
"""An observation that is older than this says how old it is: a controller that runs looks every few seconds."""


def brief(text: str, *, now: datetime) -> str:
    """An instant of a document in as few characters as leave no doubt: `11-29 23:42:00Z`, with its year where it is another."""
    instant = datetime.fromisoformat(text).astimezone(UTC)
    return f"{instant:%m-%d %H:%M:%SZ}" if instant.year == now.year else f"{instant:%Y-%m-%d %H:%M:%SZ}"


def last_outcome(answer: Mapping[str, Any]) -> list[tuple[str, object]]:
    """The field that says what became of a schedule last; none before that, and where a server does not tell it."""
    told = answer.get("last_outcome")
    if told is None:
        return []
    reason = "" if told["reason"] is None else f" ({told['reason']})"
    return [("Last outcome", f"{told['disposition']}{reason}, due {told['nominal_time']}")]


def ago(text: str, *, now: datetime) -> str:
    """How long ago an instant was, in its largest unit; empty while that is not worth a word."""
    passed = now - datetime.fromisoformat(text)
    if passed < STALE:
        return ""
    seconds = int(passed.total_seconds())
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"


def when(configuration: Mapping[str, Any]) -> tuple[str, list[tuple[str, str]]]:
    """When a stored configuration is due, whichever contract made it: its zone, and what it says, each with a title."""
    match configuration.get(TIMING, configuration):
        case {"cron": cron}:
            return cron["timezone"], [("Cron", " ".join(cron[name] for name in POSITION_NAMES))]
        case {"instant": instant}:
            return "UTC", [("Once", instant)]
        case {"calendar": calendar}:
            return calendar["timezone"], [("Calendar", rule) for rule in in_words(calendar)]
        case _:
            return "-", [("Due", "by a timing that this release does not know")]


def in_words(calendar: dict[str, Any]) -> list[str]:
    """The rules of a canonical calendar, one text for each, then its bounds."""
    rules = [_rule(rule) for rule in calendar["calendars"]]
    return [*rules, *map(_interval, calendar["intervals"]), f"from {calendar['start_at']} to {calendar['end_at']}"]


def _rule(rule: dict[str, Any]) -> str:
    days = []
    if not _is_full(rule, "day_of_week"):
        days.append(f"on {_values(rule['day_of_week'], _DAYS)}")
    if not _is_full(rule, "day_of_month"):
        days.append(f"on day {_values(rule['day_of_month'])} of the month")
    if not _is_full(rule, "month"):
        days.append(f"in {_values(rule['month'], _MONTHS)}")
    if "year" in rule and not _is_full(rule, "year"):
        days.append(f"in {_values(rule['year'])}")
    return f"{_clock(rule)} {', '.join(days) or 'every day'}"


def _clock(rule: dict[str, Any]) -> str:
    parts = [rule["hour"], rule["minute"], rule["second"]]
    if all(len(part) == 1 and part[0]["start"] == part[0]["end"] for part in parts):
        return "at " + ":".join(f"{part[0]['start']:02}" for part in parts)
    told = [
        f"every {name}" if _is_full(rule, name) else f"{name} {_values(rule[name])}"
        for name in ("hour", "minute", "second")
    ]
    return "at " + ", ".join(told)


def _is_full(rule: dict[str, Any], name: str) -> bool:
    low, high = _FULL[name]
    return bool(rule[name] == [{"start": low, "end": high, "step": 1}])


def _values(ranges: Sequence[dict[str, int]], names: Sequence[str] = ()) -> str:
    def named(value: int) -> str:
        return names[value] if names else str(value)

    told = []
    for each in ranges:
        span = named(each["start"]) if each["start"] == each["end"] else f"{named(each['start'])}-{named(each['end'])}"
        told.append(span if each["step"] == 1 or each["start"] == each["end"] else f"{span}/{each['step']}")
    return ", ".join(told)


def _interval(interval: dict[str, int]) -> str:
    every, offset = interval["every_seconds"], interval["offset_seconds"]
    return f"every {every} s" + (f", {offset} s after each multiple" if offset else "") + " since 1970 in UTC"
