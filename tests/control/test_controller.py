"""What a sweep of the controller does about manual runs and seals, against a Temporal that is told what it knows."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pytest

from horarium.control.operations import run_to_start
from horarium.control.records import record
from horarium.control.seals import verify_seals
from horarium.schedule.identity import ActivationKey, RunKey, Scope
from starter.controller import Controller
from starter.temporal import ClosedSchedule, Found, Standing
from starter.unsettled import OVERDUE
from tests.control.caller import Caller, events
from tests.control.desk import SCOPE, Desk, at, every, seconds


@dataclass
class FakeTemporal:
    """Knows the workflows that were started, and how those ended that a test has ended."""

    running: set[str] = field(default_factory=set)
    ended: dict[str, Found] = field(default_factory=dict)

    async def describe(self, workflow_id: str) -> Found:
        return self.ended.get(workflow_id, Found.RUNNING if workflow_id in self.running else Found.ABSENT)

    async def look_at(self, workflow_id: str) -> Standing:
        return Standing(found=await self.describe(workflow_id))

    async def start_schedule(self, key: ActivationKey) -> bool:
        if key.workflow_id in self.running or key.workflow_id in self.ended:
            return False
        self.running.add(key.workflow_id)
        return True

    async def signal(self, key: ActivationKey, signal: str) -> None: ...

    async def start_run(self, key: RunKey) -> None:
        self.running.add(key.workflow_id)

    async def nudge(self, key: ActivationKey | None) -> None: ...

    async def closed_schedules(self, scope: Scope, *, since: datetime, limit: int) -> Sequence[ClosedSchedule]:
        return []  # it is only a hint


@pytest.fixture
def desk(own_desk: Desk) -> Desk:
    return own_desk


def controller(desk: Desk, temporal: FakeTemporal) -> Controller:
    return Controller(desk.catalog, temporal, SCOPE, now=lambda: desk.now)


def sweep(desk: Desk, temporal: FakeTemporal) -> None:
    asyncio.run(controller(desk, temporal).sweep())


def triggered(desk: Desk, window: int = 3_600) -> RunKey:
    """A schedule that is due in days, and a run that a person asked for and nobody started."""
    caller = Caller(desk)
    reference = caller.enabled(every(86_400 * 3, window=window))
    run = run_to_start(SCOPE, caller.trigger(caller.about(reference, 1)))
    assert run is not None
    return run


def test_a_manual_run_that_nobody_started_is_started_while_its_schedule_sleeps_for_days(desk: Desk) -> None:
    temporal = FakeTemporal()
    run = triggered(desk)
    desk.now += OVERDUE
    sweep(desk, temporal)
    assert run.workflow_id not in temporal.running, "its caller is still given time to start it"
    desk.now += seconds(1)
    sweep(desk, temporal)
    assert run.workflow_id in temporal.running
    assert desk.told()[0][0] == "staged"


def test_a_manual_run_that_was_started_is_left_alone(desk: Desk) -> None:
    temporal = FakeTemporal()
    run = triggered(desk)
    temporal.running.add(run.workflow_id)
    desk.now += seconds(60)
    sweep(desk, temporal)
    assert desk.told()[0][0] == "staged"


def test_a_manual_run_that_nobody_started_inside_its_window_is_missed(desk: Desk) -> None:
    temporal = FakeTemporal()
    run = triggered(desk, window=10)
    desk.now += seconds(12)
    sweep(desk, temporal)
    assert run.workflow_id not in temporal.running
    assert [str(entry.disposition) for entry in desk.entries()] == ["missed"]


@pytest.mark.parametrize("found", [Found.TERMINATED, Found.COMPLETED])
def test_a_manual_run_whose_workflow_is_gone_frees_its_slot(desk: Desk, found: Found) -> None:
    run = triggered(desk)
    desk.now += seconds(30)
    sweep(desk, FakeTemporal(ended={run.workflow_id: found}))
    assert [str(entry.disposition) for entry in desk.entries()] == ["not_started"]
    assert desk.holding() == 0
    assert desk.activation().is_live


def test_each_sweep_seals_what_was_told_once_a_minute(desk: Desk) -> None:
    temporal = FakeTemporal()
    triggered(desk)
    sweep(desk, temporal)
    verified = desk.read(verify_seals, SCOPE)
    assert (verified.count, verified.events, verified.unsealed) == (1, 3, 0)
    for offset in range(5, 125, 5):
        desk.now = at(offset)
        sweep(desk, temporal)
    assert desk.read(verify_seals, SCOPE).count == 1, "nothing new was told"
    Caller(desk).publish(every(60), expected=1)
    sweep(desk, temporal)
    verified = desk.read(verify_seals, SCOPE)
    assert (verified.count, verified.unsealed, verified.faults) == (2, 0, ())


def test_a_tick_between_sweeps_seals_nothing(desk: Desk) -> None:
    triggered(desk)
    asyncio.run(controller(desk, FakeTemporal()).tick())
    assert desk.read(verify_seals, SCOPE).unsealed == 3


def test_a_workflow_that_was_ended_by_hand_is_in_review_until_a_new_generation(desk: Desk) -> None:
    run = triggered(desk)
    temporal = FakeTemporal(running={run.workflow_id}, ended={run.activation.workflow_id: Found.TERMINATED})
    sweep(desk, temporal)
    assert desk.activation().ended_as == "review"
    told = events(desk)[-1]
    assert (told["kind"], told["actor"], told["details"]["to"]["state"]) == ("review", "system:controller", "review")
    shown = desk.read(record, desk.key, now=desk.now)
    assert shown["runtime"]["state"] == "review"
    Caller(desk).set(Caller(desk).about(shown["reference"], 1, enabled=True))
    sweep(desk, temporal)
    assert desk.read(record, desk.key, now=desk.now)["runtime"] == {
        "state": "active",
        "generation": 2,
        "observed_at": "2026-11-30T12:00:00Z",
    }
