"""The one plugin: converter, encryption, sandbox and workflow list, the same for clients, workers and the replayer."""

import dataclasses

from temporalio.client import Interceptor as ClientInterceptor
from temporalio.common import VersioningBehavior
from temporalio.plugin import SimplePlugin
from temporalio.worker import Interceptor as WorkerInterceptor
from temporalio.worker import ReplayerConfig, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxRestrictions
from temporalio.workflow import SandboxImportNotificationPolicy

from horarium import traces
from worker.converter import DATA_CONVERTER, with_keys
from worker.kept_code import keep_code_of
from worker.log_context import LogContext
from worker.payload_keys import read_payload_keys
from worker.sandbox import SandboxWithContexts
from worker.tracing import Tracing
from workflows.pinned_run import PinnedRun
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
    "workflows.description",  # a value
)
"""What workflows may share with the process. `workflows` as a whole is not among them: its globals would be shared too."""


WORKFLOWS = (ScheduleWorkflow, RunWorkflow)
"""What a schedule worker runs, and what stored histories are replayed with."""
VERSIONED_WORKFLOWS = (ScheduleWorkflow, PinnedRun)
"""The same where builds are told apart."""
UNLESS_SAID_OTHERWISE = VersioningBehavior.AUTO_UPGRADE
"""What a new build means to a workflow that does not say so itself. A schedule lives for years, so it moves to each new build,
and changes are patches. A run is pinned, and says so."""


class _HorariumPlugin(SimplePlugin):
    def configure_replayer(self, config: ReplayerConfig) -> ReplayerConfig:
        """Give a replayer our workflows, unless it named others. A worker always names its own: one of activities has none."""
        config = super().configure_replayer(config)
        config["workflows"] = config.get("workflows") or WORKFLOWS
        return config


def horarium_plugin() -> SimplePlugin:
    """What every client of ours connects with; its workers inherit it, and a replayer takes it as it is.

    Raises `Misconfigured` where `HORARIUM_PAYLOAD_KEYS` is not right.
    """
    converter = with_keys(DATA_CONVERTER, read_payload_keys())
    interceptors: list[ClientInterceptor | WorkerInterceptor] = [LogContext()]
    if traces.is_recording():
        interceptors.append(Tracing())
    return _HorariumPlugin("horarium", data_converter=converter, workflow_runner=_runner, interceptors=interceptors)


def _runner(_given: WorkflowRunner | None) -> WorkflowRunner:
    keep_code_of("workflows")
    restrictions = dataclasses.replace(
        SandboxRestrictions.default,
        # A forgotten passthrough is an error when the worker starts, not a slow surprise later.
        import_notification_policy=SandboxImportNotificationPolicy.RAISE_ON_UNINTENTIONAL_PASSTHROUGH,
    ).with_passthrough_modules(*PASSTHROUGH)
    return SandboxWithContexts(restrictions=restrictions)
