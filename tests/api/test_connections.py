"""A connection is kept while something is asked and answered over it, and not for ever beside that."""

import asyncio
import socket
import time
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
import uvicorn

from starter.connections import Connection

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"
LARGE = 8 * 1024 * 1024


class Hasty(Connection):
    patience = timedelta(seconds=0.4)


async def application(scope, _receive, send):
    """Answers at once and reads no body; `/slow` takes longer than any silence may, `/large` has much to say."""
    assert scope["type"] == "http"
    if scope["path"] == "/slow":
        await asyncio.sleep(1.2)
    body = b"x" * LARGE if scope["path"] == "/large" else b"here"
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def connected():
    """A connection to a server of the application."""
    config = uvicorn.Config(
        application, http=Hasty, lifespan="off", log_config=None, port=0, ws="none", timeout_keep_alive=60
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server._serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has a flag here, and no event
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        server.should_exit = True
        await serving


async def closed_after(reader):
    """How many seconds it takes until the connection is closed."""
    began = time.monotonic()
    async with asyncio.timeout(5):
        try:
            while await reader.read(65_536):
                pass
        except ConnectionResetError:
            pass
    return time.monotonic() - began


async def trickle(writer):
    while True:
        writer.write(b"X")
        await asyncio.sleep(0.05)


UNFINISHED = {"nothing": b"", "half a head": HEAD, "a body that nobody reads": POST + b"1"}


@pytest.mark.parametrize("sent", UNFINISHED.values(), ids=UNFINISHED)
@pytest.mark.parametrize("trickles", [False, True])
def test_a_connection_that_brings_no_whole_request_is_closed(sent, trickles):
    async def story():
        async with connected() as (reader, writer):
            writer.write(sent)
            trickling = asyncio.create_task(trickle(writer)) if trickles and sent else None
            passed = await closed_after(reader)
            if trickling is not None:
                trickling.cancel()
            return passed

    assert 0.3 < asyncio.run(story()) < 2


def test_a_request_that_takes_long_is_answered_and_the_next_one_too():
    async def story():
        async with connected() as (reader, writer):
            for path in (b"/slow", b"/", b"/slow"):
                await asyncio.sleep(0.2)
                writer.write(HEAD.replace(b"GET /", b"GET " + path) + b"\r\n")
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
                assert head.startswith(b"HTTP/1.1 200"), path
                assert await reader.readexactly(4) == b"here"
            return await closed_after(reader)

    assert 0.3 < asyncio.run(story()) < 2


def test_requests_that_arrive_together_are_all_answered():
    async def story():
        async with connected() as (reader, writer):
            writer.write((HEAD.replace(b"GET /", b"GET /slow") + b"\r\n") * 2 + HEAD + b"\r\n")
            for _ in range(3):
                await asyncio.wait_for(reader.readuntil(b"here"), 5)

    asyncio.run(story())


def test_an_answer_that_nobody_takes_is_given_up_and_one_that_is_taken_slowly_is_not():
    async def story(*, takes):
        async with connected() as (reader, writer):
            writer.write(HEAD.replace(b"GET /", b"GET /large") + b"\r\n")
            await reader.readuntil(b"\r\n\r\n")
            taken = 0
            for _ in range(10):
                await asyncio.sleep(0.15)
                taken += len(await reader.readexactly(LARGE // 12)) if takes else 0
            try:
                taken += len(await reader.readexactly(LARGE - taken))
            except (asyncio.IncompleteReadError, ConnectionResetError):
                return False
            return taken == LARGE

    assert asyncio.run(story(takes=True))
    assert not asyncio.run(story(takes=False))


def test_an_answer_in_two_parts_does_not_wait_for_the_other_end():
    """asyncio leaves Nagle's algorithm on where the listening socket names no protocol, as `socket.create_server` makes them."""
    made = []

    class Seen(Connection):
        def connection_made(self, transport):
            super().connection_made(transport)
            made.append(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    async def asked():
        listener = socket.create_server(("127.0.0.1", 0))
        assert listener.proto == 0
        server = uvicorn.Server(uvicorn.Config(application, http=Seen, lifespan="off", log_config=None, ws="none"))
        serving = asyncio.create_task(server._serve(sockets=[listener]))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(HEAD + b"\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
        server.should_exit = True
        await serving

    asyncio.run(asked())
    assert [bool(each) for each in made] == [True]
