"""One child process: how it comes up, what is known of it, and how it goes."""

import asyncio
import contextlib
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
from starter import child as module
from starter.child import Child, Program, in_words

SERVES = "say('READY'); time.sleep(60)"


def test_a_child_is_ready_when_it_says_so_and_not_before(program):
    child = Child(program("say('NOT READY'); time.sleep(0.4); say('READY'); time.sleep(60)"))
    began = time.monotonic()
    asyncio.run(child.start())
    assert time.monotonic() - began > 0.4
    assert (child.running, child.status) == (True, None)
    assert asyncio.run(child.stop()) == -signal.SIGTERM
    assert (child.running, child.status) == (False, -signal.SIGTERM)


def test_a_child_started_again_is_not_ready_by_what_it_said_before(program):
    child = Child(
        program(
            """
            again = pathlib.Path(__file__).with_name("again")
            if again.exists(): sys.exit("not this time")
            again.touch(); say("READY"); time.sleep(60)
            """,
        )
    )
    asyncio.run(child.start())
    child.kill()
    with pytest.raises(Misconfigured, match="Its last words: not this time"):
        asyncio.run(child.start())


def test_readiness_may_be_a_question_or_nothing_at_all(program):
    answers = iter([False, False, True])

    async def ask() -> bool:
        return next(answers)

    asked = Child(program("time.sleep(60)", ready=ask))
    asyncio.run(asked.start())
    asked.kill()
    assert list(answers) == []
    at_once = Child(program("time.sleep(60)", ready=None))
    asyncio.run(at_once.start())
    assert at_once.running
    at_once.kill()


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            "say('one'); say('two'); sys.exit(3)",
            "child ended with exit status 3 before it was ready. Its last words: one | two (log: {log})",
        ),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "child ended with signal SIGSEGV before it was ready. (log: {log})"),
        ("say('hm'); time.sleep(60)", "child did not get ready within 5 s. Its last words: hm (log: {log})"),
    ],
)
def test_a_child_that_does_not_come_up_is_told_in_a_sentence_and_is_gone(program, body, sentence):
    child = Child(program(body, ready_within=timedelta(seconds=5)))
    expected = sentence.format(log=child.program.log)
    with pytest.raises(Misconfigured, match=f"^{re.escape(expected)}$"):
        asyncio.run(child.start())
    assert not child.running


def test_a_program_that_does_not_exist_is_told_in_a_sentence(tmp_path):
    child = Child(Program(name="The worker", argv=("no-such-program",), log=tmp_path / "log"))
    with pytest.raises(Misconfigured, match=r"Cannot start The worker: there is no program 'no-such-program'\."):
        asyncio.run(child.start())
    assert asyncio.run(child.stop()) is None


def test_a_start_that_is_cancelled_leaves_nothing_running(program, until):
    child = Child(program("time.sleep(60)"))

    async def story() -> None:
        starting = asyncio.create_task(child.start())
        await until(lambda: child.running)
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await starting

    asyncio.run(story())
    assert child.status == -signal.SIGKILL


def test_a_child_that_does_not_listen_is_killed_after_its_grace(program):
    deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN); say('READY'); time.sleep(60)"
    child = Child(program(deaf, grace=timedelta(seconds=0.3)))
    asyncio.run(child.start())
    began = time.monotonic()
    assert asyncio.run(child.stop()) == -signal.SIGKILL
    assert 0.3 <= time.monotonic() - began < 30


def test_a_child_has_its_own_group_and_its_group_ends_with_it(program, gone):
    forks = """
    import subprocess
    say(subprocess.Popen(["sleep", "60"]).pid); say("READY"); time.sleep(60)
    """
    child = Child(program(forks))
    for end in (child.kill, lambda: asyncio.run(child.stop()), lambda: child.send(signal.SIGKILL)):
        asyncio.run(child.start())
        assert os.getsid(child.pid) == os.getpgid(child.pid) == child.pid != os.getpgrp()
        grandchild = int(child.program.log.read_text().split()[-2])
        assert not gone(grandchild, within=0.1)
        end()
        asyncio.run(child.ended())
        assert gone(grandchild)


def test_the_environment_is_added_to_ours_and_the_input_is_empty(program, monkeypatch):
    monkeypatch.setenv("OURS", "1")
    body = (
        "say(os.environ['OURS'] + os.environ['THEIRS'] + sys.stdin.read() + os.getcwd()); say('READY'); time.sleep(60)"
    )
    child = Child(program(body, environment={"THEIRS": "2"}, folder=Path("/")))
    asyncio.run(child.start())
    child.kill()
    assert child.program.log.read_text() == "12/\nREADY\n"


def test_a_log_grows_over_restarts_and_a_large_one_is_set_aside(program, monkeypatch):
    child = Child(program(SERVES))
    monkeypatch.setattr(module, "LOG_LIMIT", 2 * len("READY\n"))
    for sizes in ([1], [2], [3], [1, 3], [2, 3]):
        asyncio.run(child.start())
        child.kill()
        logs = (child.program.log, child.program.log.with_name("child.log.1"))
        assert [log.read_text().count("READY\n") for log in logs if log.exists()] == sizes


@pytest.mark.parametrize(
    ("status", "words"),
    [(0, "exit status 0"), (3, "exit status 3"), (-9, "signal SIGKILL"), (-6, "signal SIGABRT"), (-250, "signal 250")],
)
def test_an_exit_status_is_said_in_words(status, words):
    assert in_words(status) == words


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a child to its parent")
def test_a_child_whose_parent_died_before_it_was_tied_does_not_begin(tmp_path):
    began = tmp_path / "began"
    tied = [sys.executable, "-I", "-S", str(module.TETHER), "1", "touch", str(began)]  # our process is not number 1
    assert subprocess.run(tied, check=False).returncode == 1
    tied[4] = str(os.getpid())
    assert subprocess.run(tied, check=False).returncode == 0
    assert began.exists()
