"""The main job with separate processes on a real Temporal server, and what people do to it by hand."""

import asyncio
import random
from datetime import timedelta

import pytest

from horarium.schedule.ledger import Disposition
from tests.end_to_end.installation import installation, now, until
from tests.end_to_end.stories import Stories
from tests.workflows.known import known

pytestmark = pytest.mark.server

stories = Stories()
PUNCTUAL = timedelta(seconds=10)
"""How late a run may begin here: it does not wait for the next instant, however busy the machine is."""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory, request):
    return stories.told(tmp_path_factory.mktemp("real"), request, installation)


async def staged(it, key):
    """The run that is staged ahead, as soon as there is one with more than two seconds left."""
    found = []

    def look():
        found[:] = [
            entry
            for entry, _ in it.rows(key)
            if entry.disposition is Disposition.STAGED and entry.first_at - now() > timedelta(seconds=2)
        ]
        return bool(found)

    await until(look, lambda: f"a run that is staged; the ledger says {it.told(key)}")
    return found[0]


async def started(it, key):
    """The handle of a run that is with its agent."""
    found = []

    def look():
        found[:] = [entry for entry, _ in it.rows(key) if entry.disposition is Disposition.STARTED]
        return bool(found)

    await until(look, lambda: f"a run that has begun; the ledger says {it.told(key)}")
    return it.client.get_workflow_handle(found[0].run_key(key).workflow_id)


async def sleep_until(instant):
    await asyncio.sleep(max((instant - now()).total_seconds(), 0))


@stories.story
async def test_a_schedule_runs_its_agent_at_each_instant_with_few_events(it):
    key = await it.published(every=10)
    activation = (await it.enabled(key)).key
    await it.until_closed(key, 1)
    before, answered = await it.schedule_events(activation), len(it.rows(key))
    await it.until_closed(key, 3)
    spent, more = await it.schedule_events(activation) - before, len(it.rows(key)) - answered
    assert more >= 2
    assert spent / more <= 8, f"{spent} events for {more} occurrences"
    runs = [
        await it.client.get_workflow_handle(entry.run_key(key).workflow_id).fetch_history()
        for entry, _ in it.rows(key)
        if entry.closed_at
    ]
    assert max(len(run.events) for run in runs) <= 18
    # A worker that has no room when it stages a run leaves the first task to whoever has.
    assert any(run.events[0].workflow_execution_started_event_attributes.eager_execution_accepted for run in runs)
    assert it.runtime(key) == ("active", None)
    await it.proven(key)
    for entry, run in it.rows(key):
        assert entry.disposition is Disposition.SUCCEEDED
        assert timedelta(0) <= run.begun_at - entry.first_at < PUNCTUAL
    await until(lambda: it.runtime(key)[0] == "paused", "the controller's word that it is paused")


@stories.story
async def test_a_runner_of_other_agents_takes_no_run_that_it_cannot_do(it):
    await it.start("ingestion")
    key = await it.published(every=2, overlap="allow")
    await it.enabled(key)
    await it.until_closed(key, 6)
    await it.proven(key)
    assert set(it.told(key)) <= {"succeeded", "dropped paused"}


@stories.story
async def test_an_instant_belongs_to_the_generation_that_was_enabled_inside_its_lead(it):
    key = await it.published(every=8)
    await it.enabled(key)
    moved = []
    for _ in range(10):
        entry = await staged(it, key)
        await it.paused(key)
        enabled = (await it.enabled(key)).activation
        await until(
            lambda at=entry.first_at: any(each.first_at == at and each.closed_at for each, _ in it.rows(key)),
            lambda: f"an answer; the ledger says {it.told(key)}",
        )
        if enabled.activated_at < entry.first_at:  # else the machine was too slow to do both inside the lead
            moved.append((entry.first_at, enabled.generation))
        if len(moved) == 2:
            break
    await it.proven(key)
    assert len(moved) == 2
    answers = {(entry.first_at, entry.generation): entry.disposition for entry, _ in it.rows(key)}
    assert [answers[each] for each in moved] == [Disposition.SUCCEEDED] * 2
    assert len([at for at, _ in answers if at in {at for at, _ in moved}]) == 2


async def paused_near_the_second(it, *, seed, times, overlap):
    chance = random.Random(seed)
    key = await it.published(every=2, overlap=overlap)
    for _ in range(times):
        await it.enabled(key)
        soon = now() + timedelta(seconds=2)
        instant = soon.replace(microsecond=0) + timedelta(seconds=2 - soon.second % 2)
        await sleep_until(instant + timedelta(seconds=chance.uniform(-0.25, 0.25)))
        await it.paused(key)
    await it.proven(key)
    return key


