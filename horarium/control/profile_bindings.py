"""What runs for a profile: the run request that an operator has bound to it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from horarium.catalog.presence import find_agent
from horarium.control.agent_classes import reported
from horarium.control.bindings import find_run, require_run
from horarium.errors import Refused
from horarium.schedule.identity import Scope
from horarium.schedule.profiles import binding_name


def described(
    connection: Connection, scope: Scope, agent_class: str, agent_id: str, *, now: datetime
) -> dict[str, Any]:
    """What the class of a profile reports of itself, by the version that the profile's binding names, where there is one: that
    version is handed what is saved. `NotFound` with `agent_class_not_found`."""
    run = find_run(connection, scope, binding_name(agent_class, agent_id))
    named = None if run is None else str(run["agent_version"])
    return reported(connection, scope, agent_class, now=now, agent_version=named)


def bound_run(connection: Connection, scope: Scope, agent_class: str, agent_id: str) -> Mapping[str, Any]:
    """The run request of a profile's binding. Raises `Refused` with `binding_missing`, or with `binding_mismatch`."""
    name = binding_name(agent_class, agent_id)
    run = require_run(connection, scope, name, whose=f"profile {agent_id!r} of agent class {agent_class}")
    registered = find_agent(connection, scope, str(run["agent_version"]))
    other = None if registered is None else registered.agent_class
    if other is not None and other != agent_class:
        raise Refused(
            "binding_mismatch",
            f"The binding {name!r} names the agent version {run['agent_version']!r}, which is of the class {other}.",
            next_step=f"Have a version of {agent_class} declared there, then try again.",
        )
    return run
