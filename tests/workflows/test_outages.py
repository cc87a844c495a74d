"""While the catalog does not answer, workflows wait on timers and account for everything afterwards."""

import sqlite3
from datetime import timedelta

import pytest
from sqlalchemy.exc import IntegrityError
from temporalio.common import RetryPolicy

from horarium.errors import Misconfigured
from horarium.schedule.identity import RunKey
from tests.workflows.documents import every
from tests.workflows.lasting import LastingRun, Work
from workflows import options

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
        assert description["trouble"] == "The catalog does not answer: it is out. [catalog_unavailable]"
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


async def test_days_without_a_catalog_make_many_short_histories_of_a_schedule_and_not_one_that_is_ended(
    skipping, monkeypatch
):
    """With the limit lowered from 200 events to 30, so that three hours are as good as a day."""
    monkeypatch.setattr(options, "HISTORY_EVENTS", 30)
    monkeypatch.setattr(options, "LOCAL_RETRY", RetryPolicy(maximum_attempts=1))
    async with skipping() as house:
        house.expected += EXPECTED
        start = await house.on_the_minute()
        key = await house.published(every(60, window=90))
        changed = await house.enabled(key)
        await house.advance_to(start + timedelta(seconds=30))
        house.catalog.is_out = True
        await house.advance_to(start + timedelta(hours=3))
        house.catalog.is_out = False
        await house.advance(timedelta(minutes=3))

        lengths = await lengths_of_histories(house, changed.key.workflow_id)
        # Six quick tries and one a minute, each of six events, that is five tries a history, then a new first minute.
        assert len(lengths) >= 3 * 60 / (5 + 5)
        assert max(lengths) <= 30 + 6
        assert (await house.workflow(changed.key).query("describe"))["trouble"] is None


async def test_three_days_without_a_catalog_do_not_make_the_history_of_a_run_long(skipping, monkeypatch):
    monkeypatch.setattr(options, "LOCAL_RETRY", RetryPolicy(maximum_attempts=1))
    async with skipping(run_workflow=LastingRun) as house:
        house.expected += EXPECTED
        house.script.usual = Work(lasts=timedelta(seconds=70))
        start = await house.on_the_minute()
        key = await house.published(every(7 * 86_400, offset=offset_of(start)))
        changed = await house.enabled(key)
        await house.advance_to(start + timedelta(seconds=30))
        house.catalog.is_out = True
        await house.advance_to(start + timedelta(days=3))
        details = str(await house.workflow(run_at(changed, start)).query("__temporal_workflow_metadata"))
        house.catalog.is_out = False
        await house.advance(options.LONGEST_SETTLING_PAUSE + timedelta(seconds=1))

        assert house.fates(key, since=start) == [(0, 0, "succeeded", None)]
        (length,) = await lengths_of_histories(house, run_at(changed, start).workflow_id)
        assert length <= 25 + 6 * (10 + 3 * 144), "ten tries in 17 minutes, then six an hour"
        assert "succeeded, not written down yet" in details
        assert "it is out. [catalog_unavailable]" in details


@pytest.mark.parametrize(
    ("raised", "trouble"),
    [
        (Misconfigured("The catalog has no tables yet."), "The catalog has no tables yet."),
        (
            IntegrityError("INSERT INTO runs", {"token_hash": "5ecre7"}, sqlite3.IntegrityError("UNIQUE")),
            "IntegrityError; the worker's log says more.",
        ),
    ],
    ids=["foreseen", "unforeseen"],
)
async def test_a_schedule_whose_steps_fail_says_why_and_tells_nothing_that_was_being_written(
    skipping, monkeypatch, raised, trouble
):
    async with skipping() as house:
        house.expected += ("is tried again", "Completing activity as failed", "IntegrityError")
        key = await house.published(every(3_600))
        changed = await house.enabled(key, start=False)

        def fails(_connection, *_args, **_rest):
            raise raised

        with monkeypatch.context() as patched:
            patched.setattr("horarium.control.stepping.gather", fails)
            await house.temporal.start_schedule(changed.key)
            await house.advance(timedelta(seconds=30))
            described = await house.workflow(changed.key).query("describe")
            text = (await house.workflow(changed.key).query("__temporal_workflow_metadata")).current_details
        await house.advance(timedelta(seconds=90))

        assert (described["state"], described["trouble"]) == ("its steps fail", trouble)
        assert f"Its last step failed: {trouble}" in text
        assert "5ecre7" not in text
        described = await house.workflow(changed.key).query("describe")
        assert (described["state"], described["trouble"]) == ("waits for the next instant", None)


def run_at(changed, instant) -> RunKey:
    return RunKey(activation=changed.key, nominal_time=instant)


def offset_of(instant) -> int:
    """The offset of a weekly interval that selects an instant."""
    return int(instant.timestamp()) % (7 * 86_400)


async def lengths_of_histories(house, workflow_id: str) -> list[int]:
    """How many events each execution of a workflow has, the last one first."""
    lengths = []
    run_id = (await house.client.get_workflow_handle(workflow_id).describe()).run_id
    while run_id:
        history = await house.client.get_workflow_handle(workflow_id, run_id=run_id).fetch_history()
        lengths.append(len(history.events))
        run_id = history.events[0].workflow_execution_started_event_attributes.continued_execution_run_id
    return lengths
