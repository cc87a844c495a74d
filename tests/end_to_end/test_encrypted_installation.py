"""A whole installation with keys: what is said by anybody is nowhere at Temporal, and what is there is what the page says.

Looked for by what is stored (histories, descriptions, the server's files), and by its form: each payload, and each text that is
in none.
"""

import asyncio
import base64
import json
import os
import re
import secrets
import sys
import threading
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from google.protobuf.message import Message
from temporalio.api.common.v1 import Payload, WorkflowExecution
from temporalio.api.query.v1 import WorkflowQuery
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest, QueryWorkflowRequest
from temporalio.client import Client, WorkflowHistory
from temporalio.service import RPCError
from temporalio.worker import Replayer

from examples.http_agent.agent import LineCounter
from horarium.catalog.declarations import declare
from horarium.control.activation import Reviewed, enable, pause
from horarium.control.publication import publish
from horarium.errors import Unavailable
from horarium.schedule.identity import ScheduleKey, schedule_key
from starter.child import Child
from starter.ports import free_port
from starter.temporal_server import TemporalServer
from tests.end_to_end.installation import REPOSITORY, Installation, installation, now, until
from tests.end_to_end.secretive import MARKER
from worker.payload_keys import PAYLOAD_KEYS
from worker.plugin import horarium_plugin

pytestmark = pytest.mark.server

SECRET: Final = "a-secret-of-thirty-two-bytes-no-less"
PERSON: Final = f"person-{MARKER}"
ELSEWHERE: Final = f"elsewhere-{MARKER}@1"
NOWHERE: Final = f"nowhere-{MARKER}@1"
METADATA: Final = "__temporal_workflow_metadata"
"""What Temporal's pages ask a workflow for."""
VISIBLE: Final = re.compile(
    r"""
    (execution|root_execution)\.(workflow_id|run_id)$ | \.workflow_id$ | run_id$     # ids of workflows
    | search_attributes\.indexed_fields                                             # what they are found by
    | (workflow_type|activity_type|execution_info\.type)\.name$ | \.signal_name$    # types, and names of signals
    | task_queue(\.name|\.normal_name)?$                                            # an agent's names its version
    | identity$ | build_id$ | sdk_metadata\.sdk_(name|version)$                      # workers
    | \.fairness_key$                                                               # the organization
    | \.(activity_id|timer_id|request_id)$ | request_id_infos\{\}$                    # numbers
    | marker_name$ | marker_recorded_event_attributes\.details\{(data\}\.payloads)?   # which local activity, and when
    | application_failure_info\.type$ | failure\.message$                           # codes, and that there was a failure
    """,
    re.VERBOSE,
)
"""Where something stands in the clear: what deploy/README.md says is not encrypted."""
ENCRYPTED: Final = (
    "workflow_execution_started_event_attributes.input.payloads",
    "workflow_execution_completed_event_attributes.result.payloads",
    "activity_task_scheduled_event_attributes.input.payloads",
    "activity_task_completed_event_attributes.result.payloads",
    "marker_recorded_event_attributes.details{result}.payloads",
    "pending_activities.last_failure.encoded_attributes",
    "user_metadata.summary",
    "QueryWorkflowResponse.query_result.payloads",
)
PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "schedules": ("-m", "worker", "schedules"),
    "runs": ("-m", "worker", "runs"),
    "controller": ("-m", "starter", "controller"),
    "agents": ("-m", "worker", "agents", "tests.end_to_end.secretive"),
}


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for number in (1, 2):
        monkeypatch.setenv(f"HORARIUM_SECRET_K{number}", base64.b64encode(secrets.token_bytes(32)).decode())
    monkeypatch.setenv("HORARIUM_SECRET_LINES", SECRET)
    return monkeypatch


@contextmanager
def line_counter() -> Iterator[LineCounter]:
    with LineCounter(("127.0.0.1", 0), SECRET.encode()) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


async def start_all(it: Installation, api_port: int) -> None:
    """Every part with the keys that this process has now."""
    api = ("-m", "starter", "api", "--port", str(api_port))
    for name, argv in {**PARTS, "api": api}.items():
        program = it.program("controller", name, crashing=False)
        environment = {**program.environment, "HORARIUM_PUBLIC_URL": f"http://127.0.0.1:{api_port}"}
        it.children[name] = Child(replace(program, argv=(sys.executable, *argv), environment=environment))
    await asyncio.gather(*(it.start("controller", name=name) for name in it.children))


async def stop_all(it: Installation) -> None:
    for name in list(it.keepers):
        assert await it.stop(name) == 0, it.children[name].last_words()


async def declared(it: Installation, agent: str, url: str) -> None:
    """An agent behind the gateway http, whose names nobody may read either."""
    name = f"at-{agent.partition('@')[0]}"
    to = {"url": url, "secret": "HORARIUM_SECRET_LINES", "private": True, "outcome": "callback"}
    whole = {"max_cost": 0, "max_run_seconds": 20, "gateway": "http", "destination": name, "idempotent": True}
    for kind, named, said in (("destination", name, to), ("agent", agent, whole)):
        await it.catalog.write(declare, it.settings.scope, kind, named, said, version=1, everywhere=False)


