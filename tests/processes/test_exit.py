"""How a process leaves: the status that it reports and what it says last."""

import gc
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from horarium.errors import Misconfigured, NotFound
from starter.temporal_server import TemporalServer
from worker import exit as way_out

REPOSITORY = Path(__file__).parents[2]


async def returns(value: int | None) -> int | None:
    return value


async def raises(error: BaseException) -> int | None:
    raise error


def leave(main, capsys) -> tuple[int, str]:
    """The exit status and what was said on stderr."""
    with pytest.raises(SystemExit) as leaving:
        way_out.run(main)
    return leaving.value.code, capsys.readouterr().err


@pytest.mark.parametrize(("value", "status"), [(None, 0), (0, 0), (1, 1), (7, 7)])
def test_the_result_of_the_coroutine_is_the_exit_status(value, status, capsys):
    assert leave(returns(value), capsys) == (status, "")


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (Misconfigured("Port 7233 is taken."), 1, "Port 7233 is taken.\n"),
        (
            NotFound("not_found", "There is no schedule 'x'.", next_step="List them."),
            1,
            "There is no schedule 'x'. [not_found] List them.\n",
        ),
        (
            ExceptionGroup("tasks", [Misconfigured("One."), ExceptionGroup("", [Misconfigured("Two.")])]),
            1,
            "One.\nTwo.\n",
        ),
        (KeyboardInterrupt(), 130, ""),
        (SystemExit(), 0, ""),
        (SystemExit(2), 2, ""),
        (SystemExit("No."), 1, "No.\n"),
    ],
)
def test_what_was_foreseen_is_said_without_a_traceback(error, status, said, capsys):
    assert leave(raises(error), capsys) == (status, said)


@pytest.mark.parametrize(
    "error", [ZeroDivisionError("ours"), ExceptionGroup("tasks", [Misconfigured("One."), ZeroDivisionError("ours")])]
)
def test_a_fault_of_ours_shows_its_traceback(error, capsys):
    status, said = leave(raises(error), capsys)
    assert status == 1
    assert "Traceback" in said
    assert "ZeroDivisionError: ours" in said


def test_the_garbage_of_the_run_is_collected_before_the_process_leaves(capsys):
    collected = []

    class Native:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            collected.append(True)

    async def main() -> int:
        held = Native()
        raise Misconfigured(f"{type(held).__name__} is held by this frame.")

    gc.disable()
    try:
        leave(main(), capsys)
        assert collected == [True]
    finally:
        gc.enable()


def script(folder: Path, body: str) -> list[str]:
    path = folder / "script.py"
    path.write_text(textwrap.dedent(body))
    return [sys.executable, str(path)]


def test_a_reader_that_goes_away_is_no_error(tmp_path):
    command = script(
        tmp_path,
        """
        from worker.exit import run
        async def main():
            for number in range(100_000):
                print(number)
        run(main())
        """,
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"0\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_a_broken_pipe_that_is_not_our_output_is_a_fault(capsys):
    status, said = leave(raises(BrokenPipeError("a socket")), capsys)
    assert status == 1
    assert "BrokenPipeError: a socket" in said


@pytest.mark.server
def test_processes_that_used_the_sdk_leave_with_the_status_that_they_mean(tmp_path, temporal_server: TemporalServer):
    """Twelve exits: without the collection about one in five of them ends by a signal."""
    command = script(
        tmp_path,
        f"""
        from temporalio import activity, workflow
        from temporalio.client import Client
        from temporalio.worker import Worker
        from worker.exit import run

        @activity.defn
        async def nothing() -> None: ...

        async def main():
            client = await Client.connect("{temporal_server.address}", namespace="{temporal_server.namespace}")
            async with Worker(client, task_queue="exit", activities=[nothing]):
                pass
            return 3
        run(main())
        """,
    )
    statuses = [subprocess.run(command, check=False, cwd=REPOSITORY).returncode for _ in range(12)]
    assert statuses == [3] * 12
