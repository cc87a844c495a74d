"""Workers of one build replace those of another while schedules fire: none of their instants is missed or doubled."""

import asyncio
import dataclasses
import json
import os
import sys
import time

import pytest
from temporalio.common import VersioningBehavior
from temporalio.worker import Replayer

from horarium.schedule.identity import ActivationKey, RunKey, ScheduleKey
from starter.temporal_server import find_temporal
from tests.end_to_end.installation import REPOSITORY, installation, until
from worker.plugin import horarium_plugin
from worker.settings import Deployment

pytestmark = pytest.mark.server

NAME = "rolled"
DRAINS_SOON = {
    "matching.wv.VersionDrainageStatusRefreshInterval": "1s",
    "matching.wv.VersionDrainageStatusVisibilityGracePeriod": "2s",
}
"""The server asks for runs of a build every three minutes by default."""
LATE = 20
"""Seconds. A roll may cost a run what a killed schedule worker costs, on a machine that starts two processes meanwhile."""


async def started(it, build_id: str) -> None:
    """Start both workers of a build, as an operator does, in an environment that names it."""
    usual = it.settings
    it.settings = dataclasses.replace(usual, deployment=Deployment(name=NAME, build_id=build_id))
    starting = [it.start(part, name=f"{part}-{build_id}") for part in ("schedules", "runs")]
    try:
        await asyncio.gather(*starting)
    finally:
        it.settings = usual


async def stopped(it, build_id: str) -> None:
    for part in ("schedules", "runs"):
        assert await it.stop(f"{part}-{build_id}") == 0, it.children[f"{part}-{build_id}"].last_words()


