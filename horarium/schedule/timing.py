"""When a stored version is due: the timing in its document, whichever contract wrote it.

The canonical contract stores a `calendar` beside name, policy and run, and knows nothing else. The others store a `timing`:
an object with exactly one of `calendar`, `cron` and `instant`, since a cron's rules for changes of the clock cannot be written
as a calendar.
"""

from collections.abc import Mapping
from typing import Any, Final

from horarium.calendar import Calendar, parse_timing
from horarium.errors import InvalidSchedule

TIMING: Final = "timing"
"""The key of a timing in a stored document that the canonical contract did not make."""
CALENDAR: Final = "calendar"


def stored_timing(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The timing of a stored document, under the name of its kind.

    A `calendar` that stands by itself is one, as the canonical contract stores it. Raises `KeyError` where there is neither.
    """
    if TIMING not in document:
        return {CALENDAR: document[CALENDAR]}
    timing: Mapping[str, Any] = document[TIMING]
    return timing


def evaluated(timing: Mapping[str, Any], *, at: str = "") -> Calendar | InvalidSchedule:
    """The timing ready to evaluate, or why this release cannot: its zone may be gone from the zone data."""
    try:
        return parse_timing(timing, at=at)
    except InvalidSchedule as error:
        return error
