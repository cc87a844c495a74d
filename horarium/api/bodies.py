"""Reading what a request brings: bodies within bounds, times and numbers that mean one thing."""

import asyncio
import re
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema
from starlette.requests import ClientDisconnect, Request

from horarium.api.limits import Limits
from horarium.api.problems import Rejected, unreadable
from horarium.calendar.faults import Faults, pointer, shown
from horarium.control.receipts import require_key
from horarium.errors import Fault, InvalidSchedule, NotFound
from horarium.schedule.document import MAX_DOCUMENT_BYTES, load_json

READ_IN_LOOP = 16 * 1024
"""Bytes. A larger document is read in a thread: a quarter of a megabyte takes tens of milliseconds."""

_WHOLE = re.compile(r"\d{1,18}", re.ASCII)
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:[0-5]\d)", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


async def read_document(request: Request, limits: Limits) -> Any:
    """The JSON document in a request's body, read strictly.

    `Rejected` as `read_body` has it, and with 400 for what is no JSON.
    """
    return await as_document(await read_body(request, limits), most=limits.body)


async def read_body(request: Request, limits: Limits) -> bytes:
    """The bytes of a body that says it is JSON, such as a signature is over.

    `Rejected` with 408 for a body that trickles, 413 for one that is too large (also where no length was announced), and 415
    for another media type or an encoded one.
    """
    # Of a header that stands twice, what is before us may have believed the other one.
    media_type = ", ".join(request.headers.getlist("content-type")).partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise Rejected(
            415,
            "unsupported_media_type",
            f"The body is JSON; found the media type {media_type[:80]!r}.",
            next_step="Send it with one `Content-Type: application/json`.",
        )
    if {each.lower() for each in request.headers.getlist("content-encoding")} - {"identity"}:
        raise Rejected(415, "unsupported_media_type", "The body is not encoded.", next_step="Send it as it is.")
    return await _read(request, limits)


async def as_document(data: bytes, *, most: int = MAX_DOCUMENT_BYTES) -> Any:
    """The JSON document in a body that was read, of `most` bytes; `Rejected` with 400 for what is no JSON."""
    try:
        if len(data) <= READ_IN_LOOP:
            return load_json(data)
        return await asyncio.to_thread(load_json, data, most=most)
    except InvalidSchedule as error:
        unreadable(error)


async def _read(request: Request, limits: Limits) -> bytes:
    data = bytearray()
    try:
        async with asyncio.timeout(limits.body_within.total_seconds()):
            async for part in request.stream():
                data += part
                if len(data) > limits.body:
                    raise body_too_large(limits.body)
    except TimeoutError as error:
        raise Rejected(
            408,
            "request_timeout",
            f"The body did not arrive within {limits.body_within.total_seconds():g} s.",
            next_step="Send it again, with the same key.",
            headers={"Connection": "close"},
        ) from error
    except ClientDisconnect as error:
        # Nobody is left to read this; it only ends the work in an orderly way.
        raise Rejected(400, "invalid_json", "The body was not sent to its end.") from error
    return bytes(data)


def body_too_large(most: int) -> Rejected:
    """The refusal of a body that is larger than the limit, announced or not."""
    return Rejected(
        413,
        "body_too_large",
        f"A body has at most {most:,} bytes here.",
        next_step="Send a smaller document.",
        # What is left of the body is not read, so nothing more can come over this connection.
        headers={"Connection": "close"},
    )


def idempotency_key(request: Request) -> str:
    """The caller's key of a change: exactly one, of the form that is kept."""
    given = request.headers.getlist("idempotency-key")
    if len(given) != 1 or not given[0]:
        raise Rejected(
            400,
            "idempotency_key_missing",
            f"A change names one Idempotency-Key; found {len(given)}.",
            next_step="Send a header `Idempotency-Key` with a text that you make for this change, and keep it until its "
            "outcome is known.",
        )
    return well_formed_key(given[0])


