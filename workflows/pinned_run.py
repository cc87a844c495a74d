"""A run that ends on the build it began on.

It has a module of its own because the sandbox defines all workflows of a module anew for each run, whichever it is of.
"""

from temporalio import workflow
from temporalio.common import VersioningBehavior

from activities.messages import RUN_WORKFLOW, RunClosed, RunScheduled
from horarium.errors import HorariumError

with workflow.unsafe.sandbox_import_notification_policy(workflow.SandboxImportNotificationPolicy.SILENT):
    # Imported for each run as a workflow's own module is, which the sandbox takes for an oversight unless it is told.
    from workflows.run import RunWorkflow


@workflow.defn(
    name=RUN_WORKFLOW, failure_exception_types=[HorariumError], versioning_behavior=VersioningBehavior.PINNED
)
class PinnedRun(RunWorkflow):
    """The same for workers of a named build: a run ends on the one that it began on, whose workers stay until it has.

    Only for them: the server accepts nothing from a worker without a build whose workflow says this (SDK 1.35.0).
    """

    @workflow.init
    def __init__(self, run: RunScheduled) -> None:
        super().__init__(run)

    @workflow.run
    async def run(self, run: RunScheduled) -> RunClosed:
        """As without a build."""
        return await super().run(run)
