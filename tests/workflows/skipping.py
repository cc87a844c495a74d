"""A house on Temporal's time-skipping server: a year passes in seconds, and stands still while work is under way."""

import contextlib
import logging
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import structlog
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.testing import WorkflowEnvironment

from activities.clock import WorkerClock
from activities.pace import Pace
from activities.search_attributes import ALL
from activities.timetable import Timetable
from tests.workflows.house import House, house
from worker.plugin import horarium_plugin
from workflows.run import RunWorkflow

SERVER = Path(sys.executable).with_name("temporal-test-server")
AT_ONCE = Pace(lead=timedelta(0), spread=timedelta(0), look_after=timedelta(seconds=47))
"""Nothing is staged ahead, so that no wait for a nominal second holds the server's time back. A look never falls due just when a
run of whole minutes ends: the test server cannot cancel a timer that fires, and stands still for good."""
LONGEST_SLEEP = timedelta(days=14)
"""What one call may sleep: more occurrences than that take longer than a call may."""
SKEWED = "clock_skew"
"""The warning that a worker gives of a server whose time runs away from its own, which is the point of this one."""


@dataclass(kw_only=True)
class SkippingHouse(House):
    """A house whose time the test moves."""

    environment: WorkflowEnvironment
    expected: list[str] = field(default_factory=list)
    """Parts of the warnings that this test provokes; any other makes it fail."""

    async def advance(self, by: timedelta) -> None:
        """Let so much time pass; everything due happens on the way."""
        await self.advance_to(await self.now() + by)

    async def advance_to(self, instant: datetime) -> None:
        while (left := instant - await self.now()) > timedelta(0):
            await self.environment.sleep(min(left, LONGEST_SLEEP))

    async def on_the_minute(self, *, multiple: int = 1) -> datetime:
        """Move to ten seconds before a full minute (of so many), and return that minute."""
        now = await self.now()
        step = timedelta(minutes=multiple)
        minute = now - (now - datetime.min.replace(tzinfo=now.tzinfo)) % step + 2 * step
        await self.advance_to(minute - timedelta(seconds=10))
        return minute


@contextlib.asynccontextmanager
async def skipping_house(
    folder: Path,
    *,
    pace: Pace = AT_ONCE,
    run_workflow: type = RunWorkflow,
    timetable: type[Timetable] = Timetable,
    without: Sequence[str] = (),
    catalog_url: str | None = None,
) -> AsyncIterator[SkippingHouse]:
    """A house of its own server, where every warning that the test does not expect is a failure."""
    async with await WorkflowEnvironment.start_time_skipping(
        test_server_existing_path=str(SERVER), plugins=[horarium_plugin()]
    ) as environment:
        await environment.client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(
                namespace=environment.client.namespace,
                search_attributes={each.name: each.indexed_value_type for each in ALL},
            )
        )
        with _warnings() as warned:
            async with house(
                environment.client,
                folder,
                server_time=environment.get_current_time,
                # Believes the server's last stamp at once: its time jumps, which no real server's does.
                clock=WorkerClock(recent=1),
                pace=pace,
                run_workflow=run_workflow,
                timetable=timetable,
                without=without,
                catalog_url=catalog_url,
            ) as built:
                here = {each.name: getattr(built, each.name) for each in fields(built)}
                inside = SkippingHouse(**here, environment=environment)
                yield inside
        unexpected = [text for text in warned if not any(part in text for part in (SKEWED, *inside.expected))]
        assert unexpected == [], unexpected


@contextlib.contextmanager
def _warnings() -> Any:
    """Collect what is logged as a warning or worse, by us and by the SDK."""
    warned: list[str] = []
    handler = _Collector(warned)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        with structlog.testing.capture_logs() as ours:
            yield warned
    finally:
        root.removeHandler(handler)
        warned += [str(event) for event in ours if event["log_level"] in {"warning", "error", "critical"}]


class _Collector(logging.Handler):
    def __init__(self, into: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._into = into
        self.setFormatter(logging.Formatter())

    def emit(self, record: logging.LogRecord) -> None:
        self._into.append(self.format(record))
