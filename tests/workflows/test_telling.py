"""What a schedule's workflow says of itself to a person who looks at it alone."""

from datetime import timedelta

from horarium.schedule.identity import RunKey, instant_text
from tests.workflows.documents import every
from tests.workflows.lasting import LastingRun, Work


async def details(house, key) -> str:
    """The current details, as the page of the workflow shows them."""
    return await house.workflow(key).query("__temporal_workflow_metadata")


async def test_a_schedule_that_waits_for_its_next_instant_says_which(skipping):
    async with skipping() as house:
        start = await house.on_the_minute()
        key = await house.published(every(60))
        changed = await house.enabled(key)
        await house.advance_to(start + timedelta(seconds=30))

        described = await house.workflow(changed.key).query("describe")

        following = instant_text(start + timedelta(minutes=1))
        assert (described["state"], described["next_look"]) == ("waits for the next instant", following)
        assert (described["blocked"], described["waiting"]) == (False, 0)
        assert described["key"]["generation"] == 1
        text = str(await details(house, changed.key))
        for part in (key.schedule_id, "acme/test", "generation 1", "waits for the next instant", following):
            assert part in text, text


async def test_a_schedule_that_waits_for_a_run_says_how_many_wait_and_when_it_looks_by_itself(skipping):
    async with skipping(run_workflow=LastingRun) as house:
        house.script.usual = Work(lasts=timedelta(minutes=10))
        start = await house.on_the_minute()
        key = await house.published(every(60, overlap="buffer_all"))
        changed = await house.enabled(key)
        await house.advance_to(start + timedelta(seconds=115))

        described = await house.workflow(changed.key).query("describe")

        assert (described["state"], described["blocked"], described["waiting"]) == ("waits for a run to end", True, 1)
        text = str(await details(house, changed.key))
        assert "waits for a run to end" in text
        assert "Waiting for a slot: 1" in text


async def test_a_schedule_that_has_ended_says_so(skipping):
    async with skipping() as house:
        key = await house.published(every(60))
        changed = await house.enabled(key)
        await house.paused(key)
        assert await house.workflow(changed.key).result() == "ended"

        described = await house.workflow(changed.key).query("describe")

        assert (described["state"], described["next_look"]) == ("ended", None)


async def test_a_run_says_what_became_of_it(skipping):
    async with skipping() as house:
        start = await house.on_the_minute()
        key = await house.published(every(60))
        changed = await house.enabled(key)
        await house.advance_to(start + timedelta(seconds=30))

        text = str(await details(house, RunKey(activation=changed.key, nominal_time=start)))

        for part in (key.schedule_id, instant_text(start), "succeeded"):
            assert part in text, text
