"""Signs of life go by the catalog's clock, and a step doubts a server whose clock disagrees with it."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
import structlog.testing
from temporalio.exceptions import ApplicationError

from activities import timetable as module
from activities.agents import CatalogHost
from activities.clock import WorkerClock
from activities.findings import Findings
from activities.messages import CommitPlan, GatherFacts
from activities.pace import Pace
from activities.timetable import AHEAD_AT_MOST, Timetable
from horarium.catalog import Catalog, findings
from horarium.catalog.clock import catalog_time
from horarium.catalog.presence import find_agent, last_beat
from horarium.schedule.findings import Finding
from horarium.schedule.plan import plan
from tests.control.desk import NOON, SCOPE, Desk, at, every, open_catalog, seconds
from worker.processes import _Life

FAR_OFF = timedelta(hours=3)


@pytest.fixture
def catalog(tmp_path):
    opened = open_catalog(tmp_path)
    yield opened
    opened.close()


@dataclass
class Polling:
    is_running: bool = True


@dataclass
class Starter:
    """Starts nothing."""

    async def start(self, run) -> None: ...


def noted(of: Findings) -> dict[Finding, int]:
    return dict(of._counts)


@pytest.mark.parametrize("skew", [FAR_OFF, -FAR_OFF])
def test_a_worker_beats_at_the_catalogs_time_and_says_that_its_own_is_wrong(catalog: Catalog, skew):
    found = Findings()
    watch = WorkerClock(machine=lambda: datetime.now(UTC) + skew, server="the catalog's time", findings=found)
    life = _Life(catalog=catalog, worker=Polling(), role="runs", scope=SCOPE, watch=watch, findings=found)
    with structlog.testing.capture_logs() as logs:
        asyncio.run(life.begin())
    with catalog.reading() as connection:
        assert abs(last_beat(connection, "runs") - datetime.now(UTC)) < seconds(30)
        assert findings.totals(connection)[Finding.CLOCK_SKEW] == 1
    (warning,) = [each for each in logs if each["event"] == "clock_skew"]
    assert abs(warning["skew_seconds"] + skew.total_seconds()) < 30
    assert (warning["log_level"], warning["taken"]) == ("warning", "the catalog's time")


def test_a_lease_is_as_long_as_it_says_by_the_catalogs_clock(catalog: Catalog, monkeypatch):
    host = CatalogHost(catalog, None, None, SCOPE, lambda: datetime.now(UTC) + FAR_OFF)
    asyncio.run(host.renew(["worked@1"], lease=seconds(15)))
    with catalog.reading() as connection:
        agent = find_agent(connection, SCOPE, "worked@1")
    assert abs(agent.lease_until - datetime.now(UTC)) < seconds(45)


def test_the_catalog_tells_the_time_of_now_and_not_of_its_transactions_beginning(catalog: Catalog):
    with catalog.reading() as connection:
        first = catalog_time(connection)
        asyncio.run(asyncio.sleep(0.05))
        assert seconds(0.03) < catalog_time(connection) - first < seconds(30)


class TestAStep:
    @pytest.fixture
    def desk(self, catalog: Catalog) -> Desk:
        return Desk(catalog)

    def steps(self, catalog: Catalog, found: Findings, *, catalogs_time: datetime | None = None) -> Timetable:
        clock = None if catalogs_time is None else WorkerClock(machine=lambda: catalogs_time)
        return Timetable(catalog, Starter(), Pace(), clock=clock, findings=found)

    def test_waits_while_the_servers_clock_is_far_ahead_of_the_catalogs(self, desk, catalog):
        loop, found = desk.enabled(every(60)), Findings()
        steps = self.steps(catalog, found, catalogs_time=NOON)
        late = GatherFacts(key=loop.key, now=NOON + AHEAD_AT_MOST + seconds(1))
        with pytest.raises(
            ApplicationError, match="The Temporal server's clock is 61 s ahead of the catalog's"
        ) as told:
            asyncio.run(steps.gather_facts(late))
        assert (told.value.type, told.value.non_retryable) == ("server_clock_ahead", False)
        assert noted(found) == {Finding.SERVER_CLOCK_AHEAD: 1}
        assert desk.entries() == []

    @pytest.mark.parametrize("now", [NOON + AHEAD_AT_MOST, NOON - FAR_OFF])
    def test_goes_on_where_it_is_a_little_ahead_or_behind(self, desk, catalog, now):
        loop, found = desk.enabled(every(60)), Findings()
        steps = self.steps(catalog, found, catalogs_time=NOON)
        assert asyncio.run(steps.gather_facts(GatherFacts(key=loop.key, now=now))).facts is not None
        assert Finding.SERVER_CLOCK_AHEAD not in noted(found)

    def test_tells_of_a_mark_that_is_ahead_of_its_clock(self, desk, catalog):
        loop, found = desk.enabled(every(60)), Findings()
        loop.step_at(600)
        with structlog.testing.capture_logs() as logs:
            asyncio.run(self.steps(catalog, found).gather_facts(GatherFacts(key=loop.key, now=at(300))))
        assert noted(found) == {Finding.MARK_AHEAD: 1}
        (warning,) = logs
        assert warning == {
            "event": "mark_ahead_of_clock",
            "log_level": "warning",
            "workflow_id": loop.key.workflow_id,
            "accounted_through": "2026-11-30T12:10:00Z",
            "ahead_seconds": 300.0,
        }

    def test_tells_nothing_of_a_mark_that_is_ahead_by_what_is_staged(self, desk, catalog):
        loop, found = desk.enabled(every(60)), Findings()
        loop.step_at(56)
        assert desk.activation().accounted_through == at(60)
        asyncio.run(self.steps(catalog, found).gather_facts(GatherFacts(key=loop.key, now=at(56))))
        assert noted(found) == {}

    def test_tells_of_a_half_that_took_longer_than_runs_are_staged_ahead(self, desk, catalog, monkeypatch):
        monkeypatch.setattr(module, "LIMIT", seconds(0))
        loop, found = desk.enabled(every(60)), Findings()
        steps = self.steps(catalog, found)
        with structlog.testing.capture_logs() as logs:
            facts = asyncio.run(steps.gather_facts(GatherFacts(key=loop.key, now=at(57)))).facts
            asyncio.run(steps.commit_plan(CommitPlan(key=loop.key, plan=plan(facts), now=at(57), attended_until=None)))
        assert noted(found) == {Finding.STEP_OUTRAN_LIMIT: 2}
        assert [(each["event"], each["half"]) for each in logs] == [
            ("step_outran_limit", "gather"),
            ("step_outran_limit", "commit"),
        ]
