"""What admission asks about inputs and outputs, asked outside of the transaction that needs to know.

A disk may take seconds, and one that hangs never answers. A transaction that waited for it would hold the one write lock of
the installation meanwhile. So the questions are asked first, in a thread and for a while only, and the transaction is given
the answers.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, TypeVar

from horarium.errors import Unavailable
from horarium.schedule.configuration import RunRequest
from horarium.schedule.identity import Scope

ASK_WITHIN = timedelta(seconds=2)
"""How long a folder may take to say whether something is there."""
MOST_ASKED = 64
"""How many questions may be without an answer at a time: each holds a thread for as long as its disk hangs."""

R = TypeVar("R")
_places = threading.BoundedSemaphore(MOST_ASKED)


class Content(Protocol):
    """What admission asks about inputs and outputs. Answers are about now."""

    def has_input(self, reference: str) -> bool:
        """Whether the input exists and can be read."""

    def has_output_target(self, target: str) -> bool:
        """Whether the output target exists."""


class Contents(Protocol):
    """The contents of every environment. Its answers may block on a disk."""

    def of(self, scope: Scope) -> Content:
        """Those of one environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """A `Content` that answers from memory, about one request. None of `readable` and `writable` where nobody answered."""

    request: RunRequest | None
    readable: bool | None = None
    writable: bool | None = None

    def has_input(self, _reference: str) -> bool:
        return _answered(self.readable)

    def has_output_target(self, _target: str) -> bool:
        return _answered(self.writable)


NOTHING_ASKED = Answers(request=None)


class NotAsked(Unavailable):
    """A transaction needs to know about another request than was asked about: ask about this one, then do it again."""

    def __init__(self, request: RunRequest) -> None:
        self.request = request
        super().__init__(
            "content_not_asked",
            f"It was not asked whether the input {request.input!r} and the output target {request.output_target!r} are there.",
            next_step="Try the same again.",
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.request,))


def require_asked(content: Content, request: RunRequest) -> None:
    """Raise `NotAsked` for answers about something else: the version was changed since, or nobody has asked yet."""
    if isinstance(content, Answers) and content.request != request:
        raise NotAsked(request)


async def ask(content: Content, request: RunRequest, *, within: timedelta = ASK_WITHIN) -> Answers:
    """Ask about the input and the output target of a request. A disk that hangs or fails gives no answer, and no error."""

    def questions() -> Answers:
        return Answers(
            request=request,
            readable=content.has_input(request.input),
            writable=content.has_output_target(request.output_target),
        )

    with suppress(OSError):  # TimeoutError is one
        return await asyncio.wait_for(_in_thread(questions), within.total_seconds())
    return Answers(request=request)


async def asked_outside(contents: Contents, scope: Scope, act: Callable[[Content], Awaitable[R]]) -> R:
    """Do something that needs to know about contents, and raises `NotAsked` where it does not.

    It is begun without an answer, gives way to the question that it meets, and is done again with the answer.
    """
    answers = NOTHING_ASKED
    for _ in range(2):
        try:
            return await act(answers)
        except NotAsked as unknown:
            answers = await ask(contents.of(scope), unknown.request)
    return await act(answers)


def _answered(answer: bool | None) -> bool:
    if answer is None:
        raise Unavailable(
            "content_unavailable",
            f"The folder of inputs and outputs did not answer within {ASK_WITHIN.total_seconds():g} s.",
            next_step="Look whether its disk is there, then try the same again.",
        )
    return answer


async def _in_thread(function: Callable[[], R]) -> R:
    """Run in a thread of its own that nobody waits for at the end of the process, as the pool's threads are.

    Without a place for one more thread it never answers, as the disk does.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[R] = loop.create_future()
    if not _places.acquire(blocking=False):
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
            _places.release()
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(tell, result, error)

    threading.Thread(target=run, name="content", daemon=True).start()
    return await answer
