"""`horarium dev` as a person runs it: it says where everything is, goes when it is told, and refuses in a sentence."""

import asyncio
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from examples.ingestion import sample
from horarium.catalog import Catalog
from horarium.catalog.ledger import list_entries
from horarium.catalog.schedules import require_schedule
from starter.cli.printing import near
from tests.end_to_end.installation import AGENTS, REPOSITORY, Installation
from worker.settings import load

pytestmark = pytest.mark.server

READY_WITHIN = 120
GONE_WITHIN = 90


def command(folder: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "starter", "dev", "--data", str(folder), "--api-port", "0", *options]


@contextmanager
def developing(
    folder: Path, *options: str, **environment: str
) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """`horarium dev` on free ports, with what it says on its first line."""
    with (folder.parent / "stderr").open("w") as stderr:
        process = subprocess.Popen(
            command(folder, "--temporal-port", "0", "--ui-port", "0", "-o", "json", *options),
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env=without_settings() | environment,
        )
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def without_settings() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("HORARIUM_", "TEMPORAL_"))}


def refused(folder: Path, *options: str) -> str:
    """What `horarium dev` says where it refuses to run: one sentence or two, on one line."""
    ended = subprocess.run(
        command(folder, *options),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=READY_WITHIN,
        env=without_settings(),
    )
    assert ended.returncode == 1, ended
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1, ended.stderr
    return ended.stderr


def family(pid: int) -> set[int]:
    """All processes below one."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = {int(child): int(parent) for child, parent in (line.split() for line in listed.splitlines())}
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def alive(pids: set[int]) -> set[int]:
    states = subprocess.run(["ps", "-eo", "pid=,stat="], capture_output=True, text=True, check=True).stdout
    running = {int(pid) for pid, stat in (line.split() for line in states.splitlines()) if not stat.startswith("Z")}
    return pids & running


def all_gone(pids: set[int]) -> bool:
    until = time.monotonic() + GONE_WITHIN
    while alive(pids) and time.monotonic() < until:
        time.sleep(0.05)
    return not alive(pids)


def test_it_tells_where_it_is_and_is_gone_without_a_trace_after_ctrl_c(tmp_path):
    folder = tmp_path / "data"
    with developing(folder) as (process, told):
        assert told["data"] == str(folder)
        host, port = told["temporal"].split(":")
        assert told["ui"].startswith(f"http://{host}:")
        below = family(process.pid)
        assert len(below) >= 5, "a Temporal server, workers, a controller, the API and an agent runner"

        assert "in use by process" in refused(folder, "--temporal-port", "0", "--ui-port", "0")
        taken = refused(tmp_path / "other", "--temporal-port", port, "--ui-port", "0")
        assert f"Port {port} is taken" in taken
        assert "--temporal-port 0" in taken
        taken = refused(tmp_path / "other", "--temporal-port", "0", "--ui-port", told["ui"].rsplit(":", 1)[1])
        assert "--ui-port 0" in taken
        ports = ("--temporal-port", "0", "--ui-port", "0", "--api-port", told["api"].rsplit(":", 1)[1])
        assert "--api-port 0" in refused(tmp_path / "other", *ports)
        ready = httpx.get(f"{told['api']}/readyz", timeout=60)
        assert ready.json() == {"ready": True, "execution_ready": True}
        place = f"{told['api']}/v1/organizations/local/environments/dev"
        assert httpx.get(place, timeout=60).status_code == 401

        assert process.poll() is None, "what was refused has not disturbed it"
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=GONE_WITHIN)
        assert process.returncode == 0
        assert rest == ""
        assert all_gone(below), alive(below)


def test_nothing_outlives_it_when_it_is_killed_and_it_comes_up_again_on_the_same_folder(tmp_path):
    folder = tmp_path / "data"
    with developing(folder) as (process, _):
        below = family(process.pid)
        process.kill()
        process.wait()
        assert all_gone(below), alive(below)
    # Whoever works with a hosted service too has it in the environment; that is not what `dev` means.
    hosted = {
        "TEMPORAL_ADDRESS": "hosted.invalid:7233",
        "TEMPORAL_NAMESPACE": "production",
        "TEMPORAL_TLS": "true",
        "TEMPORAL_API_KEY": "secret",
        "TEMPORAL_ENV": "production",
        "TEMPORAL_PROFILE": "production",
        "TEMPORAL_CONFIG_FILE": str(tmp_path / "no-such.toml"),
    }
    with developing(folder, **hosted) as (process, told):
        assert told["data"] == str(folder)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=GONE_WITHIN)
        assert process.returncode == 0


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    said = refused(tmp_path / "file" / "data", "--temporal-port", "0", "--ui-port", "0")
    assert "Cannot write to the folder" in said
    assert "--data DIR" in said


def test_a_refusal_leaves_no_folder_that_it_made_and_touches_none_that_was_there(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = str(other.getsockname()[1])
        for options in (
            ("--temporal-port", taken, "--ui-port", "0", "--api-port", "0"),
            ("--temporal-port", "0", "--ui-port", taken, "--api-port", "0"),
            ("--temporal-port", "0", "--ui-port", "0", "--api-port", taken),
        ):
            assert f"Port {taken} is taken" in refused(tmp_path / "new", *options)
            assert not (tmp_path / "new").exists()
        (tmp_path / "old").mkdir()
        refused(tmp_path / "old", "--temporal-port", taken, "--ui-port", "0", "--api-port", "0")
        assert (tmp_path / "old").exists()
    same = refused(tmp_path / "new", "--temporal-port", "18233", "--ui-port", "18233")
    assert "--temporal-port and --ui-port are both 18233. Choose two ports" in same
    assert not (tmp_path / "new").exists()


MINE = """
from horarium.agents import Agent, AgentReport, CronStartEvent, handles
class Greeting(Agent):
    "Says good morning."
    name, version = "greeting", "7"
    @handles(CronStartEvent)
    async def greet(self, event, context):
        return AgentReport.succeeded("Greeted.")
