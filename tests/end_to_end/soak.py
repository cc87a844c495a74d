"""`python -m tests.end_to_end.soak [SECONDS] [SEED]`: kill any process at any time, and prove every schedule afterwards.

Too long for the tests; they kill at the points that matter. Temporal's server is among the victims, and schedules are
paused and enabled again meanwhile.
"""

import asyncio
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from horarium.errors import Refused
from tests.end_to_end.installation import USUAL, Installation, installation
from worker.exit import run

KINDS = (
    {"every": 1, "overlap": "skip"},
    {"every": 2, "overlap": "buffer_one", "seconds": 0.3},
    {"every": 3, "overlap": "buffer_all", "seconds": 1},
    {"every": 2, "overlap": "allow", "seconds": 0.1},
    {"every": 5, "overlap": "skip", "seconds": 2, "agent": "repeatable@1"},
    {"every": 1, "overlap": "buffer_one", "seconds": 3},
    {"every": 4, "overlap": "skip"},
)
CHANGE = 0.3
"""How often a death is followed by a pause and a new activation."""


async def main(seconds: float, seed: int) -> None:
    chance = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="horarium-soak-"))
    async with installation(folder) as it:
        keys = [await it.published(window=30, **kind) for kind in KINDS]
        for key in keys:
            await it.enabled(key)
        until = time.monotonic() + seconds
        killed: Counter[str] = Counter()
        while time.monotonic() < until:
            await asyncio.sleep(chance.uniform(0.2, 3))
            killed[await kill_one(it, chance)] += 1
            if chance.random() < CHANGE:
                key = chance.choice(keys)
                with suppress(Refused):  # the agents may be away, for instance
                    if it.activations(key)[-1].is_live:
                        await it.paused(key)
                    await it.enabled(key)
        print(f"killed in {folder}: {dict(killed)}")
        await asyncio.sleep(20)
        for kind, key in zip(KINDS, keys, strict=True):
            await it.proven(key, repeated="agent" in kind)
            told = Counter(each.lstrip("0123456789 ") for each in it.told(key))
            print(f"proven, {kind}: {dict(told)}")


async def kill_one(it: Installation, chance: random.Random) -> str:
    victim = chance.choice([*USUAL, "schedules", "runs", "temporal"])
    if victim == "temporal":
        it.server.kill()
        await asyncio.sleep(chance.uniform(0, 2))
        await it.server.start()
    else:
        it.children[victim].send(signal.SIGKILL)
    return victim


if __name__ == "__main__":
    words = sys.argv[1:]
    run(main(float(words[0]) if words else 60, int(words[1]) if len(words) > 1 else 1))
