"""The endpoint of a process without an API: what it serves, to whom, and what it refuses."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from horarium.errors import Misconfigured
from tests.metrics.figures import fetch, samples
from worker import metrics
from worker.metrics import LONGEST_HEAD, MOST_AT_ONCE, ProcessMetrics
from worker.metrics_settings import MetricsAddress, read_metrics_address
from worker.settings import load

ANY = MetricsAddress(host="127.0.0.1", port=0)


def served(ask: Callable[[MetricsAddress], Awaitable[None]]) -> None:
    async def work() -> None:
        async with ProcessMetrics(ANY).served() as address:
            assert address is not None
            await ask(address)

    asyncio.run(work())


async def said(address: MetricsAddress, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(request)
    try:
        return await asyncio.wait_for(reader.read(), 20)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


def test_a_page_has_our_figures_and_the_machines() -> None:
    async def ask(address: MetricsAddress) -> None:
        text = await asyncio.to_thread(fetch, f"http://127.0.0.1:{address.port}/metrics?name[]=all")
        names = {each.name for each in samples(text)}
        assert {"horarium_catalog_errors_total", "process_resident_memory_bytes"} <= names

    served(ask)


def test_there_is_nothing_else_and_nothing_can_be_sent() -> None:
    async def ask(address: MetricsAddress) -> None:
        assert (await said(address, b"GET / HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 404 ")
        assert (await said(address, b"POST /metrics HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 405 ")
        head, _, body = (await said(address, b"HEAD /metrics HTTP/1.1\r\n\r\n")).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert body == b""

    served(ask)


def test_a_head_without_end_is_no_question() -> None:
    async def ask(address: MetricsAddress) -> None:
        assert await said(address, b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 4 * LONGEST_HEAD) == b""
        assert (await said(address, b"GET /metrics HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 200 ")

    served(ask)


def test_who_is_slow_is_left_and_who_comes_after_many_who_are_is_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(address: MetricsAddress) -> None:
        slow = [asyncio.create_task(said(address, b"GET ")) for _ in range(MOST_AT_ONCE)]
        await asyncio.sleep(0.3)
        assert await said(address, b"GET /metrics HTTP/1.1\r\n\r\n") == b""
        assert await asyncio.gather(*slow) == [b""] * MOST_AT_ONCE
        assert (await said(address, b"GET /metrics HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 200 ")

    monkeypatch.setattr(metrics, "ANSWERED_WITHIN", timedelta(seconds=3))
    served(ask)


def test_a_port_that_is_taken_is_named() -> None:
    async def work(port: int) -> None:
        async with ProcessMetrics(MetricsAddress(host="127.0.0.1", port=port)).served():
            pass

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Misconfigured, match=rf"port {port}: .*HORARIUM_METRICS_PORT"):
            asyncio.run(work(port))


def test_without_a_port_nothing_is_served_and_the_sdk_counts_nothing() -> None:
    async def work() -> None:
        process = ProcessMetrics(None)
        assert process.runtime is None
        async with process.served() as address:
            assert address is None

    asyncio.run(work())


def test_it_is_off_by_default_and_of_this_machine_alone_unless_somebody_says_otherwise(tmp_path: Path) -> None:
    assert load({}, data=tmp_path).metrics is None
    assert load({"HORARIUM_METRICS_PORT": "9464"}, data=tmp_path).metrics == MetricsAddress(host="127.0.0.1", port=9464)
    told = {"HORARIUM_METRICS_PORT": "9464", "HORARIUM_METRICS_HOST": "0.0.0.0"}
    assert read_metrics_address(told) == MetricsAddress(host="0.0.0.0", port=9464)


@pytest.mark.parametrize("port", ["-1", "65536", "9464.0", "all", "9" * 5_000, "٣"])
def test_a_port_that_is_none_is_refused_by_name(port: str) -> None:
    with pytest.raises(Misconfigured, match=r"^HORARIUM_METRICS_PORT is"):
        read_metrics_address({"HORARIUM_METRICS_PORT": port})


def test_several_children_are_not_given_one_port(tmp_path: Path) -> None:
    told = load({"HORARIUM_METRICS_PORT": "9464"}, data=tmp_path)
    assert load({"HORARIUM_METRICS_PORT": "9464", **told.environment()}).metrics is None
