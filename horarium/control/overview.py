"""What stands in an environment, for operators: what is declared, what was counted, what is stopped, and who did what.

No secret is among it, since none is stored: a destination names the variable that holds its own.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, RowMapping

from horarium.authority.file import PLURALS
from horarium.catalog import money
from horarium.catalog.declarations import ORGANIZATION, Declaration, list_acts, list_declarations, list_stops
from horarium.catalog.environments import require_environment
from horarium.schedule.identity import Scope, instant_text

LAST_ACTS = 10
"""Acts that an overview shows."""


def overview(connection: Connection, scope: Scope) -> dict[str, Any]:
    """An environment as operators see it. Raises `NotFound` where there is none.

    `declared` has every kind by its name in a file, each declaration by name with its `version` (the number of the act that
    made it so) and its `facts`. `budgets` and `wallets` tell what was counted, also for what is declared no more; `room` is
    null then, and `unpaid_limit`. `acts` are the last ones, newest first.
    """
    environment = require_environment(connection, scope)
    declared = list_declarations(connection, scope)
    facts = {(each.kind, each.name): each.facts for each in declared}
    return {
        "org_id": scope.org_id,
        "environment_id": scope.environment_id,
        "mode": environment.mode,
        "runtime_profile": environment.runtime_profile,
        "development": environment.development,
        "live_needs_approval": environment.live_needs_approval,
        "authority_epoch": environment.authority_epoch,
        "reset_generation": environment.reset_generation,
        "stops": kill_switches(connection, scope),
        "declared": {
            plural: {each.name: _declaration(each) for each in declared if each.kind == kind}
            for kind, plural in PLURALS.items()
        },
        "budgets": _budgets(connection, scope, facts),
        "wallets": _wallets(connection, scope, facts),
        "acts": [_act(row) for row in list_acts(connection, scope, limit=LAST_ACTS, newest=True)],
    }


def kill_switches(connection: Connection, scope: Scope) -> list[dict[str, Any]]:
    """What keeps everything from running here, the whole organization's (`everywhere`) first; nothing as a rule."""
    return [
        {
            "everywhere": each.environment_id == ORGANIZATION,
            "since": instant_text(each.since),
            "by": each.by,
            "because": each.because,
        }
        for each in list_stops(connection, scope)
    ]


def acts(connection: Connection, scope: Scope, *, after: int, limit: int) -> list[dict[str, Any]]:
    """A page of what operators did, oldest first, beginning behind the act `after`. Raises `NotFound`."""
    require_environment(connection, scope)
    return [_act(row) for row in list_acts(connection, scope, after=after, limit=limit)]


Facts = Mapping[tuple[str, str], Mapping[str, Any]]


def _budgets(connection: Connection, scope: Scope, facts: Facts) -> dict[str, Any]:
    counted = money.list_accounts(connection, scope, money.BUDGET)
    told = {}
    for name in _names("budget", facts, counted):
        declared, account = facts.get(("budget", name)), counted.get(name, money.Account(reserved=0, spent=0))
        told[name] = {
            "currency": None if declared is None else declared["currency"],
            "limit": None if declared is None else declared["limit"],
            "reserved": account.reserved,
            "spent": account.spent,
            "room": None if declared is None else declared["limit"] - account.reserved - account.spent,
        }
    return told


def _wallets(connection: Connection, scope: Scope, facts: Facts) -> dict[str, Any]:
    counted = money.list_accounts(connection, scope, money.WALLET)
    told = {}
    for name in _names("wallet", facts, counted):
        declared = facts.get(("wallet", name))
        told[name] = {
            "currency": None if declared is None else declared["currency"],
            "unpaid_limit": None if declared is None else declared["unpaid_limit"],
            "owed": counted[name].spent if name in counted else 0,
        }
    return told


def _names(kind: str, facts: Facts, counted: Mapping[str, money.Account]) -> list[str]:
    return sorted({name for of, name in facts if of == kind} | counted.keys())


def _declaration(each: Declaration) -> dict[str, Any]:
    return {"version": each.version, "facts": dict(each.facts)}


def _act(row: RowMapping) -> dict[str, Any]:
    return {
        "id": row["id"],
        "at": instant_text(row["at"]),
        "kind": row["kind"],
        "actor": row["actor"],
        "everywhere": row["environment_id"] == ORGANIZATION,
        "details": row["details"],
    }