@stories.story
async def test_pausing_around_the_nominal_second_loses_nothing_and_repeats_nothing(it):
    """Twenty times: four schedules with five pauses each."""
    policies = ("skip", "allow", "skip", "allow")
    keys = await asyncio.gather(
        *(paused_near_the_second(it, seed=seed, times=5, overlap=each) for seed, each in enumerate(policies))
    )
    for key, overlap in zip(keys, policies, strict=True):
        # On a busy machine a run may take longer than the two seconds until the next one.
        overlapped = {"skipped overlap"} if overlap == "skip" else set()
        assert {each.lstrip("0123456789 ") for each in it.told(key)} <= {"succeeded", "dropped paused"} | overlapped


@stories.story
async def test_a_schedule_that_was_terminated_by_hand_is_in_review_until_it_is_enabled_again(it):
    key = await it.published(every=2, seconds=5, overlap="buffer_all")
    activation = (await it.enabled(key)).key
    await until(lambda: "buffered" in it.told(key), lambda: f"a waiting instant; the ledger says {it.told(key)}")
    await it.client.get_workflow_handle(activation.workflow_id).terminate("by hand")
    await until(lambda: it.runtime(key)[0] == "review", lambda: f"review; it is {it.runtime(key)}")
    assert "terminated" in it.runtime(key)[1]
    assert not it.activations(key)[-1].is_live
    assert "buffered" not in it.told(key)
    assert any("dropped review" in each for each in it.told(key))
    generation = (await it.enabled(key)).activation.generation
    assert generation == activation.generation + 1
    await until(
        lambda: any(
            entry.generation == generation and entry.disposition is Disposition.SUCCEEDED for entry, _ in it.rows(key)
        ),
        lambda: f"a success of generation {generation}; the ledger says {it.told(key)}",
    )
    await it.proven(key)


@stories.story
async def test_a_run_that_was_terminated_by_hand_frees_its_slot(it):
    key = await it.published(every=4, seconds=40)
    await it.enabled(key)
    await (await started(it, key)).terminate("by hand")
    await until(lambda: it.rows(key)[0][0].closed_at is not None, "the end of the run")
    assert it.told(key)[0] == "terminated terminated_by_operator"
    await (await started(it, key)).cancel()
    await it.proven(key)


@stories.story
async def test_a_run_that_is_cancelled_with_its_agent_ends_as_cancelled(it):
    key = await it.published(every=4, seconds=40)
    await it.enabled(key)
    await (await started(it, key)).cancel()
    await until(lambda: it.rows(key)[0][0].closed_at is not None, "the end of the run")
    assert it.told(key)[0] == "cancelled cancelled_by_operator"
    await (await started(it, key)).cancel()
    await it.proven(key)


@stories.story
async def test_a_run_that_is_cancelled_before_its_second_never_reaches_an_agent(it):
    key = await it.published(every=6)
    await it.enabled(key)
    cancelled_at = None
    while cancelled_at is None:
        entry = await staged(it, key)
        handle = await known(it.client.get_workflow_handle(entry.run_key(key).workflow_id))
        if entry.first_at - now() > timedelta(seconds=1):  # else its second is too near, and the next one is taken
            await handle.cancel()
            cancelled_at = now()
    assert cancelled_at < entry.first_at
    await handle.result()
    await sleep_until(entry.first_at + timedelta(seconds=1))
    await it.proven(key)
    told = next(each for each, _ in it.rows(key) if each.first_at == entry.first_at)
    assert (told.disposition, told.reason) == ("cancelled", "cancelled_by_operator")
    assert entry.first_at.isoformat() not in [line["nominal"] for line in it.begun(key)]


@stories.story
async def test_the_first_failure_ends_the_activation_in_review_where_the_policy_says_so(it):
    key = await it.published(every=2, fails=True, pause_on_failure=True)
    await it.enabled(key)
    await until(lambda: it.runtime(key)[0] == "review", lambda: f"review; it is {it.runtime(key)}")
    assert "pause_on_failure" in it.runtime(key)[1]
    await it.proven(key)
    assert it.told(key)[0] == "failed agent_reported_failure"
    assert len(it.begun(key)) == 1


@stories.later
async def test_two_of_everything_do_nothing_twice_and_each_may_be_stopped_amid_its_work(it):
    """Then one of each is told to leave while it works: it ends by itself, with a true exit status, and loses nothing."""
    for part in ("schedules", "runs", "controller", "agents"):
        await it.start(part, name=f"{part}-2")
    keys = [await it.published(every=every, seconds=seconds) for every, seconds in ((1, 0.05), (2, 0.5), (3, 2.5))]
    for key in keys:
        await it.enabled(key)
    for key in keys:
        await it.until_closed(key, 2)
    for part in ("agents", "runs", "schedules", "controller"):
        await started(it, keys[2])
        assert await it.stop(part) == 0, it.children[part].last_words()
    for key in keys:
        answered = sum(entry.count for entry, _ in it.rows(key) if entry.closed_at)
        await it.until_closed(key, answered + 1)
    await it.proven(*keys)
    assert it.deaths == []
    allowed = {"succeeded", "skipped overlap", "dropped paused"}
    for key in keys:
        assert {each.lstrip("0123456789 ") for each in it.told(key)} <= allowed
