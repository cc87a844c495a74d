"""Calendars: which instants are due, on the wall clock of a zone. Pure: no clock, no input, no output."""

from horarium.calendar.calendars import AtClockChange, Calendar
from horarium.calendar.clock_changes import ClockNote, clock_changes
from horarium.calendar.cron import parse_cron
from horarium.calendar.documents import parse_calendar
from horarium.calendar.instants import parse_instant
from horarium.calendar.timing import parse_timing
from horarium.calendar.zones import tzdata_version, zone_names

__all__ = [
    "AtClockChange",
    "Calendar",
    "ClockNote",
    "clock_changes",
    "parse_calendar",
    "parse_cron",
    "parse_instant",
    "parse_timing",
    "tzdata_version",
    "zone_names",
]
