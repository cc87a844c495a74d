"""Of a whole installation, the processes count together what the ledger holds, and the SDK's figures are beside ours."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.samples import Sample

from horarium.schedule.ledger import Disposition
from starter.child import Child
from tests.end_to_end.installation import USUAL, Installation, installation, until
from tests.metrics.figures import fetch, samples, summed, told_address
from tests.metrics.test_monitoring import GROUPING, expressions

pytestmark = pytest.mark.server

ENDED = "horarium_occurrences_total"
OF_A_KIND = frozenset(
    {"namespace", "service_name", "operation", "status_code", "task_queue", "worker_type", "poller_type"}
    | {"workflow_type", "activity_type", "failure_reason", "eager", "le"}
)
"""What the SDK tells its series apart by. A queue is one of ours, or of an agent's version that is served there."""
ID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}|^(?:run|schedule)/")
"""In every UUID of a schedule, run or worker, and in every id of a workflow."""


async def start_measured(it: Installation, part: str) -> None:
    """Start a part that serves its figures at a free port."""
    program = it.program(part, part, crashing=False)
    it.children[part] = Child(replace(program, environment={**program.environment, "HORARIUM_METRICS_PORT": "0"}))
    await it.start(part)


def of_the_sdk() -> Iterator[tuple[str, frozenset[str]]]:
    """The SDK's figures that the dashboard names, with what their series are told apart by."""
    for _, expression in expressions():
        grouped = frozenset(each for names in GROUPING.findall(expression) for each in re.split(r",\s*", names))
        for name in re.findall(r"\btemporal_\w+", expression):
            # Of calls that failed there are none here.
            if "request_failure" not in name:
                yield name, grouped


def pages(it: Installation) -> dict[str, list[Sample]]:
    return {part: samples(fetch(told_address(it.folder / "logs" / f"{part}.log"))) for part in USUAL}


def bounded(found: Iterable[Sample]) -> None:
    """Of the SDK's series there are as many as there are kinds of work, however much is done: none is told apart by an id."""
    for each in found:
        if each.name.startswith("temporal_"):
            assert set(each.labels) <= OF_A_KIND, each
            assert not any(ID.search(value) for value in each.labels.values()), each


async def story(folder: Path) -> None:
    async with installation(folder, parts=()) as it:
        await asyncio.gather(*(start_measured(it, part) for part in USUAL))
        good = await it.published(every=4)
        bad = await it.published(every=5, fails=True)
        for key in (good, bad):
            await it.enabled(key)
        for key in (good, bad):
            await it.until_closed(key, 3)
        await it.proven(good, bad)
        ledger: Counter[str] = Counter()
        begun = 0
        for key in (good, bad):
            for entry, run in it.rows(key):
                # What a pause drops is counted by the process that paused, which is this one.
                if entry.disposition is not Disposition.DROPPED:
                    ledger[entry.disposition.value] += entry.count
                begun += run is not None and run.begun_at is not None
        assert ledger["succeeded"] >= 2
        assert ledger["failed"] >= 2

        def counted() -> bool:
            nonlocal found
            found = pages(it)
            everything = [each for page in found.values() for each in page]
            counts = {name: summed(everything, ENDED, disposition=name) for name in ledger}
            return counts == dict(ledger)

        found: dict[str, list[Sample]] = {}
        # What is done after a commit is done a moment after it.
        await until(counted, lambda: f"the counts to be {ledger}", within=30)
        assert summed(found["agents"], "horarium_lateness_seconds_count", gateway="temporal") == begun
        assert summed(found["runs"], "horarium_admission_seconds_count", decision="admitted") >= begun
        assert summed(found["controller"], "horarium_controller_sweep_seconds_count") >= 1
        for part, name in (
            ("schedules", "temporal_workflow_task_execution_latency_seconds_count"),
            ("runs", "temporal_activity_execution_latency_seconds_count"),
            ("agents", "temporal_activity_execution_latency_seconds_count"),
            ("controller", "temporal_request_total"),
        ):
            assert summed(found[part], name) > 0, sorted({each.name for each in found[part]})
        bounded(each for page in found.values() for each in page)
        told = {each.name: frozenset(each.labels) for page in found.values() for each in page}
        for name, labels in of_the_sdk():
            assert name in told, (name, sorted(told))
            assert labels <= told[name] | {"job", "le"}, (name, told[name])


def test_what_the_processes_count_together_is_what_the_ledger_holds(tmp_path: Path) -> None:
    asyncio.run(story(tmp_path))
