"""The port to the authority: who answers the questions of admission, and how they are asked outside of a transaction.

A disk or a platform's own service may take seconds, and one that hangs never answers. A transaction that waited for it would
hold the one write lock of the installation meanwhile. So whatever is outside of the catalog is asked first, and the transaction
is given the answers.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from horarium.authority.facts import Facts, Question
from horarium.errors import Conflict, Unavailable
from horarium.schedule.identity import Scope

R = TypeVar("R")
MOST_QUESTIONS: Final = 10
"""How often the authority is asked for one change, while others change what it is about."""


class Content(Protocol):
    """What admission asks about inputs and outputs. Answers are about now."""

    def has_input(self, reference: str) -> bool:
        """Whether the input exists and can be read."""

    def has_output_target(self, target: str) -> bool:
        """Whether the output target exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """A `Content` that answers from memory, about one question.

    `readable` and `writable` are what the folder of contents says, None where nobody answered. `facts` are those of a
    platform's own authority, which then holds the money too: `reserved` is what it has reserved for the run. `unanswered` is a
    sentence where that authority gave no usable answer.
    """

    question: Question | None
    readable: bool | None = None
    writable: bool | None = None
    facts: Facts | None = None
    reserved: int | None = None
    unanswered: str | None = None
    unanswered_code: str = "content_unavailable"

    def has_input(self, _reference: str) -> bool:
        return self._answered(self.readable)

    def has_output_target(self, _target: str) -> bool:
        return self._answered(self.writable)

    @property
    def are_there(self) -> bool:
        """Whether the question was answered at all, one way or the other."""
        return self.facts is not None or (self.readable is not None and self.writable is not None)

    def _answered(self, answer: bool | None) -> bool:
        if answer is None:
            raise Unavailable(
                self.unanswered_code,
                self.unanswered or "The authority did not answer in time.",
                next_step="Look whether what holds it is there, then try the same again.",
            )
        return answer


NOTHING_ASKED = Answers(question=None)


class NotAsked(Unavailable):
    """A transaction needs an answer to another question than was asked: ask this one, then do it again."""

    def __init__(self, question: Question) -> None:
        self.question = question
        request = question.request
        super().__init__(
            "content_not_asked",
            f"It was not asked about the input {request.input!r} and the output target {request.output_target!r}.",
            next_step="Try the same again.",
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.question,))


class Authority(Protocol):
    """Who and what may run, as far as it is not in the catalog. Asked at every occurrence; no answer is ever kept."""

    @property
    def holds_money(self) -> bool:
        """Whether reservations are its own, and are not counted in the catalog."""

    async def ask(self, question: Question, *, run_id: str | None = None) -> Answers:
        """Answer a question; one that gets no answer says so in the answers and raises nothing.

        With `run_id`, a run is about to be admitted: an authority that holds the money reserves for it, once for each id.
        """

    async def read_input(self, scope: Scope, reference: str, *, person: str | None) -> bytes:
        """The bytes of an input; `NotFound` where there is none, or not for this person; `Unavailable` without an answer."""

    async def close_reservation(self, scope: Scope, run_id: str, *, spent: int | None) -> None:
        """Settle what was reserved for a run with what it cost, or release it; for an authority that holds the money.

        May be told twice. `Unavailable` where it was not heard.
        """

    async def aclose(self) -> None:
        """Let go of what it holds; it is not asked any more."""


def require_asked(content: Content, question: Question) -> None:
    """Raise `NotAsked` for answers to something else: the version was changed since, or nobody has asked yet."""
    if isinstance(content, Answers) and content.question != question:
        raise NotAsked(question)


async def asked_outside(authority: Authority, act: Callable[[Content], Awaitable[R]]) -> R:
    """Do something that needs to know what the authority says, and raises `NotAsked` where it does not.

    It is begun without an answer, gives way to the question that it meets, and is done again with the answer. Where somebody
    has changed meanwhile what the question is about, such as the newest version or the binding, it is asked about that.
    Raises `Conflict` with `changed_meanwhile` where each of `MOST_QUESTIONS` answers came too late.
    """
    answers = NOTHING_ASKED
    for _ in range(MOST_QUESTIONS):
        try:
            return await act(answers)
        except NotAsked as unknown:
            answers = await authority.ask(unknown.question)
    try:
        return await act(answers)
    except NotAsked as unknown:
        raise Conflict(
            "changed_meanwhile",
            f"What would run was changed by others each of the {MOST_QUESTIONS} times that the authority was asked about it.",
            next_step="Read it again, then send the same with the same key.",
        ) from unknown
