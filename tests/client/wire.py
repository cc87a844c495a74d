"""The API's answers as documents, and a transport that remembers what it was sent."""

from collections.abc import Callable
from typing import Any

import httpx

import horarium

SCOPE = {"org_id": "acme", "environment_id": "test"}
ROOT = "/v1/organizations/acme/environments/test"
SCHEDULE = "7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11"
RESOURCE = "0d1f6f5e-4d68-4c6e-8df0-7f6c2c9d3b11"
REFERENCE = {"schedule_id": SCHEDULE, "revision": 2, "digest": "sha256:" + "0" * 64}
PRECONDITIONS = {"expected_environment_epoch": 1, "expected_reset_generation": 1}
PUBLICATION = {"schedule_id": SCHEDULE, "expected_revision": 0, **PRECONDITIONS, "configuration": {"name": "Review"}}
CHANGE = {"version": REFERENCE, "expected_generation": 0, **PRECONDITIONS}
ENVIRONMENT = {
    **SCOPE,
    "mode": "simulation",
    "authority_epoch": 1,
    "reset_generation": 2,
    "runtime_profile": "embedded",
    "execution_ready": True,
}
RECEIPT = {
    "receipt_id": "b9d3f0de-29a0-43a2-92ad-7f3f2f3f1a00",
    "operation": "publish",
    "schedule_id": SCHEDULE,
    "resource_id": RESOURCE,
    "reference": REFERENCE,
    "environment_epoch": 1,
    "reset_generation": 2,
    "created_at": "2026-11-30T12:00:00.25Z",
    "warnings": ["It will never run."],
    "replayed": False,
}
STANDING = {
    "schedule_id": SCHEDULE,
    "resource_id": RESOURCE,
    "reference": REFERENCE,
    "head": {**REFERENCE, "revision": 3},
    "retired": False,
    "published_at": "2026-11-30T12:00:00Z",
    "published_by": "ada",
    "activation": {
        "version": REFERENCE,
        "generation": 4,
        "enabled": True,
        "changed_at": "2026-11-30T12:30:00Z",
        "changed_by": "grace",
    },
    "runtime": {"state": "active", "generation": 4, "observed_at": "2026-11-30T12:31:00Z"},
    "execution_ready": True,
}
RECORD = {**STANDING, "configuration": {"name": "Review"}}
ENTRY = {"name": "Review", **STANDING, "next_due": "2026-12-01T06:30:00Z"}
OCCURRENCE = {
    "first_at": "2026-11-30T06:30:00Z",
    "last_at": "2026-11-30T06:30:00Z",
    "count": 1,
    "disposition": "skipped",
    "reason": "overlap",
    "sentence": "Other runs of this schedule held every slot when its turn came.",
    "generation": 4,
    "trigger": "schedule",
    "run_id": None,
    "lateness_ms": None,
}
EVENT = {
    "id": 7,
    "at": "2026-11-30T12:30:00Z",
    "kind": "enabled",
    "actor": "grace",
    "generation": 4,
    "revision": 2,
    "details": {"why": "asked"},
}
PREVIEW = {
    "occurrences": ["2026-12-01T06:30:00Z"],
    "count": 1,
    "notes": [],
    "warnings": [],
    "truncated": False,
    "timezone": "Europe/Zurich",
    "tzdata": "2026a",
    "runs_per_30_days": 22,
}


class Server:
    """Answers every request alike, or as a function says, and remembers all of them."""

    def __init__(self, answer: Any = None, *, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.requests: list[httpx.Request] = []
        self._answer, self._status, self._headers = answer, status, headers

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if callable(self._answer):
            return self._answer(request)
        return httpx.Response(self._status, json=self._answer, headers=self._headers)

    @property
    def only(self) -> httpx.Request:
        (request,) = self.requests
        return request

    def client(self, token: Any = "secret", **options: Any) -> horarium.Client:
        return horarium.Client("http://api.test", token=token, transport=httpx.MockTransport(self), **options)


def raising(error: Callable[[], Exception]) -> Callable[[httpx.Request], httpx.Response]:
    def answer(_request: httpx.Request) -> httpx.Response:
        raise error()

    return answer
