"""Reading JSON that is stored as text. A hand may have damaged it, and what is read is told on as JSON."""

import json
import math
from typing import Any, Final, NoReturn

from horarium.errors import Fault, InvalidSchedule

MAX_STORED_DEPTH: Final = 100
"""How deep what is stored may be nested: beyond what any document may be, with what is stored around it."""


def stored_json(text: str, *, what: str, at: str = "") -> Any:
    """The value of a stored text, which can be written as JSON again.

    Raises `InvalidSchedule` for what is no JSON, and for what Python reads as JSON and cannot write: numbers that are none,
    half characters, and what is nested without end. `what` is what is stored, as in "The stored config", and `at` its place.
    """
    try:
        value = json.loads(text, parse_constant=_no_number, parse_float=_number)
        # To write it asks for what has to be known, and is quicker than to look at each part.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise _unreadable(f"{what} is no JSON: {error}.", at) from error
    # Nothing is nested deeper than there are brackets to open it.
    if text.count("{") + text.count("[") > MAX_STORED_DEPTH and _is_deeper(value, MAX_STORED_DEPTH):
        raise _unreadable(f"{what} is nested deeper than {MAX_STORED_DEPTH} objects and lists.", at)
    return value


def stored_object(text: str, *, what: str, at: str = "") -> dict[str, Any]:
    """As `stored_json`, of what is an object."""
    value = stored_json(text, what=what, at=at)
    if not isinstance(value, dict):
        raise _unreadable(f"{what} is no object.", at)
    return value


def _number(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits[:40]} is larger than any number")
    return value


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"there is no {name}")


def _is_deeper(value: object, most: int) -> bool:
    level = [value]
    for _ in range(most):
        level = [each for holder in level for each in _parts(holder) if isinstance(each, dict | list)]
        if not level:
            return False
    return True


def _parts(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _unreadable(sentence: str, at: str) -> InvalidSchedule:
    return InvalidSchedule([Fault(at, "unreadable", sentence)])