async def published(it: Installation, agent: str, script: Mapping[str, Any], *, every: int, window: int) -> ScheduleKey:
    key = schedule_key(it.settings.scope, str(uuid.uuid4()))
    content = it.settings.content
    reference = f"input-{MARKER}-{key.schedule_id}"
    (content.inputs / f"{reference}.json").write_text(json.dumps(script))
    (content.outputs / f"output-{MARKER}").mkdir(exist_ok=True)
    configuration = {
        "name": f"name {MARKER}",
        "calendar": {
            "timezone": "Europe/Zurich",
            "calendars": [],
            "intervals": [{"every_seconds": every, "offset_seconds": 0}],
            "start_at": "2026-01-01T00:00:00Z",
            "end_at": "2199-12-31T23:59:59Z",
        },
        "policy": {"overlap": "skip", "catchup_window_seconds": window, "pause_on_failure": False},
        "run": {
            "agent_version": agent,
            "input": reference,
            "output_target": f"output-{MARKER}",
            "grants": [],
            "budget_id": None,
            "usage_class": "test_simulation",
        },
    }
    await it.catalog.write(publish, key, configuration, expected_revision=0, by=PERSON, now=now())
    return key


async def enabled(it: Installation, key: ScheduleKey) -> None:
    async with asyncio.timeout(120):
        while True:
            with suppress(Unavailable):
                await it.catalog.write(enable, key, Reviewed(), it.settings.content, by=PERSON, now=now())
                return
            await asyncio.sleep(0.2)


