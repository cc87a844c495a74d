"""Killing, stopping and ending processes at random instants, drawn from a seed."""

import asyncio
import os
import random
import signal
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.fleet import POSTGRESQL, Fleet

PAUSE_SECONDS = (1.5, 5.0)
"""Between two blows."""
HELD_SECONDS = ((0.5, 5.0), (0.5, 5.0), (0.5, 5.0), (16.0, 22.0))
"""How long a process is stopped; one of four times longer than leases, heartbeats and timeouts last."""
_ACTIONS = ("kill", "kill", "kill", "kill", "kill", "kill", "hold", "hold", "end", "power cut")
_ALL = 0.25
"""How often a power cut is one, and not the kill of one process; more often, and little else would ever happen."""
_BACKEND = 0.4
"""How often it is a process of PostgreSQL's that is killed, and not the first of them: then it ends all connections itself."""


@dataclass
class Havoc:
    """What is done to a fleet. `blows` counts them, by process."""

    fleet: Fleet
    chance: random.Random
    blows: Counter[str] = field(default_factory=Counter)
    _releases: set[asyncio.Task[None]] = field(default_factory=set)

    async def wreak(self, seconds: float) -> None:
        """Go on for so long, then leave what is dead to its keepers and let what is held go on."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while (left := until - loop.time()) > 0:
            await asyncio.sleep(min(left, self.chance.uniform(*PAUSE_SECONDS)))
            self._strike()
        for each in self._releases:
            each.cancel()
        await asyncio.gather(*self._releases, return_exceptions=True)

    def _strike(self) -> None:
        # Drawn whether or not they are needed, so that one seed tells one story as far as the machine lets it.
        action, name = self.chance.choice(_ACTIONS), self.chance.choice(self.fleet.names)
        held, backend = self.chance.uniform(*self.chance.choice(HELD_SECONDS)), self.chance.random() < _BACKEND
        if action == "power cut" and self.chance.random() < _ALL:
            for each in self.fleet.names:
                if self.fleet.hit(each, signal.SIGKILL):
                    self.blows[f"kill {each}"] += 1
            self.blows["power cut"] += 1
            return
        match action:
            case "hold":
                if self.fleet.hold(name):
                    self.blows[f"stop {name}"] += 1
                    self._release_later(name, held)
            case "end" if name != POSTGRESQL:
                if self.fleet.hit(name, signal.SIGTERM):
                    self.blows[f"end {name}"] += 1
            case _ if name == POSTGRESQL and backend:
                if self._kill_backend():
                    self.blows["kill postgresql backend"] += 1
            case _:
                if self.fleet.hit(name, signal.SIGKILL):
                    self.blows[f"kill {name}"] += 1

    def _release_later(self, name: str, seconds: float) -> None:
        async def release() -> None:
            await asyncio.sleep(seconds)
            self.fleet.let_go(name)

        task = asyncio.create_task(release())
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)

    def _kill_backend(self) -> bool:
        pid = self.fleet.pid(POSTGRESQL)
        if pid is None:
            return False
        try:
            children = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
            os.kill(self.chance.choice(children), signal.SIGKILL)
        except (OSError, IndexError):
            return False
        return True
