"""Children that come up in order, are kept alive, and are gone when their parent is."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from horarium.errors import Misconfigured
from starter.child import Child
from starter.processes import ProcessTree, Restarts

REPOSITORY = Path(__file__).parents[2]
AT_ONCE = Restarts(limit=3, first_pause=timedelta(milliseconds=10))
SERVES = "say('READY'); time.sleep(60)"

DIARY = """
diary = pathlib.Path(__file__).with_name("diary").open("a", buffering=1)
name = pathlib.Path(__file__).stem
def stop(*_):
    diary.write(name + " stops\\n"); sys.exit(0)
signal.signal(signal.SIGTERM, stop)
diary.write(name + " starts\\n"); say("READY"); time.sleep(60)
"""


def test_children_start_in_order_and_stop_in_reverse(program, tmp_path):
    async def story() -> None:
        async with ProcessTree() as tree:
            for name in ("first", "second", "third"):
                await tree.start(Child(program(DIARY, name=name)))

    asyncio.run(story())
    assert (tmp_path / "diary").read_text().splitlines() == [
        *("first starts", "second starts", "third starts"),
        *("third stops", "second stops", "first stops"),
    ]


def test_a_child_that_does_not_come_up_ends_the_tree(program):
    first = Child(program(SERVES, name="first"))

    async def story() -> None:
        async with ProcessTree() as tree:
            await tree.start(first)
            await tree.start(Child(program("sys.exit('cannot')", name="second")))

    with pytest.raises(
        Misconfigured, match=r"second ended with exit status 1 before it was ready\. Its last words: cannot"
    ):
        asyncio.run(story())
    assert first.status == -signal.SIGTERM


def test_a_child_that_dies_is_started_again_and_that_is_reported(program, until):
    child, reports = Child(program(SERVES)), []

    async def story() -> None:
        async with ProcessTree(report=reports.append, restarts=AT_ONCE) as tree:
            await tree.start(child)
            pid = child.pid
            os.kill(pid, signal.SIGKILL)
            await until(lambda: child.running and child.pid != pid)

    asyncio.run(story())
    assert reports == ["child ended with signal SIGKILL. It is started again in 0.01 s."]
    assert not child.running


def test_a_child_that_keeps_dying_ends_the_tree_with_its_last_words(program):
    steady = Child(program(SERVES, name="steady"))
    dies, reports = Child(program("say('READY'); time.sleep(0.1); sys.exit('no more')", name="dies")), []

    async def story() -> None:
        async with ProcessTree(report=reports.append, restarts=AT_ONCE) as tree:
            await tree.start(steady)
            await tree.start(dies)
            await tree.run_until_stopped()

    expected = (
        "dies cannot be kept running: it ended 4 times within 60 s, the last time with exit status 1. Its last words: "
    )
    with pytest.raises(Misconfigured, match=re.escape(expected) + ".*no more"):
        asyncio.run(story())
    assert steady.status == -signal.SIGTERM
    assert [report.rpartition(" in ")[2] for report in reports] == ["0.01 s.", "0.02 s.", "0.04 s."]


def test_a_child_that_comes_back_only_to_fail_counts_as_dying(program):
    child = Child(
        program(
            """
            again = pathlib.Path(__file__).with_name("again")
            if again.exists(): sys.exit("not again")
            again.touch(); say("READY"); time.sleep(0.3)
            """,
        )
    )

    async def story() -> None:
        async with ProcessTree(report=lambda _: None, restarts=AT_ONCE) as tree:
            await tree.start(child)
            await tree.run_until_stopped()

    with pytest.raises(Misconfigured, match=r"ended 4 times .* Its last words: not again"):
        asyncio.run(story())


def test_deaths_long_ago_are_forgiven(program, until):
    child, reports = Child(program("say('READY'); time.sleep(0.2)")), []
    patient = Restarts(limit=1, within=timedelta(seconds=0.1), first_pause=timedelta(milliseconds=1))

    async def story() -> None:
        async with ProcessTree(report=reports.append, restarts=patient) as tree:
            await tree.start(child)
            await until(lambda: len(reports) >= 3)

    asyncio.run(story())
    assert set(reports) == {"child ended with exit status 0. It is started again in 0.001 s."}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_block_and_execution_goes_on_behind_it(program, tmp_path, number):
    async def story() -> ProcessTree:
        async with ProcessTree() as tree:
            await tree.start(Child(program(DIARY, name="only")))
            os.kill(os.getpid(), number)
            await tree.run_until_stopped()
        assert asyncio.current_task().cancelling() == 0
        return tree

    assert asyncio.run(story()).stopped_by is number
    assert (tmp_path / "diary").read_text().splitlines() == ["only starts", "only stops"]


def test_a_signal_while_a_child_comes_up_ends_that_child_too(program, until):
    slow = Child(program("time.sleep(60)"))

    async def interrupt() -> None:
        await until(lambda: slow.running)
        os.kill(os.getpid(), signal.SIGINT)

    async def story() -> None:
        async with ProcessTree() as tree:
            interrupting = asyncio.create_task(interrupt())
            await tree.start(slow)
            pytest.fail(f"the block went on, whatever {interrupting} did")

    asyncio.run(story())
    assert slow.status == -signal.SIGKILL


def test_a_second_signal_does_not_wait(program):
    text = "signal.signal(signal.SIGTERM, signal.SIG_IGN); say('READY'); time.sleep(600)"
    deaf = Child(program(text, grace=timedelta(seconds=600)))
    reports = []

    async def story() -> None:
        async with ProcessTree(report=reports.append) as tree:
            await tree.start(deaf)
            loop = asyncio.get_running_loop()
            loop.call_later(0.1, os.kill, os.getpid(), signal.SIGINT)
            loop.call_later(0.4, os.kill, os.getpid(), signal.SIGINT)
            await tree.run_until_stopped()

    began = time.monotonic()
    asyncio.run(story())
    assert time.monotonic() - began < 60
    assert reports == ["Killing what is left."]
    assert deaf.status == -signal.SIGKILL


def test_somebody_else_s_cancellation_is_not_swallowed(program, until):
    child = Child(program(SERVES))

    async def story() -> None:
        async with ProcessTree() as tree:
            await tree.start(child)
            await tree.run_until_stopped()

    async def outer() -> None:
        task = asyncio.create_task(story())
        await until(lambda: child.running)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(outer())
    assert not child.running


PARENT = """
import asyncio, pathlib, sys
from starter.child import Child, Program
from starter.processes import ProcessTree
from worker.exit import run

