"""Records what the workflows of this release write into Temporal, for later releases to replay.

``python -m tests.workflows.histories.record`` plays each scenario on a development server of its own and writes
``unreleased/SCENARIO.WORKFLOW.json`` beside this file. Whoever makes a release records all of them anew, gives the folder
the release's name, and commits the files; those of older releases stay as long as workflows of theirs may be running.
``must_fail/`` is recorded too, by a workflow that differs on purpose.
"""

import asyncio
import json
import logging
import os
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import structlog
from temporalio.client import Client, WorkflowHandle, WorkflowHistory

from activities.clock import WorkerClock
from activities.messages import OUTCOME_REPORTED
from activities.pace import Pace
from horarium.catalog import presence
from horarium.catalog.declarations import declare
from horarium.control import administration, outcomes
from horarium.control.principals import local_principal
from horarium.control.sweeping import review_enabled_before
from horarium.schedule.identity import ActivationKey, RunKey, ScheduleKey, instant_text, schedule_key
from starter.setup import prepare_temporal
from starter.temporal_server import TemporalServer
from tests.gateway.wire import receiver, says
from tests.workflows.documents import every
from tests.workflows.histories.differing import DifferingSchedule
from tests.workflows.house import AGENTS_QUEUE, SCOPE, House, house
from tests.workflows.test_manual import triggered
from worker.exit import run
from worker.plugin import horarium_plugin
from workflows.schedule import ScheduleWorkflow

HERE = Path(__file__).parent
MUST_FAIL = "must_fail"
UNRELEASED = "unreleased"
SECOND = timedelta(seconds=1)
HALF = timedelta(milliseconds=500)
PACE = Pace(lead=HALF, spread=timedelta(0), look_after=2 * SECOND)
TRACES = {"identity", "stackTrace", "requestId", "originalExecutionRunId"}
"""What a history holds of the machine that it was recorded on, and no replay reads."""

OPERATOR = local_principal("local:operator", SCOPE)

Recorded = dict[str, WorkflowHandle[Any, Any]]
"""What to keep of a scenario, by the workflow's word: `schedule`, `run`."""
Scenario = Callable[[House], Awaitable[Recorded]]


async def plain(house: House) -> Recorded:
    """Two runs, one after the other, then a pause."""
    key, activation = await enabled(house, "plain", every(2))
    first, _ = await begun(house, 2)
    await asyncio.sleep(0.5)
    await house.paused(key)
    return await closed(house, activation, first)


async def skipped(house: House) -> Recorded:
    """A run that covers several instants, and its nudge."""
    house.agent.usual = 2.5
    key, activation = await enabled(house, "skipped", every(1))
    first, _ = await begun(house, 2)
    await house.paused(key)
    return await closed(house, activation, first)


async def buffered(house: House) -> Recorded:
    """Instants that wait, one of which gets its turn; the rest are dropped when the schedule is retired."""
    house.agent.usual = 2.5
    key, activation = await enabled(house, "buffered", every(1, overlap="buffer_all"))
    first, _ = await begun(house, 2)
    await house.retired(key)
    return await closed(house, activation, first)


async def failed(house: House) -> Recorded:
    """A run that fails and sends its activation to review; nobody tells the schedule's workflow."""
    house.agent.usual = RuntimeError("the folder is gone")
    _, activation = await enabled(house, "failed", every(2, pause_on_failure=True))
    (first,) = await begun(house, 1)
    return await closed(house, activation, first)


async def timed_out(house: House) -> Recorded:
    """A run that passes its time limit."""
    house.agent.usual = 30.0
    key, activation = await enabled(house, "timed_out", every(3_600, offset=soon()))
    (first,) = await begun(house, 1)
    await run_of(house, activation, first).result()
    await house.paused(key)
    return await closed(house, activation, first)


async def refused(house: House) -> Recorded:
    """A run whose agent is away."""
    key, activation = await enabled(house, "refused", every(2))
    await house.catalog.write(presence.release_agent, SCOPE, "worked@1", now=datetime.now(UTC))
    await house.until(lambda: any(entry.closed_at for entry in house.entries(key)))
    await house.paused(key)
    return await closed(house, activation, house.entries(key)[0].first_at)


