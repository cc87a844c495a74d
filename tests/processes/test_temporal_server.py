"""Our own development server: it comes up, keeps what it was told, says what is wrong, and goes."""

import asyncio
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import textwrap
import urllib.request
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError

from activities.search_attributes import ALL
from horarium.errors import Misconfigured
from horarium.schedule.identity import ActivationKey, Scope, schedule_key
from starter import temporal_server as module
from starter.setup import prepare_temporal
from starter.temporal import Temporal
from starter.temporal_server import TemporalServer, find_temporal
from worker.plugin import horarium_plugin

pytestmark = pytest.mark.server

REPOSITORY = Path(__file__).parents[2]


async def begin(server: TemporalServer, name: str) -> None:
    """Start a workflow that no worker will ever take up."""
    client = await Client.connect(server.address, namespace=server.namespace)
    await client.start_workflow("Nobody", id=name, task_queue="nobody")


async def status(server: TemporalServer, name: str) -> str:
    client = await Client.connect(server.address, namespace=server.namespace)
    return (await client.get_workflow_handle(name).describe()).status.name


async def search_attributes(server: TemporalServer) -> set[str]:
    client = await Client.connect(server.address, namespace=server.namespace)
    answer = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=server.namespace)
    )
    return set(answer.custom_attributes)


def while_it_runs(server: TemporalServer, story: Callable[[], Awaitable[None]]) -> None:
    """Start a server that a test brings with it, and stop it again whatever happens."""

    async def whole() -> None:
        await server.start()
        await story()
        await server.stop()

    try:
        asyncio.run(whole())
    finally:
        server.kill()


def test_the_session_s_server_answers_by_address_and_namespace(temporal_server):
    asyncio.run(begin(temporal_server, "answers"))
    assert asyncio.run(status(temporal_server, "answers")) == "RUNNING"


def test_workflows_outlive_a_stop_and_a_kill_on_the_same_file_and_port(tmp_path):
    server = TemporalServer(tmp_path, port=0, headless=True, search_attributes={"HorariumTest": "Keyword"})
    address = server.address

    async def story() -> None:
        await server.start()
        await begin(server, "before-the-stop")
        assert await server.stop() == 0
        await server.start()
        await begin(server, "before-the-kill")
        server.kill()
        assert server.status == -signal.SIGKILL
        await server.start()
        assert await status(server, "before-the-stop") == "RUNNING"
        assert await status(server, "before-the-kill") == "RUNNING"
        assert await search_attributes(server) >= {"HorariumTest"}
        await server.stop()

    try:
        asyncio.run(story())
    finally:
        server.kill()
    assert server.address == address
    with sqlite3.connect(tmp_path / "temporal.db") as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    database.close()


def test_the_user_interface_is_on_its_own_free_port(tmp_path):
    server = TemporalServer(
        tmp_path, port=0, ui_port=0, namespace="elsewhere", dynamic_config={"limit.maxIDLength": 50}
    )

    async def story() -> None:
        await server.start()
        await begin(server, "n" * 50)
        with pytest.raises(RPCError, match="exceeds maximum allowed length"):
            await begin(server, "n" * 51)

    try:
        asyncio.run(story())
        with urllib.request.urlopen(f"{server.ui_address}/namespaces/elsewhere") as page:
            assert page.status == 200
        assert asyncio.run(server.stop()) == 0
    finally:
        server.kill()
    assert server.ui_port != server.port
    assert not server.running


def test_starting_what_runs_and_stopping_what_ended_changes_nothing(temporal_server, tmp_path):
    pid = temporal_server.pid
    asyncio.run(temporal_server.start())
    assert (temporal_server.pid, temporal_server.running) == (pid, True)
    never_started = TemporalServer(tmp_path, port=0, headless=True)
    never_started.kill()
    assert asyncio.run(never_started.stop()) is None


@pytest.mark.parametrize(("which", "option"), [("port", "--temporal-port"), ("ui_port", "--ui-port")])
def test_a_port_that_is_taken_is_refused_with_the_option_that_helps(tmp_path, which, option):
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        server = TemporalServer(tmp_path, **{"port": 0, "ui_port": 0, which: taken})
        expected = (
            f"Port {taken} is taken or not allowed (Address already in use). Stop what uses it, or use {option} 0"
        )
        with pytest.raises(Misconfigured, match=re.escape(expected)):
            asyncio.run(server.start())
    assert not server.running


