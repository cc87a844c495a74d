"""A small platform with an authority of its own, as its contract says: declarations and money in memory, behind HTTP.

It is what the HTTP adapter is tested against, and an example of what a platform has to do.
"""

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import uvicorn

from horarium.authority.declared import KINDS, Approval, Budget, Declared, Grant, Input, Output, Person, Wallet
from horarium.authority.facts import InputFacts
from horarium.authority.signing import Keys, verify
from horarium.errors import Forbidden
from starter.ports import listen

KEYS = Keys((b"shared by the platform and this test",))

Answer = tuple[int, bytes]
Fault = Callable[[str], Awaitable[Answer | None]]


@dataclass
class Held:
    """What a run holds of a budget; closed ones are kept, so that nothing is reserved for them again."""

    budget: str | None
    amount: int
    is_open: bool


@dataclass
class Platform:
    """Everything of one environment. `fault` may answer in its place, or hang, or raise; None lets it answer itself."""

    keys: Keys = KEYS
    declared: dict[tuple[str, str], Declared] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)
    spent: dict[str, int] = field(default_factory=dict)
    owed: dict[str, int] = field(default_factory=dict)
    held: dict[str, Held] = field(default_factory=dict)
    closings: list[tuple[str, int | None]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    fault: Fault | None = None

    def declare(self, kind: str, name: str, **facts: Any) -> None:
        self.declared[kind, name] = KINDS[kind].model_validate(facts)

    def withdraw(self, kind: str, name: str) -> None:
        del self.declared[kind, name]

    def holds(self) -> dict[str, int]:
        """What is reserved, by run."""
        return {run_id: each.amount for run_id, each in self.held.items() if each.is_open}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """The ASGI application."""
        assert scope["type"] == "http"
        body = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        try:
            verify(headers, body, self.keys, now=datetime.now(UTC))
        except Forbidden:
            status, answer = 401, b"{}"
        else:
            faulty = None if self.fault is None else await self.fault(scope["path"])
            status, answer = faulty or self.answer(scope["path"], json.loads(body))
        kind = b"application/octet-stream" if scope["path"].endswith("/inputs/read") else b"application/json"
        told = [(b"content-type", kind), (b"location", b"/elsewhere")]
        await send({"type": "http.response.start", "status": status, "headers": told})
        await send({"type": "http.response.body", "body": answer})

    def answer(self, path: str, message: dict[str, Any]) -> Answer:
        match path.removeprefix("/horarium/v1/").split("/"):
            case ["questions"]:
                self.asked.append(message)
                return 200, json.dumps(self._facts(message)).encode()
            case ["inputs", "read"]:
                found = self._input(message["input"], message["person"])
                is_there = found is not None and found.readable
                return (200, self.contents[message["input"]]) if is_there else (404, b"{}")
            case ["reservations", run_id, "close"] if run_id == message["run_id"]:
                self._close(run_id, message["spent"])
                return 200, json.dumps({"run_id": run_id}).encode()
        return 404, b"{}"

    def _facts(self, message: dict[str, Any]) -> dict[str, Any]:
        request, person = message["request"], message["person"]
        grants = {name: grant for name in request["grants"] if (grant := self._find("grant", name, Grant)) is not None}
        budget = self._find("budget", request["budget_id"], Budget)
        facts: dict[str, Any] = {
            "member": (found := self._find("person", person, Person)) is not None and not found.left,
            "agent": _json(self.declared.get(("agent", request["agent_version"]))),
            "input": None if (told := self._input(request["input"], person)) is None else told.model_dump(mode="json"),
            "output": _json(self._find("output", request["output_target"], Output)),
            "grants": {name: _json(grant) for name, grant in grants.items()},
            "budget": _json(budget),
            "approval": _json(self._find("approval", message["digest"], Approval)),
            "versions": {f"budget/{request['budget_id']}": "as of now"},
        }
        if budget is not None:
            facts |= self._money(request, budget, message["run_id"])
        return facts

    def _money(self, request: dict[str, Any], budget: Budget, run_id: str | None) -> dict[str, Any]:
        name = request["budget_id"]
        taken = sum(
            each.amount for run, each in self.held.items() if each.is_open and each.budget == name and run != run_id
        )
        facts: dict[str, Any] = {"room": budget.limit - self.spent.get(name, 0) - taken}
        if budget.wallet is not None:
            facts["wallet"] = _json(self._find("wallet", budget.wallet, Wallet))
            facts["owed"] = self.owed.get(budget.wallet, 0)
        agent: Any = self.declared.get(("agent", request["agent_version"]))
        if run_id is None or agent is None:
            return facts
        if run_id not in self.held and facts["room"] >= agent.max_cost:
            self.held[run_id] = Held(name, agent.max_cost, is_open=True)
        if run_id in self.held and self.held[run_id].is_open:
            facts["reserved"] = self.held[run_id].amount
        return facts

    def _close(self, run_id: str, spent: int | None) -> None:
        self.closings.append((run_id, spent))
        held = self.held.setdefault(run_id, Held(None, 0, is_open=False))
        if not held.is_open:
            return
        held.is_open = False
        assert held.budget is not None
        budget = self._find("budget", held.budget, Budget)
        self.spent[held.budget] = self.spent.get(held.budget, 0) + (spent or 0)
        if budget is not None and budget.wallet is not None:
            self.owed[budget.wallet] = self.owed.get(budget.wallet, 0) + (spent or 0)

    def _input(self, name: str, person: str | None) -> InputFacts | None:
        declared = self._find("input", name, Input)
        if declared is None:
            return None
        consent = declared.consent
        return InputFacts(
            readable=name in self.contents and (person is None or declared.is_readable_by(person)),
            expires_at=declared.expires_at,
            consent_expires_at=None if consent is None else consent.expires_at,
            consent_withdrawn=consent is not None and consent.withdrawn,
        )

    def _find(self, kind: str, name: str | None, model: type[Any]) -> Any:
        found = None if name is None else self.declared.get((kind, name))
        assert found is None or isinstance(found, model)
        return found


def _json(declared: Declared | None) -> Any:
    return None if declared is None else declared.model_dump(mode="json", exclude_defaults=True)


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve an application on a free port of this machine, in a thread of its own; yields its address."""
    listener = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/horarium"
    finally:
        server.should_exit = True
        thread.join()