async def not_picked_up(house: House) -> Recorded:
    """A run that no runner takes in time."""
    key, activation = await enabled(house, "not_picked_up", every(3_600, offset=soon(), window=10))
    await house.until(lambda: any(entry.closed_at for entry in house.entries(key)), within=30)
    await house.paused(key)
    return await closed(house, activation, house.entries(key)[0].first_at)


async def cancelled_waiting(house: House) -> Recorded:
    """A run that is cancelled before its second."""
    key, activation = await enabled(house, "cancelled_waiting", every(2))
    await house.until(lambda: house.entries(key))
    instant = house.entries(key)[0].first_at
    await run_of(house, activation, instant).cancel()
    await run_of(house, activation, instant).result()
    await house.paused(key)
    return await closed(house, activation, instant)


async def cancelled_working(house: House) -> Recorded:
    """A run that is cancelled in the middle of its agent's work."""
    house.agent.usual = 30.0
    key, activation = await enabled(house, "cancelled_working", every(3_600, offset=soon()))
    (first,) = await begun(house, 1)
    await run_of(house, activation, first).cancel()
    await run_of(house, activation, first).result()
    await house.paused(key)
    return await closed(house, activation, first)


async def withdrawn(house: House) -> Recorded:
    """A pause inside the staging lead."""
    key, activation = await enabled(house, "withdrawn", every(2))
    await house.until(lambda: house.entries(key))
    instant = house.entries(key)[0].first_at
    await house.paused(key)
    return await closed(house, activation, instant)


async def outage(house: House) -> Recorded:
    """A catalog that does not answer for a while, for a step and for a settlement."""
    house.agent.usual = 1.0
    key, activation = await enabled(house, "outage", every(2))
    (first,) = await begun(house, 1)
    house.catalog.is_out = True
    await asyncio.sleep(3)
    house.catalog.is_out = False
    await house.until(lambda: house.entries(key)[0].closed_at)
    await asyncio.sleep(2)
    await house.paused(key)
    return await closed(house, activation, first)


async def started_late(house: House) -> Recorded:
    """A workflow that starts long after its activation, and an end of the calendar."""
    now = datetime.now(UTC)
    document = every(1, window=10, end_at=instant_text((now + SECOND).replace(microsecond=0)))
    key = await house.published(document, _schedule("started_late"))
    changed = await house.enabled(key, now=now - timedelta(minutes=5), start=False)
    await house.temporal.start_schedule(changed.key)
    return {"schedule": await _closed(house, changed.key)}


async def continued(house: House) -> Recorded:
    """A workflow that begins anew after every second step."""
    key, activation = await enabled(house, "continued", every(2))
    await begun(house, 3)
    await house.paused(key)
    last = await _closed(house, activation)
    first = house.client.get_workflow_handle(activation.workflow_id, run_id=last.first_execution_run_id)
    return {"first": first, "last": last}


async def ended_before(house: House) -> Recorded:
    """A workflow that is started for an activation that has ended."""
    key = await house.published(every(60), _schedule("ended_before"))
    changed = await house.enabled(key, start=False)
    await house.paused(key)
    await house.temporal.start_schedule(changed.key)
    return {"schedule": await _closed(house, changed.key)}


async def posted(house: House) -> Recorded:
    """A run of an agent elsewhere, that reports its outcome."""
    async with _agent_elsewhere(house, "posted") as (key, activation, instant):
        run = RunKey(activation=activation, nominal_time=instant)
        said = outcomes.OutcomeReport(outcome="succeeded", summary="worked")
        await house.catalog.write(outcomes.report, SCOPE, run.run_id, said, now=datetime.now(UTC))
        await run_of(house, activation, instant).signal(OUTCOME_REPORTED)
        await run_of(house, activation, instant).result()
        await house.paused(key)
        return await closed(house, activation, instant)


async def polled(house: House) -> Recorded:
    """A run of an agent elsewhere, that is asked for its outcome."""
    async with _agent_elsewhere(house, "polled", by="poll") as (key, activation, instant):
        await run_of(house, activation, instant).result()
        await house.paused(key)
        return await closed(house, activation, instant)


