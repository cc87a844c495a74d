"""What reading a request came to, kept until its receipt has been looked for (DESIGN.md, section 7).

Zone data and rules change between releases. Whoever asks again for what was done is answered with its receipt, also where the
same document would be refused today; and for what was never done the refusal holds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from horarium.errors import InvalidSchedule
from horarium.schedule.document import json_faults

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Attempt(Generic[T]):
    """A request as it came, and what reading it gave."""

    document: object
    _came_to: T | InvalidSchedule

    @property
    def is_refused(self) -> bool:
        """Whether the document cannot be read by this release."""
        return isinstance(self._came_to, InvalidSchedule)

    def value(self) -> T:
        """The request as a value; raises the `InvalidSchedule` that reading it raised."""
        if isinstance(self._came_to, InvalidSchedule):
            raise self._came_to
        return self._came_to


def attempt(read: Callable[[object], T], document: object) -> Attempt[T]:
    """Read a request, which is better done before a transaction than in it: a large one takes a tenth of a second.

    Raises `InvalidSchedule` for what is no JSON: it has no digest, so no receipt can be of it.
    """
    try:
        return Attempt(document, read(document))
    except InvalidSchedule as refusal:
        if json_faults(document):
            raise
        return Attempt(document, refusal)
