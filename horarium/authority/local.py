"""The embedded authority's side outside of the catalog: the folder of contents, asked in a thread and for a while only."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, TypeVar

from horarium.authority.asking import Answers, Content
from horarium.authority.facts import Question
from horarium.schedule.identity import Scope

ASK_WITHIN = timedelta(seconds=2)
"""How long a folder may take to say whether something is there."""
MOST_ASKED = 64
"""How many questions may be without an answer at a time: each holds a thread for as long as its disk hangs."""

R = TypeVar("R")
_places = threading.BoundedSemaphore(MOST_ASKED)


class ReadableContent(Content, Protocol):
    """Contents that can also be read."""

    def read_input(self, reference: str) -> bytes:
        """The input's bytes. May block on a disk."""


class Contents(Protocol):
    """The contents of every environment. Its answers may block on a disk."""

    def of(self, scope: Scope) -> ReadableContent:
        """Those of one environment."""


@dataclass(frozen=True, slots=True)
class LocalAuthority:
    """See `horarium.authority.asking.Authority`. What is declared stands in the catalog; here is what stands on a disk."""

    contents: Contents
    within: timedelta = ASK_WITHIN

    @property
    def holds_money(self) -> bool:
        """It does not: accounts are in the catalog."""
        return False

    async def ask(self, question: Question, *, run_id: str | None = None) -> Answers:
        """Ask about the input and the output target. A disk that hangs or fails gives no answer, and no error."""
        del run_id  # the money is in the catalog

        def questions() -> Answers:
            content = self.contents.of(question.scope)
            return Answers(
                question=question,
                readable=content.has_input(question.request.input),
                writable=content.has_output_target(question.request.output_target),
            )

        with suppress(OSError):  # TimeoutError is one
            return await asyncio.wait_for(_in_thread(questions), self.within.total_seconds())
        return Answers(
            question=question,
            unanswered=f"The folder of inputs and outputs did not answer within {self.within.total_seconds():g} s.",
        )

    async def read_input(self, scope: Scope, reference: str, *, person: str | None) -> bytes:
        """Read from the folder; whether the person may was asked in the catalog before."""
        del person
        return await asyncio.to_thread(self.contents.of(scope).read_input, reference)

    async def close_reservation(self, scope: Scope, run_id: str, *, spent: int | None) -> None:
        """Nothing: the money is in the catalog, and was closed there."""

    async def aclose(self) -> None:
        """Nothing: a thread that still waits for a disk keeps nobody."""


async def _in_thread(function: Callable[[], R]) -> R:
    """Run in a thread of its own that nobody waits for at the end of the process, as the pool's threads are.

    Without a place for one more thread it never answers, as the disk does.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[R] = loop.create_future()
    places = _places
    if not places.acquire(blocking=False):
        return await answer

    def tell(result: R | None, error: BaseException | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(result)  # type: ignore[arg-type] # without an error there is a result

    def run() -> None:
        result, error = None, None
        try:
            result = function()
        except Exception as raised:  # noqa: BLE001 - whoever asked is told
            error = raised
        finally:
            places.release()
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(tell, result, error)

    threading.Thread(target=run, name="content", daemon=True).start()
    return await answer