async def said(*arguments: str, **environment: str) -> str:
    """What a command says, as a person starts it."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "starter", *arguments),
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    answer, errors = await child.communicate()
    assert child.returncode == 0, (answer.decode(), errors.decode())
    return answer.decode().strip()


async def triggered(it: Installation, key: ScheduleKey, api: str) -> None:
    """By a person, at the API."""
    token = await said("token", "--subject", PERSON, "--data", str(it.folder))
    at = {
        "HORARIUM_SERVER": api,
        "HORARIUM_TOKEN": token,
        "HORARIUM_ORGANIZATION": "local",
        "HORARIUM_ENVIRONMENT": "dev",
    }
    await said("trigger", key.schedule_id, "--overlap", "allow", **at)


def leaves(message: Message, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every text, every piece of bytes and every payload below a message, with the names of the fields that lead there."""
    if isinstance(message, Payload):
        yield path, message
        return
    for field, value in message.ListFields():
        here = f"{path}.{field.name}".lstrip(".")
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            for name, each in value.items():
                yield f"{here}{{}}", name
                yield from (
                    leaves(each, f"{here}{{{name}}}") if isinstance(each, Message) else [(f"{here}{{{name}}}", each)]
                )
        elif field.message_type is not None:
            for each in value if field.is_repeated else [value]:
                yield from leaves(each, here)
        elif field.type in {field.TYPE_STRING, field.TYPE_BYTES}:
            yield from ((here, each) for each in (value if field.is_repeated else [value]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stands:
    """What stands at Temporal: texts and payloads in the clear by where they are, and where there are encrypted ones."""

    clear: Mapping[str, set[str]]
    encrypted: Mapping[str, set[str]]
    """The ids of their keys."""
    histories: Sequence[WorkflowHistory]


async def look(raw: Client) -> Stands:
    """At every workflow that there is: how it is described, its history, and how it answers."""
    clear: dict[str, set[str]] = defaultdict(set)
    encrypted: dict[str, set[str]] = defaultdict(set)
    histories = []
    async for listed in raw.list_workflows(""):
        execution = WorkflowExecution(workflow_id=listed.id, run_id=listed.run_id)
        described = DescribeWorkflowExecutionRequest(namespace=raw.namespace, execution=execution)
        asked = QueryWorkflowRequest(
            namespace=raw.namespace, execution=execution, query=WorkflowQuery(query_type=METADATA)
        )
        histories.append(await raw.get_workflow_handle(listed.id, run_id=listed.run_id).fetch_history())
        messages = [
            *histories[-1].events,
            await raw.workflow_service.describe_workflow_execution(described),
            await raw.workflow_service.query_workflow(asked),
        ]
        for path, value in (each for message in messages for each in leaves(message, type(message).__name__)):
            if not isinstance(value, Payload):
                clear[path].add(_text(value))
            elif value.metadata["encoding"] == b"binary/encrypted":
                encrypted[path].add(_text(value.metadata["horarium-key"]))
            elif value.metadata["encoding"] != b"binary/null":
                clear[path].add(_text(value.data))
    return Stands(clear=clear, encrypted=encrypted, histories=histories)


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode(errors="replace")


def written(server: TemporalServer) -> bytes:
    """Everything that the server has written."""
    return b"".join(each.read_bytes() for each in sorted(server.database.parent.glob(f"{server.database.name}*")))


def hidden(it: Installation, found: Stands) -> None:
    """Nothing that anybody said is there, and what is there is what deploy/README.md names."""
    assert {path for path in found.clear if not VISIBLE.search(path)} == set()
    for path, texts in found.clear.items():
        assert not [each for each in texts if MARKER in each], path
    assert MARKER.encode() not in written(it.server)
    messages = [texts for path, texts in found.clear.items() if path.endswith("failure.message")]
    # The second is the server's own word for a workflow task that it wants to see again.
    assert set().union(*messages) <= {"Encoded failure", "UnhandledCommand"}
    # And it is not as if nothing had been looked at.
    assert {"admit_run", "run_agent"} <= found.clear[
        "HistoryEvent.activity_task_scheduled_event_attributes.activity_type.name"
    ]


async def story(keys: pytest.MonkeyPatch, folder: Path) -> None:
    keys.setenv(PAYLOAD_KEYS, "k1=HORARIUM_SECRET_K1")
    with line_counter() as counter:
        async with installation(folder, parts=()) as it:
            port, there = free_port(), f"http://127.0.0.1:{counter.server_port}/"
            await declared(it, ELSEWHERE, there)
            await declared(it, NOWHERE, "http://127.0.0.1:9/")
            await start_all(it, port)
            usual = [
                await published(it, agent, script, every=6, window=60)
                for agent, script in (
                    ("secretive@1", {"how": "succeeds"}),
                    ("secretive@1", {"how": "fails"}),
                    ("secretive@1", {"how": "raises"}),
                    (ELSEWHERE, {}),
                )
            ]
            nowhere = await published(it, NOWHERE, {}, every=86_400, window=3_600)
            for key in (*usual, nowhere):
                await enabled(it, key)
            for key in usual:
                await it.until_closed(key, 2)
            await triggered(it, nowhere, f"http://127.0.0.1:{port}")
            raw = await Client.connect(it.server.address, namespace=it.server.namespace)
            await until(partial(_is_tried_again, it, raw, nowhere), "a failure of a pending activity")
            before = await look(raw)
            hidden(it, before)
            assert set().union(*before.encrypted.values()) == {"k1"}
            missing = [each for each in ENCRYPTED if not any(path.endswith(each) for path in before.encrypted)]
            assert missing == [], sorted(before.encrypted)

            going = now()
            await stop_all(it)
            keys.setenv(PAYLOAD_KEYS, "k2=HORARIUM_SECRET_K2 k1=HORARIUM_SECRET_K1")
            await start_all(it, port)
            await declared(it, NOWHERE, there)
            await it.until_closed(nowhere, 1)
            back = now()
            assert it.told(nowhere) == ["succeeded"], "what was under way with the old key went on"
            closed = [len(it.told(key)) for key in usual]
            for key, count in zip(usual, closed, strict=True):
                await it.until_closed(key, count + 2)
            for key in (*usual, nowhere):
                await it.catalog.write(pause, key, Reviewed(), by=PERSON, now=now())
            await until(
                lambda: all(entry.closed_at for key in usual for entry, _ in it.rows(key)), "an end of every run"
            )
            after = await look(raw)
            hidden(it, after)
            assert set().union(*after.encrypted.values()) == {"k1", "k2"}
            await readable(it, keys, before.histories[0].workflow_id)
            for history in after.histories:
                await Replayer(workflows=[], plugins=[horarium_plugin()]).replay_workflow(history)
            for key, told in zip(usual, ("succeeded", "failed", "failed", "succeeded"), strict=True):
                # While everything was restarted, some instants may have been missed, and an agent elsewhere found no API.
                begun = [
                    (str(entry.disposition), run.summary)
                    for entry, run in it.rows(key)
                    if run is not None and run.begun_at is not None
                    if entry.closed_at is not None and not (run.begun_at < back and entry.closed_at > going)
                ]
                assert {disposition for disposition, _ in begun} == {told}, begun
            assert {run.summary for _, run in it.rows(usual[0]) if run and run.summary} == {f"summary {MARKER}"}


async def _is_tried_again(it: Installation, raw: Client, key: ScheduleKey) -> bool:
    (run,) = [entry.run_key(key) for entry, run in it.rows(key) if run is not None]
    with suppress(RPCError):
        description = await raw.get_workflow_handle(run.workflow_id).describe()
        return any(each.HasField("last_failure") for each in description.raw_description.pending_activities)
    return False


async def readable(it: Installation, keys: pytest.MonkeyPatch, workflow_id: str) -> None:
    """What was written with the old key is read while it is there, and named once it is gone."""

    async def read() -> None:
        client = await Client.connect(it.server.address, namespace=it.server.namespace, plugins=[horarium_plugin()])
        description = await client.get_workflow_handle(workflow_id).describe()
        assert await description.static_summary()

    await read()
    with keys.context() as alone:
        alone.setenv(PAYLOAD_KEYS, "k2=HORARIUM_SECRET_K2")
        with pytest.raises(Unavailable, match="encrypted with the key 'k1', and this process does not have it"):
            await read()


def test_what_anybody_says_is_nowhere_at_temporal_and_what_is_there_is_what_is_documented(
    keys: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asyncio.run(story(keys, tmp_path))
