"""Schedules as an organization may have them: from hourly to weekly, each in a zone and at a minute of its own.

All of them are due at one more instant too, together: so a herd of everything can be seen without enabling anything anew.
"""

import random
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from benchmarks.due_schedules import AGENT, INPUT, OUTPUT_TARGET
from horarium.schedule.identity import instant_text

ZONES: Final = (
    "America/Los_Angeles",
    "America/New_York",
    "America/Sao_Paulo",
    "Europe/London",
    "Europe/Zurich",
    "Africa/Lagos",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Asia/Tokyo",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "Etc/UTC",
)
LONGEST: Final = 316_224_000
"""Seconds: the longest interval that there is, of ten years. Who is due once in it is due once while something is measured."""
CATCHUP_SECONDS: Final = 3_600
"""Longer than any herd takes: what is late is to be measured, and not missed."""


def mixed(count: int, *, together_at: datetime, begins_at: datetime, seed: int = 7) -> list[dict[str, Any]]:
    """So many configurations, the same for the same arguments. `together_at` is a whole second at which all are due."""
    chance = random.Random(seed)
    return [_configuration(number, chance, together_at, begins_at) for number in range(count)]


def _configuration(number: int, chance: random.Random, together_at: datetime, begins_at: datetime) -> dict[str, Any]:
    return {
        "name": f"Mixed {number}",
        "calendar": {
            "timezone": chance.choice(ZONES),
            "calendars": [_rule(chance)],
            "intervals": [{"every_seconds": LONGEST, "offset_seconds": int(together_at.timestamp()) % LONGEST}],
            "start_at": instant_text(begins_at),
            "end_at": "2199-12-31T00:00:00Z",
        },
        "policy": {"overlap": "skip", "catchup_window_seconds": CATCHUP_SECONDS, "pause_on_failure": False},
        "run": {
            "agent_version": AGENT,
            "input": INPUT,
            "output_target": OUTPUT_TARGET,
            "grants": [],
            "budget_id": None,
            "usage_class": "test_simulation",
        },
    }


def _rule(chance: random.Random) -> Mapping[str, Sequence[Mapping[str, int]]]:
    """Hourly, every few hours, daily or weekly, as often as each other."""
    hour, day = chance.randrange(24), chance.randrange(7)
    hours, days = chance.choice(
        [
            ((0, 23, 1), (0, 6, 1)),
            ((0, 23, chance.choice([2, 3, 4, 6])), (0, 6, 1)),
            ((hour, hour, 1), (0, 6, 1)),
            ((hour, hour, 1), (day, day, 1)),
        ]
    )
    minute, second = chance.randrange(60), chance.randrange(60)
    fields = {
        "second": (second, second, 1),
        "minute": (minute, minute, 1),
        "hour": hours,
        "day_of_month": (1, 31, 1),
        "month": (1, 12, 1),
        "day_of_week": days,
    }
    return {name: [{"start": start, "end": end, "step": step}] for name, (start, end, step) in fields.items()}
