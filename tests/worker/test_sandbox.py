"""Whose a payload is, said outside of the sandbox, is what the sandbox says as far as our codec asks."""

from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import CommandType
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer, WorkflowInstance, _command_aware_visitor
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, _runner

from tests.workflows.histories.record import HERE, UNRELEASED
from worker import sandbox
from worker.codec import EncryptingCodec
from worker.payload_keys import PayloadKeys
from worker.plugin import horarium_plugin

HISTORIES = sorted((HERE / UNRELEASED).glob("*.json"))


async def replay(path: Path) -> None:
    await Replayer(workflows=[], plugins=[horarium_plugin()]).replay_workflow(history(path))


def history(path: Path) -> WorkflowHistory:
    return WorkflowHistory.from_json(path.stem, path.read_text())


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_a_payload_is_bound_to_the_workflow_that_the_sandbox_names(path, monkeypatch):
    outside = sandbox._Instance.get_serialization_context
    codec = EncryptingCodec(PayloadKeys(by_id={"a": bytes(32)}))
    asked = []

    def compared(self: Any, command_info: Any) -> Any:
        said, inside = outside(self, command_info), self._inside.get_serialization_context(command_info)
        asked.append(command_info)
        assert codec.with_context(said)._workflow_id == codec.with_context(inside)._workflow_id == path.stem
        return said

    monkeypatch.setattr(sandbox._Instance, "get_serialization_context", compared)
    await replay(path)
    assert any(asked), "activities have payloads too"


def not_entered(self: WorkflowInstance, command_info: Any) -> Any:
    raise AssertionError("the sandbox was entered")


async def test_the_sandbox_is_not_entered_for_it(monkeypatch):
    monkeypatch.setattr(_runner._Instance, "get_serialization_context", not_entered)
    await replay(HERE / UNRELEASED / "plain.run.json")
    monkeypatch.setattr(sandbox.SandboxWithContexts, "create_instance", SandboxedWorkflowRunner.create_instance)
    with pytest.raises(Exception, match="the sandbox was entered"):
        await replay(HERE / UNRELEASED / "plain.run.json")


@pytest.mark.parametrize(
    "name", ["COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION", "COMMAND_TYPE_SCHEDULE_NEXUS_OPERATION"]
)
async def test_the_sandbox_is_asked_about_what_goes_elsewhere(name, monkeypatch):
    """Of which there is nothing today: it must not be bound to the wrong workflow on the day that there is."""
    there = {}

    def kept(self: Any, det: Any) -> WorkflowInstance:
        there["it"] = create(self, det)
        return there["it"]

    create = sandbox.SandboxWithContexts.create_instance
    monkeypatch.setattr(sandbox.SandboxWithContexts, "create_instance", kept)
    await replay(HERE / UNRELEASED / "plain.run.json")
    monkeypatch.setattr(_runner._Instance, "get_serialization_context", not_entered)
    elsewhere = _command_aware_visitor.CommandInfo(command_type=CommandType.Value(name), command_seq=1)
    with pytest.raises(AssertionError, match="the sandbox was entered"):
        there["it"].get_serialization_context(elsewhere)
