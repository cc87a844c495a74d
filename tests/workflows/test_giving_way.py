"""Ends of runs that give way to beginnings of others which are due in the same second."""

import asyncio
from datetime import UTC, datetime, timedelta

from activities.giving_way import APART, MANY, REMEMBERED, GivingWay

SECOND = datetime(2026, 3, 1, 9, tzinfo=UTC)
NEXT = SECOND + timedelta(seconds=1)
SOON, LONG = timedelta(milliseconds=50), timedelta(hours=1)


async def ended(
    giving_way: GivingWay,
    nominal_time: datetime = SECOND,
    *,
    at_most: timedelta = LONG,
    unless: asyncio.Event | None = None,
) -> float:
    """How many seconds the end of a run waited."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    await giving_way.give_way(nominal_time, at_most=at_most, until=(unless or asyncio.Event()).wait)
    return loop.time() - began


def begun(giving_way: GivingWay, count: int, nominal_time: datetime = SECOND) -> GivingWay:
    for _ in range(count):
        giving_way.began(nominal_time)
    return giving_way


async def test_an_end_waits_until_no_other_run_of_its_second_begins():
    giving_way = begun(GivingWay(many=2, quiet=SOON * 4, longest=LONG), 2)
    end = asyncio.create_task(ended(giving_way))
    for _ in range(10):  # each within the quiet of the one before, and all together well beyond the first one's
        await asyncio.sleep(SOON.total_seconds())
        giving_way.began(SECOND)
    assert not end.done()
    assert await end > 10 * SOON.total_seconds()


async def test_a_pause_of_a_busy_machine_in_the_middle_of_a_herd_lets_no_end_go():
    """As it is set by default. Pauses of 170 to 212 ms were seen."""
    giving_way = begun(GivingWay(), MANY)
    end = asyncio.create_task(ended(giving_way))
    await asyncio.sleep(0.25)
    assert not end.done()
    giving_way.began(SECOND)
    await end


async def test_it_does_not_wait_where_few_are_due_together():
    assert await ended(begun(GivingWay(many=3, quiet=LONG, longest=LONG), 2)) < 1


async def test_nor_for_runs_of_another_second():
    giving_way = begun(GivingWay(many=2, quiet=LONG, longest=LONG), 5)
    assert await ended(begun(giving_way, 1, NEXT), NEXT) < 1


async def test_it_waits_no_longer_than_the_longest_although_others_begin():
    giving_way = begun(GivingWay(many=2, quiet=LONG, longest=SOON), 2)
    assert SOON.total_seconds() <= await ended(giving_way) < 5


async def test_nor_longer_than_its_run_has_time():
    giving_way = begun(GivingWay(many=2, quiet=LONG, longest=LONG), 2)
    assert SOON.total_seconds() <= await ended(giving_way, at_most=SOON) < 5
    assert await ended(giving_way, at_most=-SOON) < 1


async def test_it_does_not_wait_once_it_need_not_and_not_a_moment_longer():
    giving_way = begun(GivingWay(many=2, quiet=LONG, longest=LONG), 2)
    leaving = asyncio.Event()
    ends = [asyncio.create_task(ended(giving_way, unless=leaving)) for _ in range(3)]
    await asyncio.sleep(SOON.total_seconds())
    assert not any(end.done() for end in ends)
    leaving.set()
    assert max(await asyncio.gather(*ends)) < 5
    assert await ended(giving_way, unless=leaving) < 1


async def test_what_has_ended_is_not_cancelled_any_more():
    giving_way = begun(GivingWay(many=2, quiet=LONG, longest=LONG), 2)
    end = asyncio.create_task(ended(giving_way))
    await asyncio.sleep(SOON.total_seconds())
    end.cancel()
    assert await end < 5


async def test_it_waits_no_longer_once_there_is_no_room_for_another():
    """A second runner's worth of the herd is yet to come, and can only begin where one of these leaves."""
    giving_way = begun(GivingWay(3, many=2, quiet=LONG, longest=LONG), 2)
    with giving_way.taking_room(), giving_way.taking_room():
        end = asyncio.create_task(ended(giving_way))
        await asyncio.sleep(SOON.total_seconds())
        assert not end.done()
        with giving_way.taking_room():
            assert await end < 5
            assert await ended(giving_way) < 1
        end = asyncio.create_task(ended(giving_way))
        await asyncio.sleep(SOON.total_seconds())
        assert not end.done(), "there is room again"
        end.cancel()
        await end


async def test_a_second_soon_after_another_with_many_has_its_runs_end_at_once():
    """Or schedules that are due every other second would find themselves still running."""
    giving_way = begun(begun(GivingWay(many=2, quiet=LONG, longest=SOON), 2), 2, SECOND + APART)
    assert await ended(giving_way, SECOND + APART) < SOON.total_seconds()
    assert await ended(giving_way, SECOND) >= SOON.total_seconds(), "the one before it stands by itself"
    later = SECOND + APART * 2 + timedelta(seconds=1)
    assert await ended(begun(giving_way, 2, later), later) >= SOON.total_seconds()


async def test_only_so_many_seconds_are_remembered():
    giving_way = begun(GivingWay(many=2, quiet=LONG, longest=SOON), 5)
    seconds = [SECOND + 2 * APART * number for number in range(1, REMEMBERED + 1)]
    for each in seconds:
        begun(giving_way, 2, each)
    assert await ended(giving_way, SECOND) < SOON.total_seconds(), "the oldest is forgotten, and nobody waits for it"
    assert await ended(giving_way, seconds[0]) >= SOON.total_seconds()