async def main():
    folder = pathlib.Path(sys.argv[1])
    async with ProcessTree() as tree:
        for name in ("one", "two"):
            child = Child(Program(name=name, argv=("sleep", "60"), log=folder / name, ready=None))
            await tree.start(child)
            print(child.pid, flush=True)
        await tree.run_until_stopped()
    return 0

run(main())
"""


def test_ctrl_c_in_a_terminal_reaches_the_parent_alone_which_stops_its_children(tmp_path, gone):
    """A terminal sends SIGINT to the whole foreground group; the children are not in it."""
    (tmp_path / "parent.py").write_text(PARENT)
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "parent.py"), str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=REPOSITORY,
        start_new_session=True,
    ) as parent:
        children = [int(parent.stdout.readline()) for _ in range(2)]
        os.killpg(parent.pid, signal.SIGINT)
        assert parent.stderr.read() == b""
    assert parent.returncode == 0
    assert all(gone(child) for child in children)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a child to its parent")
def test_a_killed_parent_leaves_no_child(tmp_path, gone):
    (tmp_path / "parent.py").write_text(PARENT)
    command = [sys.executable, str(tmp_path / "parent.py"), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=REPOSITORY) as parent:
        children = [int(parent.stdout.readline()) for _ in range(2)]
        assert not any(gone(child, within=0.3) for child in children)
        parent.kill()
    assert all(gone(child) for child in children)