async def unreported(house: House) -> Recorded:
    """A run of an agent elsewhere, that never reports its outcome."""
    async with _agent_elsewhere(house, "unreported") as (key, activation, instant):
        await run_of(house, activation, instant).result()
        await house.paused(key)
        return await closed(house, activation, instant)


async def cancelled_elsewhere(house: House) -> Recorded:
    """A run of an agent elsewhere that is cancelled, and its agent told."""
    async with _agent_elsewhere(house, "cancelled_elsewhere") as (key, activation, instant):
        await run_of(house, activation, instant).cancel()
        await run_of(house, activation, instant).result()
        await house.paused(key)
        return await closed(house, activation, instant)


async def by_hand(house: House) -> Recorded:
    """A run that a person asks for, of a schedule that is not due for days."""
    key, activation = await enabled(house, "by_hand", every(86_400 * 300))
    run = await triggered(house, key)
    await house.starter.start(run)
    await house.workflow(run).result()
    await house.paused(key)
    return {"schedule": await _closed(house, activation), "run": house.workflow(run)}


async def stopped(house: House) -> Recorded:
    """A run that meets a kill switch at its second."""
    key, activation = await enabled(house, "stopped", every(2))
    because = {"everywhere": False, "because": "an incident"}
    await house.catalog.write(administration.stop, OPERATOR, SCOPE, because, "stop", now=datetime.now(UTC))
    await house.until(lambda: any(entry.closed_at for entry in house.entries(key)))
    await house.catalog.write(
        administration.lift, OPERATOR, SCOPE, {"everywhere": False}, "lift", now=datetime.now(UTC)
    )
    await house.paused(key)
    return await closed(house, activation, house.entries(key)[0].first_at)


async def reset(house: House) -> Recorded:
    """A reset sends the activation to review, while a run that was started before it goes on."""
    house.agent.usual = 3.0
    _, activation = await enabled(house, "reset", every(2, overlap="allow"))
    (first,) = await begun(house, 1)
    about = {"because": "a new cast", "expected_environment_epoch": 1, "expected_reset_generation": 1}
    await house.catalog.write(administration.reset, OPERATOR, SCOPE, about, "reset", now=datetime.now(UTC))
    await house.catalog.write(review_enabled_before, [activation], now=datetime.now(UTC))
    await house.temporal.signal(activation, "review")
    return await closed(house, activation, first)


async def differing(house: House) -> Recorded:
    """The plain schedule, by a workflow that sleeps before its first step."""
    key, activation = await enabled(house, "differing", every(2))
    await begun(house, 1)
    await house.paused(key)
    return {"schedule": await _closed(house, activation)}


SCENARIOS: Sequence[Scenario] = (
    plain,
    skipped,
    buffered,
    failed,
    timed_out,
    refused,
    not_picked_up,
    cancelled_waiting,
    cancelled_working,
    withdrawn,
    outage,
    started_late,
    continued,
    ended_before,
    posted,
    polled,
    unreported,
    cancelled_elsewhere,
    by_hand,
    stopped,
    reset,
)


@asynccontextmanager
async def _agent_elsewhere(
    house: House, name: str, *, by: str = "callback"
) -> AsyncIterator[tuple[ScheduleKey, ActivationKey, datetime]]:
    """A run that an agent elsewhere has taken; it says that it succeeded, where it is asked."""
    os.environ["HORARIUM_SECRET_RECORDED"] = "a-secret-of-thirty-two-bytes-no-less"
    body = b'{"outcome": "succeeded", "summary": "worked"}'
    said = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    async with receiver(says(said)) as there:
        to = {"url": there.url(), "secret": "HORARIUM_SECRET_RECORDED", "private": True, "outcome": by}
        agent = {"max_cost": 0, "max_run_seconds": 4, "gateway": "http", "destination": "elsewhere"}
        for kind, named, facts in (("destination", "elsewhere", to), ("agent", "posted@1", agent)):
            await house.catalog.write(declare, SCOPE, kind, named, facts, version=1, everywhere=False)
        document = every(3_600, offset=soon())
        document["run"]["agent_version"] = "posted@1"
        key, activation = await enabled(house, name, document)
        await house.until(lambda: house.runs(key) and house.runs(key)[0].begun_at)
        # The activity has told the workflow by then.
        await asyncio.sleep(0.5)
        yield key, activation, house.entries(key)[0].first_at


