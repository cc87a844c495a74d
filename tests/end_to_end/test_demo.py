"""`horarium demo` from its first line to its last: what it says holds, and it leaves what it says that it leaves."""

import asyncio
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from temporalio.client import Client

from tests.end_to_end.installation import REPOSITORY
from tests.end_to_end.test_dev import without_settings

pytestmark = pytest.mark.server

# The demo itself, with less to watch, and with patience for a busy machine: it is paused half way between two instants.
SHORT = """
import asyncio, sys, time
from datetime import timedelta
from starter import demo
from worker.exit import run
demo.WATCH, demo.FEWEST = timedelta(seconds=12), 1
demo.ENABLE_WITHIN, demo.LAST_RUN_WITHIN, demo.LATE_MS = timedelta(seconds=60), timedelta(seconds=60), 60_000
watch = demo._watch
async def until_between(*asked, **how):
    await watch(*asked, **how)
    await asyncio.sleep((2.5 - time.time()) % 5)
demo._watch = until_between
run(demo.demo(keep=sys.argv[1:] == ["--keep"]))
"""


@contextmanager
def showing(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    temporary = folder / "temporary"
    temporary.mkdir()
    # A person who works with a hosted service, too.
    hosted = {"TEMPORAL_ENV": "production", "TEMPORAL_API_KEY": "secret", "TEMPORAL_NAMESPACE": "production"}
    process = subprocess.Popen(
        [sys.executable, "-c", SHORT, *options],
        cwd=REPOSITORY,
        env={**without_settings(), **hosted, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def left(folder: Path) -> list[Path]:
    return list((folder / "temporary").glob("horarium-demo-*"))


def read_until(process: subprocess.Popen[str], words: str) -> str:
    said = ""
    while line := process.stdout.readline():
        said += line
        if words in line:
            return said
    raise AssertionError(said + process.stderr.read())


def test_a_demo_ends_by_itself_and_promises_nothing_that_is_gone_with_it(tmp_path):
    with showing(tmp_path) as process:
        said, errors = process.communicate(timeout=240)
    assert (process.returncode, errors) == (0, "")
    assert left(tmp_path) == []
    assert max(len(line) for line in said.splitlines()) <= 100
    assert said.startswith("Starting a Temporal server")
    assert re.search(
        r"weekdays at 07:30 in Zurich.*\n( {4}\w+day 20\d\d-\d\d-\d\d 07:30:00 \+0[12]00  =  20.*Z\n){2}", said
    )
    assert "succeeded" in said
    assert "missing 0" in said
    assert "`make demo KEEP=1` leaves everything running" in said
    assert str(tmp_path) not in said, "no path that is gone"
    after = said[said.index("The ledger:") :]
    assert "and with it the server at http://127.0.0.1" in after
    assert "namespaces/default" not in after


def test_a_demo_that_is_kept_says_how_to_look_around_and_what_is_left(tmp_path):
    with showing(tmp_path, "--keep") as process:
        said = read_until(process, "what the agent wrote")
        assert "The schedule is paused" in said
        assert max(len(line) for line in said.splitlines() if str(tmp_path) not in line) <= 100
        exports = dict(re.findall(r"^  export (\w+)=(.*)$", said, re.MULTILINE))
        (folder,) = left(tmp_path)
        assert exports["HORARIUM_DATA"] == str(folder)
        commands = [shlex.split(line) for line in re.findall(r"^  (\S*(?:horarium|temporal) .*)$", said, re.MULTILINE)]
        assert len(commands) == 6
        environment = {**without_settings(), **exports}
        for command in commands:
            answer = subprocess.run(
                command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
            )
            assert answer.returncode == 0, (command, answer)
        link = re.search(r"^The pages: (\S+)$", said, re.MULTILINE)[1]
        assert link.startswith(exports["HORARIUM_PUBLIC_URL"])
        with urllib.request.urlopen(link) as page:
            assert "Sign in" in page.read().decode()
        workflow = re.search(r"the schedule's workflow: (\S+)", said)[1]

        async def describe() -> str:
            client = await Client.connect(exports["TEMPORAL_ADDRESS"])
            return (await client.get_workflow_handle(workflow).describe()).workflow_type

        assert asyncio.run(describe()) == "ScheduleWorkflow"
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (0, "")
        assert f"What it left is in {folder}; rm -r {folder} removes it." in rest
        assert (folder / "catalog.db").exists()


@pytest.mark.parametrize("options", [(), ("--keep",)], ids=["by itself", "kept"])
def test_ctrl_c_before_the_demo_was_shown_is_130_and_leaves_nothing(tmp_path, options):
    with showing(tmp_path, *options) as process:
        read_until(process, "Starting a Temporal server")
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=120)
    assert (process.returncode, rest, errors) == (130, "", "")
    assert left(tmp_path) == []


@pytest.mark.parametrize(("value", "kept"), [("1", True), ("yes", True), ("0", False), ("no", False), ("", False)])
def test_only_a_keep_that_says_yes_keeps(value, kept):
    told = subprocess.run(
        ["make", "--dry-run", "--old-file", ".venv/.built", "demo", f"KEEP={value}"],
        cwd=REPOSITORY,
        env={**os.environ, "MAKEFLAGS": ""},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert ("--keep" in told) is kept
