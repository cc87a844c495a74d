"""The other end of a measured HTTP conversation: a client that costs little, and servers as processes on one core."""

import asyncio
import os
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from time import perf_counter

SERVER_CORE = 0
"""All servers are pinned to one core; the client has the others."""


class Connection:
    """One kept-alive connection, one request at a time. An HTTP library would cost more than the answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, headers: Mapping[str, str]) -> None:
        self._reader = reader
        self._writer = writer
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in {"Host": "bench", **headers}.items())

    async def ask(self, method: str, path: str, *, body: bytes = b"", key: str | None = None) -> tuple[int, bytes]:
        """One request; the status and the body of the answer."""
        more = "" if key is None else f"Idempotency-Key: {key}\r\nContent-Type: application/json\r\n"
        head = f"{method} {path} HTTP/1.1\r\n{self._headers}{more}Content-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        return int(answer[9:12]), await self._reader.readexactly(int(length))

    async def timed(self, method: str, path: str, *, body: bytes = b"", key: str | None = None) -> float:
        """How many milliseconds one request took. Any other answer than a success is a fault of the benchmark."""
        begun = perf_counter()
        status, answer = await self.ask(method, path, body=body, key=key)
        taken = (perf_counter() - begun) * 1e3
        assert 200 <= status < 300, answer
        return taken


@asynccontextmanager
async def connected(port: int, headers: Mapping[str, str], count: int = 1) -> AsyncIterator[Sequence[Connection]]:
    """So many connections to a server of this machine."""
    pairs = [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]
    try:
        yield [Connection(reader, writer, headers) for reader, writer in pairs]
    finally:
        for _, writer in pairs:
            writer.close()


async def requests_per_second(connections: Sequence[Connection], path: str, *, seconds: float) -> float:
    """How many requests for one path a server answers, all connections asking at once."""
    stop = perf_counter() + seconds
    done = 0

    async def ask(connection: Connection) -> None:
        nonlocal done
        while perf_counter() < stop:
            await connection.timed("GET", path)
            done += 1

    begun = perf_counter()
    await asyncio.gather(*(ask(each) for each in connections))
    return done / (perf_counter() - begun)


@contextmanager
def serving(*arguments: str) -> Iterator[int]:
    """`benchmarks.api_server` as a process on the servers' core; its port. What it logs is written and goes nowhere."""
    command = [sys.executable, "-m", "benchmarks.api_server", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline() or "0")
        assert port, f"the server does not start: {shlex.join(command)}"
        yield port
    finally:
        process.terminate()
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()


@contextmanager
def beside_the_servers() -> Iterator[None]:
    """Keep this process off the servers' core, where there is another one."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, before - {SERVER_CORE} or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
