"""The README is run: what it tells a newcomer to type works as it stands."""

import asyncio
import os
import re
import socket
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from horarium.agents import (
    AgentRunner,
    AgentTestRunner,
    CronStartEvent,
    InMemoryHost,
    RunBrief,
    RunContext,
    ScheduleReference,
)

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(sh|sh background|python)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
SCRIPT_WITHIN = 400
"""Seconds for some thirty commands, each of which takes several where the machine is busy with something else."""
NEEDED = ("Makefile", "pyproject.toml", "constraints.txt", "examples", ".venv")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture
def checkout(tmp_path):
    """An empty folder that looks like a checkout whose `.venv` is built."""
    for name in NEEDED:
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def scripts() -> tuple[str, str, str]:
    """What is typed before the installation stays, the command that stays, and what is typed beside it."""
    shell = [(kind, text) for kind, text in BLOCKS if kind != "python"]
    (at,) = [index for index, (kind, _) in enumerate(shell) if kind == "sh background"]
    before = "".join(text for _, text in shell[:at])
    after = "".join(text for _, text in shell[at + 1 :])
    return before, shell[at][1], after


def run(script: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SCRIPT_WITHIN,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-4_000:]
    return done.stdout


@pytest.mark.server
@pytest.mark.timeout(2 * SCRIPT_WITHIN + 120)
def test_the_commands_of_the_readme_do_what_it_says(checkout):
    before, stays, after = scripts()
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HORARIUM", "TEMPORAL"))}
    assert "horarium audit" in after
    assert "succeeded" in run(before, checkout, environment)
    # The README's own ports may be taken on the machine that tests; everything else is as it stands there.
    environment["TEMPORAL_ADDRESS"] = f"127.0.0.1:{port}"
    command = f"exec {stays.strip()} --temporal-port {port} --ui-port 0 --api-port 0"
    with (checkout / "dev.log").open("w+") as log:
        dev = subprocess.Popen(["bash", "-c", command], cwd=checkout, env=environment, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + 60
            while "Ctrl-C" not in (checkout / "dev.log").read_text():
                assert dev.poll() is None, (checkout / "dev.log").read_text()
                assert time.monotonic() < deadline, (checkout / "dev.log").read_text()
                time.sleep(0.2)
            said = run(after, checkout, environment)
        finally:
            dev.terminate()
            dev.wait(60)
    assert dev.returncode == 0
    assert "succeeded" in said
    assert "RunWorkflow" in said
    assert re.search(r"\('20\d\d-\d\d-\d\d \d\d:\d\d:\d\d", said), "SQL shows readable instants"


def test_no_output_that_the_readme_shows_is_empty():
    shown = re.findall(r"^<!-- output: [^\n]+ -->\n```text\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert len(shown) == README.count("<!-- output:") == 2
    assert all(len(text.splitlines()) > 5 for text in shown)


def test_the_agent_of_the_readme_runs():
    (source,) = [text for kind, text in BLOCKS if kind == "python" and "class Greeting(" in text]
    namespace: dict[str, object] = {}
    exec(compile(source, "README.md", "exec"), namespace)
    now = datetime(2027, 3, 1, 7, 30, tzinfo=UTC)
    reference = ScheduleReference(org_id="acme", environment_id="test", schedule_id="s", revision=1, digest="sha256:0")
    brief = RunBrief(
        run_id="run-1",
        schedule=reference,
        trigger="schedule",
        nominal_time=now,
        actual_time=now,
        agent_version="greeting@1",
        input="mail",
        output_target="greetings",
    )

    async def live() -> None:
        host = InMemoryHost()
        host.offer(brief, content=b"12345")
        claim = await host.begin("run-1", at=now)
        context = RunContext(claim.brief, host, claim.token)
        report = await AgentRunner(namespace["agents"]).run("greeting@1", CronStartEvent(run=brief), context)
        assert report.summary == "Greeted."
        assert host.outputs("run-1") == {"greeting.txt": b"Good morning. You have 5 bytes of mail."}

    asyncio.run(live())


def test_the_settings_and_the_start_event_of_the_readme_reach_its_runs():
    """What a profile sets, and what a person sends, is what the sentences of the page say."""
    (source,) = [text for kind, text in BLOCKS if kind == "python" and "class WelcomeConfig(" in text]
    namespace: dict[str, object] = {}
    exec(compile(source, "README.md", "exec"), namespace)
    agents = namespace["agents"]
    (discovered,) = AgentRunner(agents).discovery()
    assert [element["name"] for element in discovered.form] == ["words", "cron"]
    assert discovered.start_events == ("CronStartEvent", "GuestEvent")
    assert list(discovered.event_schemas["GuestEvent"]["properties"]) == ["guest"]
    runner = AgentTestRunner(agents[0], config=namespace["WelcomeConfig"](words="Ahoy"))
    assert asyncio.run(runner.run()).summary == "Ahoy, everybody."
    assert asyncio.run(runner.run(namespace["GuestEvent"](guest="Ada"))).summary == "Ahoy, Ada."
