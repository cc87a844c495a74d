"""While the catalog does not answer, workflows wait on timers and account for everything afterwards."""

from datetime import timedelta

from horarium.schedule.identity import RunKey
from tests.workflows.documents import every
from tests.workflows.lasting import LastingRun, Work

EXPECTED = ("is tried again", "Completing activity as failed")


async def test_a_schedule_waits_on_timers_through_an_outage_and_accounts_for_it_when_it_is_over(skipping):
    async with skipping() as house:
        house.expected += EXPECTED
        start = await house.on_the_minute()
        key = await house.published(every(60, window=90))
        changed = await house.enabled(key)
        await house.advance_to(start + timedelta(seconds=70))

        house.catalog.is_out = True
        await house.advance_to(start + timedelta(minutes=6, seconds=30))
        description = await house.workflow(changed.key).query("describe")
        assert description["state"] == "the catalog does not answer"
        history = await house.workflow(changed.key).fetch_history()
        house.catalog.is_out = False

        await house.advance_to(start + timedelta(minutes=8, seconds=30))
        ran, also_ran, missed, *later = house.fates(key, since=start)
        assert (ran, also_ran) == ((0, 0, "succeeded", None), (60, 60, "succeeded", None))
        # It looks again within a minute of the end: what is then older than the window is missed, the oldest of the rest runs.
        assert (missed[0], *missed[2:]) == (120, "missed", "outside_window")
        assert 240 <= missed[1] <= 360
        assert later[-1] == (480, 480, "succeeded", None)
        # Two steps, then tries after 1, 2, 4, 8, 16 and 32 s, and each minute.
        assert sum(event.HasField("timer_started_event_attributes") for event in history.events) <= 15


async def test_a_run_that_ends_while_the_catalog_is_down_is_settled_afterwards_and_holds_its_slot_until_then(skipping):
    async with skipping(run_workflow=LastingRun) as house:
        house.expected += EXPECTED
        house.script.usual = Work(lasts=timedelta(seconds=130))
        start = await house.on_the_minute()
        key = await house.published(every(60))
        changed = await house.enabled(key)
        await house.advance_to(start + timedelta(seconds=70))

        house.catalog.is_out = True
        await house.advance_to(start + timedelta(seconds=200))
        house.catalog.is_out = False
        await house.advance_to(start + timedelta(seconds=290))

        run = RunKey(activation=changed.key, nominal_time=start)
        assert await house.workflow(run).result() == {"disposition": "succeeded", "reason": None}
        (first, *_), fates = house.runs(key), house.fates(key, since=start)
        assert fates[0] == (0, 0, "succeeded", None)
        # The settlement is dated by the run's end, or by a try after it, so the slot may be free at 180 already.
        assert timedelta(seconds=130) <= first.ended_at - start <= timedelta(seconds=270)
        assert fates[1][:1] == (60,)
        assert fates[1][2:] == ("skipped", "overlap")
