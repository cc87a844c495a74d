"""What may be sent to start an agent: the JSON schema of each start event that it declares, without what it is told."""

from collections.abc import Iterator
from typing import Any, Final

from horarium.agents.agent import Agent

RUN: Final = "run"
"""The field of a start event that whoever dispatches fills in, and that nobody sends."""
_DEFINITIONS: Final = "#/$defs/"


def event_schemas(agent: Agent) -> dict[str, dict[str, Any]]:
    """The schema of each start event's own fields, by the name of its class, in the order of declaration.

    Whatever pydantic raises for a field that JSON Schema cannot describe.
    """
    return {kind.__name__: _own_fields(kind.model_json_schema()) for kind in agent.handlers}


def _own_fields(schema: dict[str, Any]) -> dict[str, Any]:
    definitions = schema.get("$defs", {})
    # An event that may stand within itself is only named at the top.
    named = definitions.get(schema.get("$ref", "").removeprefix(_DEFINITIONS), schema)
    own = {name: value for name, value in named.items() if name not in {"$defs", "properties", "required"}}
    own["properties"] = {name: each for name, each in named.get("properties", {}).items() if name != RUN}
    required = [name for name in named.get("required", ()) if name != RUN]
    if required:
        own["required"] = required
    kept = _reached(own, definitions)
    if kept:
        own["$defs"] = {name: each for name, each in definitions.items() if name in kept}
    return own


def _reached(schema: dict[str, Any], definitions: dict[str, Any]) -> set[str]:
    """The definitions that a schema leads to: most events refer to none but that of their run."""
    reached: set[str] = set()
    ahead = list(_references(schema))
    while ahead:
        name = ahead.pop()
        if name in definitions and name not in reached:
            reached.add(name)
            ahead += _references(definitions[name])
    return reached


def _references(part: object) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"].removeprefix(_DEFINITIONS)
        for each in part.values():
            yield from _references(each)
    if isinstance(part, list):
        for each in part:
            yield from _references(each)
