"""Examples of what is sent and answered about notifications, for the OpenAPI page."""

from typing import Any, Final

from horarium.api.examples import RECEIPT, RUN, SCHEDULE

_ADDRESS: Final = {
    "url": "https://pager.acme.example/horarium",
    "secret": "HORARIUM_SECRET_PAGER",
}
ADD: Final = {"name": "pager", **_ADDRESS, "on": ["failed", "missed", "overdue", "recovered"]}
ENDPOINT: Final = {**ADD, "private": False, "schedule_id": None}
HEARTBEAT: Final = {
    "schedule_id": SCHEDULE,
    "url": "https://beats.acme.example/0b1c",
    "secret": "HORARIUM_SECRET_BEATS",
}
HEARTBEAT_ENDPOINT: Final = {
    "name": f"heartbeat:{SCHEDULE}",
    **HEARTBEAT,
    "private": False,
    "on": ["heartbeat"],
}
NAME: Final = {"name": "pager"}
AGAIN: Final = {"id": 42}
MESSAGE_ID: Final = "0b9f2a4e-6f7e-4a2e-9d3b-0a1c2d3e4f50"
_LIFE: Final[dict[str, Any]] = {
    "declared_at": "2027-01-31T09:00:00Z",
    "declared_by": "ada@acme.example",
    "stopped_at": None,
    "stopped_because": None,
    "delivered_at": "2027-02-01T06:30:08.250000Z",
    "waiting": 0,
    "dead": 0,
    "last_error": None,
    "silent_since": None,
}
ENDPOINTS: Final = {
    "endpoints": [
        {**HEARTBEAT_ENDPOINT, **_LIFE},
        {**ENDPOINT, **_LIFE, "dead": 1, "last_error": "It answered with status 500."},
    ]
}
_MESSAGE: Final = {
    "type": "failed",
    "timestamp": "2027-02-01T06:30:08.120000Z",
    "data": {
        "org_id": "acme",
        "environment_id": "production",
        "schedule_id": SCHEDULE,
        "name": "Daily review",
        "generation": 1,
        "trigger": "schedule",
        "nominal_time": "2027-02-01T06:30:00Z",
        "last_nominal_time": "2027-02-01T06:30:00Z",
        "count": 1,
        "disposition": "failed",
        "reason": "agent_reported_failure",
        "run_id": RUN,
    },
}
DEAD: Final = {
    "dead": [
        {
            "id": 42,
            "endpoint": "pager",
            "message_id": MESSAGE_ID,
            "message": _MESSAGE,
            "attempts": 35,
            "given_up_at": "2027-02-02T06:31:00Z",
            "last_status": 500,
            "last_error": "It answered with status 500.",
        }
    ],
    "next_cursor": None,
}


def receipt(operation: str, **parts: object) -> dict[str, Any]:
    """A receipt of an operation."""
    return {
        "receipt_id": RECEIPT,
        "operation": operation,
        **parts,
        "environment_epoch": 1,
        "reset_generation": 1,
        "created_at": "2027-01-31T09:00:00Z",
        "warnings": [],
        "replayed": False,
    }
