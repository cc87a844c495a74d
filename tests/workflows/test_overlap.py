"""What becomes of instants that fall due while runs go on, with the real workflows, admission, settlement and nudges."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from temporalio import activity

import activities.ledger
from activities.messages import GatherFacts, StepFacts
from activities.timetable import Pace, Timetable
from horarium.catalog.ledger import Run
from horarium.schedule.identity import instant_text
from horarium.schedule.ledger import Disposition, Reason
from tests.postgres.databases import KINDS
from tests.workflows.documents import every
from tests.workflows.lasting import LastingRun, Work

pytestmark = pytest.mark.parametrize("where", KINDS, indirect=True)

RUN = ("succeeded", None)
OVERLAP = ("skipped", "overlap")
ALREADY_WAITING = ("skipped", "already_waiting")
REVIEW = ("dropped", "review")

# Six instants, a minute apart, and each run lasts 155 s. One row: seconds from the first to the last of a span, its fate.
TABLES = {
    "skip": ({}, [(0, 0, RUN), (60, 120, OVERLAP), (180, 180, RUN), (240, 300, OVERLAP)], [0, 180]),
    "skip with two slots": (
        {"slots": 2},
        [(0, 0, RUN), (60, 60, RUN), (120, 120, OVERLAP), (180, 180, RUN), (240, 240, RUN), (300, 300, OVERLAP)],
        [0, 60, 180, 240],
    ),
    # 60 waits until 155 and runs until 310; 120 meets it waiting; 180 waits in its turn, and the rest meet that.
    "buffer_one": (
        {"overlap": "buffer_one"},
        [(0, 0, RUN), (60, 60, RUN), (120, 120, ALREADY_WAITING), (180, 180, RUN), (240, 300, ALREADY_WAITING)],
        [0, 155, 310],
    ),
    "buffer_all": (
        {"overlap": "buffer_all"},
        [(second, second, RUN) for second in range(0, 301, 60)],
        [0, 155, 310, 465, 620, 775],
    ),
    "buffer_all with two slots": (
        {"overlap": "buffer_all", "slots": 2},
        [(second, second, RUN) for second in range(0, 301, 60)],
        [0, 60, 155, 215, 310, 370],
    ),
    "allow": (
        {"overlap": "allow"},
        [(second, second, RUN) for second in range(0, 301, 60)],
        [0, 60, 120, 180, 240, 300],
    ),
}
BUSY = 20
"""Seconds that a start may be late on a busy machine: fewer than lie between the times that two policies would choose."""
SIX_INSTANTS = timedelta(seconds=300)
LASTING = Work(lasts=timedelta(seconds=155))


@pytest.mark.parametrize("name", TABLES)
async def test_every_policy_decides_as_its_table_says(skipping, name):
    policy, table, started = TABLES[name]
    async with skipping(run_workflow=LastingRun) as house:
        house.script.usual = LASTING
        start = await house.on_the_minute()
        key = await house.published(every(60, end_at=instant_text(start + SIX_INSTANTS), **policy))
        changed = await house.enabled(key)

        await house.advance_to(start + timedelta(minutes=30))

        assert house.fates(key, since=start) == [(first, last, *fate) for first, last, fate in table]
        runs = house.runs(key)
        assert house.begun == sorted(house.begun), "an earlier instant never starts after a later one"
        assert begun_at(runs, start) == pytest.approx(started, abs=BUSY)
        limit = {"allow": 3}.get(policy.get("overlap"), policy.get("slots", 1))
        assert most_at_once(runs) == limit
        assert house.activation(changed.key).ended_as == Reason.REVIEW
        assert house.activation(changed.key).ended_reason.startswith("calendar_exhausted")
        assert await house.workflow(changed.key).result() == "ended"


async def test_a_nudge_that_is_lost_costs_time_and_no_instant(skipping, monkeypatch):
    """The schedule looks by itself, at first after a minute; what should have started meanwhile starts late."""

    async def lost(*_: object) -> None:
        return None

    monkeypatch.setattr(activities.ledger, "nudge", lost)
    async with skipping(run_workflow=LastingRun) as house:
        house.script.usual = LASTING
        start = await house.on_the_minute()
        key = await house.published(every(60, end_at=instant_text(start + SIX_INSTANTS), window=300))
        await house.enabled(key)

        await house.advance_to(start + timedelta(minutes=30))

        table = TABLES["skip"][1]
        assert house.fates(key, since=start) == [(first, last, *fate) for first, last, fate in table]
        # Its own looks are at 0, 60 and 180 s: it finds the slot free at the third, just when the next is due.
        first, second = begun_at(house.runs(key), start)
        assert first == pytest.approx(0, abs=BUSY)
        assert 180 <= second <= 240


class Counted(Timetable):
    steps = 0

    @activity.defn
    async def gather_facts(self, request: GatherFacts) -> StepFacts:
        Counted.steps += 1
        return await super().gather_facts(request)


@pytest.mark.parametrize("interval", [1, 90])
async def test_hours_behind_one_run_cost_a_handful_of_looks_and_no_event_for_an_instant(skipping, interval):
    Counted.steps = 0
    pace = Pace(lead=timedelta(seconds=1), spread=timedelta(0))
    async with skipping(run_workflow=LastingRun, pace=pace, timetable=Counted) as house:
        house.script.usual = Work(lasts=timedelta(hours=5))
        start = await house.on_the_minute()
        key = await house.published(every(interval, end_at=instant_text(start + timedelta(hours=4))))
        changed = await house.enabled(key)

        await house.advance_to(start + timedelta(hours=6))

        calendar = changed.version.configuration.calendar
        due = calendar.count(changed.activation.activated_at, start + timedelta(hours=4))
        assert [(entry.count, entry.disposition) for entry in house.entries(key)] == [
            (1, Disposition.SUCCEEDED),
            (due - 1, Disposition.SKIPPED),
        ]
        # Looks after 1, 2, 4, 8 and then each 10 minutes; a look in between two instants takes another step to wait again.
        assert Counted.steps < 70, Counted.steps


async def test_a_blocked_minute_of_a_per_second_schedule_is_one_line_and_few_events(skipping):
    """Its own look after a minute is among them, and so is the step that the end of the run asks for."""
    pace = Pace(lead=timedelta(seconds=1), spread=timedelta(0))
    async with skipping(run_workflow=LastingRun, pace=pace) as house:
        house.script.usual = Work(lasts=timedelta(seconds=75))
        start = await house.on_the_minute()
        key = await house.published(every(1, end_at=instant_text(start + timedelta(seconds=60))))
        changed = await house.enabled(key)
        await house.advance_to(start - timedelta(seconds=5))
        before = len((await house.workflow(changed.key).fetch_history()).events)

        await house.advance_to(start + timedelta(seconds=90))

        succeeded, skipped = house.entries(key)
        assert (succeeded.count, succeeded.disposition) == (1, Disposition.SUCCEEDED)
        assert (skipped.disposition, skipped.reason) == OVERLAP
        assert skipped.count >= 65
        spent = len((await house.workflow(changed.key).fetch_history()).events) - before
        assert spent <= 15, f"{spent} events, with the last ones that say that the calendar has ended"


@pytest.mark.parametrize("overlap", ["skip", "buffer_one", "buffer_all", "allow"])
async def test_the_first_failure_ends_the_activation_where_the_policy_says_so(skipping, overlap):
    """Whatever waits is dropped, whatever runs goes on, and nothing more falls due."""
    async with skipping(run_workflow=LastingRun) as house:
        start = await house.on_the_minute()
        house.script.usual = LASTING
        house.script.works[start] = Work(lasts=timedelta(seconds=155), fails=True)
        key = await house.published(every(60, overlap=overlap, pause_on_failure=True))
        changed = await house.enabled(key)

        await house.advance_to(start + timedelta(minutes=10))

        failed = (0, 0, "failed", "agent_reported_failure")
        later = {
            "skip": [(60, 120, *OVERLAP)],
            # 60 waits, and nobody has looked again when the run fails.
            "buffer_one": [(60, 120, *REVIEW)],
            "buffer_all": [(60, 120, *REVIEW)],
            "allow": [(60, 60, *RUN), (120, 120, *RUN)],
        }[overlap]
        assert house.fates(key, since=start) == [failed, *later]
        activation = house.activation(changed.key)
        assert activation.ended_as == Reason.REVIEW
        assert "pause_on_failure" in activation.ended_reason
        assert await house.workflow(changed.key).result() == "ended"


async def test_a_failure_ends_nothing_where_the_policy_does_not_say_so(skipping):
    async with skipping(run_workflow=LastingRun) as house:
        start = await house.on_the_minute()
        house.script.usual = Work(fails=True)
        key = await house.published(every(60))
        changed = await house.enabled(key)

        await house.advance_to(start + timedelta(seconds=150))

        assert [fate[2] for fate in house.fates(key, since=start)] == ["failed", "failed", "failed"]
        assert house.activation(changed.key).is_live


def begun_at(runs: Sequence[Run], since: datetime) -> list[float]:
    return [(run.begun_at - since).total_seconds() for run in runs]


def most_at_once(runs: Sequence[Run]) -> int:
    return max(sum(run.begun_at <= other.begun_at < run.ended_at for run in runs) for other in runs)
