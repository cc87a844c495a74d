"""A destination that answers what a test says, byte by byte, and keeps what it was sent."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from activities.gateway import HttpGateway
from horarium.authority.declared import Destination
from horarium.authority.signing import Keys
from horarium.catalog.versions import Version
from horarium.control.dispatching import Claim
from horarium.schedule.canonical import canonical_json
from horarium.schedule.identity import ActivationKey, RunKey, ScheduleKey
from tests.control.desk import every

SECRET = b"a secret of thirty-two bytes, no less"
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
OK = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
Answering = Callable[["Received", asyncio.StreamWriter], Awaitable[None]]


@dataclass(slots=True)
class Received:
    """One request as it came over the wire."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Receiver:
    """What was received, and where to send to."""

    port: int = 0
    connections: int = 0
    requests: list[Received] = field(default_factory=list)

    def url(self, path: str = "/", *, host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"


def says(answer: bytes) -> Answering:
    async def answering(_request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)

    return answering


@asynccontextmanager
async def receiver(answering: Answering, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    """Serve on a free port of this machine."""
    known, serving = Receiver(), set[asyncio.Task[Any]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        known.connections += 1
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        task.add_done_callback(serving.discard)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            line, *rest = head.strip().split("\r\n")
            headers = {name.lower(): value for name, _, value in (each.partition(": ") for each in rest)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            received = Received(line, headers, body)
            known.requests.append(received)
            await answering(received, writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the other side has left, as some tests want
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    known.port = server.sockets[0].getsockname()[1]
    try:
        yield known
    finally:
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


def gateway(**more: Any) -> HttpGateway:
    return HttpGateway("https://horarium.test/", keys_of=lambda _: Keys((SECRET,)), now=lambda: NOON, **more)


def destination(url: str, *, private: bool = True, **more: Any) -> Destination:
    return Destination.model_validate({"url": url, "secret": "HORARIUM_SECRET_TEST", "private": private, **more})


def claim(to: Destination, **more: Any) -> Claim:
    """A run as it is claimed. It costs a hundredth of what a catalog would."""
    schedule = ScheduleKey(org_id="acme", environment_id="test", schedule_id="7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11")
    document = every(60)
    document["run"] |= {"agent_version": "lines@1", "grants": ["mail:read"]}
    version = Version(
        revision=2,
        resource_id="r",
        digest="sha256:" + "4f" * 32,
        text=canonical_json(document).decode(),
        published_at=NOON,
        published_by="ada",
    )
    made = Claim(
        key=RunKey(activation=ActivationKey(schedule=schedule, generation=1), nominal_time=NOON),
        destination_name="lines",
        destination=to,
        version=version,
        decided_at=NOON + timedelta(milliseconds=3),
        previous_success=None,
        sent_at=NOON + timedelta(milliseconds=5),
        deadline=NOON + timedelta(seconds=60),
        until=NOON + timedelta(seconds=300),
        first=True,
        idempotent=False,
        token="the token of the run",
    )
    return replace(made, **more)
