"""Horarium: durable schedules for unattended agent runs. The names here are what other programs use."""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from horarium.calendar import Calendar, parse_calendar, parse_cron
from horarium.errors import Fault, HorariumError, InvalidSchedule

if TYPE_CHECKING:
    from horarium.client import Client

__version__ = version("horarium")

__all__ = [
    "Calendar",
    "Client",
    "Fault",
    "HorariumError",
    "InvalidSchedule",
    "__version__",
    "parse_calendar",
    "parse_cron",
]


def __getattr__(name: str) -> Any:
    # Whoever needs a calendar alone does not wait for an HTTP client to be imported.
    if name == "Client":
        from horarium.client import Client  # noqa: PLC0415 - as above

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
