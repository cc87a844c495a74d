"""What is counted of an occurrence: database statements, requests to Temporal, and the actions that a hosted Temporal bills."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

from sqlalchemy import Connection, Engine, event
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.runtime import MetricBuffer, Runtime, TelemetryConfig

SCHEDULE_STARTS: Final = 3
"""What each action of a native schedule is billed as: two for the schedule, and one for the workflow that it starts."""
HEARTBEAT: Final = "RecordActivityTaskHeartbeat"
"""The request that carries an activity's heartbeat. It leaves no event."""
_REQUESTS: Final = {"temporal_request", "temporal_long_request"}
_BUFFERED: Final = 1_000_000
_OF_TRANSACTIONS: Final = ("BEGIN", "SAVEPOINT", "RELEASE", "ROLLBACK TO")

_ONE_EACH: Final = {
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED: "start_workflow",
    EventType.EVENT_TYPE_TIMER_STARTED: "start_timer",
    EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED: "schedule_activity",
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED: "signal_workflow",
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED: "accept_workflow_update",
    EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES: "upsert_workflow_search_attributes",
}


def actions_of(events: Iterable[HistoryEvent]) -> Counter[str]:
    """The billable actions that some events of a history stand for, by the name that they have in a bill.

    By the published rule (docs.temporal.io, "Temporal Cloud Actions"): a workflow that is started, by continue-as-new too; a
    timer; an activity, and each of its retries; all markers of one workflow task together, which is what local activities
    leave, and their retries after it; a signal; an update; an upsert of search attributes. Heartbeats and queries leave no
    event, and what a namespace with fairness pays in addition, a tenth, is no action of a workflow.
    """
    found: Counter[str] = Counter()
    tasks_with_markers = set()
    for each in events:
        kind = each.event_type
        if kind in _ONE_EACH:
            found[_ONE_EACH[kind]] += 1
        elif kind == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED:
            found["retry_activity"] += each.activity_task_started_event_attributes.attempt - 1
        elif kind == EventType.EVENT_TYPE_MARKER_RECORDED:
            tasks_with_markers.add(each.marker_recorded_event_attributes.workflow_task_completed_event_id)
        elif kind == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            metered = each.workflow_task_completed_event_attributes.metering_metadata
            found["retry_activity_local"] += metered.nonfirst_local_activity_execution_attempts
    found["record_activity_markers"] += len(tasks_with_markers)
    return +found


@dataclass(slots=True)
class Statements:
    """Counts what is asked of a database through some engines: statements, and transactions that read and that write.

    What begins and ends a transaction is no statement here. One statement for many rows is one.
    """

    counted: Counter[str] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    def watch(self, engine: Engine, part: str) -> None:
        """Count an engine's under the name of a part."""

        def executed(_connection: Connection, _cursor: Any, statement: str, *_rest: Any) -> None:
            if not statement.startswith(_OF_TRANSACTIONS):
                self._count(f"{part}: statements")

        def begun(connection: Connection) -> None:
            writes = connection.get_execution_options().get("horarium_writes", False)
            self._count(f"{part}: {'writing' if writes else 'reading'} transactions")

        event.listen(engine, "before_cursor_execute", executed)
        event.listen(engine, "begin", begun)

    def _count(self, what: str) -> None:
        with self._lock:
            self.counted[what] += 1


@dataclass(slots=True)
class Requests:
    """Counts the requests to Temporal of all clients and workers of one runtime, by operation."""

    counted: Counter[str] = field(default_factory=Counter)
    _buffer: MetricBuffer = field(default_factory=lambda: MetricBuffer(_BUFFERED))
    runtime: Runtime = field(init=False)

    def __post_init__(self) -> None:
        self.runtime = Runtime(telemetry=TelemetryConfig(metrics=self._buffer))

    def read(self) -> Counter[str]:
        """All that were made until now, those that wait for work (polls) apart from the others by their names."""
        for update in self._buffer.retrieve_updates():
            if update.metric.name in _REQUESTS:
                self.counted[str(update.attributes["operation"])] += int(update.value)
        return Counter(self.counted)
