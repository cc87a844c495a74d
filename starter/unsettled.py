"""Runs without an answer some time after they were due: what their workflows do is asked, and what is gone is made up for."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import structlog
from sqlalchemy import Connection

from activities.findings import Findings
from horarium.catalog import Catalog
from horarium.catalog.schedules import find_live, require_version
from horarium.catalog.unsettled import Unsettled, unsettled_runs
from horarium.control.sweeping import settle_lost
from horarium.schedule.findings import Finding
from horarium.schedule.identity import ActivationKey, Scope
from horarium.schedule.ledger import Disposition
from starter.apart import each_apart
from starter.stranded import Stranded
from starter.temporal import Found, Temporal

OVERDUE: Final = timedelta(seconds=10)
"""How long after its nominal time a run without an answer is looked at."""
RUNS_AT_ONCE: Final = 200
"""Runs without an answer that a look is taken at. Where they are more, they take turns."""

_logger = structlog.get_logger(__name__)


@dataclass(slots=True)
class UnsettledRuns:
    """Goes round the runs without an answer of an environment, a page at a time.

    One whose workflow never was is started while it may still begin; one whose workflow is closed is settled as lost.
    """

    catalog: Catalog
    temporal: Temporal
    scope: Scope
    now: Callable[[], datetime]
    findings: Findings
    stranded: Stranded = field(init=False)
    _after: tuple[int, datetime, int] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.stranded = Stranded(self.temporal)

    async def look(self) -> None:
        """Look at some of them, and at the end of each round tell which of them are stranded."""
        before = self.now() - OVERDUE
        page = await self.catalog.read(unsettled_runs, self.scope, before=before, limit=RUNS_AT_ONCE, after=self._after)
        await each_apart(page, self._look_at)
        self._after = page[-1].place if len(page) == RUNS_AT_ONCE else None
        if self._after is None:
            for _ in range(await self.stranded.report()):
                self.findings.note(Finding.PINNED_WITHOUT_POLLERS)

    async def _look_at(self, run: Unsettled) -> None:
        standing = await self.temporal.look_at(run.workflow_id)
        found = standing.found
        if found is Found.RUNNING:
            self.stranded.note(run.workflow_id, standing.pinned_to)
            return
        if found is Found.ABSENT and run.disposition is Disposition.STAGED and await self._may_still_start(run):
            await self.temporal.start_run(run.key)
            self.findings.note(Finding.RUN_STARTED_AGAIN)
            _logger.warning("run_started_again", workflow_id=run.workflow_id)
            return
        waiting = await self.catalog.write(settle_lost, run, closed_as=found.value, now=self.now())
        _logger.warning("run_workflow_is_closed", workflow_id=run.workflow_id, found=found)
        await self.temporal.nudge(waiting)

    async def _may_still_start(self, run: Unsettled) -> bool:
        window = await self.catalog.read(_window, run.key.activation)
        return window is not None and self.now() - run.window_from <= window


def _window(connection: Connection, key: ActivationKey) -> timedelta | None:
    found = find_live(connection, key)
    if found is None:
        return None
    schedule, activation = found
    return require_version(connection, schedule, activation.revision).configuration.policy.catchup_window
