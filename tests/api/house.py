"""The API in this process, over a real catalog, with callers whose tokens are signed by keys of the test."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from fastapi import FastAPI
from sqlalchemy import update

from horarium.api.app import create_app
from horarium.api.limits import Limits, Rate
from horarium.api.tokens import FixedKeys, TokenVerifier, VerificationKey
from horarium.authority.local import LocalAuthority
from horarium.catalog import Catalog, presence
from horarium.catalog.environments import ensure_environment
from horarium.catalog.tables import workers
from horarium.control.principals import OPERATOR_SCOPE, WRITE_SCOPE
from horarium.errors import Unavailable
from horarium.schedule.identity import ActivationKey, RunKey, Scope
from tests.control.desk import Shelf, every, furnish, open_catalog, open_undurable

BASE = "/v1/organizations/acme/environments/test"
OTHER_SCOPE = Scope(org_id="globex", environment_id="test")
KEY = Ed25519PrivateKey.generate()
VERIFICATION = VerificationKey(kid="ours", algorithm="EdDSA", key=KEY.public_key())
UNLIMITED = Rate(per_second=1e9, burst=10**9)
GENEROUS = Limits(per_principal=UNLIMITED, per_peer=UNLIMITED)
EXPECTED = {"expected_environment_epoch": 1, "expected_reset_generation": 1}


def token(**claims: Any) -> str:
    """A token that is valid for an hour: a person's of acme, with all that schedules need, unless told otherwise."""
    whole = {
        "sub": "ada",
        "kind": "human",
        "org": "acme",
        "scope": WRITE_SCOPE,
        "exp": int(time.time()) + 3_600,
        **claims,
    }
    return jwt.encode(
        {name: value for name, value in whole.items() if value is not None},
        KEY,
        algorithm="EdDSA",
        headers={"kid": "ours"},
    )


BOTH_SCOPES = f"{WRITE_SCOPE} {OPERATOR_SCOPE}"
HUMAN = token()
PROGRAM = token(sub="ci", kind="key")
OPERATOR = token(sub="olga", scope=BOTH_SCOPES)
STRANGER = token(sub="eve", org="globex", scope=BOTH_SCOPES)


@dataclass(slots=True)
class Recorder:
    """Hands that write down what they are asked, or do not reach Temporal at all."""

    reachable: bool = True
    knows_run: bool = True
    calls: list[tuple[str, Any]] = field(default_factory=list)

    async def start_run(self, key: RunKey) -> None:
        self._ask("start_run", key)

    async def nudge(self, key: ActivationKey, signal: str) -> None:
        self._ask("nudge", (key.generation, signal))

    async def tell_run(self, key: RunKey, signal: str) -> None:
        self._ask("tell_run", (key.run_id, signal))

    async def cancel_run(self, key: RunKey) -> bool:
        self._ask("cancel_run", key)
        return self.knows_run

    def _ask(self, what: str, about: Any) -> None:
        if not self.reachable:
            raise Unavailable("temporal_unavailable", "Temporal does not answer.")
        self.calls.append((what, about))


def make_catalog(folder: Path) -> Catalog:
    """A catalog with an environment of acme's and one of globex's, both workers and an agent."""
    return _with_others(open_catalog(folder))


def furnished_catalog(url: str) -> Catalog:
    """The same in a migrated catalog with nothing in it."""
    catalog = open_undurable(url)
    furnish(catalog)
    return _with_others(catalog)


def _with_others(catalog: Catalog) -> Catalog:
    with catalog.writing() as connection:
        ensure_environment(connection, OTHER_SCOPE, mode="simulation", runtime_profile="embedded")
    let_workers_beat(catalog)
    return catalog


