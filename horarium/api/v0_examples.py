"""Scheduler v0's examples on the OpenAPI page. The two documents are those of the contract, word for word."""

from typing import Any, Final

from horarium.api.examples import RECEIPT, REFERENCE, RESOURCE, SCHEDULE, receipt

ONE_SHOT: Final[dict[str, Any]] = {
    "type": "one-shot",
    "spec": {"run_at": "2026-03-25T09:00:00Z"},
    "target": {"workspace_id": "ws-001", "agent_id": "codex"},
    "policy": {"misfire": "skip", "max_concurrent_runs": 1},
}
CRON: Final[dict[str, Any]] = {
    "type": "cron",
    "spec": {"expr": "*/15 * * * *"},
    "target": {"workspace_id": "ws-001", "agent_id": "opencode"},
    "policy": {"misfire": "defer_once", "max_concurrent_runs": 1},
}
SHOWN: Final[dict[str, Any]] = {
    "schedule_id": SCHEDULE,
    "resource_id": RESOURCE,
    "reference": REFERENCE,
    "generation": 1,
    "state": "enabled",
    "reason": None,
    "schedule": CRON,
    "last_outcome": {"disposition": "refused", "reason": "agent_offline", "nominal_time": "2027-01-31T08:45:00Z"},
}
DIRECTORY: Final = {"schedules": [SHOWN], "next_cursor": None}
EVENTS: Final = {
    "events": [
        {
            "id": 2,
            "at": "2027-01-31T09:00:00Z",
            "kind": "SCHEDULE_CREATED",
            "actor": "ada@acme.example",
            "generation": None,
            "revision": 1,
            "details": {"reference": REFERENCE, "receipt_id": RECEIPT},
        },
        {
            "id": 4,
            "at": "2027-01-31T09:15:00.021000Z",
            "kind": "SCHEDULE_TRIGGERED",
            "actor": "system:admission",
            "generation": 1,
            "revision": None,
            "details": {
                "nominal_time": "2027-01-31T09:15:00Z",
                "run_id": "3f1f0c5e-1d2b-5c8a-9b77-5a2f8f1f0b9d",
                "trigger": "schedule",
            },
        },
        {
            "id": 5,
            "at": "2027-01-31T10:00:04.500000Z",
            "kind": "MISFIRED_SKIPPED",
            "actor": "system:schedule",
            "generation": 1,
            "revision": None,
            "details": {
                "first_at": "2027-01-31T09:30:00Z",
                "last_at": "2027-01-31T10:00:00Z",
                "count": 3,
                "disposition": "skipped",
                "reason": "coalesced",
            },
        },
    ],
    "next_cursor": None,
    "archived": [],
}


def changed(operation: str, *, generation: int, enabled: bool, ended: int | None) -> dict[str, Any]:
    """The receipt of one of the contract's operations."""
    about = {"schedule_id": SCHEDULE, "resource_id": RESOURCE, "reference": REFERENCE}
    return receipt(operation, **about, generation=generation, enabled=enabled, ended_generation=ended)
