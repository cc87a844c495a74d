"""A herd of one organization, and a few runs of another that are due in the same second: how late the last of the few begins.

Every workflow names its organization as fairness key. Ours is the development server as `horarium dev` starts it, which takes
turns by these keys; its peer is the same server told not to, where tasks are served as they came. What takes turns inside the
run worker, in front of the catalog, is in both. Each round has both, on an installation of its own, and who begins changes
with each; every figure is the median of the rounds' values.
"""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from benchmarks.due_schedules import Instants
from benchmarks.figures import Figure, compare
from benchmarks.installed import OURS, Installation, installation
from benchmarks.our_schedules import OurSchedules
from benchmarks.progress import tell
from benchmarks.starts import Load, Turn, chosen_size
from horarium.schedule.identity import RunKey, Scope

FEW: Final = Scope(org_id="few", environment_id="ours")
COUNT: Final = 5
"""Runs of the other organization."""
UNFAIR: Final = "without fairness"
_KINDS: Final[Mapping[str, Mapping[str, Any] | None]] = {
    OurSchedules.name: None,
    UNFAIR: {"matching.enableFairness": False},
}


class TwoOrganizations:
    """Schedules of which the last few are another organization's."""

    name: ClassVar[str] = OurSchedules.name
    scope: ClassVar[Scope] = OURS

    def __init__(self, installed: Installation) -> None:
        self._installation = installed
        self._herd, self._few = OurSchedules(installed), OurSchedules(installed, FEW)

    async def set_up(self, due: Sequence[Instants]) -> list[RunKey]:
        """See `OurSchedules`. The runs of the few are the last ones."""
        return [*await self._herd.set_up(due[:-COUNT]), *await self._few.set_up(due[-COUNT:])]

    async def take_down(self) -> None:
        """See `OurSchedules`."""
        await self._installation.settled(FEW)
        await self._herd.take_down()
        await self._few.take_down()


def names() -> list[str]:
    """The names of all figures, in their order."""
    return [each.name for each in _figures(chosen_size(os.environ).herd, {name: [1.0] for name in _KINDS})]


def measure() -> Iterator[Figure]:
    """Measure the few beside the herd. Values are milliseconds."""
    size = chosen_size(os.environ)
    late: dict[str, list[float]] = {name: [] for name in _KINDS}
    for number in range(size.rounds):
        for name in list(_KINDS) if number % 2 == 0 else reversed(list(_KINDS)):
            taken = asyncio.run(_round(_KINDS[name], size.herd, size.begin_within))
            herd, few = taken[:-COUNT], taken[-COUNT:]
            late[name].append(max(few))
            tell(
                f"fairness, round {number + 1} of {size.rounds}, {name}: last of {COUNT} {max(few):,.0f} ms, "
                f"last of {len(herd)} {max(herd):,.0f} ms"
            )
    yield from _figures(size.herd, late)


def _figures(herd: int, late: Mapping[str, list[float]]) -> list[Figure]:
    name = f"herd of {herd} of one organization, {COUNT} of another: the {COUNT}'s last start"
    return compare(name, "ms", late, {})


async def _round(dynamic_config: Mapping[str, Any] | None, herd: int, begin_within: float) -> list[float]:
    async with installation(dynamic_config=dynamic_config, further=[FEW]) as installed:
        turn = Turn(installed, TwoOrganizations(installed), begin_within)
        await turn.take(Load(per_second=2 * COUNT))  # fills caches, and is thrown away
        return await turn.take(Load(per_second=herd + COUNT))
