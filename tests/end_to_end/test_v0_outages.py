"""Scheduler v0 (seed 002) while workers are away: `skip` misses, and `defer_once` runs one instant late for all the others."""

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from horarium.control import v0
from horarium.control.audit import audit, document
from horarium.control.principals import local_principal
from horarium.errors import Unavailable
from horarium.schedule.facts import LATE
from horarium.schedule.identity import ScheduleKey, instant_text, schedule_key
from horarium.schedule.ledger import Disposition
from tests.control.operators import Operator
from tests.end_to_end.installation import Installation, Row, installation, now, until
from tests.end_to_end.stories import Stories

pytestmark = pytest.mark.server

stories = Stories()
AWAY = timedelta(seconds=25)
WORKERS = ("schedules", "runs")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory, request):
    return stories.told(tmp_path_factory.mktemp("v0-outages"), request, installation)


@dataclass(frozen=True)
class Scheduled:
    """A schedule of the contract, and what came of it."""

    it: Installation
    key: ScheduleKey

    def rows(self) -> list[Row]:
        return list(self.it.rows(self.key))

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The details of its events of a kind."""
        scope = self.it.settings.scope
        with self.it.catalog.reading() as connection:
            found = v0.events(connection, local_principal("ada", scope), scope, self.key.schedule_id)
        return [each["details"] for each in found if each["kind"] == kind]

    def begun(self) -> dict[datetime, datetime]:
        """When each run was begun, by its instant."""
        return {entry.first_at: run.begun_at for entry, run in self.rows() if run is not None and run.begun_at}

    def deferred(self) -> list[tuple[datetime, datetime]]:
        """The instants whose runs were decided late, and when. One that was decided in time and lost its worker then, was not."""
        found = [(entry.first_at, run.decided_at) for entry, run in self.rows() if run is not None and run.begun_at]
        return [(instant, at) for instant, at in found if at - instant > LATE]

    async def until_on_time_again(self, since: datetime) -> None:
        def holds() -> bool:
            return any(instant > since and at - instant <= LATE for instant, at in self.begun().items())

        await until(holds, lambda: f"a run on time; the ledger says {self.it.told(self.key)}")

    async def proven(self) -> None:
        """End it; let its runs end; and hold ledger, events, audit and the agents' word against each other."""
        scope = self.it.settings.scope
        who = local_principal("ada", scope)
        await self.it.catalog.write(v0.disable, who, scope, self.key.schedule_id, str(uuid4()), now=now())
        await until(
            lambda: all(entry.closed_at for entry, _ in self.rows()),
            lambda: f"an end of every run; the ledger says {self.it.told(self.key)}",
        )
        result = await self.it.catalog.read(audit, self.key, now=now(), grace=timedelta(0))
        assert result.clean, document(result)
        assert result.not_entered == 0, document(result)
        assert sum(result.dispositions.values()) == result.due, document(result)
        ended_so = {Disposition.MISSED, Disposition.SKIPPED}
        misfired = sum(entry.count for entry, _ in self.rows() if entry.disposition in ended_so)
        assert misfired == sum(each["count"] for each in self.events("MISFIRED_SKIPPED")), self.it.told(self.key)
        triggered = [each["run_id"] for each in self.events("SCHEDULE_TRIGGERED")]
        assert len(triggered) == len(set(triggered)), "once each"
        assert set(triggered) <= {run.run_id for _, run in self.rows() if run is not None}, "none that was withdrawn"
        assert set(triggered) >= {run.run_id for _, run in self.rows() if run is not None and run.begun_at}
        began = [line["nominal"] for line in self.it.begun(self.key)]
        assert sorted(began) == sorted(each.isoformat() for each in self.begun())

    def one_run_answered_for_all(self, since: datetime) -> None:
        """Of what was due while workers were away, the earliest ran, late; all others until that was decided are skipped."""
        told = self.it.told(self.key)
        ((instant, decided),) = self.deferred()
        passed = [entry for entry, _ in self.rows() if since < entry.first_at < decided]
        assert passed[0].first_at == instant or instant <= since, told
        others = [entry for entry in passed if entry.first_at > instant]
        fates = {(str(entry.disposition), entry.reason) for entry in others}
        assert ("skipped", "coalesced") in fates or instant <= since, told
        assert fates <= {("skipped", "coalesced"), ("skipped", "already_waiting")}, told
        assert decided - others[-1].last_at <= timedelta(seconds=self._interval), "until the very decision"
        assert instant_text(instant) in [each["nominal_time"] for each in self.events("SCHEDULE_TRIGGERED")]

    @property
    def _interval(self) -> int:
        scope = self.it.settings.scope
        with self.it.catalog.reading() as connection:
            shown = v0.show(connection, local_principal("ada", scope), scope, self.key.schedule_id)
        return int(shown["schedule"]["spec"]["every_seconds"])


