"""Slots for workflow tasks: many for workflows that are in memory, few for those that are not."""

import asyncio
import threading
from types import SimpleNamespace

import pytest

from worker.slots import WorkflowSlots

CACHED, NEW = SimpleNamespace(is_sticky=True), SimpleNamespace(is_sticky=False)


def released(slots, permit):
    slots.release_slot(SimpleNamespace(permit=permit, slot_info=None))


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def waiting(slots, kind) -> asyncio.Task:
    task = asyncio.create_task(slots.reserve_slot(kind))
    await settled()
    assert not task.done()
    return task


@pytest.mark.parametrize(("kind", "room"), [(CACHED, 3), (NEW, 2)], ids=["cached", "new"])
async def test_there_are_as_many_of_each_kind_as_were_named(kind, room):
    slots = WorkflowSlots(cached=3, new=2)
    permits = [await slots.reserve_slot(kind) for _ in range(room)]
    assert slots.try_reserve_slot(kind) is None

    next_one = await waiting(slots, kind)
    released(slots, permits[0])

    await asyncio.wait_for(next_one, timeout=60)
    assert slots.try_reserve_slot(kind) is None


async def test_replays_that_take_all_of_theirs_leave_those_of_cached_workflows_free():
    slots = WorkflowSlots(cached=1, new=1)
    await slots.reserve_slot(NEW)
    replay = await waiting(slots, NEW)

    permit = await asyncio.wait_for(slots.reserve_slot(CACHED), timeout=60)
    released(slots, permit)
    await settled()

    assert not replay.done(), "a slot of the other kind is none of its own"
    replay.cancel()


async def test_who_has_waited_longest_is_next():
    slots = WorkflowSlots(cached=1, new=1)
    permit = await slots.reserve_slot(CACHED)
    first, second = await waiting(slots, CACHED), await waiting(slots, CACHED)

    released(slots, permit)
    await asyncio.wait_for(first, timeout=60)

    assert not second.done()
    second.cancel()


async def test_a_slot_is_given_back_from_any_thread():
    slots = WorkflowSlots(cached=1, new=1)
    permit = await slots.reserve_slot(CACHED)
    next_one = await waiting(slots, CACHED)

    threading.Thread(target=released, args=(slots, permit)).start()

    await asyncio.wait_for(next_one, timeout=60)


@pytest.mark.parametrize("at", ["while it waits", "as it is given one"])
async def test_a_reservation_that_is_cancelled_keeps_no_slot(at):
    slots = WorkflowSlots(cached=1, new=1)
    permit = await slots.reserve_slot(CACHED)
    cancelled = await waiting(slots, CACHED)
    if at == "as it is given one":
        released(slots, permit)
    cancelled.cancel()
    await asyncio.wait([cancelled])
    if at == "while it waits":
        released(slots, permit)
    await settled()

    assert slots.try_reserve_slot(CACHED) is not None
    assert slots.try_reserve_slot(CACHED) is None
