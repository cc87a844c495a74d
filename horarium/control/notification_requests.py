"""What operators may ask for about notifications: the form of each request, with every fault of it at once."""

import re
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, HttpUrl, ValidationInfo
from pydantic_core import PydanticCustomError

from horarium.authority.signing import purpose_of
from horarium.calendar.faults import shown
from horarium.control.requests import ScheduleId
from horarium.schedule.identity import NAME
from horarium.schedule.notifications import ASKED_FOR

MAX_URL: Final = 2_000
_SECRET: Final = re.compile(r"HORARIUM_SECRET_[A-Z0-9_]{1,80}")
_ADDRESS: Final = r"^[Hh][Tt][Tt][Pp][Ss]?://[!-~]+$"
"""For the description: how every address begins. `_url` knows more."""


def _name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise PydanticCustomError(
            "invalid_name",
            "This is a name of 1 to 64 letters, digits, '_', '.' or '-', beginning and ending with a letter or digit; "
            "found {found}.",
            {"found": shown(text)},
        )
    return text


def _url(text: str, info: ValidationInfo) -> str:
    """An address without anything in it that might be a secret of another kind. It is not repeated, since it may hold one."""
    try:
        parts = urlsplit(text)
        port = parts.port
        # What is not understood when it is sent is refused here.
        HttpUrl(text)
    except ValueError:
        parts, port = urlsplit(""), None
    plain = text.isascii() and text.isprintable() and " " not in text and len(text) <= MAX_URL and port != 0
    if not plain or parts.scheme not in {"http", "https"} or not parts.hostname:
        raise PydanticCustomError("not_an_address", "This is an address such as https://pager.example/horarium.")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise PydanticCustomError("not_plain", "This is an address without user, password, query or fragment.")
    if parts.scheme != "https" and info.data.get("private") is False:
        raise PydanticCustomError(
            "not_https",
            "An address is reached over https://. For one in your own network, say that it is private (--private).",
        )
    return text


def _secret(text: str) -> str:
    if not _SECRET.fullmatch(text):
        # It may be the secret itself.
        raise PydanticCustomError(
            "not_a_variable",
            "This is the name of an environment variable that begins with HORARIUM_SECRET_, in capitals, and holds the secret.",
        )
    other = purpose_of(text)
    if other is not None:
        raise PydanticCustomError(
            "of_another_purpose",
            "This variable is the one that {other} names, and is not used for anything else. Name another one.",
            {"other": other},
        )
    return text


def _kinds(words: list[str]) -> list[str]:
    known = [each.value for each in ASKED_FOR]
    unknown = [each for each in words if each not in known]
    if unknown or not words or len(set(words)) != len(words):
        raise PydanticCustomError(
            "unknown_kinds",
            "These are one or more of {known}, each once; found {found}.",
            {"known": ", ".join(known), "found": shown((unknown or words or [""])[0])},
        )
    return words


class _Act(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class _Address(_Act):
    # Before the address, whose check asks for it.
    private: bool = Field(default=False, description="Whether the address may be one of a private network.")
    url: Annotated[str, AfterValidator(_url)] = Field(
        description="Where signed messages are posted to: https://, unless `private`, and without user, password, query or "
        "fragment.",
        json_schema_extra={"pattern": _ADDRESS, "maxLength": MAX_URL},
    )
    secret: Annotated[str, AfterValidator(_secret)] = Field(
        description="The name of the environment variable of the controller that holds the shared secret. No secret.",
        json_schema_extra={"pattern": f"^{_SECRET.pattern}$"},
    )


class AddRequest(_Address):
    """An endpoint that shall be told. One of that name is changed; one that had stopped is told again."""

    name: Annotated[str, AfterValidator(_name)] = Field(
        description="How people call it, in the environment.", json_schema_extra={"pattern": f"^{NAME.pattern}$"}
    )
    on: Annotated[list[str], AfterValidator(_kinds)] = Field(
        description=f"What it is told of: {', '.join(each.value for each in ASKED_FOR)}.",
        max_length=len(ASKED_FOR),
        json_schema_extra={
            "items": {"type": "string", "enum": [each.value for each in ASKED_FOR]},
            "minItems": 1,
            "uniqueItems": True,
        },
    )
    schedule_id: ScheduleId | None = Field(default=None, description="Of this schedule only; without it, of all.")


class HeartbeatRequest(_Address):
    """The heartbeat of a schedule: it is told each success by the calendar, so that somebody outside notices silence."""

    schedule_id: ScheduleId


class NameRequest(_Act):
    """An endpoint by its name. That of a heartbeat is `heartbeat:` and the id of its schedule."""

    name: Annotated[str, Field(min_length=1, max_length=100)]


class AgainRequest(_Act):
    """A dead letter that shall be sent again."""

    id: Annotated[int, Field(ge=1, le=2**53 - 1, description="As the list of dead letters shows it.")]
