"""A command line to call: in this process, or as the program that a person starts."""

import copy
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from horarium.catalog import Catalog, presence
from horarium.schedule.identity import Scope
from starter.cli.commands import app
from starter.setup import prepare_data
from worker.settings import load

SCOPE = Scope(org_id="local", environment_id="dev")
OURS = ("HORARIUM_", "TEMPORAL_")
CONFIGURATION = {
    "name": "Inbox triage",
    "calendar": {
        "timezone": "Europe/Zurich",
        "calendars": [
            {
                "second": [{"start": 0, "end": 0, "step": 1}],
                "minute": [{"start": 30, "end": 30, "step": 1}],
                "hour": [{"start": 2, "end": 2, "step": 1}],
                "day_of_month": [{"start": 1, "end": 31, "step": 1}],
                "month": [{"start": 1, "end": 12, "step": 1}],
                "day_of_week": [{"start": 0, "end": 6, "step": 1}],
            }
        ],
        "intervals": [],
        "start_at": "2026-01-01T00:00:00Z",
        "end_at": "2099-12-31T23:59:59Z",
    },
    "policy": {"overlap": "skip", "catchup_window_seconds": 60, "pause_on_failure": False},
    "run": {
        "agent_version": "triage@1",
        "input": "inbox",
        "output_target": "reports",
        "grants": [],
        "budget_id": None,
        "usage_class": "test_simulation",
    },
}


def without_ours() -> dict[str, str]:
    """The environment without settings of this project, and with no Temporal server to be found."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    # A closed port of this machine: nobody's real server is asked.
    return {**kept, "TEMPORAL_ADDRESS": "127.0.0.1:1"}


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.startswith(OURS):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def configuration() -> dict[str, Any]:
    """A valid configuration, to be changed at will."""
    return copy.deepcopy(CONFIGURATION)


@pytest.fixture
def write(tmp_path):
    """Write a document to a file, and give its path."""

    def write(document: Any, name: str = "schedule.json") -> str:
        path = tmp_path / name
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return str(path)

    return write


@pytest.fixture
def horarium():
    """Call a command in this process."""

    def call(*arguments: str, stdin: str | None = None):
        return CliRunner().invoke(app, list(arguments), input=stdin, catch_exceptions=False)

    return call


@pytest.fixture
def program(tmp_path):
    """Call a command as a process of its own, as a person does, with its output in pipes."""

    def call(*arguments: str, stdin: str = "", **environment: str):
        return subprocess.run(
            [sys.executable, "-m", "starter", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            cwd=tmp_path,
            env={**without_ours(), **environment},
        )

    return call


class Installation:
    """A prepared data folder, and what is put into it without any process running."""

    def __init__(self, data: Path, **environment: str) -> None:
        self.data = str(data)
        self.settings = load(environment, data=data)
        prepare_data(self.settings)

    def catalog(self) -> Catalog:
        return Catalog.open(self.settings.catalog_url)

    def write(self, function, *arguments, **named):
        """One writing transaction."""
        catalog = self.catalog()
        try:
            with catalog.writing() as connection:
                return function(connection, *arguments, **named)
        finally:
            catalog.close()

    def populate(self) -> None:
        """Let both runtime workers and the agent be there for the next half minute, with its input and output target."""
        # As far ahead as the clocks of workers may be: a slow machine has the longer for the commands of a test.
        beat = datetime.now(UTC) + presence.HEARTBEAT_LIFETIME - timedelta(seconds=1)
        for role in presence.ROLES:
            self.write(presence.beat, instance=f"{role}@here:1", role=role, tzdata="2026a", now=beat)
        now = datetime.now(UTC) + timedelta(minutes=1)
        discovery = {
            "is_schedulable": True,
            "is_conversational": False,
            "task_queue": "agents",
            "max_run_seconds": 60,
            "idempotent": False,
        }
        self.write(presence.register_agent, SCOPE, "triage@1", discovery, lease_until=now, now=now)
        (self.settings.content.inputs / "inbox.json").write_text("{}")
        (self.settings.content.outputs / "reports").mkdir(exist_ok=True)


@pytest.fixture
def installation(tmp_path) -> Installation:
    return Installation(tmp_path / "data")
