"""A schedule's workflow that begins anew after every few steps loses nothing and does nothing twice."""

from datetime import timedelta

import pytest

from activities.pace import Pace
from horarium.schedule.identity import instant_text
from horarium.schedule.ledger import Disposition, Reason
from tests.workflows.documents import every
from tests.workflows.lasting import LastingRun, Work

SPAN = timedelta(minutes=10)


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 7, 11])
async def test_continuing_as_new_after_so_many_steps_loses_nothing_and_does_nothing_twice(skipping, steps):
    """Two schedules whose runs overlap and one whose runs do not, while signals arrive all the time."""
    pace = Pace(lead=timedelta(0), spread=timedelta(0), look_after=timedelta(seconds=47), steps_per_run=steps)
    async with skipping(run_workflow=LastingRun, pace=pace) as house:
        house.script.usual = Work(lasts=timedelta(seconds=73))
        start = await house.on_the_minute(multiple=2)
        until = instant_text(start + SPAN)
        keys = {
            overlap: await house.published(every(seconds, overlap=overlap, end_at=until))
            for overlap, seconds in (("skip", 60), ("buffer_all", 60), ("allow", 120))
        }
        changed = {overlap: await house.enabled(key) for overlap, key in keys.items()}

        # Seventeen seconds behind a minute nothing is due to happen, so that the test server has no timer to cancel.
        for second in range(17, 600, 120):
            await house.advance_to(start + timedelta(seconds=second))
            for each in changed.values():
                await house.temporal.signal(each.key, "run_closed")
        await house.advance_to(start + timedelta(minutes=25))

        minutes = [start + timedelta(minutes=minute) for minute in range(11)]
        answers = {overlap: house.entries(key) for overlap, key in keys.items()}
        assert [entry.first_at for entry in answers["buffer_all"]] == minutes
        assert {entry.disposition for entry in answers["buffer_all"]} == {Disposition.SUCCEEDED}
        assert [entry.first_at for entry in answers["allow"]] == minutes[::2]
        assert {entry.disposition for entry in answers["allow"]} == {Disposition.SUCCEEDED}
        assert [(entry.first_at, entry.disposition) for entry in answers["skip"]] == [
            (minute, Disposition.SKIPPED if number % 2 else Disposition.SUCCEEDED)
            for number, minute in enumerate(minutes)
        ]
        for each in changed.values():
            assert await house.workflow(each.key).result() == "ended"
            assert house.activation(each.key).ended_as == Reason.REVIEW
            history = await house.workflow(each.key).fetch_history()
            started = history.events[0].workflow_execution_started_event_attributes
            assert started.continued_execution_run_id, "it never continued as new"
