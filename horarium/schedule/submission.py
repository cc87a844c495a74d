"""Checking a profile's settings, and the fields of a start event, against the schemas that the agent class reports.

A schema is JSON Schema as pydantic writes it, and what is looked at is what decides whether a value is usable at all: types,
choices, bounds, members. Patterns are left to the agent, which reads what it is handed with the class that the schema was made
from: a regular expression from outside must not keep this process busy.
"""

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from horarium.calendar.faults import Faults, pointer, shown
from horarium.errors import Fault

MAX_DEPTH: Final = 100
"""How deep a schema is followed. It may lead in a circle."""
MAX_LOOKS: Final = 20_000
"""Values that are looked at, alternatives included. What is left then is the agent's to check."""
CODE: Final = "not_as_submitted"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_TYPES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: _is_number(value) and float(value).is_integer(),
    "number": _is_number,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_BOUNDS: Final[Mapping[str, Callable[[Any, float], bool]]] = {
    "minimum": lambda value, bound: value >= bound,
    "maximum": lambda value, bound: value <= bound,
    "exclusiveMinimum": lambda value, bound: value > bound,
    "exclusiveMaximum": lambda value, bound: value < bound,
}
_LENGTHS: Final[Mapping[type, tuple[str, str, str]]] = {
    str: ("minLength", "maxLength", "characters"),
    list: ("minItems", "maxItems", "items"),
    dict: ("minProperties", "maxProperties", "members"),
}


def submission_faults(
    config: Mapping[str, Any], schema: Mapping[str, Any], *, at: str, looks: Iterator[bool] | None = None
) -> list[Fault]:
    """What the schema of a class has against the settings of a profile; nothing where there is no schema.

    `looks` bounds several questions together, one item for each value that is looked at; without it one question has
    `MAX_LOOKS`. `cron` is not looked at on either side: it belongs to the platform, which has rules of its own.
    """
    check = _checking(schema, looks)
    own = dict(check.followed(schema) or {})
    if isinstance(own.get("properties"), dict):
        own["properties"] = {name: each for name, each in own["properties"].items() if name != "cron"}
    if isinstance(own.get("required"), list):
        own["required"] = [name for name in own["required"] if name != "cron"]
    check.look({name: value for name, value in config.items() if name != "cron"}, own, at, 0)
    return check.faults.found


def schema_faults(value: object, schema: object, *, at: str) -> list[Fault]:
    """What a reported schema has against a value, such as the fields of a start event; nothing where it is no schema."""
    check = _checking(schema)
    check.look(value, schema, at, 0)
    return check.faults.found


def _checking(schema: object, looks: Iterator[bool] | None = None) -> "_Check":
    """A look at a value by a schema, whose definitions stand at its top."""
    definitions = schema.get("$defs") if isinstance(schema, Mapping) else None
    bounded = itertools.repeat(True, MAX_LOOKS) if looks is None else looks
    return _Check(definitions if isinstance(definitions, dict) else {}, Faults(), bounded)


