"""Cron: five positions and a zone.

The text is checked here, position by position, against plain Vixie syntax, so that nothing is accepted that croniter
knows beyond it: macros, a sixth field, `L`, `W`, `#`, `?`, hashes, reversed ranges. croniter then has to accept it as
well. It does not evaluate, and its values are not used: it reads `5-5` as every value, `7/2` as every second weekday,
and errs at changes of the clock.
"""

import re
from typing import Final, NamedTuple

from croniter import croniter
from croniter.croniter import CroniterError

from horarium.calendar.calendars import FIRST_SECOND, LAST_SECOND, AtClockChange, Calendar
from horarium.calendar.faults import Faults, pointer, shown
from horarium.calendar.instants import ANY_END, ANY_START, read_bounds
from horarium.calendar.rules import Rule
from horarium.calendar.zone_names import check_timezone

MAX_LENGTH: Final = 1000

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_VALUE = r"\d{1,4}|[a-z]{3}"
_ITEM = re.compile(
    rf"(?:(?P<star>\*)|(?P<low>{_VALUE})(?:-(?P<high>{_VALUE}))?)(?:/(?P<step>\d{{1,4}}))?", re.ASCII | re.IGNORECASE
)


class _Position(NamedTuple):
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    written_high: int = 0
    """The highest number that may be written: 7 is Sunday too."""


_POSITIONS = (
    _Position("minute", 0, 59, (), 59),
    _Position("hour", 0, 23, (), 23),
    _Position("day_of_month", 1, 31, (), 31),
    _Position("month", 1, 12, _MONTHS, 12),
    _Position("day_of_week", 0, 6, _WEEKDAYS, 7),
)
POSITION_NAMES: Final = tuple(position.name for position in _POSITIONS)


def parse_cron(
    expression: object,
    timezone: object,
    *,
    start_at: object = None,
    end_at: object = None,
    at: str = "",
) -> Calendar:
    """Read five cron positions, as one text or as an object with a member for each, and build their calendar.

    Values, lists, ranges, steps (`*/15`, `10-50/5`, and `5/15`, which is `5-59/15`) and the English names of months and
    weekdays in any case are known; 7 is Sunday, also at the end of a range (`fri-sun`). A step may not exceed the
    greatest value of its position: `*/90` would silently run every hour.

    If day of month and day of week are both restricted (neither begins with `*`), a date matches by either, else it must
    match by both. A job with `*` in its minute or hour follows the wall clock. Any other runs once on each matching local date:
    a time inside a gap moves to the first instant after it, a repeated one is the first of the two. A jump of more
    than three hours corrects the clock and is followed as it is.

    `start_at` and `end_at` are UTC timestamps as in a canonical calendar; None leaves that end open. Raises
    `InvalidSchedule` with all faults. The pointer of a position is its name, also where it was part of a text.
    """
    faults = Faults()
    texts = _split(expression, at, faults)
    rule = _read_rule(texts, at, faults)
    checked = check_timezone(timezone, at, faults)
    first, last = read_bounds(
        ANY_START if start_at is None else start_at, ANY_END if end_at is None else end_at, at, faults
    )
    faults.raise_if_any()
    assert rule is not None, "without a fault there is a rule"
    follows = "*" in texts["minute"] or "*" in texts["hour"]
    return Calendar(
        timezone=checked,
        rules=(rule,),
        at_clock_change=AtClockChange.FOLLOW if follows else AtClockChange.ONCE,
        first=max(first, FIRST_SECOND),
        last=min(last, LAST_SECOND),
    )


def _split(expression: object, at: str, faults: Faults) -> dict[str, str]:
    """Give the text of every position that has one; what is missing or no text is noted."""
    if isinstance(expression, dict):
        return _split_object(expression, at, faults)
    if not isinstance(expression, str):
        sentence = f"Expected five cron positions such as '30 7 * * 1-5', not {shown(expression)}."
        faults.add(at, "not_a_cron", sentence)
        return {}
    if len(expression) > MAX_LENGTH:
        faults.add(at, "cron_too_long", f"A cron text has at most {MAX_LENGTH} characters, not {len(expression)}.")
        return {}
    if expression.lstrip().startswith("@") or "=" in expression:
        sentence = (
            f"{shown(expression)} is a macro or sets a variable. Write the five positions, and the zone in 'timezone'."
        )
        faults.add(at, "cron_macro", sentence)
        return {}
    parts = [part for part in re.split(r"[ \t]", expression) if part]
    if len(parts) != len(_POSITIONS):
        sentence = (
            f"{shown(expression)} has {len(parts)} positions. Exactly five are needed, with spaces between them: "
            "minute, hour, day of month, month, day of week."
        )
        faults.add(at, "cron_positions", sentence)
        return {}
    return dict(zip(POSITION_NAMES, parts, strict=True))


