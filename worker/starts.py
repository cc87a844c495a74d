"""How many runs did not start, in the log of a process that settles runs: while it lives, and before it leaves."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

from horarium.control.starts import STARTS, StartFailures

LOOK_EVERY = timedelta(seconds=5)
"""How often it is looked whether a burst of failures is over."""


@asynccontextmanager
async def totals_told(failures: StartFailures = STARTS) -> AsyncIterator[None]:
    """Tell the total of each burst of failures soon after it is over, and at the end that of the last one, over or not."""
    looks = asyncio.create_task(_look(failures))
    try:
        yield
    finally:
        looks.cancel()
        with suppress(asyncio.CancelledError):
            await looks
        failures.flush()


async def _look(failures: StartFailures) -> None:
    while True:
        await asyncio.sleep(LOOK_EVERY.total_seconds())
        failures.look()
