"""What runners report of their agents, as far as it can be read.

A row that a hand has damaged is as good as none: its version is vouched for by nobody. It is written to the log as an error,
and hides no other.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import structlog
from sqlalchemy import Connection

from horarium.catalog.presence import RegisteredAgent, find_agents
from horarium.control.once import Once
from horarium.schedule.identity import Scope


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: type(value) in kinds


_is_text, _is_object = _is(str), _is(dict)
_KINDS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "description": _is_text,
    "start_events": lambda value: type(value) is list and all(map(_is_text, value)),
    "is_conversational": _is(bool),
    "is_schedulable": _is(bool),
    "calendar_event": _is(str, type(None)),
    "max_run_seconds": _is(int),
    "idempotent": _is(bool),
    "task_queue": _is_text,
    "form": lambda value: type(value) is list and all(map(_is_object, value)),
    "submission_schema": _is_object,
    "event_schemas": lambda value: type(value) is dict and all(map(_is_object, value.values())),
}
"""What each member is where it is reported: what is made of it here could not be made of anything else."""
_TOLD: Final = Once()
_logger = structlog.get_logger(__name__)


def registration(connection: Connection, scope: Scope, agent_version: str) -> RegisteredAgent | None:
    """What a runner reports of an agent version; None where none ever did, or what is stored cannot be read."""
    return registrations(connection, scope, [agent_version]).get(agent_version)


def registrations(connection: Connection, scope: Scope, agent_versions: Collection[str]) -> dict[str, RegisteredAgent]:
    """What runners report of some agent versions, by name; without those that are not there or cannot be read."""
    readable: dict[str, RegisteredAgent] = {}
    for name, each in find_agents(connection, scope, agent_versions).items():
        fault = each.fault or _fault_in(each.discovery)
        if fault is None:
            readable[name] = each
        elif _TOLD.is_first((scope, name, each.registered_at, fault)):
            _logger.error(
                "registration_malformed",
                agent_version=name,
                agent_class=each.agent_class,
                org_id=scope.org_id,
                environment_id=scope.environment_id,
                fault=fault,
            )
    return readable


def _fault_in(discovery: Mapping[str, Any]) -> str | None:
    wrong = [name for name, fits in _KINDS.items() if name in discovery and not fits(discovery[name])]
    return f"These are of another kind: {', '.join(wrong)}" if wrong else None
