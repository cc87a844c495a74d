"""The whole story of one run: what was due, what was decided and on which evidence, what it cost, and what came of it."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Connection

from horarium.catalog import money
from horarium.catalog.declarations import find_declarations
from horarium.catalog.pages import Line
from horarium.catalog.schedules import find_activation, find_version, require_schedule
from horarium.catalog.versions import Version
from horarium.control.directory import name_of, zone_of
from horarium.control.events import reference
from horarium.control.pages import line_document, run
from horarium.schedule.identity import Scope, instant_text, schedule_key

_TOLD_APART: Final = frozenset({"sentence", "version", "dispatch", "person", "environment", "looked_at", "agent"})
"""What of the evidence has a place of its own; the rest belongs to the objection."""


def story(connection: Connection, scope: Scope, run_id: str) -> dict[str, Any]:
    """A run with everything that the record holds of it. Raises `NotFound`.

    `run` is its line of the ledger. `schedule` has its name, zone and contract, `activation` who enabled which version when.
    `admission` has the `decision`, when it was made, `looked_at` (the version of each declaration, by kind and name) and the
    other facts; `objection` what spoke against it. `reservation` is what it holds or held of a budget, and `currency` the one
    that its amounts and the run's cost are minor units of, None where no declared budget says; `dispatch` how it reached its
    agent.
    """
    line = run(connection, scope, run_id)
    schedule = require_schedule(connection, schedule_key(scope, line.schedule_id))
    activation = find_activation(connection, schedule, line.entry.generation)
    head = find_version(connection, schedule, schedule.head_revision)
    ran = head if activation is None else find_version(connection, schedule, activation.revision)
    held = _reservation(connection, run_id)
    return {
        "run": line_document(line),
        "schedule": {
            "schedule_id": line.schedule_id,
            "name": _name(ran or head),
            "timezone": "UTC" if ran is None else zone_of(ran),
            "contract": schedule.contract,
        },
        "reference": None if ran is None else reference(schedule, ran),
        "request": _request(ran),
        "activation": None
        if activation is None
        else {
            "generation": activation.generation,
            "changed_by": activation.changed_by,
            "changed_at": instant_text(activation.changed_at),
        },
        "admission": _admission(line),
        "reservation": held,
        "currency": None if held is None else _currency(connection, scope, held["budget"]),
        "dispatch": _dispatch(line),
    }


def _name(version: Version | None) -> str:
    return "" if version is None else name_of(version)


def _request(version: Version | None) -> Mapping[str, Any]:
    """The run request of a version; nothing where the stored row is damaged."""
    return {} if version is None or version.is_damaged else version.document.get("run", {})


def _admission(line: Line) -> dict[str, Any]:
    found = line.run
    assert found is not None, "a run was asked for"
    evidence = found.evidence or {}
    return {
        "decision": found.decision,
        "decided_at": None if found.decided_at is None else instant_text(found.decided_at),
        "waited": found.buffered,
        "window_from": instant_text(found.window_from),
        "person": evidence.get("person"),
        "environment": _mapping(evidence.get("environment")),
        "agent": _mapping(evidence.get("agent")),
        "looked_at": _mapping(evidence.get("looked_at")),
        "sentence": evidence.get("sentence"),
        "objection": {name: value for name, value in evidence.items() if name not in _TOLD_APART},
    }


def _dispatch(line: Line) -> dict[str, Any]:
    found = line.run
    assert found is not None, "a run was asked for"
    return {
        **_mapping((found.evidence or {}).get("dispatch")),
        **({} if found.dispatch_sent is None else {"sent_at": instant_text(found.dispatch_sent)}),
        **({} if found.start_event is None else {"start_event": found.start_event}),
        **({} if found.input_refused is None else {"input_refused": found.input_refused}),
    }


def _reservation(connection: Connection, run_id: str) -> dict[str, Any] | None:
    held = money.find_reservation(connection, run_id)
    if held is None:
        return None
    return {
        "budget": held.budget,
        "wallet": held.wallet,
        "amount": held.amount,
        "state": held.state.value,
        "settled": held.settled,
        "keep_until": None if held.keep_until is None else instant_text(held.keep_until),
        "remote": held.remote,
    }


def _currency(connection: Connection, scope: Scope, budget: str) -> str | None:
    """The currency of a budget. It stays the same once anything was counted in it."""
    declared = find_declarations(connection, scope, {(money.BUDGET, budget)}).get((money.BUDGET, budget))
    currency = None if declared is None else declared.facts.get("currency")
    return currency if isinstance(currency, str) else None


def _mapping(found: object) -> dict[str, Any]:
    """A part of the evidence; nothing where a release or a hand has written something else."""
    return dict(found) if isinstance(found, Mapping) else {}
