"""Our schedules as a contender: enabled in the catalog, and fired by everything that an installation has for it."""

from collections.abc import Sequence
from typing import ClassVar

from benchmarks.due_schedules import Instants, configuration
from benchmarks.installed import OURS, Installation
from horarium.schedule.identity import ActivationKey, RunKey, Scope


class OurSchedules:
    """A schedule for each of what is due. What the controller does meanwhile is part of what is measured."""

    name: ClassVar[str] = "ours"

    def __init__(self, installation: Installation, scope: Scope = OURS) -> None:
        self.scope = scope
        self._installation = installation
        self._keys: list[ActivationKey] = []

    async def set_up(self, due: Sequence[Instants]) -> list[RunKey]:
        """Enable them, and wait until each one's workflow sleeps; the runs that will begin, in the order of `due`."""
        self._keys = await self._installation.enabled_as(self.scope, [configuration(*each) for each in due])
        await self._installation.asleep([key.workflow_id for key in self._keys])
        return [
            RunKey(activation=key, nominal_time=instant)
            for key, each in zip(self._keys, due, strict=True)
            for instant in each
        ]

    async def take_down(self) -> None:
        """Pause them, and wait until nothing of them runs."""
        await self._installation.paused(self._keys)
        await self._installation.gone([key.workflow_id for key in self._keys])
        self._keys = []
