"""Reading JSON from outside strictly, within bounds that are declared here and nowhere else.

Python's own reader is generous: of two equal keys it keeps the last, it takes NaN, and a deep or a very long number
stops the interpreter. A schedule decides what runs unattended, so its text has exactly one meaning or is refused with
the place.
"""

import json
import math
import re
from typing import Any, NoReturn

from horarium.calendar.faults import MAX_FAULTS, Faults, pointer, shown
from horarium.errors import Fault, InvalidSchedule

MAX_DOCUMENT_BYTES = 256 * 1024
"""The largest document, in bytes of UTF-8, unless a reader says otherwise: hundreds of times what a person writes."""
MAX_DEPTH = 64
"""How many objects and lists may stand inside one another."""
MAX_INTEGER_DIGITS = 19
"""Digits of a 64-bit integer. Longer ones are refused before they are converted, which takes quadratic time."""
MAX_SAFE_INTEGER = 2**53 - 1
"""The largest integer that every JSON program reads as the same number (RFC 7493, section 2.2)."""

_BYTE_ORDER_MARK = "\ufeff"
# A string that never closes matches up to the end of the text: else each quote in it would scan the rest again.
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


class _Pairs(list[tuple[str, Any]]):
    """An object as it was written, in order and with its repeated keys."""


class _Refusal:
    """Stands for a number that cannot be a value, until its place is known."""

    __slots__ = ("code", "sentence")

    def __init__(self, code: str, sentence: str) -> None:
        self.code = code
        self.sentence = sentence


def load_json(data: bytes | str, *, most: int = MAX_DOCUMENT_BYTES) -> Any:
    """Read one JSON text (RFC 8259) and return plain dicts, lists, strings, numbers, booleans and None.

    Refused with `InvalidSchedule`: what is larger than `most` bytes or deeper than `MAX_DEPTH`, a byte order
    mark, bytes that are not UTF-8, a key that stands twice in one object, NaN and infinities (a number like 1e999
    too), integers of more than `MAX_INTEGER_DIGITS` digits, and lone surrogates. A fault of syntax says line and
    column, counted from 1; every other fault carries its JSON pointer, and all of those are told at once.
    """
    document, faults = read_json(data, most=most)
    if faults:
        raise InvalidSchedule(faults)
    return document