async def scheduled(it: Installation, seconds: int, misfire: str, *, slots: int = 1) -> Scheduled:
    """Create a schedule of an interval, whose runs take a moment; the controller starts it."""
    scope = it.settings.scope
    agent_id = f"every-{seconds}-{misfire}-{slots}"
    (it.settings.content.inputs / f"{agent_id}.json").write_text(json.dumps({"seconds": 0.05, "fails": False}))
    run = {
        "agent_version": "scripted@1",
        "input": agent_id,
        "output_target": "reports",
        "grants": [],
        "budget_id": None,
        "usage_class": "test_simulation",
    }
    Operator(it.catalog, scope).declare("binding", f"v0:ws-001/{agent_id}", run=run)
    asked = {
        "type": "interval",
        "spec": {"every_seconds": seconds},
        "target": {"workspace_id": "ws-001", "agent_id": agent_id},
        "policy": {"misfire": misfire, "max_concurrent_runs": slots},
    }
    key, content = str(uuid4()), it.settings.content
    async with asyncio.timeout(60):
        while True:
            with suppress(Unavailable):
                who = local_principal("ada", scope)
                receipt = await it.catalog.write(v0.create, who, scope, asked, key, content=content, now=now())
                return Scheduled(it, schedule_key(scope, receipt.document["schedule_id"]))
            await asyncio.sleep(0.2)


async def away(it: Installation, parts: tuple[str, ...], schedules: list[Scheduled]) -> tuple[datetime, datetime]:
    """Let every schedule run, then take these workers away for a while; when they went, and when they were back."""
    for each in schedules:
        await it.until_closed(each.key, 2)
    for part in parts:
        await it.kill(part)
    gone = now()
    await asyncio.sleep(AWAY.total_seconds())
    for part in parts:
        await it.start(part)
    back = now()
    for each in schedules:
        await each.until_on_time_again(back)
        await each.proven()
    return gone, back


@stories.story
async def test_an_outage_of_all_workers_is_one_deferred_run_and_with_skip_none(it):
    deferring = [await scheduled(it, 3, "defer_once"), await scheduled(it, 3, "defer_once", slots=2)]
    skipping = await scheduled(it, 3, "skip")
    gone, _ = await away(it, WORKERS, [*deferring, skipping])

    for each in deferring:
        each.one_run_answered_for_all(gone)
    assert skipping.deferred() == []
    told = it.told(skipping.key)
    missed = [entry for entry, _ in skipping.rows() if entry.disposition is Disposition.MISSED]
    assert sum(entry.count for entry in missed) >= (AWAY - LATE) // timedelta(seconds=3) - 1, told
    assert {entry.reason for entry in missed} == {"outside_window"}, told
    assert skipping.events("MISFIRED_DEFERRED") == []


@stories.later
async def test_where_only_the_run_workers_are_away_it_is_one_deferred_run_too(it):
    """However dense the interval is, and however many slots were taken before the first of the runs was late."""
    schedules = [
        await scheduled(it, seconds, "defer_once", slots=slots) for seconds, slots in ((1, 1), (2, 1), (1, 3), (2, 2))
    ]
    gone, _ = await away(it, ("runs",), schedules)
    for each in schedules:
        each.one_run_answered_for_all(gone)
