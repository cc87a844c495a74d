"""Many at once, each apart as far as errors go: one that makes trouble starves and hides no other."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import structlog
from temporalio.service import RPCError

from horarium.errors import HorariumError

AT_ONCE = 20
"""Calls to Temporal at the same time; a development server answers about 900 a second."""

_logger = structlog.get_logger(__name__)
Item = TypeVar("Item")
Result = TypeVar("Result")


async def each_apart(
    items: Iterable[Item], act: Callable[[Item], Awaitable[Result]], *, at_once: int = AT_ONCE
) -> list[tuple[Item, Result | None]]:
    """Do something with each item, and return each with its result, or with None where it failed and was logged."""
    slots = asyncio.Semaphore(at_once)

    async def one(item: Item) -> tuple[Item, Result | None]:
        async with slots:
            try:
                return item, await act(item)
            except Exception as error:  # noqa: BLE001 - the boundary: whatever is wrong with one item, the others go on
                log_failure("not_reconciled", error, item=repr(item))
                return item, None

    return list(await asyncio.gather(*(one(item) for item in items)))


def log_failure(event: str, error: Exception, **about: str) -> None:
    """Log what went wrong: in a sentence where it was foreseen, and with its traceback where it was not."""
    foreseen = isinstance(error, HorariumError | RPCError)
    log = _logger.warning if foreseen else _logger.error
    log(event, error=str(error), exc_info=None if foreseen else error, **about)
