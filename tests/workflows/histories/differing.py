"""A schedule's workflow that does one thing before the real one begins, so that no history of either fits the other."""

from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.messages import SCHEDULE_WORKFLOW
    from horarium.errors import HorariumError
    from horarium.schedule.identity import ActivationKey
    from workflows.schedule import ScheduleWorkflow


@workflow.defn(name=SCHEDULE_WORKFLOW, failure_exception_types=[HorariumError])
class DifferingSchedule(ScheduleWorkflow):
    @workflow.init
    def __init__(self, key: ActivationKey) -> None:
        super().__init__(key)

    @workflow.run
    async def run(self, key: ActivationKey) -> str:
        await workflow.sleep(timedelta(milliseconds=10))
        return await super().run(key)
