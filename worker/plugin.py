"""The one plugin: converter, sandbox and workflow list, the same for clients, workers and the replayer."""

import dataclasses

from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.plugin import SimplePlugin
from temporalio.worker import WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.workflow import SandboxImportNotificationPolicy

from workflows.run import RunWorkflow
from workflows.schedule import ScheduleWorkflow

PASSTHROUGH = (
    "horarium",  # the pure core and its values; zone data load only outside of the sandbox
    "activities",  # referred to by workflows, never run by them
    "pydantic",  # models are compiled when their module is imported; once is enough
    "pydantic_core",
    "annotated_types",
    "typing_inspection",
    "workflows.options",  # constants
)
"""What workflows may share with the process. `workflows` as a whole is not among them: its globals would be shared too."""


def horarium_plugin() -> SimplePlugin:
    """What every client of ours connects with; its workers inherit it."""
    return SimplePlugin(
        "horarium",
        data_converter=pydantic_data_converter,
        workflow_runner=_runner,
        workflows=_workflows,  # a callable: only a worker that asked for workflows is given them
    )


def _workflows(asked: object) -> list[type]:
    """A worker of activities alone passes none, and stays one."""
    return [ScheduleWorkflow, RunWorkflow] if asked is None or asked else []


def _runner(_given: WorkflowRunner | None) -> WorkflowRunner:
    restrictions = dataclasses.replace(
        SandboxRestrictions.default,
        # A forgotten passthrough is an error when the worker starts, not a slow surprise later.
        import_notification_policy=SandboxImportNotificationPolicy.RAISE_ON_UNINTENTIONAL_PASSTHROUGH,
    ).with_passthrough_modules(*PASSTHROUGH)
    return SandboxedWorkflowRunner(restrictions=restrictions)
