"""A calendar in words: `weekdays at 07:30 Europe/Zurich`.

What is told follows from the fields that are evaluated, whichever contract they were written in, and never from the text of a
document. Where a pattern has no usual name, the words list what the rule selects: longer, and never wrong.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Final

from horarium.calendar.calendars import FIRST_SECOND, LAST_SECOND, Calendar
from horarium.calendar.dates import FIRST_DAY, LAST_DAY
from horarium.calendar.dates_in_words import SINCE_1970, Dates, dates_of, named_dates
from horarium.calendar.rules import Rule
from horarium.calendar.spelling import counted, moment
from horarium.calendar.times_in_words import interval_of, times_of
from horarium.calendar.zones import DAY, EPOCH_ORDINAL, zone

MOST_PARTS: Final = 4
"""Rules that one sentence tells; the parts hold all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A calendar in words. `sentence` is the whole, without a capital and a full stop; `parts` has every rule by itself."""

    sentence: str
    parts: tuple[str, ...]


@lru_cache(maxsize=1_024)
def in_words(calendar: Calendar) -> Words:
    """Tell a calendar in words. Its bounds are told in UTC, since that is how they are written."""
    if calendar.first == calendar.last and not calendar.is_empty:
        once = f"once, on {moment(calendar.first)}"
        return Words(sentence=once, parts=(once,))
    parts = [f"{each}{_in_zone(each, calendar.timezone)}" for each in _told(calendar.rules, _years(calendar))]
    parts += [interval_of(each) for each in calendar.intervals]
    shown = parts[:MOST_PARTS]
    if len(parts) > MOST_PARTS:
        shown.append(f"and {counted(len(parts) - MOST_PARTS, 'more rule')}")
    sentence = f"{'; '.join(shown)}{_bounds(calendar)}"
    if calendar.is_empty:
        sentence = f"never: {sentence}"
    return Words(sentence=sentence, parts=tuple(parts))


def _in_zone(told: str, zone: str) -> str:
    if told in {"every second", "every minute"}:
        return ""
    # After a time of the day it reads as that time's own; after anything else it is of the whole.
    return f" {zone}" if told[-2:].isdecimal() and " at " in told else f", {zone}"


def _bounds(calendar: Calendar) -> str:
    since = "" if calendar.first == FIRST_SECOND else f", from {moment(calendar.first)}"
    until = "" if calendar.last == LAST_SECOND else f", until {moment(calendar.last)}"
    return f"{since}{until}"


def _years(calendar: Calendar) -> int:
    """The years on the calendar's wall between its bounds: a rule needs to say nothing of the others."""
    first, last = (
        (second + zone(calendar.timezone).span(second).offset) // DAY for second in (calendar.first, calendar.last)
    )
    since, until = (date.fromordinal(min(max(day, FIRST_DAY), LAST_DAY) + EPOCH_ORDINAL).year for day in (first, last))
    return (1 << until + 1) - (1 << since) & SINCE_1970


def _told(rules: tuple[Rule, ...], years: int) -> Iterator[str]:
    """Each rule in words; those of the same times together, where their dates together have a name in these years."""
    groups: dict[tuple[int, int, int], list[Rule]] = {}
    for rule in rules:
        groups.setdefault((rule.second, rule.minute, rule.hour), []).append(rule)
    for times, group in groups.items():
        named = named_dates(group, years)
        for dates in [named] if named is not None else [dates_of(rule) for rule in group]:
            yield _joined(times_of(*times), dates)


def _joined(times: str, dates: Dates) -> str:
    if times.startswith("at ") and " of " not in times:
        return f"{dates.before} {times}"
    return f"{times} {dates.behind}".strip()
