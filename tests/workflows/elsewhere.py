"""A house on a real server with agents behind the gateway http: their destination, and the API that they report to."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from temporalio.client import Client, WorkflowHandle

from activities.clock import WorkerClock
from activities.gateway import HttpGateway
from activities.pace import Pace
from examples.http_agent import messages
from horarium.api.app import create_app
from horarium.api.limits import Limits, Rate
from horarium.api.tokens import FixedKeys, TokenVerifier
from horarium.authority.local import LocalAuthority
from horarium.catalog import ledger
from horarium.catalog.declarations import declare
from horarium.schedule.identity import ActivationKey, RunKey, ScheduleKey, schedule_key
from starter.hands import TemporalHands
from starter.ports import free_port
from starter.setup import prepare_temporal
from starter.temporal_server import TemporalServer
from tests.gateway.wire import Answering, Receiver, receiver
from tests.workflows.documents import every
from tests.workflows.house import SCOPE, House, house
from worker.plugin import horarium_plugin

SECRET = "a-secret-of-thirty-two-bytes-no-less"
PACE = Pace(lead=timedelta(milliseconds=500), spread=timedelta(0), look_after=timedelta(seconds=2))
GENEROUS = Limits(per_peer=Rate(per_second=1e9, burst=10**9))


@dataclass(kw_only=True)
class Elsewhere:
    """What a test holds: the house, the API's address, and what the destination was sent."""

    house: House
    api: str
    there: Receiver
    keys: list[ActivationKey] = field(default_factory=list)

    async def declared(self, agent: str, **facts: Any) -> None:
        """An agent of that name at the destination; `by`, `url` and `private` are the destination's, the rest its own."""
        to = {
            "url": facts.pop("url", self.there.url()),
            "secret": "HORARIUM_SECRET_LINES",
            "private": facts.pop("private", True),
            "outcome": facts.pop("by", "callback"),
        }
        name = f"at-{agent.partition('@')[0]}"
        whole = {"max_cost": 0, "max_run_seconds": 20, "gateway": "http", "destination": name, **facts}
        for kind, named, said in (("destination", name, to), ("agent", agent, whole)):
            await self.house.catalog.write(declare, SCOPE, kind, named, said, version=1, everywhere=False)

    async def due(self, agent: str = "posted@1", *, window: int = 60) -> tuple[ScheduleKey, RunKey]:
        """A schedule that is due in about two seconds, and that run. However slowly it is enabled, that answers for the run."""
        now = datetime.now(UTC)
        soon = now.replace(microsecond=0) + timedelta(seconds=2)
        document = every(3_600, offset=int(soon.timestamp()) % 3_600, window=window)
        document["run"]["agent_version"] = agent
        key = await self.house.published(document, schedule_key(SCOPE, str(uuid.uuid4())))
        changed = await self.house.enabled(key, now=now)
        self.keys.append(changed.key)
        return key, RunKey(activation=changed.key, nominal_time=soon)

    def workflow(self, run: RunKey) -> WorkflowHandle[Any, Any]:
        return self.house.workflow(run)

    def row(self, run: RunKey) -> ledger.Run:
        (found,) = [each for each in self.house.runs(run.activation.schedule) if each.run_id == run.run_id]
        return found

    def told(self, run: RunKey) -> tuple[str, str | None]:
        (found,) = [each for each in self.house.entries(run.activation.schedule) if each.first_at == run.nominal_time]
        return str(found.disposition), found.reason

    async def ended(self, run: RunKey, *, within: float = 90) -> tuple[str, str | None]:
        """How the run's workflow says that it ended, once it has; the ledger says the same."""
        await self.house.until(lambda: self.house.entries(run.activation.schedule))
        async with asyncio.timeout(within):
            while True:
                with suppress(Exception):
                    result = await self.workflow(run).result()
                    break
                await asyncio.sleep(0.1)
        assert self.told(run) == (result["disposition"], result["reason"])
        return self.told(run)

    async def report(self, run_id: str, **said: Any) -> httpx.Response:
        body = json.dumps({"outcome": "succeeded", **said}).encode()
        headers = {
            "Content-Type": "application/json",
            **messages.headers(body, SECRET.encode(), message_id=run_id),
        }
        async with httpx.AsyncClient(trust_env=False, verify=False) as client:  # loading certificates takes long
            path = f"/v1/organizations/acme/environments/test/runs/{run_id}/outcome"
            return await client.post(self.api + path, content=body, headers=headers)

    async def paused(self) -> None:
        for key in self.keys:
            with suppress(Exception):
                await self.house.paused(key.schedule)
            await self.house.workflow(key).result()


@asynccontextmanager
async def elsewhere(
    server: TemporalServer,
    folder: Path,
    answering: Answering,
    *,
    hands: bool = True,
    gateway: Callable[[str], HttpGateway] = HttpGateway,
) -> AsyncIterator[Elsewhere]:
    """Set everything up; at the end, nothing of it may be open, and the ledger is proven.

    Without `hands`, the API reaches no Temporal, and nobody is nudged.
    """
    client = await Client.connect(server.address, namespace=server.namespace, plugins=[horarium_plugin()])
    await prepare_temporal(client)
    port = free_port()
    api = f"http://127.0.0.1:{port}"

    async def connecting() -> Client:
        return client

    async with (
        receiver(answering) as there,
        house(client, folder, server_time=_now, clock=WorkerClock(), pace=PACE, gateway=gateway(api)) as built,
        TemporalHands(connecting=connecting) as reaching,
    ):
        app = create_app(
            built.catalog,
            LocalAuthority(built.content),
            tokens=TokenVerifier(FixedKeys(())),
            hands=reaching if hands else None,
            limits=GENEROUS,
        )
        serving = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None, ws="none", lifespan="off"))
        serving.capture_signals = _no_signals  # type: ignore[method-assign]
        task = asyncio.create_task(serving.serve())
        try:
            made = Elsewhere(house=built, api=api, there=there)
            yield made
            await made.paused()
        finally:
            serving.should_exit = True
            await task


async def _now() -> datetime:
    return datetime.now(UTC)


def _no_signals() -> Any:
    from contextlib import nullcontext  # noqa: PLC0415 - used here only

    return nullcontext()
