"""The examples of cron profiles on the OpenAPI page."""

from typing import Any, Final

from horarium.api import examples
from horarium.api.examples import REFERENCE, RESOURCE, RUN, SCHEDULE

AGENT_CLASS: Final = "Triage"
AGENT_ID: Final = "support-inbox"
THREAD_ID: Final = "010b1c16fad40a4f5d65c966e669cc29f1733c33071846eed7d27270f336c9c6"
CRON: Final = {
    "minute": "30",
    "hour": "7",
    "day_of_month": "*",
    "month": "*",
    "day_of_week": "1-5",
    "timezone": "Europe/Zurich",
}
CONFIG: Final = {"folder": "INBOX", "cron": CRON}
SUBMISSION: Final = {"config": CONFIG, "tenant_id": "acme-support"}
EVENT: Final[dict[str, Any]] = {"event": {}}
_TEXT: Final = {"type": "string"}
CLASS: Final[dict[str, Any]] = {
    "agent_class": AGENT_CLASS,
    "is_conversational": False,
    "is_schedulable": True,
    "start_events": ["CronStartEvent"],
    "agent_versions": [
        {
            "agent_version": "inbox-triage@3",
            "lifecycle": "ready",
            "lease_until": "2027-01-31T09:00:30Z",
            "seen_at": "2027-01-31T09:00:00Z",
            "description": "Sorts what came in.",
        }
    ],
    "form": [
        {"name": "folder", "element": "text", "label": "Folder", "help": "", "required": False, "default": "INBOX"},
        {"name": "cron", "element": "cron", "label": "Schedule", "help": "", "required": False, "default": None},
    ],
    "submission_schema": {"type": "object", "properties": {"folder": _TEXT, "cron": {"type": ["object", "null"]}}},
    "event_schemas": {"CronStartEvent": {"title": "CronStartEvent", "type": "object", "properties": {}}},
    "offline_since": None,
}
CLASSES: Final = {"agent_classes": [CLASS], "next_cursor": None}
PROFILE: Final[dict[str, Any]] = {
    "agent_class": AGENT_CLASS,
    "agent_id": AGENT_ID,
    "tenant_id": "acme-support",
    "config": CONFIG,
    "cron": CRON,
    "fault": None,
    "schedule_id": SCHEDULE,
    "state": "enabled",
    "reason": None,
    "thread_id": THREAD_ID,
    "generation": 1,
    "reference": REFERENCE,
    "next_due": "2027-02-01T06:30:00Z",
    "changed_at": "2027-01-31T09:00:00Z",
    "changed_by": "ada@acme.example",
    "last_outcome": {"disposition": "succeeded", "reason": None, "nominal_time": "2027-01-29T06:30:00Z"},
}
PROFILES: Final = {"profiles": [PROFILE], "next_cursor": None}
THREAD: Final[dict[str, Any]] = {
    "thread_id": THREAD_ID,
    "agent_class": AGENT_CLASS,
    "agent_id": AGENT_ID,
    "tenant_id": "acme-support",
    "created_at": "2027-02-01T06:30:00Z",
    "members": [],
    "events": [
        {
            "id": 1,
            "kind": "run_started",
            "at": "2027-02-01T06:30:00.024000Z",
            "run_id": RUN,
            "data": {
                "start_event": "CronStartEvent",
                "nominal_time": "2027-02-01T06:30:00Z",
                "trigger": "schedule",
                "by": None,
                "tenant_id": "acme-support",
            },
        }
    ],
    "next_cursor": None,
}


def receipt(operation: str, **parts: object) -> dict[str, Any]:
    """A receipt of a change of the profile above."""
    about = {
        "agent_class": AGENT_CLASS,
        "agent_id": AGENT_ID,
        "schedule_id": SCHEDULE,
        "resource_id": RESOURCE,
        "reference": REFERENCE,
        "generation": 1,
        "thread_id": THREAD_ID,
    }
    return examples.receipt(operation, **{**about, **parts})