class _Check:
    """One look at a value. What is no schema, as another release may write it, says nothing against the value."""

    def __init__(self, definitions: Mapping[str, Any], faults: Faults, looks: Iterator[bool]) -> None:
        self._definitions = definitions
        self.faults = faults
        self._looks = looks

    def look(self, value: Any, schema: object, at: str, depth: int) -> None:
        if depth > MAX_DEPTH or not next(self._looks, False):
            return
        if schema is False:
            self._add(at, f"Nothing may stand here; found {shown(value)}.")
        found = self.followed(schema)
        if found is None:
            return
        for each in _schemas(found.get("allOf")):
            self.look(value, each, at, depth + 1)
        if not self._is_of_type(value, found, at) or not self._is_a_choice(value, found, at):
            return
        self._look_at_alternatives(value, found, at, depth)
        self._look_at_size(value, found, at)
        if isinstance(value, dict):
            self._look_at_members(value, found, at, depth)
        if isinstance(value, list):
            for index, each in enumerate(value):
                self.look(each, found.get("items", True), pointer(at, index), depth + 1)

    def followed(self, schema: object) -> Mapping[str, Any] | None:
        """The schema that a reference leads to; None where there is none."""
        for _ in range(MAX_DEPTH):
            if not isinstance(schema, dict):
                return None
            reference = schema.get("$ref")
            if reference is None:
                return schema
            schema = self._definitions.get(str(reference).removeprefix("#/$defs/"))
        return None

    def _is_of_type(self, value: Any, schema: Mapping[str, Any], at: str) -> bool:
        named = schema.get("type")
        types = [named] if isinstance(named, str) else named if isinstance(named, list) else []
        known = [_TYPES[each] for each in types if isinstance(each, str) and each in _TYPES]
        if not known or any(fits(value) for fits in known):
            return True
        self._add(at, f"This is of type {' or '.join(map(str, types))}; found {shown(value)}.")
        return False

    def _is_a_choice(self, value: Any, schema: Mapping[str, Any], at: str) -> bool:
        choices = [schema["const"]] if "const" in schema else schema.get("enum")
        if not isinstance(choices, list) or any(_same(value, each) for each in choices):
            return True
        listed = ", ".join(shown(each) for each in choices[:20])
        self._add(at, f"This is one of {listed}; found {shown(value)}.")
        return False

    def _look_at_alternatives(self, value: Any, schema: Mapping[str, Any], at: str, depth: int) -> None:
        alternatives = [*_schemas(schema.get("anyOf")), *_schemas(schema.get("oneOf"))]
        tried: list[Faults] = []
        for each in alternatives:
            against = Faults()
            _Check(self._definitions, against, self._looks).look(value, each, at, depth + 1)
            if not len(against):
                return
            tried.append(against)
        if tried:
            # The alternative that was probably meant is the one that went wrong deepest inside.
            meant = max(tried, key=lambda each: len(each.found[0].pointer))
            for fault in meant.found:
                self.faults.add(fault.pointer, fault.code, fault.sentence)

    def _look_at_size(self, value: Any, schema: Mapping[str, Any], at: str) -> None:
        if _is_number(value):
            for name, holds in _BOUNDS.items():
                bound = schema.get(name)
                if isinstance(bound, int | float) and not holds(value, bound):
                    self._add(at, f"This has the {name} {bound}; found {shown(value)}.")
        least, most, what = _LENGTHS.get(type(value), ("", "", ""))
        if not what:
            return
        if isinstance(schema.get(least), int) and len(value) < schema[least]:
            self._add(at, f"This has at least {schema[least]:,} {what}; found {len(value):,}.")
        if isinstance(schema.get(most), int) and len(value) > schema[most]:
            self._add(at, f"This has at most {schema[most]:,} {what}; found {len(value):,}.")

    def _look_at_members(self, value: dict[str, Any], schema: Mapping[str, Any], at: str, depth: int) -> None:
        properties = schema.get("properties")
        known = properties if isinstance(properties, dict) else {}
        required = schema.get("required")
        for name in required if isinstance(required, list) else []:
            if isinstance(name, str) and name not in value:
                self.faults.add(pointer(at, name), "missing_field", f"The field {shown(name)} is required.")
        others = schema.get("additionalProperties", True)
        if others is False:
            self.faults.check_members(dict(value.items()), at, tuple(known))
        for name, each in value.items():
            if name in known:
                self.look(each, known[name], pointer(at, name), depth + 1)
            elif others is not False:
                self.look(each, others, pointer(at, name), depth + 1)

    def _add(self, at: str, sentence: str) -> None:
        self.faults.add(at, CODE, sentence)


def _schemas(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _same(value: Any, other: Any) -> bool:
    """Whether two JSON values are one: true is not 1."""
    return json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True)
