"""With keys, nothing that is said stands at Temporal: looked for in the server's own file, on a server of the test."""

import base64
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowHistory
from temporalio.worker import Replayer

from activities.clock import WorkerClock
from activities.pace import Pace
from horarium.errors import Unavailable
from horarium.schedule.identity import RunKey
from starter.setup import prepare_temporal
from starter.temporal_server import TemporalServer
from tests.workflows.documents import every
from tests.workflows.house import House, house
from worker.converter import KeysMissing
from worker.payload_keys import PAYLOAD_KEYS
from worker.plugin import horarium_plugin

MARKER = "MARKER-that-nobody-may-find-at-temporal"
"""In what the agent's error says, as a secret that a program put into one would be."""
PACE = Pace(lead=timedelta(milliseconds=500), spread=timedelta(0), look_after=timedelta(seconds=2))


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for number in (1, 2):
        monkeypatch.setenv(f"HORARIUM_SECRET_K{number}", base64.b64encode(secrets.token_bytes(32)).decode())
    return monkeypatch


async def connected(server: TemporalServer) -> Client:
    return await Client.connect(server.address, namespace=server.namespace, plugins=[horarium_plugin()])


async def one_run(server: TemporalServer, folder: Path) -> tuple[RunKey, list[WorkflowHistory]]:
    """A run whose agent raises, and then the end of its schedule; the histories of both as they are stored."""
    client = await connected(server)
    async with house(client, folder, server_time=_now, clock=WorkerClock(), pace=PACE) as it:
        it.agent.usual = RuntimeError(MARKER)
        run = await _raised(it)
        raw = await Client.connect(server.address, namespace=server.namespace)
        ids = (run.workflow_id, run.activation.workflow_id)
        return run, [await raw.get_workflow_handle(each).fetch_history() for each in ids]


async def _raised(it: House) -> RunKey:
    now = datetime.now(UTC)
    soon = now.replace(microsecond=0) + timedelta(seconds=3)
    key = await it.published(every(3_600, offset=int(soon.timestamp()) % 3_600))
    changed = await it.enabled(key, now=now)
    run = RunKey(activation=changed.key, nominal_time=soon)
    await it.until(lambda: any(entry.closed_at for entry in it.entries(key)), within=90)
    # What is told of the run in the ledger is what its agent's error said, so that it went through Temporal.
    assert await it.workflow(run).result() == {"disposition": "failed", "reason": "agent_reported_failure"}
    assert MARKER in (it.runs(key)[0].summary or "")
    await it.paused(key)
    await it.workflow(changed.key).result()
    return run


def whole(history: WorkflowHistory) -> bytes:
    """A history as the server keeps it. As JSON it would show no text, since payloads stand there in base64."""
    return b"".join(event.SerializeToString() for event in history.events)


def stored(server: TemporalServer) -> bytes:
    """Everything that the server has written, its log included."""
    files = [path for path in server.database.parent.rglob("*") if path.is_file()]
    assert server.database in files
    return b"".join(path.read_bytes() for path in files)


@pytest.mark.server
async def test_nothing_that_is_said_is_in_the_servers_file_and_keys_rotate(
    keys: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server = TemporalServer(tmp_path / "temporal", port=0, headless=True)
    await server.start()
    try:
        await prepare_temporal(await connected(server))
        keys.setenv(PAYLOAD_KEYS, "k1=HORARIUM_SECRET_K1")
        first, histories = await one_run(server, tmp_path / "first")
        for history in histories:
            assert MARKER.encode() not in whole(history)
            assert "binary/encrypted" in _encodings(history)
        found = stored(server)
        assert MARKER.encode() not in found
        assert b"admission at" not in found, "a summary of a step is a payload too"
        # The ids and what workflows are found by are not encrypted.
        assert first.workflow_id.encode() in found

        keys.setenv(PAYLOAD_KEYS, "k2=HORARIUM_SECRET_K2 k1=HORARIUM_SECRET_K1")
        await (await connected(server)).get_workflow_handle(first.workflow_id).result()
        for history in histories:
            await Replayer(workflows=[], plugins=[horarium_plugin()]).replay_workflow(history)
        second, _ = await one_run(server, tmp_path / "second")
        assert MARKER.encode() not in stored(server)

        keys.setenv(PAYLOAD_KEYS, "k2=HORARIUM_SECRET_K2")
        alone = await connected(server)
        await alone.get_workflow_handle(second.workflow_id).result()
        with pytest.raises(Unavailable, match="encrypted with the key 'k1', and this process does not have it"):
            await alone.get_workflow_handle(first.workflow_id).result()

        # Without any keys it is tried again later, and no workflow ends by it.
        keys.delenv(PAYLOAD_KEYS)
        with pytest.raises(KeysMissing, match="with the key 'k1', and this process has no keys"):
            await (await connected(server)).get_workflow_handle(first.workflow_id).result()
        for history in histories:
            with pytest.raises(
                RuntimeError, match=r"activation completion failed.*with the key 'k1'.*payload_key_missing"
            ):
                await Replayer(workflows=[], plugins=[horarium_plugin()]).replay_workflow(history)
    finally:
        await server.stop()


@pytest.mark.server
async def test_without_keys_the_same_marker_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Or the test above could not fail."""
    monkeypatch.delenv(PAYLOAD_KEYS, raising=False)
    server = TemporalServer(tmp_path / "temporal", port=0, headless=True)
    await server.start()
    try:
        await prepare_temporal(await connected(server))
        _, histories = await one_run(server, tmp_path / "plain")
        assert any(MARKER.encode() in whole(history) for history in histories)
        assert MARKER.encode() in stored(server)
        assert b"admission at" in stored(server)
    finally:
        await server.stop()


def _encodings(history: WorkflowHistory) -> set[str]:
    """How the payloads of a history are encoded."""
    found: set[str] = set()

    def look(value: object) -> None:
        if isinstance(value, dict):
            if isinstance(encoding := value.get("encoding"), str):
                found.add(base64.b64decode(encoding).decode())
            for each in value.values():
                look(each)
        elif isinstance(value, list):
            for each in value:
                look(each)

    look(history.to_json_dict())
    return found - {"binary/null"}


async def _now() -> datetime:
    return datetime.now(UTC)
