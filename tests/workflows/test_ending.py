"""Pausing, reviewing and retiring at awkward moments: no instant is lost, none is answered twice."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from temporalio import activity
from temporalio.service import RPCError

from activities.messages import SCHEDULE_WORKFLOW, SCHEDULES_QUEUE, CommitPlan
from activities.pace import Pace
from activities.timetable import Timetable
from horarium.control.stepping import Status
from horarium.schedule.identity import RunKey
from horarium.schedule.ledger import Disposition, Reason
from tests.postgres.databases import KINDS
from tests.workflows.documents import every
from tests.workflows.lasting import LastingRun, Work

pytestmark = pytest.mark.parametrize("where", KINDS, indirect=True)

STAGED_EARLY = Pace(lead=timedelta(seconds=6), spread=timedelta(0))
STAGED_FOR = timedelta(seconds=5)
"""Before the second, when a test begins to act: enough to get there on a busy machine, and few enough to wait for."""
SECOND = timedelta(seconds=1)


async def staged(house, start):
    """A schedule of every minute, whose run of `start` is staged and waits for its second."""
    key = await house.published(every(60))
    changed = await house.enabled(key)
    await house.advance_to(start - STAGED_FOR)
    await house.until(lambda: house.entries(key))
    await house.known(RunKey(activation=changed.key, nominal_time=start))
    assert [fate[2:] for fate in house.fates(key, since=start)] == [(Disposition.STAGED, None)]
    return key, changed


@pytest.mark.parametrize("end", ["paused", "retired"])
@pytest.mark.parametrize("nudge", [True, False], ids=["told", "not told"])
async def test_an_end_before_the_nominal_time_withdraws_the_staged_run_without_an_entry(skipping, end, nudge):
    async with skipping(pace=STAGED_EARLY) as house:
        start = await house.on_the_minute()
        key, changed = await staged(house, start)

        await getattr(house, end)(key, nudge=nudge)

        run = RunKey(activation=changed.key, nominal_time=start)
        assert (await house.workflow(run).result())["disposition"] == "withdrawn"
        await house.advance(timedelta(minutes=2))
        assert await house.workflow(changed.key).result() == "ended"
        assert house.entries(key) == []
        assert house.begun == []


@pytest.mark.parametrize("after", [timedelta(0), timedelta(microseconds=1), SECOND])
async def test_an_end_at_the_nominal_time_drops_what_is_staged_and_not_decided(skipping, after):
    """The person's clock may be ahead of the run worker's: the instant is due by then, and it is answered."""
    async with skipping(pace=STAGED_EARLY) as house:
        start = await house.on_the_minute()
        key, changed = await staged(house, start)

        await house.paused(key, now=start + after)

        await house.advance(timedelta(minutes=2))
        assert await house.workflow(changed.key).result() == "ended"
        assert house.fates(key, since=start) == [(0, 0, "dropped", "paused")]
        assert house.begun == []


async def test_an_end_just_after_the_decision_lets_the_run_go_on(skipping):
    async with skipping(pace=STAGED_EARLY, run_workflow=LastingRun) as house:
        house.script.usual = Work(lasts=timedelta(seconds=90))
        start = await house.on_the_minute()
        key, changed = await staged(house, start)
        await house.until(lambda: house.begun)

        # The clock of whoever pauses is behind: the decision that was taken counts all the same.
        paused = await house.paused(key, now=start - SECOND)

        assert paused.activation.activated_at == house.activation(changed.key).ended_at == start
        await house.advance(timedelta(minutes=2))
        assert house.fates(key, since=start) == [(0, 0, "succeeded", None)]


async def test_an_instant_whose_staging_was_withdrawn_belongs_to_the_next_generation(skipping):
    """A pause and an enabling inside the lead: the instant runs once, for the second generation."""
    async with skipping(pace=STAGED_EARLY) as house:
        start = await house.on_the_minute()
        key, first = await staged(house, start)

        await house.paused(key)
        third = await house.enabled(key)

        await house.advance_to(start + timedelta(seconds=30))
        assert [(entry.generation, entry.first_at) for entry in house.entries(key)] == [(third.key.generation, start)]
        assert house.begun == [start]
        run = RunKey(activation=first.key, nominal_time=start)
        assert (await house.workflow(run).result())["disposition"] == "withdrawn"


async def test_enabling_again_takes_over_at_once_and_the_old_workflow_ends(skipping):
    async with skipping(pace=STAGED_EARLY) as house:
        start = await house.on_the_minute()
        key, first = await staged(house, start)

        second = await house.enabled(key)  # nobody tells the first one

        await house.advance_to(start + timedelta(seconds=30))
        assert {entry.generation for entry in house.entries(key)} == {second.key.generation}
        assert house.begun == [start]
        await house.advance(timedelta(minutes=1))  # the first one looks when its next instant is due
        assert await house.workflow(first.key).result() == "ended"
        assert house.activation(first.key).ended_as == Reason.SUPERSEDED


@pytest.mark.parametrize(
    ("overlap", "waiting"),
    [
        ("skip", [(60, 60, "dropped", "paused")]),
        ("buffer_one", [(60, 60, "dropped", "paused")]),
        ("buffer_all", [(60, 60, "dropped", "paused")]),
    ],
)
async def test_a_pause_while_a_run_holds_the_slot_drops_what_waits_and_lets_the_run_end(skipping, overlap, waiting):
    async with skipping(run_workflow=LastingRun) as house:
        house.script.usual = Work(lasts=timedelta(minutes=5))
        start = await house.on_the_minute()
        key = await house.published(every(60, overlap=overlap))
        changed = await house.enabled(key)
        await house.advance_to(start + timedelta(seconds=70))

        await house.paused(key)

        await house.advance(timedelta(minutes=10))
        found = house.fates(key, since=start)
        assert found[0] == (0, 0, "succeeded", None)
        # With skip, the instant may have been judged before the pause.
        assert found[1:] in (waiting, [(60, 60, "skipped", "overlap")])
        assert await house.workflow(changed.key).result() == "ended"
        assert house.activation(changed.key).waiting is False


async def test_a_run_of_an_older_generation_holds_the_slot_of_the_newer_one(skipping):
    async with skipping(run_workflow=LastingRun) as house:
        start = await house.on_the_minute()
        house.script.works[start] = Work(lasts=timedelta(seconds=155))
        key = await house.published(every(60))
        await house.enabled(key)
        await house.advance_to(start + timedelta(seconds=30))

        await house.paused(key)
        await house.enabled(key)

        await house.advance_to(start + timedelta(seconds=270))
        assert house.fates(key, since=start) == [
            (0, 0, "succeeded", None),
            (60, 120, "skipped", "overlap"),
            (180, 180, "succeeded", None),
            (240, 240, "succeeded", None),
        ]


class Interrupted(Timetable):
    """Something happens between the facts of a step and its commit."""

    between: Callable[[CommitPlan], Awaitable[None]] | None = None

    @activity.defn
    async def commit_plan(self, request: CommitPlan) -> Status:
        happens, Interrupted.between = Interrupted.between, None
        if happens is not None and request.plan.starts:
            await happens(request)
        return await super().commit_plan(request)


@pytest.mark.parametrize("end", ["paused", "retired"])
async def test_an_end_between_facts_and_commit_makes_the_plan_void(skipping, end):
    async with skipping(timetable=Interrupted) as house:
        start = await house.on_the_minute()
        key = await house.published(every(60))
        changed = await house.enabled(key)
        await house.advance_to(start - SECOND)

        async def ended(request: CommitPlan) -> None:
            assert request.plan.starts == (start,)
            await getattr(house, end)(key, now=start + SECOND)

        Interrupted.between = ended
        await house.advance(timedelta(minutes=2))

        assert Interrupted.between is None
        assert await house.workflow(changed.key).result() == "ended"
        assert house.fates(key, since=start) == [(0, 0, "dropped", end)]
        assert house.begun == []


async def test_another_step_between_facts_and_commit_makes_the_plan_stale(skipping):
    """As by a second workflow: the mark has moved, so the plan is made again from new facts."""
    async with skipping(timetable=Interrupted) as house:
        start = await house.on_the_minute()
        key = await house.published(every(60))
        changed = await house.enabled(key)
        await house.advance_to(start - SECOND)

        async def stepped(request: CommitPlan) -> None:
            timetable = Timetable(house.catalog, house.starter, STAGED_EARLY)
            assert await timetable.commit_plan(request) is Status.DONE

        Interrupted.between = stepped
        await house.advance_to(start + timedelta(seconds=90))

        assert [fate[:3] for fate in house.fates(key, since=start)] == [(0, 0, "succeeded"), (60, 60, "succeeded")]
        assert house.begun == [start, start + timedelta(minutes=1)]
        assert house.activation(changed.key).is_live


async def test_signals_that_come_in_floods_cost_steps_and_change_nothing(skipping):
    async with skipping(run_workflow=LastingRun) as house:
        house.script.usual = Work(lasts=timedelta(seconds=155))
        start = await house.on_the_minute()
        key = await house.published(every(60, overlap="buffer_all"))
        changed = await house.enabled(key)

        # Never at the very time of a timer: the test server cannot cancel one that fires, and stands still for good.
        for second in range(25, 560, 40):
            await house.advance_to(start + timedelta(seconds=second))
            for signal in ("run_closed", "pause", "review", "retire", "run_closed"):
                await house.temporal.signal(changed.key, signal)

        assert [fate[:3] for fate in house.fates(key, since=start)][:4] == [
            (0, 0, "succeeded"),
            (60, 60, "succeeded"),
            (120, 120, "succeeded"),
            (180, 180, "started"),
        ]
        assert house.begun == [start + timedelta(minutes=minute) for minute in range(4)]
        assert house.activation(changed.key).is_live


async def test_retirement_is_final_and_late_signals_find_nobody(skipping):
    async with skipping() as house:
        start = await house.on_the_minute()
        key = await house.published(every(60))
        changed = await house.enabled(key)
        await house.advance_to(start + timedelta(seconds=30))

        await house.retired(key)

        assert await house.workflow(changed.key).result() == "ended"
        for signal in ("pause", "retire", "run_closed"):
            await house.temporal.signal(changed.key, signal)
        with pytest.raises(RPCError):
            await house.workflow(changed.key).signal("run_closed")
        await house.advance(timedelta(minutes=10))
        assert [fate[2] for fate in house.fates(key, since=start)] == ["succeeded"]


async def test_a_workflow_that_is_started_for_an_ended_activation_ends_itself(skipping):
    async with skipping() as house:
        key = await house.published(every(60))
        changed = await house.enabled(key, start=False)
        await house.advance(timedelta(minutes=3))
        await house.paused(key)

        assert await house.temporal.start_schedule(changed.key)

        assert await house.workflow(changed.key).result() == "ended"
        (dropped,) = house.entries(key)
        assert (dropped.count, dropped.disposition, dropped.reason) == (3, Disposition.DROPPED, Reason.PAUSED)
        assert house.begun == []


async def test_a_workflow_that_is_started_late_accounts_for_what_it_missed(skipping):
    async with skipping() as house:
        start = await house.on_the_minute()
        key = await house.published(every(60, window=90))
        changed = await house.enabled(key, start=False)
        await house.advance_to(start + timedelta(seconds=310))

        assert await house.temporal.start_schedule(changed.key)

        await house.advance_to(start + timedelta(seconds=390))
        assert house.fates(key, since=start) == [
            (0, 180, "missed", "outside_window"),
            (240, 240, "succeeded", None),  # the oldest that is not too late takes the slot, now
            (300, 300, "skipped", "overlap"),
            (360, 360, "succeeded", None),
        ]


async def test_a_second_workflow_for_the_same_activation_does_no_harm(skipping):
    async with skipping(run_workflow=LastingRun) as house:
        house.script.usual = Work(lasts=timedelta(seconds=70))
        start = await house.on_the_minute()
        key = await house.published(every(60, overlap="buffer_one"))
        changed = await house.enabled(key)
        for number in range(2):
            await house.client.start_workflow(
                SCHEDULE_WORKFLOW, changed.key, id=f"by-mistake-{number}", task_queue=SCHEDULES_QUEUE
            )

        await house.advance_to(start + timedelta(minutes=20))
        await house.paused(key)
        await house.advance(timedelta(minutes=20))

        assert len(house.begun) == len(set(house.begun)) >= 15
        for number in range(2):
            assert await house.client.get_workflow_handle(f"by-mistake-{number}").result() == "ended"
