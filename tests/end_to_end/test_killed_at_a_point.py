"""Each process is killed outright at the points where it hurts most; every due instant still gets exactly one answer.

The processes are those of an installation (see crashing.py). Whoever dies is started again at once, as an operator's
supervisor would.
"""

import asyncio
import contextlib

import pytest

from tests.end_to_end.installation import KILLED, installation, until
from tests.end_to_end.stories import Stories

pytestmark = pytest.mark.server

stories = Stories()
turns = {"agents": asyncio.Lock(), "controller": asyncio.Lock()}
"""Stories in which one of these dies take turns: a death meant for another story would take this one's point away, or its run."""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory, request):
    return stories.told(tmp_path_factory.mktemp("killed"), request, lambda folder: installation(folder, crashing=True))


async def killed_at(it, point, part, *, first, agent="scripted@1", every=4, offset=0):
    """Run a schedule whose first run meets a death, and prove that it had its answer and that life went on."""
    async with turns.get(part, contextlib.nullcontext()):
        return await _killed_at(it, point, part, first=first, agent=agent, every=every, offset=offset)


async def _killed_at(it, point, part, *, first, agent, every, offset):
    key = await it.published(every=every, offset=offset, agent=agent)
    it.arm(point, key)
    deaths = it.deaths.count((part, KILLED))
    await it.enabled(key)
    await until(lambda: not it.is_armed(point, key), f"a death {point}")
    await until(lambda: it.deaths.count((part, KILLED)) > deaths, f"the end of {part}")
    await until(
        lambda: "succeeded" in it.told(key)[1:] and it.rows(key)[0][0].closed_at is not None,
        lambda: f"an answer and a later success; the ledger says {it.told(key)}",
    )
    assert it.told(key)[0] == first
    await it.proven(key, repeated=agent != "scripted@1")
    return key


@stories.story
async def test_a_schedule_worker_that_dies_between_commit_and_start_has_its_run_started_by_the_next(it):
    await killed_at(it, "between commit and start", "schedules", first="succeeded")


@stories.story
async def test_a_schedule_worker_that_dies_between_start_and_history_starts_nothing_twice(it):
    await killed_at(it, "between start and history", "schedules", first="succeeded", offset=1)


@stories.story
async def test_a_schedule_worker_that_dies_before_it_settles_has_the_run_settled_by_the_next(it):
    await killed_at(it, "before settlement", "schedules", first="succeeded", offset=2)


@stories.story
async def test_a_schedule_worker_that_dies_after_it_settled_settles_nothing_twice(it):
    await killed_at(it, "after settlement", "schedules", first="succeeded", offset=3)


@stories.story
async def test_a_run_worker_that_dies_while_it_waits_for_the_second_is_replaced_by_the_next(it):
    await killed_at(it, "while it waits", "runs", first="succeeded")


@stories.story
async def test_a_run_worker_that_dies_between_decision_and_dispatch_does_not_decide_again(it):
    await killed_at(it, "between decision and dispatch", "runs", first="succeeded", offset=2)


@stories.story
async def test_a_controller_that_dies_before_it_starts_a_schedule_is_followed_by_one_that_does(it):
    await killed_at(it, "before a schedule starts", "controller", first="succeeded", offset=2)


@stories.story
async def test_a_controller_that_dies_after_it_started_a_schedule_is_followed_by_one_that_finds_it(it):
    key = await killed_at(it, "after a schedule started", "controller", first="succeeded", offset=3)
    await until(lambda: it.runtime(key)[0] == "paused", "the controller's word that it is paused")


@stories.later
async def test_an_agent_runner_that_dies_in_the_middle_of_a_run_has_failed_it(it):
    key = await killed_at(it, "in the agent", "agents", first="failed agent_lost", offset=0)
    lost = it.rows(key)[0][0].first_at.isoformat()
    assert [line["nominal"] for line in it.begun(key)].count(lost) == 1


@stories.later
async def test_an_agent_that_may_repeat_a_run_is_given_it_again(it):
    key = await killed_at(it, "in the agent", "agents", agent="repeatable@1", first="succeeded", offset=3)
    first = it.begun(key)[:2]
    assert first[0]["run_id"] == first[1]["run_id"]
    assert first[0]["pid"] != first[1]["pid"]


@stories.later
async def test_an_agent_runner_that_dies_between_claim_and_agent_has_failed_a_run_that_no_agent_saw(it):
    key = await killed_at(it, "between claim and agent", "agents", first="failed agent_lost", offset=1)
    lost = it.rows(key)[0][0].first_at.isoformat()
    assert lost not in [line["nominal"] for line in it.begun(key)]


@stories.later
async def test_a_temporal_server_that_dies_goes_on_from_its_file(it):
    """Killed while a run is staged, one is with its agent, and one waits for the settlement; back after five seconds."""
    keys = [await it.published(every=every, seconds=seconds) for every, seconds in ((3, 0.05), (4, 6), (5, 0.5))]
    for key in keys:
        await it.enabled(key)
    for key in keys:
        await it.until_closed(key, 1)
    it.server.kill()
    await asyncio.sleep(5)
    await it.server.start()
    answered = [sum(entry.count for entry, _ in it.rows(key) if entry.closed_at) for key in keys]
    for key, count in zip(keys, answered, strict=True):
        await it.until_closed(key, count + 2)
    await it.proven(*keys)
