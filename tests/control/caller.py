"""One who asks by documents, as over the API: a principal, its keys, and what it has read of the environment."""

import itertools
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import update

from horarium.catalog import presence
from horarium.catalog.audit_events import list_events
from horarium.catalog.environments import ensure_environment, require_environment
from horarium.catalog.schedules import require_schedule
from horarium.catalog.tables import environments
from horarium.control import operations
from horarium.control.principals import WRITE_SCOPE, Principal, PrincipalKind
from horarium.control.receipts import Receipt
from horarium.errors import Fault, InvalidSchedule
from horarium.schedule.identity import Scope, schedule_key
from tests.control.desk import AGENT, FAR, SCOPE, Desk

_keys = itertools.count(1)


def principal(
    name: str = "ada", kind: PrincipalKind = PrincipalKind.HUMAN, *, org_id: str = "acme", scopes: str = WRITE_SCOPE
) -> Principal:
    return Principal(name=name, kind=kind, org_id=org_id, scopes=frozenset(scopes.split()))


def new_key() -> str:
    return f"key-{next(_keys)}"


@dataclass(slots=True)
class Caller:
    """Asks about the schedule of a desk. What a request leaves out is what a careful caller has just read."""

    desk: Desk
    principal: Principal = field(default_factory=principal)

    def reviewed(self) -> dict[str, int]:
        environment = self.desk.read(require_environment, self.desk.key.scope)
        return {
            "expected_environment_epoch": environment.authority_epoch,
            "expected_reset_generation": environment.reset_generation,
        }

    def publication(self, document: dict[str, Any], *, expected: int = 0, **other: Any) -> dict[str, Any]:
        asked = {"schedule_id": self.desk.key.schedule_id, "expected_revision": expected, **self.reviewed()}
        return {**asked, "configuration": document, **other}

    def publish(self, document: dict[str, Any], *, expected: int = 0, key: str | None = None, **other: Any) -> Receipt:
        return self.send_publication(self.publication(document, expected=expected, **other), key)

    def send_publication(self, request: object, key: str | None = None) -> Receipt:
        return self.desk.write(
            operations.publish, self.principal, self.desk.key.scope, request, key or new_key(), now=self.desk.now
        )

    def about(self, reference: dict[str, Any], generation: int, **other: Any) -> dict[str, Any]:
        """A request about an exact version and an activation."""
        return {"version": reference, "expected_generation": generation, **self.reviewed(), **other}

    def set(self, request: object, key: str | None = None) -> Receipt:
        return self.desk.write(
            operations.set_activation,
            self.principal,
            self.desk.key.scope,
            request,
            key or new_key(),
            content=self.desk.content,
            now=self.desk.now,
        )

    def retire(self, request: object, key: str | None = None) -> Receipt:
        return self._send(operations.retire, request, key)

    def trigger(self, request: object, key: str | None = None) -> Receipt:
        return self._send(operations.trigger, request, key)

    def enabled(self, document: dict[str, Any]) -> dict[str, Any]:
        """Publish and enable; returns the reference of the version."""
        reference = self.publish(document).document["reference"]
        self.set(self.about(reference, 0, enabled=True))
        return reference

    def _send(self, operation: Any, request: object, key: str | None) -> Receipt:
        return self.desk.write(
            operation, self.principal, self.desk.key.scope, request, key or new_key(), now=self.desk.now
        )


def events(desk: Desk) -> list[dict[str, Any]]:
    """The audit events of a desk's schedule; none where there is no schedule."""

    def listed(connection: Any) -> list[dict[str, Any]]:
        return [dict(row) for row in list_events(connection, require_schedule(connection, desk.key), after=0, limit=99)]

    return desk.read(listed)


def refusing(*_: object, **__: object) -> Any:
    """What a release makes of any document whose zone data has lost its zone. Stands in for what reads documents."""
    raise InvalidSchedule([Fault("/zone", "unknown_timezone", "The zone data of today has no such zone.")])


def own_environment(desk: Desk) -> Scope:
    """Give the desk's schedule an environment of its own, with the agent, which a test may then spoil."""
    scope = Scope(org_id=SCOPE.org_id, environment_id=f"env{desk.key.schedule_id[-6:]}")
    desk.key = schedule_key(scope, desk.key.schedule_id)
    desk.write(ensure_environment, scope, mode="simulation", runtime_profile="embedded")
    discovery = {"is_schedulable": True, "task_queue": "agents", "max_run_seconds": 60, "idempotent": False}
    desk.write(presence.register_agent, scope, AGENT, discovery, lease_until=FAR, now=desk.now)
    return scope


def change_environment(desk: Desk, **values: Any) -> None:
    """What only an operator's command does: a new authority epoch, a reset."""
    scope = desk.key.scope
    here = (environments.c.org_id == scope.org_id, environments.c.environment_id == scope.environment_id)
    desk.write(lambda connection: connection.execute(update(environments).where(*here).values(**values)))
