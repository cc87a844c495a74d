"""Logs: JSON lines and nothing else for machines, and no value of a variable in any traceback."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from worker.logs import to_stderr

REPOSITORY = Path(__file__).parents[2]
SECRET = "hunter2-and-more"
RAISES = f"""
import asyncio, logging
from worker.logs import configure
from horarium.agents import Agent, AgentReport, AgentRunner, CronStartEvent, handles
configure()

class Careless(Agent):
    "Holds a secret when it fails."
    name, version = "careless", "1"
    @handles(CronStartEvent)
    async def go(self, event, context):
        password = "{SECRET[:7]}" + "{SECRET[7:]}"
        raise ValueError("it went wrong")

class Context:
    outputs = ()
    is_configured = True
    class brief:
        run_id = "run-1"

report = asyncio.run(AgentRunner([Careless()]).run("careless@1", CronStartEvent.model_construct(), Context()))
try:
    password = "{SECRET[:7]}" + "{SECRET[7:]}"
    raise KeyError("the standard library's own")
except KeyError:
    logging.getLogger("library").exception("a library fails")
print(report.summary)
"""


@pytest.fixture
def program(tmp_path) -> list[str]:
    (tmp_path / "raises.py").write_text(RAISES)
    return [sys.executable, str(tmp_path / "raises.py")]


def environment() -> dict[str, str]:
    # A terminal with colours, as people have it.
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), "TERM": "xterm-256color", "COLUMNS": "100"}


def test_an_agent_that_raises_is_a_line_of_json_with_its_traceback_and_without_its_variables(program):
    ended = subprocess.run(program, env=environment(), capture_output=True, text=True, check=True, timeout=60)
    raised, failed = [json.loads(line) for line in ended.stderr.splitlines()]
    assert raised["event"] == "agent_raised"
    assert "ValueError: it went wrong" in raised["exception"]
    assert failed["event"] == "a library fails"
    assert "KeyError" in failed["exception"]
    assert SECRET not in ended.stderr
    assert ended.stdout == "ValueError: it went wrong\n"


def test_a_terminal_is_shown_a_plain_traceback_without_variables(program):
    outer, inner = pty.openpty()
    process = subprocess.Popen(program, env=environment(), stdout=subprocess.DEVNULL, stderr=inner)
    os.close(inner)
    shown = b""
    try:
        while part := os.read(outer, 65_536):
            shown += part
    except OSError:  # Linux says so that nobody writes any more
        pass
    finally:
        os.close(outer)
    assert process.wait(60) == 0
    text = shown.decode()
    assert "it went wrong" in text
    assert text.count("Traceback (most recent call last)") == 2
    assert SECRET not in text
    assert "locals" not in text
    assert "╭" not in text


def test_readiness_is_a_line_of_json_where_nobody_looks_and_a_word_at_a_terminal(tmp_path):
    ready = "import asyncio; from worker.processes import until_told; asyncio.run(until_told())"
    process = subprocess.Popen(
        [sys.executable, "-c", ready], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert json.loads(process.stdout.readline())["event"] == "READY"
    process.terminate()
    assert process.communicate(timeout=30)[0] == ""
    outer, inner = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", ready], env=environment(), stdout=inner)
    assert os.read(outer, 100).startswith(b"READY")
    process.terminate()
    assert process.wait(30) == 0
    os.close(outer)
    os.close(inner)


def test_the_addresses_that_are_asked_stand_in_no_line():
    """A destination's path, or that of a set of keys, may be a secret; and a line for each request would hide all others."""
    asks = """
import httpx
from worker.logs import configure
configure()
answering = httpx.MockTransport(lambda request: httpx.Response(200))
httpx.Client(transport=answering).get("https://agents.example/hooks/hunter2")
"""
    ended = subprocess.run(
        [sys.executable, "-c", asks], env=environment(), capture_output=True, text=True, check=True, timeout=60
    )
    assert ended.stderr == ""


def test_a_command_keeps_its_stdout_clean_also_where_the_log_was_captured_before(capsys):
    """To capture it leaves it configured, and yet on stdout."""
    with capture_logs():
        pass
    to_stderr()
    structlog.get_logger("horarium").warning("by_the_way")
    said = capsys.readouterr()
    assert said.out == ""
    assert "by_the_way" in said.err
