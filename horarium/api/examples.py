"""The examples on the OpenAPI page: one story, told by every operation."""

from typing import Any, Final

SCHEDULE: Final = "7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11"
RESOURCE: Final = "0d6f0a52-6a55-4b0e-8d0b-4e3a9d3f6c01"
RUN: Final = "3f1f0c5e-1d2b-5c8a-9b77-5a2f8f1f0b9d"
RECEIPT: Final = "5b3a2a86-0b7d-4a55-8a40-3f1b8a1f7c10"
KEY: Final = "daily-review-2027-01-31-1"
DIGEST: Final = "sha256:" + "4f" * 32
_EVERY_DAY: Final = {"start": 1, "end": 31, "step": 1}


def _only(value: int) -> list[dict[str, int]]:
    return [{"start": value, "end": value, "step": 1}]


CALENDAR: Final[dict[str, Any]] = {
    "timezone": "Europe/Zurich",
    "calendars": [
        {
            "second": _only(0),
            "minute": _only(30),
            "hour": _only(7),
            "day_of_month": [_EVERY_DAY],
            "month": [{"start": 1, "end": 12, "step": 1}],
            "day_of_week": [{"start": 1, "end": 5, "step": 1}],
        }
    ],
    "intervals": [],
    "start_at": "2026-01-01T00:00:00Z",
    "end_at": "2035-12-31T23:59:59Z",
}
CONFIGURATION: Final[dict[str, Any]] = {
    "name": "Daily review",
    "calendar": CALENDAR,
    "policy": {"overlap": "skip", "catchup_window_seconds": 3600, "pause_on_failure": True},
    "run": {
        "agent_version": "inbox-review@3",
        "input": "inbox/manifest",
        "output_target": "reviews",
        "grants": ["mail:read"],
        "budget_id": None,
        "usage_class": "test_simulation",
    },
}
REFERENCE: Final = {"schedule_id": SCHEDULE, "revision": 1, "digest": DIGEST}
ENVIRONMENT: Final = {
    "org_id": "acme",
    "environment_id": "production",
    "mode": "simulation",
    "authority_epoch": 1,
    "reset_generation": 1,
    "runtime_profile": "embedded",
    "execution_ready": True,
}
_EXPECTED: Final = {"expected_environment_epoch": 1, "expected_reset_generation": 1}
PUBLISH: Final = {"schedule_id": SCHEDULE, "expected_revision": 0, **_EXPECTED, "configuration": CONFIGURATION}
RETIRE: Final = {"version": REFERENCE, "expected_generation": 1, **_EXPECTED}
SET_ACTIVATION: Final = {"version": REFERENCE, "expected_generation": 0, **_EXPECTED, "enabled": True}
TRIGGER: Final = RETIRE
OUTCOME: Final = {
    "outcome": "succeeded",
    "summary": "12 messages reviewed.",
    "outputs": ["reviews/3f1f0c5e/report.md"],
    "cost": 125,
}
OUTCOME_TAKEN: Final = {"run_id": RUN, "disposition": "succeeded", "reason": None, "replayed": False}
CANCEL: Final = _EXPECTED
PREVIEW_REQUEST: Final = {"spec": CALENDAR, "from": "2027-03-26T00:00:00Z", "limit": 2}

_LISTED: Final[dict[str, Any]] = {
    "schedule_id": SCHEDULE,
    "resource_id": RESOURCE,
    "reference": REFERENCE,
    "head": REFERENCE,
    "retired": False,
    "published_at": "2027-01-31T09:00:00Z",
    "published_by": "ada@acme.example",
    "activation": {
        "version": REFERENCE,
        "generation": 1,
        "enabled": True,
        "changed_at": "2027-01-31T09:05:00Z",
        "changed_by": "ada@acme.example",
    },
    "runtime": {"state": "active", "generation": 1, "observed_at": "2027-01-31T09:05:01Z"},
    "execution_ready": True,
}
RECORD: Final = {**_LISTED, "configuration": CONFIGURATION}
DIRECTORY: Final = {
    "schedules": [{"name": "Daily review", **_LISTED, "next_due": "2027-02-01T06:30:00Z"}],
    "next_cursor": None,
}
_RECEIVED: Final = {
    "receipt_id": RECEIPT,
    "environment_epoch": 1,
    "reset_generation": 1,
    "created_at": "2027-01-31T09:00:00Z",
    "warnings": [],
    "replayed": False,
}
OCCURRENCE: Final[dict[str, Any]] = {
    "first_at": "2027-02-01T06:30:00Z",
    "last_at": "2027-02-01T06:30:00Z",
    "count": 1,
    "disposition": "succeeded",
    "reason": None,
    "sentence": None,
    "generation": 1,
    "trigger": "schedule",
    "run_id": RUN,
    "workflow_id": f"run/acme/production/{SCHEDULE}/1/2027-02-01T06:30:00Z",
    "agent_version": "inbox-review@3",
    "begun_at": "2027-02-01T06:30:00.024000Z",
    "lateness_ms": 24,
    "ended_at": "2027-02-01T06:31:10Z",
    "summary": "12 messages reviewed.",
    "outputs": ["reviews/3f1f0c5e/report.md"],
    "cost": 0,
    "evidence": None,
}
_CURSOR: Final = "MjAyNy0wMi0wMVQwNjozMDowMFp8NDI"
ARCHIVED: Final = {
    "archive_id": "0b9c2f66-3d0a-4c36-9a43-6f0f3f1c7d52",
    "before": "2026-08-01T00:00:00Z",
    "archived_at": "2027-01-28T03:00:00Z",
}
OCCURRENCES: Final = {"occurrences": [OCCURRENCE], "next_cursor": _CURSOR, "archived": [ARCHIVED]}
RUN_DOCUMENT: Final = {"schedule_id": SCHEDULE, **OCCURRENCE}
ENVIRONMENT_OCCURRENCES: Final = {"occurrences": [RUN_DOCUMENT], "next_cursor": None, "archived": []}
RUNS: Final = {"runs": [RUN_DOCUMENT], "next_cursor": None, "archived": []}
EVENTS: Final = {
    "events": [
        {
            "id": 1,
            "at": "2027-01-31T09:00:00Z",
            "kind": "published",
            "actor": "ada@acme.example",
            "generation": None,
            "revision": 1,
            "details": {"digest": DIGEST, "receipt_id": RECEIPT},
        }
    ],
    "next_cursor": None,
    "archived": [],
}
PREVIEW: Final = {
    "occurrences": ["2027-03-26T06:30:00Z", "2027-03-29T05:30:00Z"],
    "count": 2,
    "notes": [],
    "warnings": [],
    "truncated": False,
    "timezone": "Europe/Zurich",
    "tzdata": "2026.1",
    "runs_per_30_days": 20,
    "contract": None,
    "translation": {"calendar": CALENDAR, "sentence": "Equals the canonical calendar shown."},
}