def read_json(data: bytes | str, *, most: int = MAX_DOCUMENT_BYTES) -> tuple[Any, list[Fault]]:
    """As `load_json`, with the faults that have a place beside what could be read all the same; what could not is None.

    Of a key that stands twice the last value is read.
    """
    text = decode(data, most=most)
    _check_depth(text)
    try:
        raw = json.loads(
            text,
            object_pairs_hook=_Pairs,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as error:
        _refuse("not_json", _syntax_sentence(error))
    faults = Faults()
    document = _plain(raw, "", faults)
    return document, faults.found


def decode(data: bytes | str, *, most: int = MAX_DOCUMENT_BYTES) -> str:
    """The text of a document of any notation, within `most` bytes, in UTF-8 without a byte order mark.

    Raises `InvalidSchedule` for anything else; the sentence says the line and the column.
    """
    if isinstance(data, str):
        surrogate = _SURROGATE.search(data)
        if surrogate is not None:
            _refuse(
                "lone_surrogate",
                f"Half a character (a lone surrogate) stands at {place(data, surrogate.start())}.",
            )
        size = len(data.encode())
        text = data
    else:
        size = len(data)
        text = ""
    if size > most:
        _refuse("too_large", f"The document has {size:,} bytes; at most {most:,} are read.")
    if isinstance(data, bytes):
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            before = data[: error.start].decode()
            where = place(before, len(before))
            _refuse("not_utf8", f"The bytes at {where} are not UTF-8. Save the document in UTF-8.")
    if text.startswith(_BYTE_ORDER_MARK):
        _refuse(
            "byte_order_mark",
            "The document starts with a byte order mark at line 1, column 1. Save it as UTF-8 without one.",
        )
    return text


def json_faults(document: object) -> list[Fault]:
    """Say what keeps a Python value from being a JSON document, in the order of the document; nothing where it is one.

    For values that did not come through `load_json`: from a caller's program, or from YAML. Found are types that JSON
    does not know, keys that are not strings, lone surrogates, NaN and infinities, and integers beyond
    `MAX_SAFE_INTEGER`. A value nested too deep (or containing itself) or of more parts than a document of
    `MAX_DOCUMENT_BYTES` can have is one fault, told alone.
    """
    faults: list[Fault] = []
    # A list of what is left to look at, not recursion: a list that contains itself would exhaust the stack.
    left: list[tuple[object, str, int]] = [(document, "", 0)]
    looked_at = 0
    while left and len(faults) < MAX_FAULTS:
        value, at, depth = left.pop()
        looked_at += 1
        if looked_at > MAX_DOCUMENT_BYTES:
            sentence = f"The document has more parts than {MAX_DOCUMENT_BYTES:,} bytes of JSON can hold."
            return [Fault("", "too_large", sentence)]
        if not isinstance(value, dict | list | tuple):
            fault = _scalar_fault(value, at)
            faults.extend([fault] if fault else [])
            continue
        if depth >= MAX_DEPTH:
            return [Fault(at, "too_deep", f"At most {MAX_DEPTH} objects and lists stand inside one another.")]
        members = list(value.items() if isinstance(value, dict) else enumerate(value))
        if isinstance(value, dict):
            faults.extend(fault for key in value if (fault := _key_fault(key, at)))
            members = [(key, each) for key, each in members if isinstance(key, str)]
        left.extend((each, pointer(at, key), depth + 1) for key, each in reversed(members))
    return faults


def place(text: str, position: int) -> str:
    """Where a character stands, for a sentence: `line 3, column 5`, both counted from 1."""
    line = text.count("\n", 0, position) + 1
    return f"line {line}, column {position - text.rfind(chr(10), 0, position)}"


def _check_depth(text: str) -> None:
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(text):
        first = found.group()[0]
        if first in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                where = place(text, found.start())
                _refuse("too_deep", f"More than {MAX_DEPTH} objects and lists stand inside one another at {where}.")
        elif first in "]}":
            depth -= 1


def _integer(digits: str) -> int | _Refusal:
    if len(digits.lstrip("-")) > MAX_INTEGER_DIGITS:
        return _Refusal(
            "integer_too_long", f"An integer has at most {MAX_INTEGER_DIGITS} digits; found {shown(digits)}."
        )
    return int(digits)


def _float(digits: str) -> float | _Refusal:
    value = float(digits)
    if math.isinf(value):
        return _Refusal("not_a_number", f"{shown(digits)} is larger than any number that JSON programs agree on.")
    return value


def _constant(name: str) -> _Refusal:
    return _Refusal("not_a_number", f"JSON has no {name}; write a number.")


def _plain(raw: Any, at: str, faults: Faults) -> Any:
    if isinstance(raw, _Pairs):
        members: dict[str, Any] = {}
        for key, value in raw:
            here = pointer(at, key)
            if key in members:
                faults.add(here, "duplicate_key", f"The key {shown(key)} stands twice in one object. Keep one.")
            if (fault := _key_fault(key, at)) is not None:
                faults.add(fault.pointer, fault.code, fault.sentence)
            members[key] = _plain(value, here, faults)
        return members
    if isinstance(raw, list):
        return [_plain(each, pointer(at, index), faults) for index, each in enumerate(raw)]
    if isinstance(raw, _Refusal):
        faults.add(at, raw.code, raw.sentence)
        return None
    if isinstance(raw, str) and (fault := _scalar_fault(raw, at)) is not None:
        faults.add(fault.pointer, fault.code, fault.sentence)
    return raw


def _key_fault(key: object, at: str) -> Fault | None:
    if not isinstance(key, str):
        return Fault(at, "key_not_text", f"A key is a text; found {shown(key)}. Put it in quotes.")
    if _SURROGATE.search(key) is not None:
        return Fault(pointer(at, key), "lone_surrogate", "The key holds half a character (a lone surrogate).")
    return None


def _scalar_fault(value: object, at: str) -> Fault | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        if _SURROGATE.search(value) is None:
            return None
        return Fault(at, "lone_surrogate", "The text holds half a character (a lone surrogate).")
    if isinstance(value, int):
        if abs(value) <= MAX_SAFE_INTEGER:
            return None
        sentence = f"An integer lies within ±(2^53 - 1), where all JSON programs agree; found {shown(value)}."
        return Fault(at, "integer_too_large", sentence)
    if isinstance(value, float):
        return None if math.isfinite(value) else Fault(at, "not_a_number", f"JSON has no {value}; write a number.")
    sentence = f"JSON has no {type(value).__name__}; write a text, a number, a list or an object."
    return Fault(at, "not_json", sentence)


def _syntax_sentence(error: json.JSONDecodeError) -> str:
    found = error.doc[error.pos : error.pos + 1]
    before = error.doc[: error.pos].rstrip()
    advice = ""
    if not error.doc.strip():
        return "The document is empty at line 1, column 1; an object was expected."
    if found == "'":
        advice = " JSON wants double quotes."
    elif found in {"#", "/"}:
        advice = " JSON has no comments; YAML has."
    elif before.endswith(",") or "trailing comma" in error.msg:
        advice = " Is there a comma too many?"
    elif not found:
        advice = " The text ends here; something is not closed."
    message = (error.msg[0].lower() + error.msg[1:]).removesuffix(" starting at")
    return f"This is not JSON at line {error.lineno}, column {error.colno}: {message}.{advice}"


def _refuse(code: str, sentence: str) -> NoReturn:
    raise InvalidSchedule([Fault("", code, sentence)])
