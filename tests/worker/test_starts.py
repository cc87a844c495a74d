"""A process tells how many runs did not start: soon after, and before it leaves."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from horarium.control.starts import STARTS, StartFailures
from horarium.errors import Misconfigured
from starter import api, controller
from worker import processes, starts
from worker.settings import load
from worker.starts import totals_told


def test_whoever_leaves_in_the_middle_of_a_burst_has_told_its_total() -> None:
    failures = StartFailures()

    async def live() -> None:
        async with totals_told(failures):
            failures.note(run_id="one")
            failures.note(run_id="two")

    with capture_logs() as logs:
        asyncio.run(live())
    assert [(each["event"], each.get("total")) for each in logs] == [
        ("run_not_started", None),
        ("run_not_started", None),
        ("starts_failed", 2),
    ]


def test_so_has_one_that_fails() -> None:
    failures = StartFailures()

    async def live() -> None:
        async with totals_told(failures):
            failures.note(run_id="one")
            raise ZeroDivisionError

    with capture_logs() as logs, pytest.raises(ZeroDivisionError):
        asyncio.run(live())
    assert logs[-1]["event"] == "starts_failed"


def test_a_total_comes_while_the_process_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts, "LOOK_EVERY", timedelta(milliseconds=5))
    passed = [0.0]
    failures = StartFailures(elapsed=lambda: passed[0])

    async def live() -> None:
        async with totals_told(failures), asyncio.timeout(60):
            failures.note(run_id="one")
            passed[0] = 3_600.0
            while not any(each["event"] == "starts_failed" for each in logs):  # noqa: ASYNC110 - a log has no event
                await asyncio.sleep(0.005)

    with capture_logs() as logs:
        asyncio.run(live())
    assert [each["event"] for each in logs] == ["run_not_started", "starts_failed"]


@pytest.mark.parametrize(
    "process",
    [
        lambda settings: processes.serve(settings, ["runs"]),
        controller.control,
        lambda settings: api.serve(settings, host="127.0.0.1", port=0),
    ],
    ids=["worker", "controller", "api"],
)
def test_each_process_that_settles_runs_leaves_no_total_untold(process: Any, tmp_path: Path) -> None:
    settings = load({}, data=tmp_path / "nowhere")

    async def live() -> None:
        STARTS.note(run_id="one")
        await process(settings)

    with capture_logs() as logs, pytest.raises(Misconfigured):
        asyncio.run(live())
    assert logs[-1]["event"] == "starts_failed"
