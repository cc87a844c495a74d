"""Histories of every release, replayed by the workflows as they are now: what is running goes on after an upgrade."""

import re
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from tests.workflows.histories.record import HERE, MUST_FAIL, SCENARIOS, UNRELEASED
from worker.plugin import horarium_plugin

RECORDED = sorted(path for path in HERE.glob("*/*.json") if path.parent.name != MUST_FAIL)
LARGEST_BYTES = 100_000


def history(path: Path) -> WorkflowHistory:
    return WorkflowHistory.from_json(path.stem, path.read_text())


def replayer() -> Replayer:
    """With the plugin alone, as a worker has it: the same workflows, sandbox and converter."""
    return Replayer(workflows=[], plugins=[horarium_plugin()])


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.stem}")
async def test_a_recorded_history_replays(path):
    await replayer().replay_workflow(history(path))


@pytest.mark.parametrize("path", sorted((HERE / MUST_FAIL).glob("*.json")), ids=lambda path: path.stem)
async def test_a_history_of_a_differing_workflow_does_not_replay(path):
    """Or the tests above could not fail."""
    with pytest.raises(NondeterminismError):
        await replayer().replay_workflow(history(path))


def test_something_is_there_that_must_fail():
    assert list((HERE / MUST_FAIL).glob("*.json"))


def test_every_scenario_was_recorded_for_the_next_release():
    recorded = {path.name.split(".")[0] for path in RECORDED if path.parent.name == UNRELEASED}
    assert recorded == {scenario.__name__ for scenario in SCENARIOS}


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_recorded_history_is_small_and_tells_nothing_of_a_machine(path):
    text = path.read_text()
    assert len(text) < LARGEST_BYTES
    assert not re.search(r'"(identity|stackTrace)"|\d+@\w', text)
