"""What a line of the log is about: schedule, generation, nominal time, run. Each line of an activity has it, unasked.

It follows from the workflow's id, which whoever logs has as a rule, so that nothing has to be handed on.
"""

import re
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any, Final

import structlog
from structlog.typing import WrappedLogger
from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from horarium.schedule.identity import ActivationKey, RunKey, ScheduleKey, instant_text
from horarium.schedule.ledger import BY_CALENDAR

_WORKFLOW_ID: Final = re.compile(
    r"(?P<kind>schedule|run)/(?P<org>[^/]+)/(?P<environment>[^/]+)/(?P<schedule>[0-9a-f-]{36})/(?P<generation>\d+)"
    r"(?:/(?:(?P<nominal>\d{4}-[^/]+Z)|manual/(?P<receipt>[^/]+)))?"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_OF_THE_SDK: Final = ("temporal_workflow", "temporal_activity")
"""Where the SDK's own loggers say what they are about."""
_NAMED_BY_IT: Final = re.compile(r" \(\{'[a-z_]+': .*\}\)\Z", re.DOTALL)
"""Behind the sentences of the SDK's loggers, once more."""


def activation_of(workflow_id: str) -> ActivationKey | None:
    """The activation that a workflow of ours belongs to; None for any other workflow."""
    found = _WORKFLOW_ID.fullmatch(workflow_id)
    if found is None:
        return None
    key = ScheduleKey(org_id=found["org"], environment_id=found["environment"], schedule_id=found["schedule"])
    return ActivationKey(schedule=key, generation=int(found["generation"]))


def run_of(workflow_id: str) -> RunKey | None:
    """The run of a workflow; None for any other workflow. Of one by hand, the nominal time is not known, and is the epoch."""
    found, activation = _WORKFLOW_ID.fullmatch(workflow_id), activation_of(workflow_id)
    if found is None or activation is None or found["kind"] != "run":
        return None
    if found["receipt"]:
        return RunKey(activation=activation, nominal_time=_EPOCH, trigger=f"manual:{found['receipt']}")
    try:
        nominal = datetime.fromisoformat(found["nominal"] or "")
    except ValueError:
        return None
    return RunKey(activation=activation, nominal_time=nominal)


def identity(workflow_id: str) -> dict[str, Any]:
    """The fields that follow from the id of a workflow of ours; empty for any other.

    Of a run by hand the nominal time does not, and the receipt stands in its place.
    """
    activation, run = activation_of(workflow_id), run_of(workflow_id)
    if activation is None:
        return {}
    told: dict[str, Any] = {
        "schedule_id": activation.schedule.schedule_id,
        "generation": activation.generation,
    }
    if run is None:
        return told
    if run.trigger == BY_CALENDAR:
        return {**told, "nominal_time": instant_text(run.nominal_time), "run_id": run.run_id}
    return {**told, "receipt": run.trigger.partition(":")[2], "run_id": run.run_id}


def name_what_it_is_about(
    _logger: WrappedLogger, _method: str, line: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """A processor of structlog: add the fields that follow from a workflow id in the line. What is there already stays."""
    for name in _OF_THE_SDK:
        told = line.pop(name, None)
        if isinstance(told, dict) and "workflow_id" in told:
            line.setdefault("workflow_id", told["workflow_id"])
            line["event"] = _NAMED_BY_IT.sub("", str(line.get("event", "")))
    workflow_id = line.get("workflow_id")
    if isinstance(workflow_id, str):
        for name, value in identity(workflow_id).items():
            line.setdefault(name, value)
    return line


class LogContext(Interceptor):
    """Lets each line that is logged in an activity say what the activity is about."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002 - the SDK's name
        """See `Interceptor.intercept_activity`."""
        return _InContext(super().intercept_activity(next))


class _InContext(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - the SDK's name
        about = identity(activity.info().workflow_id or "")
        with structlog.contextvars.bound_contextvars(**about):
            return await super().execute_activity(input)
