"""The SDK's sandbox, which is not entered for what can be said outside of it.

For each payload the SDK asks a workflow whose it is, so that a codec can bind it to that workflow, and the sandbox is entered
for the answer: a tenth of what a busy schedule worker computed. What our codec binds to is the workflow's id, which is the same
for a workflow's own payloads and for those of its activities, and known outside.
"""

from typing import Any

from temporalio.api.enums.v1 import CommandType
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.converter import SerializationContext, StorageDriverStoreContext, WorkflowSerializationContext
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner
from temporalio.workflow import Info

_OWN = frozenset(
    {CommandType.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK, CommandType.COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION}
)
"""What takes payloads along that are the workflow's: its activities, local ones among them, and its end."""


class SandboxWithContexts(SandboxedWorkflowRunner):
    """A `SandboxedWorkflowRunner` for converters that ask of a payload's context nothing but the workflow's id."""

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """See `WorkflowRunner`."""
        return _Instance(super().create_instance(det))


class _Instance(WorkflowInstance):
    """A workflow in its sandbox."""

    def __init__(self, inside: WorkflowInstance) -> None:
        self._inside = inside
        info = inside.get_info()
        self._own = WorkflowSerializationContext(namespace=info.namespace, workflow_id=info.workflow_id)

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """In the sandbox."""
        return self._inside.activate(act)

    def get_serialization_context(self, command_info: Any) -> SerializationContext | None:
        """The workflow itself where it is known to be; the sandbox is asked about all else."""
        if command_info is None or command_info.command_type in _OWN:
            return self._own
        return self._inside.get_serialization_context(command_info)

    def get_external_store_context(self, command_info: Any) -> StorageDriverStoreContext:
        """In the sandbox."""
        return self._inside.get_external_store_context(command_info)

    def get_info(self) -> Info:
        """See `WorkflowInstance`."""
        return self._inside.get_info()

    def get_thread_id(self) -> int | None:
        """See `WorkflowInstance`."""
        return self._inside.get_thread_id()
