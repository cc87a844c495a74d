"""The figures of a process: ours, the machine's and the Temporal SDK's; of one without an API at one small address.

`GET /metrics`, as Prometheus asks. It is served by the process's own event loop, so an answer also says that the loop goes on;
what probes a container may ask here.

The SDK tells its figures at a port of its own, which is opened on this machine's loopback alone and read from there: its
figures stay as it makes them, and cost this process nothing between two questions.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Final

import structlog
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig

from horarium.api.metrics import MEDIA_TYPE
from horarium.catalog.tallies import PROCESS
from horarium.errors import Misconfigured
from worker.metrics_settings import HOST, LOOPBACK, PORT, MetricsAddress

ANSWERED_WITHIN: Final = timedelta(seconds=5)
"""From the first byte of a question to the last of its answer; who is slower holds a place."""
SDK_WITHIN: Final = timedelta(seconds=2)
MOST_AT_ONCE: Final = 16
"""Connections. Two Prometheus servers and a probe need three."""
LONGEST_HEAD: Final = 8_192
"""Bytes of a request."""
MOST_OF_THE_SDK: Final = 8 * 1024 * 1024
"""Bytes of the SDK's own figures."""
_ATTEMPTS: Final = 5

_logger = structlog.get_logger(__name__)


class ProcessMetrics:
    """What a process tells of itself, at `address`; nothing without one.

    `runtime` is what its Temporal client has to be made with, so that the SDK counts; None means the SDK's usual one. Where
    Prometheus cannot be served the process does not start: raises `Misconfigured`.
    """

    def __init__(self, address: MetricsAddress | None) -> None:
        self._address = address
        self._sdk = None if address is None else SdkFigures()
        self.runtime: Runtime | None = None if self._sdk is None else self._sdk.runtime

    @asynccontextmanager
    async def served(self) -> AsyncIterator[MetricsAddress | None]:
        """Serve them while the block runs, at the address that it is given."""
        if self._address is None or self._sdk is None:
            yield None
            return
        endpoint = _Endpoint(self._sdk)
        server = await _listen(endpoint, self._address)
        host, port = server.sockets[0].getsockname()[:2]
        _logger.info("metrics_served", host=host, port=port, path="/metrics")
        try:
            yield MetricsAddress(host=host, port=port)
        finally:
            server.close()
            endpoint.close()


class _Endpoint:
    """Answers one question a connection, and holds few of them."""

    def __init__(self, sdk: "SdkFigures") -> None:
        self._sdk = sdk
        self._machine = CollectorRegistry()
        ProcessCollector(registry=self._machine)
        self._open: set[asyncio.Task[None]] = set()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer, and close."""
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            if len(self._open) <= MOST_AT_ONCE:
                async with asyncio.timeout(ANSWERED_WITHIN.total_seconds()):
                    writer.write(await self._answer(reader))
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever asked is gone, slow, or speaks something else
        finally:
            self._open.discard(task)
            writer.close()

    def close(self) -> None:
        """Leave whoever still asks."""
        for task in self._open:
            task.cancel()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method not in {b"GET", b"HEAD"}:
            return _response("405 Method Not Allowed", b"Only GET.\n", b"Allow: GET, HEAD\r\n")
        if path != b"/metrics":
            return _response("404 Not Found", b"Figures are at /metrics.\n")
        page = await self._page()
        return _response("200 OK", page, body=method == b"GET")

    async def _page(self) -> bytes:
        return generate_latest(PROCESS) + generate_latest(self._machine) + await self._sdk.read()


class SdkFigures:
    """What Temporal's SDK counts of the clients that are made with `runtime`.

    It tells at a port of this machine's loopback, which is opened for it. Raises `Misconfigured` where that cannot be.
    """

    def __init__(self) -> None:
        self.runtime, self._port = _counting_runtime()
        self._is_silent = False

    async def read(self) -> bytes:
        """What it tells now, as Prometheus reads it. Empty where it tells nothing: our own figures are worth the more then."""
        try:
            async with asyncio.timeout(SDK_WITHIN.total_seconds()):
                told = await _fetch(self._port)
        except (OSError, TimeoutError, ValueError) as error:
            if not self._is_silent:
                _logger.warning("sdk_tells_no_metrics", error=repr(error))
            self._is_silent = True
            return b""
        self._is_silent = False
        return told if told.endswith(b"\n") else told + b"\n"


def _response(status: str, content: bytes, more: bytes = b"", *, body: bool = True) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {MEDIA_TYPE}\r\nContent-Length: {len(content)}\r\n"
        "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n"
    )
    return head.encode() + more + b"\r\n" + (content if body else b"")


async def _fetch(port: int) -> bytes:
    """The SDK's page. As HTTP/1.0 it comes in one piece, to the end of the connection."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    try:
        writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
        told = bytearray()
        while piece := await reader.read(65_536):
            told += piece
            if len(told) > MOST_OF_THE_SDK:
                raise ValueError("The SDK tells more than is read.")
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    head, _, body = bytes(told).partition(b"\r\n\r\n")
    if b" 200 " not in head.partition(b"\r\n")[0]:
        raise ValueError(f"The SDK answers {head[:100]!r}.")
    return body


async def _listen(endpoint: _Endpoint, address: MetricsAddress) -> asyncio.Server:
    try:
        return await asyncio.start_server(endpoint.connected, address.host, address.port, limit=LONGEST_HEAD)
    except OSError as error:
        because = os.strerror(error.errno) if error.errno is not None and error.errno > 0 else str(error)
        raise Misconfigured(
            f"Cannot serve metrics at {address.host}, port {address.port}: {because}. Stop what uses it, or set {HOST} and "
            f"{PORT} to what is free. Each process needs a port of its own."
        ) from error


def _counting_runtime() -> tuple[Runtime, int]:
    """A runtime of the SDK that counts, and the port of the loopback at which it tells."""
    for left in range(_ATTEMPTS - 1, -1, -1):
        port = _free_port()
        config = PrometheusConfig(
            bind_address=f"{LOOPBACK}:{port}", counters_total_suffix=True, unit_suffix=True, durations_as_seconds=True
        )
        try:
            return Runtime(telemetry=TelemetryConfig(metrics=config)), port
        except (RuntimeError, ValueError) as error:
            # Somebody took the port in between. The SDK takes an address, and no socket.
            if not left:
                raise Misconfigured(f"Temporal's SDK cannot serve its metrics on this machine: {error}") from error
    raise AssertionError("unreachable")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        port: int = free.getsockname()[1]
        return port