async def commanded(it, *arguments: str) -> dict:
    """What `horarium deployment` says at this installation's Temporal server."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "starter", "deployment", *arguments, "-o", "json"),
        cwd=REPOSITORY,
        env={**os.environ, "TEMPORAL_ADDRESS": it.server.address, "HORARIUM_DEPLOYMENT": NAME},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return json.loads(said)


async def standings(it) -> dict[str, str]:
    return {each["build_id"]: each["standing"] for each in (await commanded(it, "show"))["builds"]}


async def build_of(it, workflow_id: str) -> tuple[VersioningBehavior, str]:
    """How a workflow takes an upgrade, and the build that went on with it last."""
    description = await it.client.get_workflow_handle(workflow_id).describe()
    info = description.raw_description.workflow_execution_info.versioning_info
    return VersioningBehavior(info.behavior), info.deployment_version.build_id


async def rolled(it, build_id: str, schedules) -> None:
    """Make a build current, and wait until every schedule is with it."""
    began = time.monotonic()
    assert (await commanded(it, "current", build_id))["build_id"] == build_id
    commanded_in = time.monotonic() - began
    for key in schedules:
        await until(lambda key=key: _is_with(it, key.workflow_id, build_id), f"build {build_id} of {key.workflow_id}")
    print(f"rolled to {build_id} in {time.monotonic() - began:.1f} s, the command took {commanded_in:.1f} s")


async def _is_with(it, workflow_id: str, build_id: str) -> bool:
    return await build_of(it, workflow_id) == (VersioningBehavior.AUTO_UPGRADE, build_id)


async def drained(it, build_id: str) -> bool:
    return (await standings(it))[build_id] == "drained"


def answers(it, key) -> int:
    return sum(entry.count for entry, _ in it.rows(key) if entry.closed_at)


async def until_more(it, keys, *, more: int = 3) -> None:
    had = {key: answers(it, key) for key in keys}
    for key in keys:
        await it.until_closed(key, had[key] + more)


async def until_over(it, keys) -> None:
    """Wait until everything is over that is staged, waits or runs now: what comes later begins on the current build."""
    had = {key: max(entry.first_at for entry, _ in it.rows(key)) for key in keys}
    for key, last in had.items():
        await until(
            lambda key=key, last=last: all(entry.closed_at for entry, _ in it.rows(key) if entry.first_at <= last),
            lambda key=key, last=last: f"an end of all until {last}; the ledger says {it.told(key)}",
        )
    await until_more(it, keys, more=1)


async def held(it) -> tuple[ScheduleKey, ActivationKey]:
    """A schedule with one run, soon, which goes on until it is let go."""
    key = await it.published(every=3600, offset=int(time.time() + 8) % 3600)
    (it.folder / "held").touch()
    script = {"seconds": 0, "while": str(it.folder / "held")}
    (it.settings.content.inputs / f"{key.schedule_id}.json").write_text(json.dumps(script))
    return key, (await it.enabled(key)).key


def let_go(it) -> None:
    (it.folder / "held").unlink()


def run_of(activation, entry) -> str:
    return RunKey(activation=activation, nominal_time=entry.first_at).workflow_id


def test_builds_replace_each_other_under_schedules_that_fire(tmp_path):
    """From workers without a build to one, to the next, and back."""
    asyncio.run(_replaced(tmp_path))


async def _replaced(folder):
    async with installation(folder, dynamic_config=DRAINS_SOON) as it:
        fast = [await it.published(every=1, overlap="allow"), await it.published(every=2, overlap="allow")]
        activations = [(await it.enabled(key)).key for key in fast]
        await until_more(it, fast)

        await started(it, "1")
        await rolled(it, "1", activations)
        for part in ("schedules", "runs"):
            await it.stop(part)
        await until_more(it, fast)

        await started(it, "2")
        lasting, slow = await held(it)
        await until(lambda: it.begun(lasting), "the run that lasts")
        await rolled(it, "2", activations)
        await until_over(it, fast)
        ((entry, _),) = it.rows(lasting)
        assert await build_of(it, run_of(slow, entry)) == (VersioningBehavior.PINNED, "1")
        newest = [each for each, _ in it.rows(fast[0]) if each.closed_at][-1]
        assert await build_of(it, run_of(activations[0], newest)) == (VersioningBehavior.PINNED, "2")
        assert (await standings(it))["1"] == "draining"
        let_go(it)
        await it.until_closed(lasting, 1)
        assert it.told(lasting) == ["succeeded"]
        assert await build_of(it, run_of(slow, entry)) == (VersioningBehavior.PINNED, "1")
        await until(lambda: drained(it, "1"), "build 1 to be drained")
        await stopped(it, "1")
        await until_more(it, fast)

        await started(it, "1")
        await rolled(it, "1", activations)
        await until(lambda: drained(it, "2"), "build 2 to be drained")
        await stopped(it, "2")
        await until_more(it, fast)

        await it.proven(*fast, lasting)
        for key in fast:
            # What was due just when it was paused may have come too late for a decision; nothing before that may be dropped.
            fates = {each.lstrip("0123456789 ") for each in it.told(key)}
            assert fates <= {"succeeded", "dropped paused"}
            late = [
                (run.begun_at - entry.first_at).total_seconds() for entry, run in it.rows(key) if run and run.begun_at
            ]
            print(f"{len(late)} runs, the latest by {max(late):.2f} s")
            assert max(late) < LATE
        *_, last = (entry for entry, run in it.rows(fast[0]) if run is not None and run.begun_at)
        for workflow_id in (activations[0].workflow_id, run_of(activations[0], last)):
            history = await it.client.get_workflow_handle(workflow_id).fetch_history()
            print(f"{len(history.events)} events in the last history of {workflow_id.partition('/')[0]}")
            await Replayer(workflows=[], plugins=[horarium_plugin()]).replay_workflow(history)
        assert it.deaths == []


def test_a_run_whose_build_lost_its_workers_is_told_of_and_can_be_moved_by_hand(tmp_path):
    asyncio.run(_stranded(tmp_path))


async def _stranded(folder):
    async with installation(folder, parts=("impatient", "agents")) as it:
        await started(it, "1")
        await commanded(it, "current", "1")
        fast = await it.published(every=1, overlap="allow")
        activation = (await it.enabled(fast)).key
        await started(it, "2")
        lasting, slow = await held(it)
        await until(lambda: it.begun(lasting), "the run that lasts")
        await rolled(it, "2", [activation])
        await until_over(it, [fast])  # and so those that began on build 1
        await stopped(it, "1")
        log = it.children["impatient"].program.log
        await until(lambda: "pinned_runs_without_workers" in log.read_text(), "the controller's word")
        told = next(json.loads(line) for line in log.read_text().splitlines() if "pinned_runs_without" in line)
        ((entry, _),) = it.rows(lasting)
        run = run_of(slow, entry)
        assert (told["deployment"], told["build_id"], told["for_example"]) == (NAME, "1", run)
        let_go(it)
        process = await asyncio.create_subprocess_exec(
            *(find_temporal(), "workflow", "update-options", "--address", it.server.address, "--workflow-id", run),
            *("--versioning-override-behavior", "auto_upgrade"),
        )
        assert await process.wait() == 0
        await it.until_closed(lasting, 1)
        assert it.told(lasting) == ["succeeded"]
        await it.proven(fast, lasting)
