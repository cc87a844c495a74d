"""The TypeScript client: its own tests, run by Node against the real API, and the sentences of the contract that they hold.

Each test of `clients/typescript/test` is one here. Without a Node they are skipped; nothing else is needed, since what Node
runs is checked in as built.
"""

import asyncio
import json
import os
import re
import runpy
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn

from horarium.schedule.document import MAX_DEPTH, MAX_DOCUMENT_BYTES
from starter.ports import listen
from tests.api.house import HUMAN, OPERATOR, PROGRAM, STRANGER, Api, furnished_catalog, let_workers_beat
from tests.control.desk import every
from tests.postgres.databases import Database

from . import node

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "typescript"
WITH_THE_API = CLIENT / "test" / "api.test.js"
ALONE = sorted(set(CLIENT.glob("test/*.test.js")) - {WITH_THE_API})
SCOPE = {"org_id": "acme", "environment_id": "test"}

pytestmark = pytest.mark.timeout(node.WITHIN + 60)


@pytest.fixture(scope="module")
def needs_node() -> None:
    if reason := node.missing():
        pytest.skip(reason)


@contextmanager
def serving(api: Api) -> Iterator[str]:
    """The application on a free port of this machine, beside workers that are there. Yields its address."""
    listener = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(api.app, log_config=None, lifespan="off", timeout_graceful_shutdown=1))
    over = threading.Event()

    def beat() -> None:
        while not over.wait(1):
            let_workers_beat(api.catalog)

    let_workers_beat(api.catalog)
    threads = [
        threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener]))),
        threading.Thread(target=beat),
    ]
    for each in threads:
        each.start()
    while not server.started and threads[0].is_alive():
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        over.set()
        for each in threads:
            each.join()


@pytest.fixture(scope="module")
def api(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with database.migrated(tmp_path_factory.mktemp("catalog")) as url:
        catalog = furnished_catalog(url)
        made = Api(catalog)
        yield made
        made.close()
        catalog.close()


@pytest.fixture(scope="module")
def beside_the_api(needs_node: None, api: Api) -> dict[str, str]:
    """What became of the tests that need the API."""
    with serving(api) as address:
        told = {
            "address": address,
            "scope": SCOPE,
            "configuration": every(3600),
            "tokens": {"human": HUMAN, "program": PROGRAM, "stranger": STRANGER, "operator": OPERATOR},
        }
        return node.run([WITH_THE_API], cwd=CLIENT, more={"HORARIUM_TEST_API": json.dumps(told)})


@pytest.fixture(scope="module")
def alone(needs_node: None) -> dict[str, str]:
    """What became of the tests that bring servers of their own, or need none."""
    return node.run(ALONE, cwd=CLIENT)


def judge(results: dict[str, str], name: str) -> None:
    assert name in results, "the test did not run"
    if results[name].startswith("skipped: "):
        pytest.skip(results[name])
    assert results[name] == ""


@pytest.mark.parametrize("name", node.names_in(WITH_THE_API))
def test_beside_the_api(beside_the_api, name):
    judge(beside_the_api, name)


@pytest.mark.parametrize("name", [name for path in ALONE for name in node.names_in(path)])
def test_alone(alone, name):
    judge(alone, name)


def test_every_test_of_node_is_one_here(alone, beside_the_api):
    """Also one whose name is put together, or which stands in a file of another name."""
    known = {name for path in (*ALONE, WITH_THE_API) for name in node.names_in(path)}
    assert {*alone, *beside_the_api} == known
    assert len(known) == sum(len(node.names_in(path)) for path in (*ALONE, WITH_THE_API)), "no two have one name"


def test_the_types_are_those_of_the_openapi_page(api):
    """Whoever changes the API writes them again: see clients/typescript/README.md."""
    generator = runpy.run_path(str(CLIENT / "types_from_openapi.py"))
    written = (CLIENT / "src" / "api.ts").read_text()
    assert generator["render"](json.loads(json.dumps(api.app.openapi()))) == written
    assert generator["render"](generator["page_of_this_checkout"]()) == written


def test_the_bounds_are_those_of_the_library():
    source = (CLIENT / "src" / "snapshot.ts").read_text()
    assert f"MAX_DOCUMENT_BYTES = {MAX_DOCUMENT_BYTES // 1024} * 1024;" in source
    assert f"MAX_DEPTH = {MAX_DEPTH};" in source


def test_no_lock_file_is_made():
    """One would hold the addresses that packages came from."""
    assert (CLIENT / ".npmrc").read_text() == "package-lock=false\n"
    pins = json.loads((CLIENT / "package.json").read_text())["devDependencies"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in pins.values())


@pytest.mark.parametrize("page", [ROOT / "README.md", CLIENT / "README.md"], ids=["README", "its own"])
def test_the_example_of_the_readme_runs(needs_node, api, page, tmp_path):
    """As it stands there, but for the address, the scope and where the package lies."""
    (source,) = re.findall(r"^```typescript\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    configuration = tmp_path / "weekday-review.json"
    configuration.write_text(json.dumps(every(3600)))
    with serving(api) as address:
        for theirs, ours in {
            '"horarium"': json.dumps((CLIENT / "dist" / "index.js").as_uri()),
            "http://127.0.0.1:8080": address,
            '{ org_id: "local", environment_id: "dev" }': json.dumps(SCOPE),
            "weekday-review.json": str(configuration),
        }.items():
            assert theirs in source
            source = source.replace(theirs, ours)
        (tmp_path / "example.mjs").write_text(source)
        done = subprocess.run(
            ["node", "example.mjs"],
            cwd=tmp_path,
            env={**os.environ, "HORARIUM_TOKEN": HUMAN},
            capture_output=True,
            text=True,
            timeout=node.WITHIN,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert "sha256:" in done.stdout


def test_what_node_says_is_read():
    tap = 'TAP version 13\n# Subtest: a\nok 1 - a\nnot ok 2 - b\n  ---\n  error: "no"\n  ...\nok 3 - c \\# d # SKIP why\n1..3\n'
    found = node.read(tap)
    assert (found["a"], found["c # d"]) == ("", "skipped: why")
    assert found["b"].startswith("failed\n")
    assert 'error: "no"' in found["b"]
