"""Twenty schedules of every overlap policy, period and agent, and what operators declare so that they may run."""

import json
import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from horarium.schedule.identity import Scope
from tests.chaos.fates import CHANCES, LIMIT_SECONDS, MAX_COST
from tests.chaos.receiver import AGAIN, ONCE, POLLED, SECRET

PEOPLE = ("ada", "bert")
OVERLAPS = ("skip", "buffer_one", "buffer_all", "allow")
AGENTS: Mapping[str, Mapping[str, Any]] = {
    "once@1": {},
    "again@1": {"idempotent": True},
    "posted-once@1": {"gateway": "http", "destination": ONCE},
    "posted-again@1": {"gateway": "http", "destination": AGAIN, "idempotent": True},
    "polled@1": {"gateway": "http", "destination": POLLED, "idempotent": True},
}
"""Every agent version by its name, and what is declared of it beside its limits."""
IDEMPOTENT = frozenset(name for name, facts in AGENTS.items() if facts.get("idempotent"))
ELSEWHERE = frozenset(name for name, facts in AGENTS.items() if facts.get("gateway") == "http")
PERIODS = (1, 1, 2, 2, 3, 3, 4, 5, 5, 6, 7, 8, 9, 10, 10, 12, 13, 15, 18, 20)
BUDGETS = ("wide", "owed", "wide", "owed", "tight")
TIGHT = 20 * MAX_COST
"""The room of the budget that is used up in the middle."""
_ROOM = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One schedule as it is published first."""

    schedule_id: str
    agent: str
    budget: str
    document: dict[str, Any]
    chances: dict[str, Any]


def planned(chance: random.Random) -> Sequence[Planned]:
    """Twenty schedules; with four policies and five agents, each pair of the two once."""
    periods = list(PERIODS)
    chance.shuffle(periods)
    agents = list(AGENTS)
    return [
        _planned(chance, number, period=period, overlap=OVERLAPS[number % 4], agent=agents[number % 5])
        for number, period in enumerate(periods)
    ]


def _planned(chance: random.Random, number: int, *, period: int, overlap: str, agent: str) -> Planned:
    schedule_id = str(uuid.UUID(int=chance.getrandbits(128), version=4))
    budget = BUDGETS[(number // 4) % len(BUDGETS)]
    # What is begun with no bound on how many at once stays short, or two cores would measure nothing but themselves.
    slow = 1.5 if overlap == "allow" or period == 1 else 3.0
    policy: dict[str, Any] = {
        "overlap": overlap,
        "catchup_window_seconds": chance.choice((10, 10, 15, 30, 60)),
        "pause_on_failure": number % 3 == 0,
    }
    if overlap != "allow":
        policy["max_concurrent_runs"] = chance.choice((1, 1, 2, 3))
    document = {
        "name": f"{number}: every {period} s, {overlap}, {agent}",
        "calendar": {
            "timezone": "Europe/Zurich",
            "calendars": [],
            "intervals": [{"every_seconds": period, "offset_seconds": chance.randrange(period)}],
            "start_at": "2026-01-01T00:00:00Z",
            "end_at": "2199-12-31T23:59:59Z",
        },
        "policy": policy,
        "run": {
            "agent_version": agent,
            "input": schedule_id,
            "output_target": "reports",
            "grants": [],
            "budget_id": budget,
            "usage_class": "test_compute",
        },
    }
    chances = {**CHANCES, "seconds": [0.05, slow]}
    return Planned(schedule_id=schedule_id, agent=agent, budget=budget, document=document, chances=chances)


def declarations(scope: Scope, schedules: Sequence[Planned], *, receiver: str) -> dict[str, Any]:
    """A strict environment in which these schedules may run, and their runs cost money. `receiver` is where it listens."""
    return {
        "organization": scope.org_id,
        "environment": scope.environment_id,
        "mode": "test",
        "runtime_profile": "chaos",
        "people": {person: {} for person in PEOPLE},
        "agents": {
            name: {"max_cost": MAX_COST, "max_run_seconds": LIMIT_SECONDS, **facts} for name, facts in AGENTS.items()
        },
        "inputs": {each.schedule_id: {"readers": list(PEOPLE)} for each in schedules},
        "outputs": {"reports": {}},
        "budgets": {
            "wide": _budget(pays_by="credits", limit=_ROOM),
            "tight": _budget(pays_by="credits", limit=TIGHT),
            "owed": _budget(pays_by="wallet", wallet="purse", limit=_ROOM),
        },
        "wallets": {"purse": {"unpaid_limit": _ROOM, "currency": "CHF"}},
        "destinations": {
            way: {
                "url": f"{receiver}/{way}",
                "secret": SECRET,
                "private": True,
                "outcome": "poll" if way == POLLED else "callback",
            }
            for way in (ONCE, AGAIN, POLLED)
        },
    }


def changed(document: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """The next version of a schedule: another period or another policy, of the same run."""
    found = json.loads(json.dumps(document))
    interval, policy = found["calendar"]["intervals"][0], found["policy"]
    if chance.random() < 0.5:
        interval["every_seconds"] = min(20, interval["every_seconds"] + chance.choice((1, 2)))
        interval["offset_seconds"] = chance.randrange(interval["every_seconds"])
    policy["catchup_window_seconds"] = chance.choice((10, 15, 30, 60))
    policy["pause_on_failure"] = chance.random() < 0.3
    return found


def _budget(**facts: Any) -> dict[str, Any]:
    return {"usage_classes": ["test_compute"], "currency": "CHF", **facts}