agents = [Greeting()]
"""


def test_agents_of_the_person_s_own_folder_run_and_are_named_with_what_comes_next(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    options = ["--temporal-port", "0", "--ui-port", "0", "--api-port", "0", "--agents", "mine", "--data", "here"]
    process = subprocess.Popen(
        [Path(sys.executable).with_name("horarium"), "dev", *options],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=without_settings(),
    )
    try:
        said = ""
        while "--follow" not in said:
            line = process.stdout.readline()
            assert line, said + process.stderr.read()
            said += line
        assert re.search(r"Processes .*agent runner of mine", said)
        assert re.search(r"Agents +greeting@7", said)
        assert "whose run.agent_version is greeting@7" in said
        assert "run.input a file in here/content/local/dev/inputs" in said
        assert "ingestion" not in said
        where = re.search(r"^  Temporal +(\S+)", said, re.MULTILINE)[1]
        assert where.endswith(":7233") or f"\n  export TEMPORAL_ADDRESS={where}\n" in said
        publish = re.search(r"^  (\S+) publish \S+( --data here)$", said, re.MULTILINE)
        subprocess.run([publish[1], "list", *shlex.split(publish[2])], cwd=tmp_path, check=True)
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=GONE_WITHIN)
        assert (process.returncode, rest) == (0, "")
        assert errors.splitlines()[-2:] == ["Stopping; a second Ctrl-C kills what is left.", "Stopped."]
        logs = {path.name: path.read_text().splitlines() for path in (tmp_path / "here" / "logs").glob("*.log")}
        for name in ("worker.log", "controller.log", "api.log", "agents-mine.log"):
            for line in logs[name]:
                json.loads(line)
    finally:
        process.kill()
        process.communicate()


def test_the_example_schedule_that_is_proposed_exists_from_wherever_dev_was_started(tmp_path, monkeypatch):
    for folder, path in ((REPOSITORY, "examples/ingestion/schedule.yaml"), (tmp_path, sample.SCHEDULE)):
        monkeypatch.chdir(folder)
        assert near(sample.SCHEDULE) == str(path)
        assert Path(near(sample.SCHEDULE)).is_file()


@pytest.mark.parametrize("after", [0.0, 0.5, 1.5, 2.5])
def test_ctrl_c_while_it_starts_is_the_same_as_later(tmp_path, after):
    """From the moment that it says what it starts; before that, Python itself is still loading."""
    options = ("--temporal-port", "0", "--ui-port", "0", "--api-port", "0")
    said = tmp_path / "said"
    with said.open("w") as stream:
        process = subprocess.Popen(
            command(tmp_path / "data", *options), cwd=REPOSITORY, stdout=stream, stderr=stream, env=without_settings()
        )
    try:
        deadline = time.monotonic() + GONE_WITHIN
        while "Starting" not in said.read_text():
            assert process.poll() is None, said.read_text()
            assert time.monotonic() < deadline, said.read_text()
            time.sleep(0.01)
        time.sleep(after)
        below = family(process.pid)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=GONE_WITHIN) == 0, said.read_text()
        assert said.read_text().splitlines()[-1] == "Stopped."
        assert all_gone(below), alive(below)
    finally:
        process.kill()
        process.wait()


def test_a_module_without_agents_is_refused(tmp_path):
    said = refused(tmp_path / "data", "--temporal-port", "0", "--ui-port", "0", "--agents", "tests.end_to_end.no_such")
    assert "There is no module 'tests.end_to_end.no_such'" in said
    assert "`horarium dev --agents tests.end_to_end.no_such`" in said
    assert not (tmp_path / "data").exists()


def test_a_run_that_is_under_way_at_ctrl_c_ends_and_is_settled(tmp_path):
    """What leaves first is the agent runner, once its run has ended; the workers settle it before they go."""
    folder = tmp_path / "data"
    begun = str(tmp_path / "begun.jsonl")
    with developing(folder, "--agents", AGENTS, HORARIUM_TEST_BEGUN=begun) as (process, _):
        settings = load({}, data=folder)
        (settings.content.outputs / "reports").mkdir()
        catalog = Catalog.open(settings.catalog_url)
        key = asyncio.run(enabled_every_two_seconds(settings, catalog, seconds=3))
        while "started" not in dispositions(catalog, key):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=GONE_WITHIN)
        assert process.returncode == 0
        assert dispositions(catalog, key)[0] == "succeeded"
        catalog.close()


async def enabled_every_two_seconds(settings, catalog, *, seconds):
    house = Installation(
        folder=settings.data, server=None, settings=settings, catalog=catalog, client=None
    )  # a catalog is all that it takes to publish and enable
    key = await house.published(every=2, seconds=seconds)
    await house.enabled(key)
    return key


def dispositions(catalog, key):
    with catalog.reading() as connection:
        return [entry.disposition for entry, _ in list_entries(connection, require_schedule(connection, key))]