def _split_object(expression: dict[object, object], at: str, faults: Faults) -> dict[str, str]:
    texts: dict[str, str] = {}
    for name in POSITION_NAMES:
        here = pointer(at, name)
        value = expression.get(name)
        if name not in expression:
            faults.add(here, "missing_field", f"{name!r} is required: a text such as '*' or '0'.")
        elif not isinstance(value, str):
            faults.add(here, "not_a_cron", f"{name!r} must be a text such as '*' or '0', not {shown(value)}.")
        elif len(value) > MAX_LENGTH:
            faults.add(here, "cron_too_long", f"{name!r} has at most {MAX_LENGTH} characters, not {len(value)}.")
        else:
            texts[name] = value
    faults.check_members(expression, at, POSITION_NAMES)
    if sum(len(text) + 1 for text in texts.values()) > MAX_LENGTH + 1:
        faults.add(at, "cron_too_long", f"The five positions have at most {MAX_LENGTH} characters together.")
        return {}
    return texts


def _read_rule(texts: dict[str, str], at: str, faults: Faults) -> Rule | None:
    before = len(faults)
    masks = {
        position.name: _read_position(position, texts[position.name], pointer(at, position.name), faults)
        for position in _POSITIONS
        if position.name in texts
    }
    if len(faults) > before or len(masks) < len(_POSITIONS):
        return None
    try:
        croniter.expand(" ".join(texts.values()))
    except CroniterError as refused:
        faults.add(at, "not_a_cron", f"croniter refuses it: {str(refused)[:200]}.")
        return None
    either = not texts["day_of_month"].startswith("*") and not texts["day_of_week"].startswith("*")
    return Rule(second=1, either_day=either, **masks)


def _read_position(position: _Position, text: str, at: str, faults: Faults) -> int:
    mask = 0
    for item in text.split(","):
        mask |= _read_item(position, item, at, faults)
    return mask


def _read_item(position: _Position, item: str, at: str, faults: Faults) -> int:
    match = _ITEM.fullmatch(item)
    if match is None:
        sentence = f"{shown(item)} is no value of {_title(position)}: {_expected(position)}."
        faults.add(at, "cron_syntax", sentence)
        return 0
    low_text, high_text, step_text = match["low"], match["high"], match["step"]
    low = position.low if match["star"] else _read_value(position, low_text, at, faults)
    if low is None:
        return 0
    if match["star"] or (high_text is None and step_text is not None):
        high: int | None = max(position.high, low)
    else:
        high = low if high_text is None else _read_value(position, high_text, at, faults)
    step = 1 if step_text is None else int(step_text)
    if not 1 <= step <= position.written_high:
        sentence = f"The step of {shown(item)} must be from 1 to {position.written_high} in {_title(position)}."
        faults.add(at, "cron_step", sentence)
        return 0
    if high is None:
        return 0
    if position.name == "day_of_week" and high == 0 and low > 0 and not high_text.isdecimal():
        high = 7  # `fri-sun`: as the end of a range, Sunday is the seventh day
    if low > high:
        faults.add(at, "cron_reversed", _reversed(position, item, low_text, high_text, step_text))
        return 0
    return sum({1 << (value % 7 if position.names is _WEEKDAYS else value) for value in range(low, high + 1, step)})


def _read_value(position: _Position, text: str, at: str, faults: Faults) -> int | None:
    if not text.isdecimal():
        name = text.lower()
        if name in position.names:
            return position.names.index(name) + position.low
        faults.add(at, "cron_name", f"{shown(text)} is no value of {_title(position)}: {_expected(position)}.")
        return None
    value = int(text)
    if not position.low <= value <= position.written_high:
        sentence = f"{text} is outside {_title(position)}, which is {position.low} to {position.written_high}."
        faults.add(at, "out_of_range", sentence)
        return None
    return value


def _reversed(position: _Position, item: str, low: str, high: str, step: str | None) -> str:
    by_name = bool(position.names) and not low.isdecimal()
    end = position.names[-1] if by_name else str(position.high)
    start = position.names[0] if by_name else str(position.low)
    sentence = f"The range {shown(item)} of {_title(position)} ends before it begins."
    if step is not None:
        return f"{sentence} List the values instead."
    parts = [low if low.lower() == end else f"{low}-{end}", start if high.lower() == start else f"{start}-{high}"]
    return f"{sentence} Write {','.join(parts)!r} to wrap around."


def _title(position: _Position) -> str:
    return position.name.replace("_", " ")


def _expected(position: _Position) -> str:
    names = f", {position.names[0]} to {position.names[-1]}" if position.names else ""
    return f"use {position.low} to {position.written_high}{names}, with '*', lists '1,2', ranges '1-5' and steps '*/2'"
