"""Notifications by a clock that was wrong: set right again, it holds up nothing for longer than a receiver's own faults do."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from activities.gateway import Said
from horarium.catalog import Catalog
from tests.controller.test_notifying import BROKEN, Scene, in_turn, until
from tests.gateway.wire import OK, receiver, says

AHEAD = timedelta(days=20)
ASKS = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 600\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize("answer", [BROKEN, ASKS])
async def test_what_was_put_off_by_a_clock_that_ran_ahead_is_told_when_the_clock_is_right_again(
    catalog: Catalog, answer: bytes
) -> None:
    async with receiver(in_turn(answer, BROKEN, OK)) as there:
        scene = Scene(catalog)
        scene.listen(there.url())
        scene.fail()
        notifier = scene.notifier()
        await scene.turn(notifier, after=AHEAD)
        assert scene.states() == [("waiting", 1, int(answer.split()[1]))]

        await scene.turn(notifier, after=-AHEAD)
        assert scene.states() == [("waiting", 2, 500)]
        # From then on by the right clock: a pause is a pause.
        await scene.turn(notifier)
        assert len(there.requests) == 2
        await scene.turn(notifier, after=timedelta(seconds=3))
        assert scene.states() == [("delivered", 3, 202)]


async def test_what_somebody_took_up_by_a_clock_that_ran_ahead_is_not_theirs_until_then(catalog: Catalog) -> None:
    async def dies(*_: Any) -> Said:
        raise asyncio.CancelledError

    async with receiver(says(OK)) as there:
        scene = Scene(catalog)
        scene.listen(there.url())
        scene.fail()
        scene.now += AHEAD
        dying = scene.notifier(dies)
        await dying.look()
        await until(lambda: not dying._serving)  # its task has ended
        await scene.turn(scene.notifier(), after=-AHEAD)
        assert len(there.requests) == 1
        assert scene.states() == [("delivered", 2, 202)]
