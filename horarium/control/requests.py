"""What callers ask for, as documents: read strictly, with all that is wrong told at once.

The models take no text for a number, no number for a boolean, and no field that they do not know.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from horarium.authority.declared import MAX_AMOUNT
from horarium.calendar.faults import Faults, pointer, shown
from horarium.errors import Fault, InvalidSchedule
from horarium.schedule.configuration import Configuration, parse_configuration
from horarium.schedule.identity import is_schedule_id

MAX_NUMBER: Final = 2**31 - 1
"""The largest revision, generation or epoch: what a column holds."""
_BOUNDS: Final = {"revision": (1, MAX_NUMBER), "amount": (1, MAX_AMOUNT)}
"""Of the numbers that do not begin at 0, or go further."""
_UUID_EXAMPLE = "7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11"


def _schedule_id(text: str) -> str:
    if not is_schedule_id(text):
        raise PydanticCustomError(
            "not_a_uuid",
            "This is a UUID such as {example}; found {found}.",
            {"example": _UUID_EXAMPLE, "found": shown(text)},
        )
    return text.lower()


def _digest(text: str) -> str:
    if not (text.startswith("sha256:") and len(text) == 71 and set(text[7:]) <= set("0123456789abcdef")):
        raise PydanticCustomError(
            "not_a_digest",
            'This is "sha256:" and 64 hexadecimal digits, as a record shows it; found {found}.',
            {"found": shown(text)},
        )
    return text


ScheduleId = Annotated[
    str,
    AfterValidator(_schedule_id),
    Field(description="A UUID in its usual spelling.", examples=[_UUID_EXAMPLE], json_schema_extra={"format": "uuid"}),
]
Digest = Annotated[str, AfterValidator(_digest), Field(description="`sha256:` and 64 hexadecimal digits.")]
Number = Annotated[int, Field(ge=0, le=MAX_NUMBER)]


class _Request(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class VersionReference(_Request):
    """The exact version that was reviewed, as `reference` of a record shows it."""

    schedule_id: ScheduleId
    revision: Annotated[int, Field(ge=1, le=MAX_NUMBER)]
    digest: Digest


class _Reviewed(_Request):
    """The environment that was reviewed: its `authority_epoch` and its `reset_generation` as they were read."""

    expected_environment_epoch: Number = Field(description="The environment's `authority_epoch` as it was reviewed.")
    expected_reset_generation: Number = Field(description="The environment's `reset_generation` as it was reviewed.")


class PublishRequest(_Reviewed):
    """A configuration, to become the next version of a schedule. `expected_revision` is its head, 0 for the first version."""

    schedule_id: ScheduleId
    expected_revision: Number = Field(description="The head's revision as it was reviewed; 0 for the first version.")
    configuration: dict[str, Any]


class RetireRequest(_Reviewed):
    """The end of a schedule's identity. `expected_generation` is the activation that was reviewed, 0 where there is none."""

    version: VersionReference
    expected_generation: Number = Field(description="The activation's generation as it was reviewed; 0 without one.")


class ActivateRequest(RetireRequest):
    """Which exact version shall be enabled, or no longer."""

    enabled: bool = Field(description="true enables this version, false pauses the one that is enabled.")


class TriggerRequest(RetireRequest):
    """A run now, of the version that is enabled. `overlap` starts it even where the schedule's runs hold every slot."""

    overlap: Literal["allow"] | None = Field(
        default=None, description="`allow` lets it begin beside other runs; leave it out otherwise."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """A request to publish that was read."""

    request: PublishRequest
    configuration: Configuration


R = TypeVar("R", bound=BaseModel)


def read_publication(document: object) -> Publication:
    """Read a request to publish; `InvalidSchedule` with all faults, those of the configuration below `/configuration`.

    A large configuration takes a tenth of a second, so this is better done before a transaction than in it, by
    `horarium.control.attempts`.
    """
    faults = Faults()
    request = _read(PublishRequest, document, faults)
    configuration = None
    if isinstance(document, dict) and isinstance(document.get("configuration"), dict):
        try:
            configuration = parse_configuration(document["configuration"])
        except InvalidSchedule as error:
            for fault in error.faults:
                faults.add(f"/configuration{fault.pointer}", fault.code, fault.sentence)
    faults.raise_if_any()
    assert request is not None
    assert configuration is not None, "without a fault there is a configuration"
    return Publication(request=request, configuration=configuration)


def read_request(kind: type[R], document: object, *, schedule_id: str | None = None) -> R:
    """Read a request about a version; `InvalidSchedule` with all faults.

    `schedule_id` is the schedule that the request was sent to, where it was sent to one: the version must be of that one.
    """
    faults = Faults()
    request = _read(kind, document, faults)
    if schedule_id is not None and isinstance(document, dict) and isinstance(document.get("version"), dict):
        named = document["version"].get("schedule_id")
        if isinstance(named, str) and is_schedule_id(named) and named.lower() != schedule_id.lower():
            sentence = f"The request was sent to schedule {schedule_id}, and names a version of {named}."
            faults.add("/version/schedule_id", "other_schedule", sentence)
    faults.raise_if_any()
    assert request is not None, "without a fault there is a value"
    return request


def _read(kind: type[R], document: object, faults: Faults) -> R | None:
    if not isinstance(document, dict):
        sentence = f"This is an object with the fields {', '.join(kind.model_fields)}; found {shown(document)}."
        raise InvalidSchedule([Fault("", "not_an_object", sentence)])
    try:
        request = kind.model_validate(document)
    except ValidationError as error:
        for each in error.errors(include_url=False):
            _add(kind, each, faults)
        return None
    if "overlap" in document and document["overlap"] is None:
        faults.add("/overlap", "unknown_value", 'This is "allow", or it is left out; found null.')
    return request


def _add(kind: type[BaseModel], error: ErrorDetails, faults: Faults) -> None:
    """One fault in our words, at its place. What pydantic counts as a place inside a choice is no part of the pointer."""
    *inside, last = error["loc"] or ("",)
    at = "".join(pointer("", part) for part in inside)
    here = pointer(at, last)
    found = shown(error["input"])
    match error["type"]:
        case "missing":
            faults.add(here, "missing_field", f"The field {last} is required.")
        case "extra_forbidden" | "invalid_key":
            known = VersionReference if inside else kind
            faults.check_members({last: None}, at, tuple(known.model_fields))
        case "int_type" | "int_from_float":
            sentence = f"This is an integer, without quotes or a point; found {found}."
            faults.add(here, "not_an_integer", sentence)
        case "greater_than_equal" | "less_than_equal":
            least, most = _BOUNDS.get(str(last), (0, MAX_NUMBER))
            faults.add(here, "out_of_range", f"This is an integer from {least} to {most:,}; found {found}.")
        case "literal_error":
            faults.add(here, "unknown_value", f'This is "allow", or it is left out; found {found}.')
        case "string_too_short" | "string_too_long":
            faults.add(
                here, "wrong_length", f"{error['msg'].replace('String should have', 'This has')}; found {found}."
            )
        case code if code in _EXPECTED:
            told, sentence = _EXPECTED[code]
            faults.add(here, told, f"{sentence}; found {found}.")
        case code:
            faults.add(here, code, error["msg"])


_EXPECTED: Final = {
    "bool_type": ("not_a_boolean", "This is true or false, without quotes"),
    "string_type": ("not_text", "This is a text"),
    "string_pattern_mismatch": (
        "invalid_name",
        "This is a name of letters, digits or any of . _ @ : / -, not beginning with /",
    ),
    "dict_type": ("not_an_object", "This is an object"),
    "model_type": ("not_an_object", "This is an object"),
}