def test_a_folder_that_cannot_be_written_is_refused_with_a_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(Misconfigured, match=r"Cannot write to the folder .*: Not a directory"):
        TemporalServer(tmp_path / "file" / "data", port=0)


def test_an_early_end_is_told_with_the_last_words_of_the_log_on_one_line(tmp_path):
    (tmp_path / "temporal.db").write_bytes(b"This is no database." * 1_000)
    server = TemporalServer(tmp_path, port=0, headless=True)
    with pytest.raises(
        Misconfigured, match="The Temporal server ended with exit status 1 before it was ready"
    ) as refusal:
        asyncio.run(server.start())
    assert "file is not a database" in str(refusal.value)
    assert str(tmp_path / "logs" / "temporal.log") in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_the_temporal_program_beside_this_python_comes_first_then_the_path(tmp_path, monkeypatch):
    assert find_temporal() == str(Path(sys.executable).with_name("temporal"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        Misconfigured, match=r"no `temporal` program in .* or on PATH\. It is in the extra `dev-server`"
    ):
        find_temporal()
    (tmp_path / "temporal").touch(mode=0o755)
    assert find_temporal() == str(tmp_path / "temporal")


def test_a_server_that_does_not_answer_in_time_is_killed_and_told(tmp_path, monkeypatch):
    (tmp_path / "temporal").write_text("#!/bin/sh\necho thinking\nexec sleep 60\n")
    (tmp_path / "temporal").chmod(0o755)
    monkeypatch.setattr(module, "find_temporal", lambda: str(tmp_path / "temporal"))
    monkeypatch.setattr(module, "READY_WITHIN", module.READY_WITHIN / 6)
    server = TemporalServer(tmp_path, port=0, headless=True)
    with pytest.raises(Misconfigured, match=r"did not get ready within 5 s\. Its last words: thinking"):
        asyncio.run(server.start())
    assert server.status == -signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a child to its parent")
def test_a_server_ends_with_a_parent_that_was_killed(tmp_path, gone):
    (tmp_path / "parent.py").write_text(
        textwrap.dedent(
            """
            import asyncio, pathlib, sys, time
            from starter.temporal_server import TemporalServer
            server = TemporalServer(pathlib.Path(sys.argv[1]), port=0, headless=True)
            asyncio.run(server.start())
            print(server.pid, flush=True)
            time.sleep(60)
            """
        )
    )
    command = [sys.executable, str(tmp_path / "parent.py"), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=REPOSITORY) as parent:
        server = int(parent.stdout.readline())
        assert not gone(server, within=0.3)
        parent.kill()
    assert gone(server)


def test_what_a_server_is_told_of_later_it_knows_once_it_is_prepared(tmp_path):
    """A server that was set up by others, as any but that of `horarium dev` is."""
    server = TemporalServer(tmp_path, port=0, headless=True, search_attributes={})
    key = ActivationKey(
        schedule=schedule_key(Scope(org_id="acme", environment_id="test"), str(uuid.uuid4())), generation=1
    )

    async def story() -> None:
        client = await Client.connect(server.address, namespace=server.namespace, plugins=[horarium_plugin()])
        with pytest.raises(RPCError, match="no mapping defined for search attribute"):
            await Temporal(client).start_schedule(key)
        assert any("HorariumSchedule" in sentence for sentence in await prepare_temporal(client))
        assert await Temporal(client).start_schedule(key)
        assert await prepare_temporal(client) == ()

    while_it_runs(server, story)


def test_an_attribute_of_ours_with_another_type_is_refused_by_its_name(tmp_path):
    """Nothing could be started with it, whatever was said about what is registered."""
    server = TemporalServer(tmp_path, port=0, headless=True, search_attributes={"HorariumGeneration": "Keyword"})

    async def story() -> None:
        client = await Client.connect(server.address, namespace=server.namespace)
        with pytest.raises(
            Misconfigured, match=r"'HorariumGeneration' .* INDEXED_VALUE_TYPE_KEYWORD, .* INDEXED_VALUE_TYPE_INT"
        ):
            await prepare_temporal(client)
        assert await search_attributes(server) == {"HorariumGeneration"}, "what is refused changes nothing"

    while_it_runs(server, story)


def test_a_server_of_ours_knows_our_search_attributes_from_the_start(tmp_path):
    server = TemporalServer(tmp_path, port=0, headless=True)

    async def story() -> None:
        assert await search_attributes(server) >= {each.name for each in ALL}

    while_it_runs(server, story)
