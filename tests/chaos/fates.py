"""What becomes of a run at its agent: how long it takes and how it ends, drawn by the chances that its input names."""

import random
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

LIMIT_SECONDS = 8
"""How long a run may take, by the declarations and by the agents' own word."""
MAX_COST = 10
"""What an admission reserves, in minor units."""
STUBBORN_SECONDS = 4
"""How long an agent that does not let itself be cancelled goes on beyond its limit."""


class Ending(StrEnum):
    """How a run ends at its agent."""

    SUCCEEDS = "succeeds"
    FAILS = "fails"
    RAISES = "raises"
    """By an error that it did not foresee."""
    HANGS = "hangs"
    """It never ends, and is ended."""
    RESISTS = "resists"
    """It hangs, and does not take being cancelled for an answer at first."""
    CRASHES = "crashes"
    """Its whole process dies, and whatever else it was doing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """One run. `cost` is None where the agent does not know it; `reports` is how often one elsewhere tells its outcome."""

    ending: Ending
    seconds: float
    cost: int | None
    reports: int
    changes_its_mind: bool


CHANCES: dict[str, Any] = {
    "seconds": [0.05, 2.5],
    Ending.FAILS: 0.06,
    Ending.RAISES: 0.02,
    Ending.HANGS: 0.02,
    Ending.RESISTS: 0.01,
    Ending.CRASHES: 0.01,
}
"""What stands in an input if nothing else is said."""


def draw(chances: dict[str, Any], run_id: str, *, attempt: object) -> Fate:
    """The fate of one attempt of a run: the same whenever it is drawn again."""
    chance = random.Random(f"{run_id}/{attempt}")
    seconds = chance.uniform(*chances["seconds"])
    at, ending = chance.random(), Ending.SUCCEEDS
    for each in (Ending.FAILS, Ending.RAISES, Ending.HANGS, Ending.RESISTS, Ending.CRASHES):
        at -= chances[each]
        if at < 0:
            ending = each
            break
    return Fate(
        ending=ending,
        seconds=seconds,
        cost=None if chance.random() < 0.1 else chance.randint(0, MAX_COST),
        reports=chance.choice((1, 1, 2, 3)),
        changes_its_mind=chance.random() < 0.2,
    )