async def enabled(house: House, name: str, document: dict[str, Any]) -> tuple[ScheduleKey, ActivationKey]:
    key = await house.published(document, _schedule(name))
    return key, (await house.enabled(key)).key


async def begun(house: House, count: int) -> list[datetime]:
    """The first nominal times that an agent has begun."""
    await house.until(lambda: len(house.begun) >= count)
    return house.begun[:count]


async def closed(house: House, activation: ActivationKey, instant: datetime) -> Recorded:
    run_handle = run_of(house, activation, instant)
    await run_handle.result()
    return {"schedule": await _closed(house, activation), "run": run_handle}


def run_of(house: House, activation: ActivationKey, instant: datetime) -> WorkflowHandle[Any, Any]:
    return house.workflow(RunKey(activation=activation, nominal_time=instant))


def soon() -> int:
    """The offset of an hourly interval whose next instant is about two seconds away."""
    return int(datetime.now(UTC).timestamp() + 2) % 3_600


@asynccontextmanager
async def house_for(client: Client, scenario: Scenario, folder: Path) -> AsyncIterator[House]:
    async with house(
        client,
        folder,
        server_time=_now,
        clock=WorkerClock(),
        pace=Pace(lead=HALF, spread=timedelta(0), look_after=2 * SECOND, steps_per_run=2)
        if scenario is continued
        else PACE,
        schedule_workflow=DifferingSchedule if scenario is differing else ScheduleWorkflow,
        without=[AGENTS_QUEUE] if scenario is not_picked_up else [],
    ) as built:
        yield built


async def record(server: TemporalServer, scenario: Scenario, folder: Path, into: Path) -> None:
    """Play a scenario in a house of its own and write its histories into a folder."""
    client = await Client.connect(server.address, namespace=server.namespace, plugins=[horarium_plugin()])
    await prepare_temporal(client)
    async with house_for(client, scenario, folder) as built:
        for word, handle in (await scenario(built)).items():
            _write(into / f"{scenario.__name__}.{word}.json", await handle.fetch_history())


def _schedule(name: str) -> ScheduleKey:
    return schedule_key(SCOPE, str(uuid.uuid5(uuid.NAMESPACE_URL, f"horarium:history:{name}")))


async def _closed(house: House, activation: ActivationKey) -> WorkflowHandle[Any, Any]:
    """The last execution of a schedule's workflow, once it has ended."""
    handle = house.workflow(activation)
    await handle.result()
    description = await handle.describe()
    first = description.raw_description.workflow_execution_info.first_run_id
    return house.client.get_workflow_handle(
        activation.workflow_id, run_id=description.run_id, first_execution_run_id=first
    )


async def _now() -> datetime:
    return datetime.now(UTC)


def _write(path: Path, history: WorkflowHistory) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    told = _without_traces(json.loads(history.to_json()))
    path.write_text(json.dumps(told, separators=(",", ":"), sort_keys=True) + "\n")


def _without_traces(value: Any) -> Any:
    match value:
        case {"kind": "TASK_QUEUE_KIND_STICKY", "normalName": normal}:  # named for the process
            return {"name": normal, "kind": "TASK_QUEUE_KIND_NORMAL"}
        case dict():
            return {name: _without_traces(part) for name, part in value.items() if name not in TRACES}
        case list():
            return [_without_traces(part) for part in value]
        case _:
            return value


async def main(names: Sequence[str]) -> None:
    """Record all scenarios, or those that are named."""
    logging.disable()  # failures are what some of the scenarios are about
    with tempfile.TemporaryDirectory() as folder:
        server = TemporalServer(Path(folder) / "temporal", port=0, headless=True)
        await server.start()
        try:
            for scenario in (*SCENARIOS, differing):
                name = scenario.__name__
                if not names or name in names:
                    into = HERE / (MUST_FAIL if scenario is differing else UNRELEASED)
                    with structlog.testing.capture_logs():
                        await record(server, scenario, Path(folder) / name, into)
                    print(f"recorded {into.name}/{name}")
        finally:
            await server.stop()


if __name__ == "__main__":
    run(main(sys.argv[1:]))
