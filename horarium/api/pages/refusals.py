"""What is refused, told to a person: a page in their words, with what to do, where a program is told a problem.

Texts of refusals are written for whoever calls the API. Where one speaks of what a reader of pages does not have, such as a
token, a key or a cursor, it is said here in other words, by its code.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import structlog
from starlette.requests import Request
from starlette.responses import Response

from horarium.api import problems
from horarium.api.pages.headers import dress
from horarium.api.pages.site import PREFIX, site_of
from horarium.api.problems import Rejected
from horarium.errors import HorariumError, Misconfigured

_logger = structlog.get_logger(__name__)

TITLES: Final[Mapping[int, str]] = {
    400: "This cannot be read",
    403: "You may not do this",
    404: "There is nothing here that you may see",
    405: "This address cannot be used like that",
    408: "It took too long to arrive",
    409: "This cannot be done as things stand",
    413: "This is too large",
    414: "The address is too long",
    415: "This is no form of ours",
    422: "This asks for something that there is not",
    429: "Too many requests",
    431: "Your browser sends more than we take",
    500: "Something went wrong here",
    503: "A part that is needed does not answer now",
}
"""What a page is called, by its status."""
_PASSING: Final = frozenset({408, 429, 500, 503})
"""What may be over in a moment, so that the same page is worth another try."""


@dataclass(frozen=True, slots=True)
class Words:
    """What a person is told in place of a refusal's own words; an empty text leaves those."""

    detail: str = ""
    next_step: str = ""


_BACK = "Go back, load the page again, and use what it shows."
_SEND_AGAIN = "Go back and send the form again in a few seconds. However often it is sent, it is done once."
_LOOK = "Check the address, or look for it from the first page."
_WORDS: Final[Mapping[str, Words]] = {
    "path_not_found": Words("There is no such page.", _LOOK),
    "method_not_allowed": Words("This address takes no such request.", "Open the page here and use what it shows."),
    "environment_not_found": Words(next_step="Check the address, or choose an environment of yours."),
    "schedule_not_found": Words(next_step=_LOOK),
    "version_not_found": Words(next_step=_LOOK),
    "run_not_found": Words(next_step=_LOOK),
    "receipt_not_found": Words(
        "No form of yours about this schedule left a receipt that stands here.",
        "Look at the schedule's events: they tell what was done.",
    ),
    "scope_missing": Words(
        next_step="Ask whoever runs this installation to give it to you, then sign out and in again."
    ),
    "invalid_parameter": Words(next_step=_BACK),
    "invalid_cursor": Words("This page of the list cannot be found.", "Begin again at the first page of the list."),
    "invalid_idempotency_key": Words("The form is not as one of our pages made it. Nothing changed.", _BACK),
    "query_too_long": Words("What is looked for is too long.", "Look for less at a time."),
    "path_too_long": Words("No page here has so long an address.", _LOOK),
    "headers_too_large": Words(
        "What your browser sends along with a request, its cookies above all, is too much.",
        "Remove the cookies of this address in your browser, then sign in again.",
    ),
    "body_too_large": Words("No form of ours is so large. Nothing changed.", _BACK),
    "unsupported_media_type": Words("No form of ours is sent like that. Nothing changed.", _BACK),
    "invalid_form": Words(next_step=_BACK),
    "request_timeout": Words("The form took too long to arrive. Nothing changed.", "Send it again."),
    "rate_limited": Words("You ask for more pages a second than we answer.", "Wait a moment, then try again."),
    "catalog_unavailable": Words("What the pages are read from does not answer now. Nothing changed."),
    "commit_lost": Words(
        "The catalog was lost while it stored the change, so whether it took effect is not known.",
        "Send the same again: if it was done, it is not done twice, and then it is known.",
    ),
    "internal_error": Words(
        "The page could not be made. The log of the installation has the reason, under the number of the request below.",
        "Try again. If that does not help, tell whoever runs this installation the number of the request.",
    ),
    "misconfigured": Words(
        "The installation is not set up as it has to be. Its log has the reason, under the number of the request below.",
        "Tell whoever runs this installation the number of the request.",
    ),
}


def is_page(request: Request) -> bool:
    """Whether a person asked for it. A program that asks for the root is no person."""
    path = request.url.path
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def refusal(request: Request, error: HorariumError) -> Response:
    """A page that says what is refused, why, and what to do next."""
    rejected = problems.as_rejected(error)
    if isinstance(error, Misconfigured) or rejected.code == "catalog_unavailable":
        _logger.error("installation_fails", error=str(error), request_id=request.state.request_id)
    if rejected.code == "environment_not_found":
        request.state.visit = None  # there is nothing to go around in
    site = site_of(request)
    passes = rejected.status in _PASSING and request.method == "GET"
    answer = site.page(
        request,
        "refused.html",
        status=rejected.status,
        title=TITLES.get(rejected.status, "This was refused"),
        rejected=rejected,
        words=in_words(rejected, sent=request.method == "POST"),
        again=site.place(site.asked(request)) if passes else None,
        request_id=request.state.request_id,
    )
    for name, value in rejected.headers.items():
        answer.headers[name] = value
    if rejected.status == 401:
        del answer.headers["WWW-Authenticate"]  # a browser would ask for a password
    return dress(answer)


def in_words(rejected: Rejected, *, sent: bool) -> Words:
    """What a person is told of a refusal; `sent` is whether they sent a form."""
    own = _WORDS.get(rejected.code, Words())
    next_step = own.next_step or rejected.next_step
    if rejected.code == "catalog_unavailable":
        next_step = _SEND_AGAIN if sent else "Try again in a few seconds."
    return Words(own.detail or rejected.detail, next_step)
