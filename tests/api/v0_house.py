"""Scheduler v0 over the API: one who asks in its words, and what an operator declares so that there is something to run."""

import copy
from dataclasses import dataclass
from typing import Any

import httpx

from horarium.catalog import Catalog
from horarium.schedule.identity import Scope
from tests.api.house import HUMAN, Api, new
from tests.control.desk import AGENT, SCOPE
from tests.control.operators import Operator
from tests.schedule.test_v0 import CRON, ONE_SHOT, RUN

BOUND = {**RUN, "agent_version": AGENT}
NOBODY = {**CRON, "target": {"workspace_id": "ws-001", "agent_id": "nobody"}}
"""A schedule for a target without a binding."""
FAR_OFF = {**ONE_SHOT, "spec": {"run_at": "2099-03-25T09:00:00Z"}}
"""A one-shot whose instant is to come."""


def bind(catalog: Catalog, scope: Scope = SCOPE, **run: Any) -> None:
    """Declare what runs for the two targets of the contract's examples."""
    for target in (ONE_SHOT["target"], CRON["target"]):
        name = f"v0:{target['workspace_id']}/{target['agent_id']}"
        Operator(catalog, scope).declare("binding", name, run={**BOUND, **run})


@dataclass(frozen=True, slots=True, kw_only=True)
class V0:
    """A caller in one environment of its organization. Mutations bring a key of their own where none is given."""

    api: Api
    by: str | None = HUMAN
    environment: str = "test"

    def create(self, document: Any, *, key: str | None = None) -> httpx.Response:
        return self.ask("POST", "", json=copy.deepcopy(document), key=key or new())

    def created(self, document: Any = CRON) -> str:
        """Create a schedule; its id."""
        answer = self.create(document)
        assert answer.status_code == 201, answer.text
        found: str = answer.json()["schedule_id"]
        return found

    def update(self, schedule_id: str, document: Any, *, key: str | None = None) -> httpx.Response:
        return self.ask("PUT", f"/{schedule_id}", json=copy.deepcopy(document), key=key or new())

    def move(self, schedule_id: str, what: str, *, key: str | None = None, **parts: Any) -> httpx.Response:
        """Pause, resume or disable."""
        return self.ask("POST", f"/{schedule_id}/{what}", key=key or new(), **parts)

    def get(self, schedule_id: str) -> dict[str, Any]:
        answer = self.ask("GET", f"/{schedule_id}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def told(self, schedule_id: str) -> list[str]:
        """The events of the contract, in their order."""
        answer = self.ask("GET", f"/{schedule_id}/events?limit=1000", also=True)
        return [each["kind"] for each in answer.json()["events"] if each["kind"].isupper()]

    def fates(self, schedule_id: str) -> list[tuple[str, str | None, int]]:
        """What became of its instants, by the ledger that every schedule has."""
        page = self.api.get(
            f"!/v1/organizations/acme/environments/{self.environment}/schedules/{schedule_id}/occurrences"
        )
        return [(each["disposition"], each["reason"], each["count"]) for each in page.json()["occurrences"]]

    def ask(self, method: str, path: str, *, also: bool = False, **parts: Any) -> httpx.Response:
        """One request below `/v0/schedules`; with `also`, the path has a query already."""
        query = f"{'&' if also else '?'}environment_id={self.environment}"
        return self.api.ask(method, f"!/v0/schedules{path}{query}", by=self.by, **parts)


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("code")


def faults(answer: httpx.Response) -> list[tuple[str, str]]:
    """What is wrong with a document, and where."""
    assert code(answer) == (422, "invalid_schedule"), answer.text
    return [(each["pointer"], each["code"]) for each in answer.json()["errors"]]
