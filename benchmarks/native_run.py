"""A run that a native schedule starts again and again with the same input: the run workflow, which first finds out which run.

It is the same in one workflow: `RunWorkflow` with one local activity before it, which stages the run of the nominal time that
the server tells. That is one transaction of the catalog's more before the agent begins than in a run of ours, which was staged
seconds before; nobody who starts runs from a native schedule can do without it.
"""

from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import SearchAttributeKey

from activities.messages import RunClosed, RunScheduled
from horarium.errors import HorariumError
from horarium.schedule.identity import ActivationKey, RunKey

with workflow.unsafe.imports_passed_through():
    # The sandbox imports no module but that of the workflow itself without being told what to make of it.
    from benchmarks.native_staging import Staging
    from workflows.run import RunWorkflow

NATIVE_RUN: Final = "NativeRun"
NATIVE_QUEUE: Final = "bench-native"
_DUE: Final = SearchAttributeKey.for_datetime("TemporalScheduledStartTime")


@workflow.defn(name=NATIVE_RUN, failure_exception_types=[HorariumError])
class NativeRun(RunWorkflow):
    """The run of an activation at the time that a native schedule says."""

    @workflow.init
    def __init__(self, key: ActivationKey) -> None:
        self._run = RunKey(activation=key, nominal_time=workflow.info().typed_search_attributes[_DUE])
        super().__init__(RunScheduled(key=self._run))

    @workflow.run
    async def run(self, _key: ActivationKey) -> RunClosed:  # type: ignore[override] # its input is what such a schedule can give
        """Stage the run, and go on as any other."""
        await workflow.execute_local_activity_method(
            Staging.stage_run, self._run, schedule_to_close_timeout=timedelta(minutes=1)
        )
        return await super().run(RunScheduled(key=self._run))
