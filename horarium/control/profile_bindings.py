"""What runs for a profile: the run request that an operator has bound to it."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from horarium.catalog.declarations import find_declarations
from horarium.catalog.presence import find_agent
from horarium.control.agent_classes import class_named
from horarium.errors import Refused
from horarium.schedule.identity import Scope
from horarium.schedule.profiles import binding_name


def bound_run(connection: Connection, scope: Scope, agent_class: str, agent_id: str) -> Mapping[str, Any]:
    """The run request of a profile's binding. Raises `Refused` with `binding_missing`, or with `binding_mismatch`."""
    name = binding_name(agent_class, agent_id)
    found = find_declarations(connection, scope, [("binding", name)]).get(("binding", name))
    if found is None:
        raise Refused(
            "binding_missing",
            f"No operator has said what runs for profile {agent_id!r} of agent class {agent_class}.",
            next_step=f"Have {name!r} declared under `bindings` by `horarium authority apply`, then try again.",
        )
    run: Mapping[str, Any] = found.facts["run"]
    registered = find_agent(connection, scope, str(run["agent_version"]))
    other = None if registered is None else class_named(registered)
    if other is not None and other != agent_class:
        raise Refused(
            "binding_mismatch",
            f"The binding {name!r} names the agent version {run['agent_version']!r}, which is of the class {other}.",
            next_step=f"Have a version of {agent_class} declared there, then try again.",
        )
    return run
