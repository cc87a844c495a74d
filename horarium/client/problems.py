"""Every way in which a call fails: one class for each problem code of the API, below one class for each status.

::

    ClientError
    ├── Problem                    the server answered, and did not do what was asked; nothing changed
    │   ├── BadRequest             400   the request cannot be read
    │   ├── Unauthenticated        401   the token is missing, expired, or none of ours
    │   ├── Forbidden              403   the caller may not do this
    │   ├── NotFound               404   nothing here that the caller may see
    │   ├── Conflict               409   the state is not the one that was reviewed
    │   │   └── NotAdmissible            an occurrence would be refused now; `objections` tells every reason
    │   ├── TooLarge               413
    │   ├── Invalid                422   the document is refused; `faults` holds all that was found
    │   ├── TooManyRequests        429   later again: `retry_after`
    │   ├── Unavailable            503   a part that is needed does not answer
    │   └── ServerFailed           any other 5xx
    ├── Unreachable                no answer, and nothing was changed by the call
    ├── OutcomeUnknown             a mutation was sent, and whether it was carried out is not known
    └── UnexpectedAnswer           an answer that is none of this API's

`horarium.client.codes` has the classes of the codes, and `BY_CODE` finds them. A code that this release does not know has the
class of its status.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, ClassVar

from horarium import errors
from horarium.errors import Fault, HorariumError, Refused

_classes: dict[str, type["Problem"]] = {}
_statuses: dict[int, type["Problem"]] = {}
BY_CODE: Mapping[str, type["Problem"]] = MappingProxyType(_classes)
"""The class of each problem code."""
BY_STATUS: Mapping[int, type["Problem"]] = MappingProxyType(_statuses)
"""The class of each status, for codes that have no class of their own."""


class ClientError(HorariumError):
    """The root of what the client raises about a call."""


class UnexpectedAnswer(ClientError):
    """An answer that does not speak this API: a proxy's page, a redirection, a document of another form."""


class Unreachable(ClientError):
    """The server gave no answer, and the call changed nothing: it was a read, or it was never sent."""


class OutcomeUnknown(ClientError):
    """A mutation was sent, and its answer was lost: it may have been carried out, or not.

    Keep `key`, `request`, the account and the environment until the outcome is known. Inspect the current state first
    (`client.receipts.get`, `client.schedules.get`). Then, only after confirming the same account and scope, send the
    same `request` with the same `key` again. Do not take a new key, do not rebuild the request from a newer head, and do not
    enable anything because a publication was recovered. A reset or a revoked authority can refuse the recovery: keep the
    request then, for whoever investigates. `request` is a copy of what was sent, whatever became of the caller's own.
    """

    code: ClassVar[str] = "outcome_unknown"

    def __init__(self, operation: str, *, key: str, request: Mapping[str, Any], because: str) -> None:
        self.operation = operation
        self.key = key
        self.request = request
        self.because = because
        self.sentence = f"Whether the {operation} was carried out is not known: {because}"
        self.next_step = (
            f"Keep the key {key!r} and the request. Inspect the current state, then retry the same body and key "
            "explicitly, with the same account and environment."
        )
        super().__init__(f"{self.sentence} [{self.code}] {self.next_step}")

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild_unknown, (type(self), self.operation, self.key, dict(self.request), self.because))


class Problem(ClientError, Refused):
    """The server answered with a problem (RFC 9457), and nothing changed by this call.

    `code` is stable and for programs, `sentence` and `next_step` are for people. `faults` are all that was found, each with
    its place in the request. `retry_after` is what the server asked to wait, where it said so.
    """

    status: int = 0

    def __init_subclass__(cls, *, code: str = "", status: int = 0, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if status:
            cls.status = status
            _statuses[status] = cls
        if code:
            assert code not in _classes, f"two classes for {code!r}"
            _classes[code] = cls

    def __init__(
        self,
        code: str,
        sentence: str,
        *,
        next_step: str = "",
        status: int | None = None,
        faults: Iterable[Fault] = (),
        retry_after: timedelta | None = None,
    ) -> None:
        super().__init__(code, sentence, next_step=next_step)
        self.status = type(self).status if status is None else status
        self.faults = tuple(faults)
        self.retry_after = retry_after
        # What the sentence tells already is not told twice.
        more = [str(fault) for fault in self.faults if fault.sentence not in sentence]
        self.args = ("\n".join([str(self), *more]),)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild_problem, (type(self), self.code, self.sentence, self._parts()))

    def _parts(self) -> dict[str, Any]:
        """What it was made of beside its code and sentence, by name."""
        return {
            "next_step": self.next_step,
            "status": self.status,
            "faults": self.faults,
            "retry_after": self.retry_after,
        }


