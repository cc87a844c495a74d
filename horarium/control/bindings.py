"""What an operator has said that runs for a name: the run request of a binding (DESIGN.md, section 8)."""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection

from horarium.catalog.declarations import declared_texts, find_declarations
from horarium.catalog.stored_json import stored_object
from horarium.errors import InvalidSchedule, Refused
from horarium.schedule.identity import Scope


def find_run(connection: Connection, scope: Scope, name: str) -> Mapping[str, Any] | None:
    """The run request of the binding of this name, or None where there is none."""
    found = find_declarations(connection, scope, [("binding", name)]).get(("binding", name))
    return None if found is None else found.facts["run"]


def bound_versions(connection: Connection, scope: Scope, names: Collection[str]) -> dict[str, str]:
    """The agent versions that bindings name, by the binding's name; without those that are not there or cannot be read."""
    found: dict[str, str] = {}
    for name, text in declared_texts(connection, scope, "binding", names):
        try:
            run = stored_object(text, what="It").get("run")
        except InvalidSchedule:
            continue
        if isinstance(run, dict) and isinstance(run.get("agent_version"), str):
            found[name] = run["agent_version"]
    return found


def require_run(connection: Connection, scope: Scope, name: str, *, whose: str) -> Mapping[str, Any]:
    """As `find_run`; `Refused` with `binding_missing` where there is none. `whose` says for whom, as in "agent 'codex'"."""
    run = find_run(connection, scope, name)
    if run is None:
        raise Refused(
            "binding_missing",
            f"No operator has said what runs for {whose}.",
            next_step=f"Have {name!r} declared under `bindings` by `horarium authority apply`, then try again.",
        )
    return run
