"""What a form of a page sends, and the proof that one of our own pages sent it."""

import asyncio
import hmac
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import ClientDisconnect, Request

from horarium.api.bodies import body_too_large
from horarium.api.pages.settings import PagesSettings
from horarium.api.problems import Rejected

MOST_BYTES: Final = 64 * 1024
MOST_FIELDS: Final = 100
TOKEN_FIELD: Final = "form_token"  # noqa: S105 - the name of a field
_MEDIA_TYPE: Final = "application/x-www-form-urlencoded"


async def read_form(request: Request, *, within: float) -> dict[str, str]:
    """The fields of a form, each once. `Rejected` where they are no form, too many, too large, or take too long."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != _MEDIA_TYPE and not _is_empty(request):
        raise Rejected(415, "unsupported_media_type", "This takes what a form of our pages sends.")
    data = bytearray()
    try:
        async with asyncio.timeout(within):
            async for part in request.stream():
                data += part
                if len(data) > MOST_BYTES:
                    raise body_too_large(MOST_BYTES)
    except TimeoutError as error:
        raise Rejected(408, "request_timeout", f"The form did not arrive within {within:g} s.") from error
    except ClientDisconnect as error:
        raise Rejected(400, "invalid_form", "The form was not sent to its end.") from error
    try:
        pairs = parse_qsl(
            data.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(data),
            errors="strict",
            max_num_fields=MOST_FIELDS,
        )
    except ValueError as error:
        raise Rejected(400, "invalid_form", "The form cannot be read.", next_step="Load the page again.") from error
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise Rejected(400, "invalid_form", "A field of the form stands twice.", next_step="Load the page again.")
    return fields


def _is_empty(request: Request) -> bool:
    return request.headers.get("content-length") == "0"


def require_own_page(request: Request, settings: PagesSettings) -> None:
    """Raise `Rejected` with 403 unless the browser says that a page of ours sent this."""
    fetch_site = request.headers.get("sec-fetch-site")
    if fetch_site is not None:
        if fetch_site != "same-origin":
            raise _foreign()
        return
    # Over plain HTTP and off this machine browsers do not say so; but they all tell a form's origin.
    origin = request.headers.get("origin", "").lower()
    host = request.headers.get("host", "").lower()
    if origin != settings.origin and not (host and urlsplit(origin).netloc == host):
        raise _foreign()


def require_token(fields: dict[str, str], expected: str) -> None:
    """Raise `Rejected` with 403 unless the form holds the token of the session that sends it."""
    given = fields.pop(TOKEN_FIELD, "")
    if not hmac.compare_digest(given.encode(), expected.encode()):
        raise Rejected(
            403,
            "form_outdated",
            "This form was made for another session than yours. Nothing changed.",
            next_step="Load the page that it stood on again, look whether it still says what you want, and send it from there.",
        )


def _foreign() -> Rejected:
    return Rejected(
        403,
        "foreign_form",
        "The browser does not say that one of our own pages sent this. Nothing changed.",
        next_step="Open the page here and send the form from there. A program asks the API, with a token.",
    )
