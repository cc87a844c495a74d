"""Turns of organizations in front of what few can have at a time."""

import asyncio

import pytest

from activities.turns import Turns


class Line:
    """Those who want a turn, each until the test lets it go; `order` is who was let in, in its order."""

    def __init__(self, at_once: int) -> None:
        self.turns = Turns(at_once)
        self.order: list[str] = []
        self._done: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def join(self, *names: str) -> None:
        """Each of them queues up; its owner is the first letter of its name."""
        for name in names:
            self._done[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._want(name))
        await settled()

    async def let_go(self, *names: str) -> None:
        for name in names:
            self._done[name].set()
            await settled()

    async def let_all_go(self) -> list[str]:
        """Let everybody go as soon as they are in; who came in, in its order."""
        for event in self._done.values():
            event.set()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)
        return self.order

    async def _want(self, name: str) -> None:
        async with self.turns.turn(name[0]):
            self.order.append(name)
            await self._done[name].wait()


async def settled() -> None:
    """Everything that is ready has run."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_as_many_as_there_is_room_for_are_let_in():
    line = Line(2)
    await line.join("a1", "a2", "a3")
    assert line.order == ["a1", "a2"]
    await line.let_go("a2")
    assert line.order == ["a1", "a2", "a3"]
    await line.let_all_go()


async def test_who_belongs_together_is_let_in_as_they_came():
    line = Line(1)
    await line.join("a1", "a2", "a3")
    assert await line.let_all_go() == ["a1", "a2", "a3"]


async def test_owners_take_turns_however_many_one_of_them_has():
    line = Line(1)
    await line.join("a1", "a2", "a3", "a4", "b1", "b2", "c1")
    assert await line.let_all_go() == ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]


async def test_who_comes_late_to_a_long_line_waits_for_one_of_each_other_owner():
    line = Line(1)
    await line.join(*(f"a{each}" for each in range(100)))
    await line.join("b1")
    assert (await line.let_all_go()).index("b1") <= 2


async def test_an_owner_that_comes_again_and_again_leaves_a_turn_to_each_other():
    line = Line(1)
    await line.join("a1", "a2", "b1", "b2")
    await line.let_go("a1")
    await line.join("a3")
    assert await line.let_all_go() == ["a1", "a2", "b1", "a3", "b2"]


async def test_one_that_gives_up_in_line_takes_no_turn():
    line = Line(1)
    await line.join("a1", "b1", "c1")
    line.tasks["b1"].cancel()
    await settled()
    assert await line.let_all_go() == ["a1", "c1"]


async def test_one_that_is_cancelled_at_the_moment_of_its_turn_passes_it_on():
    line = Line(1)
    await line.join("a1", "b1", "c1")
    line._done["a1"].set()
    await asyncio.sleep(0)  # a1 ends, and has handed its turn to b1, which has not run yet
    line.tasks["b1"].cancel()
    order = await line.let_all_go()
    assert order[-1] == "c1"
    await line.join("d1")
    assert order[-1] == "d1", "no turn was lost"
    await line.let_go("d1")


async def test_a_turn_that_fails_is_passed_on():
    turns = Turns(1)
    for _ in range(2):
        with pytest.raises(ValueError, match="it fails"):
            async with turns.turn("a"):
                raise ValueError("it fails")


async def test_nothing_is_kept_of_owners_who_are_through():
    line = Line(1)
    await line.join("a1", "b1", "b2")
    await line.let_all_go()
    assert not line.turns._waiting
