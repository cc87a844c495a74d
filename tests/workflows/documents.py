"""Configurations for the agent that works in the house, as a person would submit them."""

from collections.abc import Mapping
from typing import Any


def every(seconds: int, *, offset: int = 0, **rest: Any) -> dict[str, Any]:
    """An interval."""
    return configuration([], [{"every_seconds": seconds, "offset_seconds": offset}], **rest)


def weekdays(hour: int, minute: int, zone: str) -> dict[str, Any]:
    """Monday to Friday at one time of the day."""
    rule = {
        field: [{"start": start, "end": end, "step": 1}]
        for field, (start, end) in {
            "second": (0, 0),
            "minute": (minute, minute),
            "hour": (hour, hour),
            "day_of_month": (1, 31),
            "month": (1, 12),
            "day_of_week": (1, 5),
        }.items()
    }
    return configuration([rule], [], zone=zone)


def configuration(
    calendars: list[Mapping[str, Any]],
    intervals: list[Mapping[str, Any]],
    *,
    zone: str = "UTC",
    end_at: str = "2199-12-31T23:59:59Z",
    overlap: str = "skip",
    window: int = 60,
    pause_on_failure: bool = False,
    slots: int | None = None,
) -> dict[str, Any]:
    """A configuration for the agent `worked@1`."""
    policy: dict[str, Any] = {
        "overlap": overlap,
        "catchup_window_seconds": window,
        "pause_on_failure": pause_on_failure,
    }
    if slots is not None:
        policy["max_concurrent_runs"] = slots
    return {
        "name": "A test",
        "calendar": {
            "timezone": zone,
            "calendars": calendars,
            "intervals": intervals,
            "start_at": "1970-01-01T00:00:00Z",
            "end_at": end_at,
        },
        "policy": policy,
        "run": {
            "agent_version": "worked@1",
            "input": "letters",
            "output_target": "reports",
            "grants": [],
            "budget_id": None,
            "usage_class": "test_simulation",
        },
    }