def well_formed_key(text: str) -> str:
    """A text that is an idempotency key; `Rejected` with 422 for any other."""
    try:
        require_key(text)
    except InvalidSchedule as error:
        (fault,) = error.faults
        raise Rejected(422, fault.code, fault.sentence, next_step="Make another key, such as a UUID.") from error
    return text


def uuid_in_path(text: str, *, what: str) -> str:
    """A UUID in its usual spelling, in lower case. Another text names nothing: `NotFound`."""
    if _UUID.fullmatch(text) is None:
        raise NotFound(f"{what}_not_found", f"{text[:80]!r} is no UUID, so there is no {what} of that name.")
    return text.lower()


_PARAMETER_CODES = {
    "extra_forbidden": "unknown_parameter",
    "value_error": "invalid_value",
    "missing": "missing_parameter",
}


def invalid_parameters(found: Sequence[Mapping[str, Any]]) -> Rejected:
    """The refusal of parameters, with all that pydantic found wrong with them; their places are `/query/limit` and alike."""
    faults = []
    for each in found:
        *_, name = each["loc"]
        sentence = each["msg"].removeprefix("Value error, ")
        if each["type"] == "extra_forbidden":
            sentence = f"There is no parameter {shown(name)} here"
        else:
            sentence = f"{shown(name)}: {sentence[:1].lower()}{sentence[1:]}"
        code = _PARAMETER_CODES.get(each["type"], each["type"])
        place = "".join(pointer("", part) for part in each["loc"])
        faults.append(Fault(place, code, f"{sentence}."))
    detail = faults[0].sentence if len(faults) == 1 else f"{len(faults)} parameters have faults."
    return Rejected(422, "invalid_parameter", detail, next_step="Correct what the errors name.", faults=faults)


def _whole(value: object) -> object:
    if isinstance(value, str):
        if _WHOLE.fullmatch(value) is None:
            raise ValueError("a whole number in decimal digits is expected")
        return int(value)
    return value


def _truth(value: object) -> object:
    if isinstance(value, str):
        if value not in {"true", "false"}:
            raise ValueError("true or false is expected")
        return value == "true"
    return value


def _instant(value: object) -> object:
    if isinstance(value, str):
        if _INSTANT.fullmatch(value) is None:
            hint = " A + in a URL is written %2B." if " " in value else ""
            raise ValueError(f"an instant with its zone is expected, such as 2027-01-31T07:30:00Z.{hint}")
        try:
            return datetime.fromisoformat(value).astimezone(UTC)
        except (ValueError, OverflowError):
            raise ValueError("there is no such instant in the years 1 to 9999") from None
    return value


def _uuid(value: object) -> object:
    if isinstance(value, str) and _UUID.fullmatch(value) is None:
        raise ValueError("a UUID is expected, such as 7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11")
    return value


WHOLE = BeforeValidator(_whole)
"""Of a whole number in a query: it is written in decimal digits and nothing else. Stands behind the bounds."""
Truth = Annotated[bool, BeforeValidator(_truth)]
"""`true` or `false` in a query."""
Id = Annotated[uuid.UUID, BeforeValidator(_uuid)]
"""A UUID in a query, in its usual spelling."""
Instant = Annotated[datetime, BeforeValidator(_instant), WithJsonSchema({"type": "string", "format": "date-time"})]
"""An RFC 3339 instant in a query, with `Z` or an offset."""


def read_instant(value: object, at: str, faults: Faults) -> datetime | None:
    """An instant in a body, or a fault at its place."""
    expected = "an instant is expected, such as 2027-01-31T07:30:00Z"
    try:
        read = _instant(value)
    except ValueError as error:
        faults.add(at, "not_a_timestamp", f"Here {error}; found {shown(value)}.")
        return None
    if not isinstance(read, datetime):
        faults.add(at, "not_a_timestamp", f"Here {expected}; found {shown(value)}.")
        return None
    return read
