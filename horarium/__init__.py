"""Horarium: durable schedules for unattended agent runs. The names here are what other programs use."""

from importlib.metadata import version

from horarium.calendar import Calendar, parse_calendar, parse_cron
from horarium.errors import Fault, HorariumError, InvalidSchedule

__version__ = version("horarium")

__all__ = ["Calendar", "Fault", "HorariumError", "InvalidSchedule", "__version__", "parse_calendar", "parse_cron"]
