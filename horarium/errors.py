"""Every error that the library raises on purpose, as one tree.

::

    HorariumError
    ├── InvalidSchedule        a document is refused: all faults, each with its place
    ├── Refused                the request is well formed, and the present state forbids it
    │   ├── NotFound           nothing here that the caller may see
    │   ├── Forbidden          whoever asks may not do that
    │   ├── Conflict           the state is not the one that the caller reviewed
    │   ├── NotAdmissible      an occurrence would be refused now: every reason, not the first alone
    │   └── Unavailable        a part that is needed does not answer now; the same request may be repeated
    └── Misconfigured          the installation cannot work as it is set up
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


class HorariumError(Exception):
    """The root: whatever derives from it was foreseen, and its text is written for the person who reads it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a document.

    `pointer` is the place as a JSON pointer (RFC 6901), `code` is stable and for programs, `sentence` is for people and
    says what was expected.
    """

    pointer: str
    code: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.pointer or '(document)'}: {self.sentence} [{self.code}]"


class InvalidSchedule(HorariumError, ValueError):
    """A document is refused. `faults` holds all that was found, in the order of the document, and is never empty."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        assert self.faults, "an invalid document has at least one fault"
        super().__init__("\n".join(str(fault) for fault in self.faults))

    def __reduce__(self) -> tuple[type["InvalidSchedule"], tuple[tuple[Fault, ...]]]:
        return (type(self), (self.faults,))


class Refused(HorariumError):
    """The request was understood and is not carried out; nothing changed. `code` is stable, `next_step` says what to do."""

    def __init__(self, code: str, sentence: str, *, next_step: str = "") -> None:
        self.code = code
        self.sentence = sentence
        self.next_step = next_step
        super().__init__(f"{sentence} [{code}]" + (f" {next_step}" if next_step else ""))

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild_refused, (type(self), self.code, self.sentence, self.next_step))


class NotFound(Refused):
    """There is nothing of that name that the caller may see."""


class Forbidden(Refused):
    """Whoever asks is known, and may not do that: a scope is missing, or a person has to do it."""


class Conflict(Refused):
    """The state is not the one that the caller reviewed. Read it again before deciding again."""


class NotAdmissible(Refused):
    """Enabling is refused, since an occurrence would be refused now.

    `objections` tells every reason in the order in which admission asks, each as `code`, `sentence` and `evidence`; `code` of
    the error is that of the first.
    """

    def __init__(self, objections: Iterable[Mapping[str, Any]]) -> None:
        self.objections = tuple(dict(each) for each in objections)
        assert self.objections, "what is not admissible has at least one objection"
        super().__init__(
            self.objections[0]["code"],
            f"Enabling is refused: {' '.join(each['sentence'] for each in self.objections)}",
            next_step="An occurrence would be refused for the same reasons. Put them right, then enable again.",
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.objections,))


class Unavailable(Refused):
    """A part that is needed does not answer now. Nothing changed, and the same request may be repeated."""


class Misconfigured(HorariumError):
    """The installation cannot work as it is set up: a folder, a port, a setting, a server."""


def _rebuild_refused(kind: type[Refused], code: str, sentence: str, next_step: str) -> Refused:
    return kind(code, sentence, next_step=next_step)
