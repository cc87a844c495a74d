"""Finds runs that are pinned to a build of which no workers are left: nothing goes on with them (DESIGN.md, section 10)."""

from collections import defaultdict
from dataclasses import dataclass, field

import structlog

from starter.temporal import Temporal
from worker.settings import Deployment

_logger = structlog.get_logger(__name__)


@dataclass(slots=True)
class Stranded:
    """What sweeps saw of running runs that belong to a build. Each run is told of once, and again once it was helped."""

    temporal: Temporal
    _seen: dict[str, Deployment] = field(default_factory=dict)
    _told: frozenset[str] = frozenset()

    def note(self, workflow_id: str, build: Deployment | None) -> None:
        """Remember, until the end of this sweep, to which build a running run is pinned; None for none."""
        if build is not None:
            self._seen[workflow_id] = build

    async def report(self) -> int:
        """At the end of a sweep: warn of each build that lacks a worker, and return how many runs that is news about."""
        seen, self._seen = self._seen, {}
        working = await self.temporal.working_builds() if seen else frozenset()
        stranded = defaultdict[Deployment, list[str]](list)
        for workflow_id in sorted(seen):
            if seen[workflow_id] not in working:
                stranded[seen[workflow_id]].append(workflow_id)
        news = 0
        for build, runs in stranded.items():
            new = [each for each in runs if each not in self._told]
            news += len(new)
            if new:
                _logger.warning(
                    "pinned_runs_without_workers",
                    deployment=build.name,
                    build_id=build.build_id,
                    runs=len(runs),
                    for_example=new[0],
                    next_step="Start both workers of that build again until `horarium deployment show` says drained.",
                )
        self._told = frozenset(each for runs in stranded.values() for each in runs)
        return news
