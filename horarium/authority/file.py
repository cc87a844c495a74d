"""A file of declarations: what one environment is, and everything that operators declare about it, read strictly.

A kind that the file does not name is left alone. A kind that it names is complete: what does not stand there is withdrawn.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from horarium.authority.declared import (
    KINDS,
    Agent,
    Approval,
    Binding,
    Budget,
    Declared,
    Destination,
    Grant,
    Input,
    Output,
    Person,
    PersonName,
    Reference,
    Wallet,
    one_line,
)
from horarium.calendar.faults import Faults, pointer, shown
from horarium.errors import Fault, InvalidSchedule
from horarium.schedule.identity import NAME

MAX_FILE_BYTES: Final = 4 * 1024 * 1024
"""Of a file, in UTF-8. Ten thousand people are a fifth of it."""
MAX_DECLARATIONS: Final = 10_000
"""Declarations of one kind."""
MAX_PROFILE: Final = 200
PLURALS: Final[Mapping[str, str]] = {
    "person": "people",
    "agent": "agents",
    "input": "inputs",
    "output": "outputs",
    "grant": "grants",
    "budget": "budgets",
    "wallet": "wallets",
    "approval": "approvals",
    "destination": "destinations",
    "binding": "bindings",
}
"""How each kind is called in a file. People are those of the organization, everything else is of one environment."""
EVERYWHERE: Final = frozenset({"person"})
"""The kinds that are declared for the organization as a whole."""
assert set(PLURALS) == set(KINDS)


def _name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise PydanticCustomError(
            "invalid_name",
            "This is a name of 1 to 64 letters, digits, '_', '.' or '-', beginning and ending with a letter or digit.",
        )
    return text


_Name = Annotated[str, AfterValidator(_name), Field(min_length=1, max_length=64)]
DigestName = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
BindingName = Annotated[str, Field(pattern=r"^(v0|cron):[A-Za-z0-9._@:-]{1,200}/[A-Za-z0-9._@:-]{1,200}$")]
_Bounded: Any = Field(default_factory=dict, max_length=MAX_DECLARATIONS)


class AuthorityFile(Declared):
    """One environment of one organization, and what is declared about it.

    A kind that is left out is left alone. A kind that is there is complete: what it does not name is withdrawn.
    """

    organization: _Name = Field(description="The organization, as in the path.")
    environment: _Name = Field(description="The environment, as in the path.")
    mode: Literal["simulation", "test", "live"] = Field(description="Which usage classes may run.")
    runtime_profile: Annotated[str, AfterValidator(one_line), Field(min_length=1, max_length=MAX_PROFILE)] | None = (
        Field(description="null: nothing runs.")
    )
    development: bool = Field(
        default=False,
        description="In mode simulation only: whoever is of the organization may act, and what nobody declared is taken from "
        "the runners and the folder of contents.",
    )
    live_needs_approval: bool = Field(
        default=False,
        description="Whether live runs need an approval of their exact version. Has to be said in mode live.",
    )
    people: Annotated[dict[PersonName, Person], _Bounded] = Field(
        description="The people of the whole organization, by the name in their tokens."
    )
    agents: Annotated[dict[Reference, Agent], _Bounded] = Field(description="Exact agent versions.")
    inputs: Annotated[dict[Reference, Input], _Bounded] = Field(description="What runs read.")
    outputs: Annotated[dict[Reference, Output], _Bounded] = Field(description="Where runs write.")
    grants: Annotated[dict[Reference, Grant], _Bounded] = Field(description="Workload grants.")
    budgets: Annotated[dict[Reference, Budget], _Bounded] = Field(description="What may be spent.")
    wallets: Annotated[dict[Reference, Wallet], _Bounded] = Field(description="What budgets are paid from.")
    approvals: Annotated[dict[DigestName, Approval], _Bounded] = Field(
        description="Approvals for live runs, by the digest of the exact version."
    )
    destinations: Annotated[dict[Reference, Destination], _Bounded] = Field(
        description="Where runs of agents behind the gateway http are posted to."
    )
    bindings: Annotated[dict[BindingName, Binding], _Bounded] = Field(
        description="What stands behind `v0:{workspace_id}/{agent_id}` and `cron:{agent_class}/{agent_id}`."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Declarations:
    """A file that was read: as it came, and as values. `kinds` holds the kinds that it names, each by name."""

    document: Mapping[str, Any]
    file: AuthorityFile
    kinds: Mapping[str, Mapping[str, Declared]]


def read_declarations(document: object) -> Declarations:
    """Read a file of declarations; `InvalidSchedule` with every fault of its form.

    Whether what it refers to will be there is asked when it is applied (`horarium.authority.references`).
    """
    if not isinstance(document, dict):
        sentence = (
            f"A file of declarations is an object with organization, environment and mode; found {shown(document)}."
        )
        raise InvalidSchedule([Fault("", "not_an_object", sentence)])
    faults, file = Faults(), None
    try:
        file = AuthorityFile.model_validate(document)
    except ValidationError as error:
        for each in error.errors(include_url=False):
            _add(each, faults)
    _check_mode(document, faults)
    faults.raise_if_any()
    assert file is not None, "without a fault there is a value"
    _check_bindings(file, faults)
    faults.raise_if_any()
    kinds = {kind: getattr(file, plural) for kind, plural in PLURALS.items() if plural in file.model_fields_set}
    return Declarations(document=document, file=file, kinds=kinds)


def _check_mode(document: Mapping[str, Any], faults: Faults) -> None:
    mode = document.get("mode")
    if document.get("development") is True and mode in {"test", "live"}:
        faults.add(
            "/development",
            "development_and_mode",
            f"Only an environment in mode 'simulation' can be one of development; this one is in {mode!r}.",
        )
    if mode == "live" and "live_needs_approval" not in document:
        faults.add(
            "/live_needs_approval",
            "missing_field",
            "In mode 'live' the field live_needs_approval is required: true, or false where live runs need no approval.",
        )


def _check_bindings(file: AuthorityFile, faults: Faults) -> None:
    for name, binding in file.bindings.items():
        if binding.run.budget_id is None and binding.run.usage_class != "test_simulation":
            at = _pointer(("bindings", name, "run", "budget_id"))
            sentence = (
                f"Runs of usage class {binding.run.usage_class!r} are paid from a budget; null is for test_simulation."
            )
            faults.add(at, "budget_missing", sentence)


_NAMES: Final = {
    "people": "a person's name: 1 to 200 printable characters",
    "approvals": "the digest of a version: 'sha256:' and 64 hexadecimal digits",
    "bindings": "the name of a binding: v0:WORKSPACE_ID/AGENT_ID or cron:AGENT_CLASS/AGENT_ID",
}
_REFERENCE_NAME: Final = "a name: 1 to 200 letters, digits or any of . _ @ : / -, not beginning with /"


def _add(error: ErrorDetails, faults: Faults) -> None:
    """One fault in our words, at its place."""
    *inside, last = error["loc"] or ("",)
    if last == "[key]":
        faults.add(_pointer(inside), "invalid_name", f"{shown(error['input'])} is not {_named(inside)}.")
        return
    at = _pointer(error["loc"])
    if error["type"] == "missing":
        faults.add(at, "missing_field", f"The field {last} is required.")
    elif error["type"] in {"extra_forbidden", "invalid_key"}:
        known = _model_at(inside).model_fields
        faults.check_members({last: None}, _pointer(inside), tuple(known))
    else:
        code, sentence = _told(error)
        # What stands in the place of a secret or an address may hold one, and is not repeated.
        found = "" if last in {"secret", "url"} else f"; found {_found(error)}"
        faults.add(at, code, f"{sentence}{found}." if sentence else str(error["msg"]))


def _found(error: ErrorDetails) -> str:
    length = error.get("ctx", {}).get("actual_length")
    return f"{length:,}" if error["type"] == "too_long" and length else shown(error["input"])


def _told(error: ErrorDetails) -> tuple[str, str]:
    """The code of a fault and what was expected; no sentence where the fault has its own already."""
    last = error["loc"][-1] if error["loc"] else ""
    if error["type"] == "string_pattern_mismatch":
        return "invalid_name", _EXPECTED.get(str(last), f"This is {_REFERENCE_NAME}")
    code, sentence = _SENTENCES.get(error["type"], (error["type"], ""))
    return code, sentence.format_map({"min_length": 1, "max_length": MAX_PROFILE, **error.get("ctx", {})})


_INTEGER: Final = ("not_an_integer", "This is an integer, without quotes or a point")
_LENGTH: Final = ("wrong_length", "This has {min_length} to {max_length} characters")
_OBJECT: Final = ("not_an_object", "This is an object")
_ARRAY: Final = ("not_an_array", "This is an array")
_ADDRESS: Final = (
    "not_an_address",
    "This is an address such as https://agents.example/runs, of at most 2,000 characters",
)
_SENTENCES: Final = {
    "int_type": _INTEGER,
    "int_from_float": _INTEGER,
    "int_parsing_size": _INTEGER,
    "greater_than_equal": ("out_of_range", "This is at least {ge:,}"),
    "less_than_equal": ("out_of_range", "This is at most {le:,}"),
    "bool_type": ("not_a_boolean", "This is true or false, without quotes"),
    "string_type": ("not_text", "This is a text"),
    "string_too_short": _LENGTH,
    "string_too_long": _LENGTH,
    "too_short": _LENGTH,
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
    "tuple_type": _ARRAY,
    "literal_error": ("unknown_value", "This is {expected}"),
    "too_long": ("too_many", "At most {max_length:,} stand here"),
    "value_error": _ADDRESS,
    "url_parsing": _ADDRESS,
    "url_scheme": _ADDRESS,
    "url_too_long": _ADDRESS,
    "url_type": _ADDRESS,
}
_EXPECTED: Final = {
    "currency": "This is a currency of three capitals, such as EUR",
    "secret": "This names an environment variable HORARIUM_SECRET_… that holds the secret",
}


def _named(place: list[int | str]) -> str:
    return _NAMES.get(str(place[0]), _REFERENCE_NAME)


def _pointer(place: tuple[int | str, ...] | list[int | str]) -> str:
    return "".join(pointer("", part) for part in place)


def _model_at(place: list[int | str]) -> type[Declared]:
    """The model of the object at a place."""
    model: Any = AuthorityFile
    for part in _fields(place):
        annotation = model.model_fields[part].annotation
        model = next(each for each in _classes(annotation) if issubclass(each, Declared))
    found: type[Declared] = model
    return found


def _fields(place: list[int | str]) -> Iterator[str]:
    """The names of fields on the way to a place, without the names of declarations."""
    yield from (str(part) for index, part in enumerate(place) if index != 1)


def _classes(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type) and not getattr(annotation, "__args__", None):
        yield annotation
    for each in getattr(annotation, "__args__", ()):
        yield from _classes(each)
