"""What operators do to an environment, straight in its catalog: declare, withdraw, stop, reset."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, update

from horarium.authority.declared import KINDS, stored
from horarium.catalog import Catalog, declarations
from horarium.catalog.tables import environments
from horarium.schedule.identity import Scope
from tests.control.desk import AGENT, NOON

PEOPLE = frozenset({"person"})
"""What is declared of the organization as a whole."""


@dataclass(frozen=True, slots=True)
class Operator:
    """Acts on one strict environment of a catalog. Facts are given as they stand in a file."""

    catalog: Catalog
    scope: Scope

    def open(
        self,
        *,
        mode: str = "test",
        live_needs_approval: bool = False,
        runtime_profile: str | None = "embedded",
    ) -> None:
        """Make the environment, in which nothing is admitted that is not declared."""

        def made(connection: Connection) -> None:
            environment = environments.c.environment_id == self.scope.environment_id
            ours = (environments.c.org_id == self.scope.org_id) & environment
            connection.execute(delete(environments).where(ours))
            connection.execute(
                insert(environments).values(
                    org_id=self.scope.org_id,
                    environment_id=self.scope.environment_id,
                    mode=mode,
                    authority_epoch=1,
                    reset_generation=1,
                    runtime_profile=runtime_profile,
                    development=False,
                    live_needs_approval=live_needs_approval,
                )
            )

        self._write(made)

    def change(self, **values: Any) -> None:
        """Change the environment's own row."""
        row = (environments.c.org_id == self.scope.org_id) & (
            environments.c.environment_id == self.scope.environment_id
        )
        self._write(lambda connection: connection.execute(update(environments).where(row).values(**values)))

    def declare(self, kind: str, name: str, **facts: Any) -> None:
        facts = stored(KINDS[kind].model_validate(facts))

        def act(connection: Connection) -> None:
            version = self._act(connection, "declared", kind=kind, name=name)
            everywhere = kind in PEOPLE
            declarations.declare(connection, self.scope, kind, name, facts, version=version, everywhere=everywhere)

        self._write(act)

    def withdraw(self, kind: str, name: str) -> None:
        def act(connection: Connection) -> None:
            self._act(connection, "withdrawn", kind=kind, name=name)
            declarations.withdraw_all(connection, self.scope, [(kind, name)], everywhere=kind in PEOPLE)

        self._write(act)

    def stop(self, *, everywhere: bool = False, now: datetime = NOON) -> None:
        self._write(
            lambda connection: declarations.set_stop(
                connection, self.scope, everywhere=everywhere, by="grace", because="A drill.", now=now
            )
        )

    def lift(self, *, everywhere: bool = False, now: datetime = NOON) -> None:
        self._write(lambda connection: declarations.lift_stop(connection, self.scope, everywhere=everywhere, now=now))

    def declare_usual(self, *, people: tuple[str, ...] = ("ada",), max_cost: int = 10) -> None:
        """What the configuration of a desk needs: people, agent, input and output, and a budget `team` of credits."""
        for each in people:
            self.declare("person", each)
        self.declare("agent", AGENT, max_cost=max_cost, max_run_seconds=60)
        self.declare("input", "in", readers=["*"])
        self.declare("output", "out")
        self.declare("budget", "team", usage_classes=["test_compute"], pays_by="credits", limit=1_000, currency="CHF")

    def _act(self, connection: Connection, what: str, *, kind: str, name: str) -> int:
        details = {"kind": kind, "name": name}
        return declarations.record_act(
            connection, self.scope, what, actor="grace", now=NOON, details=details, everywhere=kind in PEOPLE
        )

    def _write(self, act: Any) -> None:
        with self.catalog.writing() as connection:
            act(connection)


def paid(document: dict[str, Any], *, usage: str = "test_compute", budget: str | None = "team") -> dict[str, Any]:
    """A configuration whose runs are paid from a budget."""
    return {**document, "run": {**document["run"], "usage_class": usage, "budget_id": budget}}
