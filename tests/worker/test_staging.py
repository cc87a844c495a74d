"""Steps of schedules that are due in the same second stage their runs one after the other."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime

import pytest

from activities.line import STAGED_PER_SECOND, Line
from activities.messages import CommitPlan, GatherFacts
from activities.pace import Pace
from activities.timetable import Timetable
from horarium.schedule.identity import ActivationKey, RunKey
from horarium.schedule.plan import Plan, plan
from tests.control.desk import Desk, at, every, open_catalog, seconds

PACE = Pace(spread=seconds(0))


@pytest.fixture
def catalog(tmp_path):
    opened = open_catalog(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def keys(catalog):
    """Three schedules of every minute."""
    return [Desk(catalog).enabled(every(60)).key for _ in range(3)]


@dataclass
class Starter:
    """Notes what it was to start."""

    started: list[RunKey] = field(default_factory=list)

    async def start(self, run: RunKey) -> None:
        self.started.append(run)


def step(steps: Timetable, key: ActivationKey, now: datetime) -> Plan:
    async def taken() -> Plan:
        facts = (await steps.gather_facts(GatherFacts(key=key, now=now))).facts
        assert facts is not None
        decided = plan(facts)
        await steps.commit_plan(CommitPlan(key=key, plan=decided, now=now, attended_until=None))
        return decided

    return asyncio.run(taken())


def test_each_wakes_a_little_before_the_one_that_stood_in_line_before_it_and_finds_its_instant_then(catalog, keys):
    starter = Starter()
    steps = Timetable(catalog, starter, PACE)

    wakes = [step(steps, key, at(1)).wake_at for key in keys]
    assert wakes == [at(60) - PACE.lead - seconds(place / STAGED_PER_SECOND) for place in range(3)]
    assert starter.started == []

    for key, wake in reversed(list(zip(keys, wakes, strict=True))):
        assert step(steps, key, wake - seconds(0.001)).starts == (), "nothing is staged earlier than it was said"
        assert step(steps, key, wake).starts == (at(60),)
    assert {run.activation for run in starter.started} == set(keys)


def test_another_worker_that_wakes_one_early_stages_it_by_its_own_lead(catalog, keys):
    first = Timetable(catalog, Starter(), PACE)
    wakes = [step(first, key, at(1)).wake_at for key in keys]
    other = Timetable(catalog, Starter(), PACE)

    looked = step(other, keys[-1], wakes[-1])

    assert (looked.starts, looked.wake_at) == ((), at(60) - PACE.lead)
    assert step(other, keys[-1], looked.wake_at).starts == (at(60),)


def test_nobody_wakes_for_an_instant_before_the_one_before_it_is_due(catalog, monkeypatch):
    """The slot is taken until then. To look and to find it taken would be a step and a transaction more each time."""
    steps = Timetable(catalog, Starter(), PACE)
    monkeypatch.setattr(steps, "_line", Line(per_second=1))
    taken = []
    for key in [Desk(catalog).enabled(every(5)).key for _ in range(4)]:
        first = step(steps, key, at(0.5))
        taken.append(step(steps, key, first.wake_at))
    assert [each.starts for each in taken] == [(at(5),)] * 4
    assert [(each.wake_at, each.blocked) for each in taken] == [(at(6), False), *[(at(5), False)] * 3]
