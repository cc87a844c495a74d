"""Errors as RFC 9457 says: one form for every refusal, with a stable code, all faults at once, and what to do next."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, NoReturn

from starlette.responses import JSONResponse

from horarium.catalog.failures import OutcomeUnknown
from horarium.errors import (
    Fault,
    Forbidden,
    HorariumError,
    InvalidSchedule,
    NotAdmissible,
    NotFound,
    Refused,
    Unavailable,
)

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = 5
"""What is told to whoever met a part that does not answer: a heartbeat's interval."""

TITLES: Mapping[int, str] = {
    400: "The request cannot be read",
    401: "A valid token is needed",
    403: "The token does not allow this",
    404: "There is nothing here that the caller may see",
    405: "The method is not allowed here",
    408: "The request took too long to arrive",
    409: "The present state forbids this",
    413: "The body is too large",
    414: "The address is too long",
    415: "The body is not JSON",
    422: "The request has faults",
    429: "Too many requests",
    431: "The headers are too large",
    500: "The service failed",
    503: "A part that is needed does not answer now",
}
"""The statuses that a refusal may have, each with its title."""

_UNREADABLE = frozenset({"not_json", "not_utf8", "byte_order_mark", "too_deep", "lone_surrogate", "duplicate_key"})
_UNREADABLE_NUMBERS = frozenset({"integer_too_long", "not_a_number"})


class Rejected(HorariumError):
    """The API itself refuses a request, or gives a refusal of the control plane its status.

    `faults` are what is wrong with the request, `objections` what admission would say against the run.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        next_step: str = "",
        faults: Iterable[Fault] = (),
        objections: Iterable[Mapping[str, Any]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status = status
        self.code = code
        self.detail = detail
        self.next_step = next_step
        self.faults = tuple(faults)
        self.objections = tuple(objections)
        self.headers = dict(headers or {})
        super().__init__(f"{detail} [{code}]")


def answer(error: HorariumError, *, request_id: str) -> JSONResponse:
    """The response to a foreseen error. What could tell about the inside of the installation is left to the log."""
    return _response(as_rejected(error), request_id=request_id)


_STATUSES: tuple[tuple[type[Refused], int], ...] = (
    (Forbidden, 403),
    (NotFound, 404),
    (Unavailable, 503),
    (Refused, 409),
)
"""The status of a refusal by its class, the first that fits; what no row names is a matter of the present state."""


def as_rejected(error: HorariumError) -> Rejected:
    """Give a foreseen error its status."""
    match error:
        case Rejected():
            return error
        case InvalidSchedule():
            return _invalid(error.faults)
        case OutcomeUnknown():
            # Not 503, which says that nothing changed.
            return Rejected(
                500,
                "commit_lost",
                "The catalog was lost while it stored the change, so whether the change took effect is not known.",
                next_step="Look at the present state, then repeat the change with the same key and body only: that tells.",
            )
        case Unavailable(code="catalog_unavailable"):
            # The sentence holds the driver's words, which may name hosts and files.
            hidden = "The catalog does not answer now. Nothing changed."
            return _refused(Unavailable(error.code, hidden, next_step="Repeat the same request with the same key."))
        case Refused():
            return _refused(error)
        case _:
            return failure("misconfigured")


def failure(code: str = "internal_error") -> Rejected:
    """Something that was not foreseen, or is not for the caller to know."""
    return Rejected(
        500,
        code,
        "The service could not answer. Its log has the reason under this request's id.",
        next_step="Look at the present state before repeating a change, and repeat it with the same key and body only.",
    )


def unreadable(error: InvalidSchedule) -> NoReturn:
    """Refuse a body that has no meaning as JSON: malformed text is the request's fault, not the document's."""
    codes = {fault.code for fault in error.faults}
    if codes & {"too_large"}:
        raise Rejected(413, "body_too_large", error.faults[0].sentence, next_step="Send a smaller document.") from error
    assert codes <= _UNREADABLE | _UNREADABLE_NUMBERS | {"key_not_text"}, codes
    raise Rejected(
        400,
        "invalid_json",
        _told(error.faults),
        next_step="Send one JSON text as RFC 8259 has it, each key once and no number beyond 64 bits.",
        faults=error.faults,
    ) from error


def _invalid(faults: tuple[Fault, ...]) -> Rejected:
    return Rejected(
        422,
        "invalid_schedule",
        _told(faults),
        next_step="Correct what the errors name, then send it again. Nothing was stored, and the key is not used up.",
        faults=faults,
    )


def _told(faults: tuple[Fault, ...]) -> str:
    return (
        faults[0].sentence if len(faults) == 1 else f"There are {len(faults)} faults. The first: {faults[0].sentence}"
    )


def _refused(error: Refused) -> Rejected:
    status = next(number for kind, number in _STATUSES if isinstance(error, kind))
    return Rejected(
        status,
        error.code,
        error.sentence,
        next_step=error.next_step,
        objections=error.objections if isinstance(error, NotAdmissible) else (),
        headers={"Retry-After": str(RETRY_AFTER_SECONDS)} if isinstance(error, Unavailable) else None,
    )


def _response(problem: Rejected, *, request_id: str) -> JSONResponse:
    body: dict[str, Any] = {
        "type": f"urn:horarium:problem:{problem.code}",
        "title": TITLES.get(problem.status, HTTPStatus(problem.status).phrase),
        "status": problem.status,
        "detail": problem.detail,
        "code": problem.code,
        "next_step": problem.next_step,
        "errors": [
            *({"pointer": each.pointer, "code": each.code, "detail": each.sentence} for each in problem.faults),
            *(
                {"pointer": "", "code": each["code"], "detail": each["sentence"], "evidence": each["evidence"]}
                for each in problem.objections
            ),
        ],
        "request_id": request_id,
    }
    return JSONResponse(body, status_code=problem.status, headers=problem.headers, media_type=MEDIA_TYPE)
