"""The example environments are applied as they stand, admit what they say, and their page can be followed."""

import copy
import os
import re
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import examples
from horarium.authority.file import PLURALS, read_declarations
from horarium.catalog import Catalog, money, presence
from horarium.control import administration, declaring, overview
from horarium.control.activation import Reviewed, enable
from horarium.control.principals import OPERATOR_SCOPE
from horarium.errors import NotAdmissible
from horarium.schedule.identity import Scope, schedule_key
from starter.documents import read_document
from tests.cli.conftest import without_ours
from tests.cli.test_server import serving
from tests.control.caller import new_key, principal
from tests.control.desk import FAR, NOON, Desk, Loop, at, open_catalog

FOLDER = Path(examples.__file__).parent / "authority"
SCOPES = {
    "production": Scope(org_id="acme", environment_id="production"),
    "staging": Scope(org_id="acme", environment_id="staging"),
}
OPERATOR = principal("grace@acme.example", scopes=OPERATOR_SCOPE)
DISCOVERY = {
    "is_schedulable": True,
    "is_conversational": False,
    "task_queue": "agents",
    "max_run_seconds": 300,
    "idempotent": False,
}


@pytest.fixture
def desk(tmp_path):
    catalog = open_catalog(tmp_path)
    yield Desk(catalog)
    catalog.close()


def applied(desk: Desk, name: str) -> list[dict[str, Any]]:
    """Apply an example, with a runner of its agent there."""
    scope = SCOPES[name]
    file = read_document(FOLDER / f"{name}.yaml")
    receipt = desk.write(declaring.apply, OPERATOR, scope, file, new_key(), now=desk.now)
    desk.write(presence.register_agent, scope, "ingestion-check@1", DISCOVERY, lease_until=FAR, now=NOON)
    desk.key = schedule_key(scope, desk.key.schedule_id)
    return receipt.document["changes"]


def schedule(usage_class: str) -> dict[str, Any]:
    document = copy.deepcopy(read_document(FOLDER / "schedule.yaml"))
    document["run"]["usage_class"] = usage_class
    return document


def enabled(desk: Desk) -> Loop:
    changed = desk.write(enable, desk.key, Reviewed(), desk.content, by="ada@acme.example", now=desk.now)
    return Loop(desk, changed.key)


def test_the_example_of_production_declares_something_of_every_kind_but_approvals():
    """Which people give one by one."""
    read = read_declarations(read_document(FOLDER / "production.yaml"))
    assert set(read.kinds) == set(PLURALS) - {"approval"}
    assert all(read.kinds.values())


@pytest.mark.parametrize("name", SCOPES)
def test_an_example_is_applied_as_it_stands_and_once(desk, name):
    assert applied(desk, name) != []
    assert applied(desk, name) == []


def test_production_admits_a_live_run_once_its_exact_version_is_approved(desk):
    applied(desk, "production")
    version = desk.publish(schedule("live")).version
    with pytest.raises(NotAdmissible) as refused:
        enabled(desk)
    assert [each["code"] for each in refused.value.objections] == ["approval_missing"]
    reference = {"schedule_id": desk.key.schedule_id, "revision": 1, "digest": version.digest}
    request = {"version": reference, "expires_at": "2027-01-31T12:00:00Z"}
    desk.write(administration.approve, OPERATOR, desk.key.scope, request, new_key(), now=desk.now)
    loop = enabled(desk)
    loop.step_at(7)
    desk.now = at(10)
    assert desk.admit(loop.run(10)).outcome == "admitted"
    assert desk.read(money.account, desk.key.scope, money.BUDGET, "checks").reserved == 25


def test_staging_has_room_for_two_runs_at_a_time(desk):
    applied(desk, "staging")
    document = schedule("test_compute")
    document["policy"]["overlap"] = "allow"
    desk.publish(document)
    loop = enabled(desk)
    outcomes = []
    for second in (10, 20, 30):
        loop.step_at(second - 3)
        desk.now = at(second)
        outcomes.append(desk.admit(loop.run(second)))
    assert [each.outcome for each in outcomes] == ["admitted", "admitted", "refused"]
    assert outcomes[-1].reason == "budget_exhausted"


def test_the_page_can_be_followed(tmp_path):
    """Its blocks are run as they stand at a real server; only the address is another, and no worker runs anything."""
    ours = {
        "HORARIUM_ORGANIZATION": "acme",
        "HORARIUM_ENVIRONMENT": "staging",
        "HORARIUM_DATA": str(tmp_path / "data"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }

    def run(script: str) -> str:
        done = subprocess.run(
            ["sh", "-euc", script],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={**without_ours(), **ours},
            cwd=FOLDER.parents[1],
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("horarium setup --no-temporal")
    content = tmp_path / "data/content/acme/staging"
    (content / "inputs/ingestion").mkdir(parents=True)
    (content / "inputs/ingestion/manifest.json").write_text("{}")
    (content / "outputs/ingestion-reports").mkdir(parents=True)
    blocks = re.findall(r"^```sh\n(.*?)^```$", (FOLDER / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    catalog = Catalog.open(f"sqlite:///{tmp_path / 'data/catalog.db'}")
    there = threading.Event()
    beating = threading.Thread(target=_beat, args=(catalog, there))
    beating.start()
    try:
        with serving(ours["HORARIUM_DATA"], **ours) as address:
            told = run("".join(blocks).replace("http://127.0.0.1:8080", address))
        with catalog.reading() as connection:
            seen = overview.overview(connection, SCOPES["staging"])
    finally:
        there.set()
        beating.join()
        catalog.close()
    assert told.count("Nothing changes: acme/staging is what the file says.") == 1
    kinds = [each["kind"] for each in seen["acts"]][::-1]
    assert kinds == ["applied", "applied", "stopped", "lifted", "applied", "environment_reset"]
    assert set(seen["declared"]["grants"]) == {"storage:list"}
    assert "environment_reset: it was enabled under 1" in told


def _beat(catalog: Catalog, ended: threading.Event) -> None:
    """Let both workers and the agent's runner be there until the end."""
    while not ended.is_set():
        now = datetime.now(UTC)
        with catalog.writing() as connection:
            for role in presence.ROLES:
                presence.beat(connection, instance=role, role=role, tzdata="2026a", now=now)
            lease = now + timedelta(minutes=1)
            presence.register_agent(
                connection, SCOPES["staging"], "ingestion-check@1", DISCOVERY, lease_until=lease, now=now
            )
        ended.wait(2)