class Api:
    """An application and callers of it. Each call is one request, answered before the next line of the test."""

    def __init__(
        self, catalog: Catalog, *, limits: Limits = GENEROUS, hands: Recorder | None = None, **more: Any
    ) -> None:
        self.catalog = catalog
        self.content = Shelf()
        self.hands = Recorder() if hands is None else hands
        self.app: FastAPI = create_app(
            catalog,
            LocalAuthority(self.content),
            tokens=more.pop("tokens", None) or TokenVerifier(FixedKeys((VERIFICATION,))),
            hands=self.hands,
            limits=limits,
            **more,
        )
        self._runner = asyncio.Runner()

    def close(self) -> None:
        self._runner.run(self.app.state.service.close())
        self._runner.close()

    def run(self, work: Any) -> Any:
        """Run a coroutine in the application's loop."""
        return self._runner.run(work)

    @asynccontextmanager
    async def client(self, authorization: str | None = HUMAN, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
        headers = {} if authorization is None else {"Authorization": f"Bearer {authorization}"}
        let_workers_beat(self.catalog)
        transport = httpx.ASGITransport(self.app, **options)
        async with httpx.AsyncClient(transport=transport, base_url="http://api.test", headers=headers) as client:
            yield client

    def ask(
        self, method: str, path: str, *, by: str | None = HUMAN, key: str | None = None, **parts: Any
    ) -> httpx.Response:
        headers = dict(parts.pop("headers", {}))
        if key is not None:
            headers["Idempotency-Key"] = key

        async def send() -> httpx.Response:
            async with self.client(by) as client:
                answer = await client.request(method, _address(path), headers=headers, **parts)
            errands = self.app.state.service.errands
            if errands:
                await asyncio.wait(errands)
            return answer

        return self.run(send())

    def get(self, path: str, **parts: Any) -> httpx.Response:
        return self.ask("GET", path, **parts)

    def post(self, path: str, body: Any = None, **parts: Any) -> httpx.Response:
        if body is not None:
            parts["json"] = body
        return self.ask("POST", path, **parts)

    def publish(
        self, schedule_id: str | None = None, *, revision: int = 0, by: str = HUMAN, **more: Any
    ) -> dict[str, Any]:
        """Publish, under a key of its own; the receipt."""
        answer = self.post("/schedules", publication(schedule_id, revision=revision, **more), key=new(), by=by)
        assert answer.status_code == 201, answer.text
        return answer.json()

    def change(self, receipt: dict[str, Any], generation: int, what: str, **more: Any) -> httpx.Response:
        """Enable, pause, retire or trigger what a receipt is of."""
        path = {"enable": "activation", "pause": "activation", "retire": "retirement", "trigger": "runs"}[what]
        body = review(receipt, generation)
        if path == "activation":
            body["enabled"] = what == "enable"
        key, by = more.pop("key", None) or new(), more.pop("by", HUMAN)
        return self.post(f"/schedules/{receipt['schedule_id']}/{path}", {**body, **more}, key=key, by=by)


def _address(path: str) -> str:
    """Paths are those below acme's environment; one behind a `!` is meant as it stands."""
    return path[1:] if path.startswith("!") else BASE + path


def new() -> str:
    """A UUID, for a schedule or a key."""
    return str(uuid.uuid4())


def publication(
    schedule_id: str | None = None, *, revision: int = 0, configuration: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """The body of a publication."""
    return {
        "schedule_id": schedule_id or new(),
        "expected_revision": revision,
        **EXPECTED,
        "configuration": every(3600) if configuration is None else configuration,
        **more,
    }


def review(receipt: dict[str, Any], generation: int) -> dict[str, Any]:
    """What a person reviewed before a change of activation."""
    return {"version": receipt["reference"], "expected_generation": generation, **EXPECTED}


def let_workers_beat(catalog: Catalog) -> None:
    """Those that are there say so, as they do every few seconds."""
    with suppress(Unavailable), catalog.writing() as connection:
        there = workers.c.role.in_(presence.ROLES)
        connection.execute(update(workers).where(there).values(seen_at=datetime.now(UTC)))


def set_workers(catalog: Catalog, *, present: bool) -> None:
    """Let both runtime workers be there, or not."""
    with catalog.writing() as connection:
        for role in presence.ROLES:
            presence.leave(connection, instance=role)
            if present:
                presence.beat(connection, instance=role, role=role, tzdata="2026.1", now=datetime.now(UTC))
