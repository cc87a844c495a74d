"""The values that a calendar is made of: rules over local fields, and intervals over UTC seconds.

A field is a bit mask: bit `n` is set where the value `n` is selected.
"""

from dataclasses import dataclass
from typing import Final

FIRST_YEAR: Final = 1
LAST_YEAR: Final = 9999
EVERY_YEAR: Final = (1 << LAST_YEAR + 1) - (1 << FIRST_YEAR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A local date and time of day match when all their fields do.

    With `either_day` a date matches by its day of month or by its day of week, as cron has it when both are
    restricted; without, it must match both. Days of week count from Sunday 0.
    """

    second: int
    minute: int
    hour: int
    day_of_month: int
    month: int
    day_of_week: int
    year: int = EVERY_YEAR
    either_day: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Selects the UTC seconds `offset_seconds + k * every_seconds` since 1970, whatever the zone."""

    every_seconds: int
    offset_seconds: int

    def next(self, second: int) -> int:
        """Give the first selected second that is not before this one."""
        return second + (self.offset_seconds - second) % self.every_seconds

    def count(self, first: int, last: int) -> int:
        """Count the selected seconds from `first` to `last`, both included."""
        found = self.next(first)
        return 0 if found > last else (last - found) // self.every_seconds + 1


def lowest_bit(mask: int) -> int:
    """Give the smallest selected value of a mask that is not empty."""
    return (mask & -mask).bit_length() - 1


def bits(mask: int) -> list[int]:
    """List the selected values in order."""
    return [value for value in range(mask.bit_length()) if mask >> value & 1]