STOPPED: Final = {
    "everywhere": False,
    "since": "2027-01-31T09:00:00Z",
    "by": "ada@acme.example",
    "because": "The mailboxes are being moved.",
}
STOP: Final = {"everywhere": False, "because": "The mailboxes are being moved."}
LIFT: Final = {"everywhere": False}
CHANGE_ENVIRONMENT: Final = {"because": "The data of the environment was restored.", **_EXPECTED}
COLLECT: Final = {"wallet": "acme-eur", "amount": 5_000}
APPROVE: Final = {"version": REFERENCE, "expires_at": "2027-06-30T00:00:00Z"}
_WALLET: Final = {"unpaid_limit": 100_000, "currency": "EUR"}
_BUDGET: Final = {
    "usage_classes": ["live"],
    "pays_by": "wallet",
    "limit": 250_000,
    "currency": "EUR",
    "wallet": "acme-eur",
}
AUTHORITY_FILE: Final[dict[str, Any]] = {
    "organization": "acme",
    "environment": "production",
    "mode": "live",
    "runtime_profile": "managed",
    "live_needs_approval": True,
    "people": {"ada@acme.example": {}},
    "agents": {"inbox-review@3": {"max_cost": 40, "max_run_seconds": 600}},
    "inputs": {"inbox/manifest": {"readers": ["*"], "consent": {"by": "ada@acme.example"}}},
    "outputs": {"reviews": {}},
    "grants": {"mail:read": {"agents": ["inbox-review@3"], "expires_at": "2027-12-31T00:00:00Z"}},
    "budgets": {"reviews": _BUDGET},
    "wallets": {"acme-eur": _WALLET},
}
CHANGES: Final = [
    {"action": "created", "kind": "person", "name": "ada@acme.example", "from": None, "to": {}},
    {"action": "changed", "kind": "wallet", "name": "acme-eur", "from": {**_WALLET, "unpaid_limit": 0}, "to": _WALLET},
    {"action": "withdrawn", "kind": "output", "name": "drafts", "from": {}, "to": None},
]
_ACT: Final = {
    "id": 7,
    "at": "2027-01-31T09:00:00Z",
    "kind": "stopped",
    "actor": "ada@acme.example",
    "everywhere": False,
    "details": {"because": "The mailboxes are being moved.", "receipt_id": RECEIPT},
}
ACTS: Final = {"events": [_ACT], "next_cursor": None, "archived": []}
AUTHORITY: Final[dict[str, Any]] = {
    "org_id": "acme",
    "environment_id": "production",
    "mode": "live",
    "runtime_profile": "managed",
    "development": False,
    "live_needs_approval": True,
    "authority_epoch": 1,
    "reset_generation": 1,
    "stops": [STOPPED],
    "declared": {
        "people": {"ada@acme.example": {"version": 3, "facts": {}}},
        "wallets": {"acme-eur": {"version": 4, "facts": _WALLET}},
        "budgets": {"reviews": {"version": 4, "facts": _BUDGET}},
    },
    "budgets": {"reviews": {"currency": "EUR", "limit": 250_000, "reserved": 40, "spent": 1_250, "room": 248_710}},
    "wallets": {"acme-eur": {"currency": "EUR", "unpaid_limit": 100_000, "owed": 1_250}},
    "acts": [_ACT],
}


def receipt(operation: str, **parts: object) -> dict[str, Any]:
    """A receipt of an operation."""
    return {**_RECEIVED, "operation": operation, **parts}