class BadRequest(Problem, status=400):
    """The request cannot be read as one of this API."""


class Unauthenticated(Problem, status=401):
    """The token is missing, expired, or not one that the server trusts. It does not say which."""


class Forbidden(Problem, errors.Forbidden, status=403):
    """The caller is known, and may not do this."""


class NotFound(Problem, errors.NotFound, status=404):
    """There is nothing of that name that the caller may see. What another organization owns is answered the same."""


class Conflict(Problem, errors.Conflict, status=409):
    """The state is not the one that the caller reviewed. Read it again before deciding again."""


class TooLarge(Problem, status=413):
    """The request is larger than any document of this API."""


class Invalid(Problem, status=422):
    """The document is refused. `faults` holds all that was found."""


class TooManyRequests(Problem, status=429):
    """The caller's share of requests is used up for now."""


class ServerFailed(Problem, status=500):
    """The server failed at a request that it should have answered."""


class Unavailable(Problem, errors.Unavailable, status=503):
    """A part that is needed does not answer now. Nothing changed; the same request may be repeated with the same key."""


class NotAdmissible(Conflict):
    """Enabling is refused, since an occurrence would be refused now. The code is that of the first reason.

    `objections` tells every reason as `code`, `sentence` and `evidence`, which is what the server looked at; `faults` has
    them too, without the evidence.
    """

    def __init__(self, code: str, sentence: str, *, objections: Iterable[Mapping[str, Any]] = (), **more: Any) -> None:
        self.objections = tuple(dict(each) for each in objections)
        super().__init__(code, sentence, **more)

    def _parts(self) -> dict[str, Any]:
        return {**super()._parts(), "objections": self.objections}


def problem(status: int, document: Mapping[str, Any], *, retry_after: timedelta | None = None) -> Problem:
    """The error for a problem document, in the class of its code, else of its status, else of the status's hundred."""
    code = str(document.get("code") or "unknown")
    kind = BY_CODE.get(code) or BY_STATUS.get(status) or (ServerFailed if status >= ServerFailed.status else BadRequest)
    sentence = str(document.get("detail") or document.get("title") or f"The server answered with status {status}.")
    next_step = str(document.get("next_step") or "")
    listed = document.get("errors")
    found = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    more: dict[str, Any] = {"objections": map(_objection, found)} if issubclass(kind, NotAdmissible) else {}
    return kind(
        code,
        sentence,
        next_step=next_step,
        status=status,
        faults=map(_fault, found),
        retry_after=retry_after,
        **more,
    )


def _fault(error: Mapping[str, Any]) -> Fault:
    return Fault(*(str(error.get(name) or "") for name in ("pointer", "code", "detail")))


def _objection(error: Mapping[str, Any]) -> dict[str, Any]:
    fault, evidence = _fault(error), error.get("evidence")
    return {
        "code": fault.code,
        "sentence": fault.sentence,
        "evidence": evidence if isinstance(evidence, dict) else {},
    }


def _rebuild_problem(kind: type[Problem], code: str, sentence: str, more: dict[str, Any]) -> Problem:
    return kind(code, sentence, **more)


def _rebuild_unknown(
    kind: type[OutcomeUnknown], operation: str, key: str, request: dict[str, Any], because: str
) -> OutcomeUnknown:
    return kind(operation, key=key, request=request, because=because)
