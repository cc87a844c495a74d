"""`horarium setup` where Temporal or the catalog is not there, or not there yet."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from sqlalchemy import make_url

from starter.ports import free_port, listen
from tests.postgres.databases import Database

from .conftest import without_ours

LATER = 500
"""Seconds that a command waits for what this test lets it find; never spent where all is well."""


def test_a_temporal_that_is_not_there_is_a_failure_that_says_what_is_done_and_what_is_not(program, tmp_path):
    ended = program("setup", "--data", "here")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "No Temporal server answers at 127.0.0.1:1." in ended.stderr
    assert "The data folder and the catalog are ready" in ended.stderr
    assert "[temporal_unavailable]" in ended.stderr
    assert "`horarium setup` again" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    # What it could do is done, and is no hindrance to doing it again.
    assert program("list", "--data", "here").returncode == 0


def test_programs_are_told_the_same_as_a_document(program):
    ended = program("setup", "--data", "here", "-o", "json")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert json.loads(ended.stderr)["code"] == "temporal_unavailable"


def test_whoever_leaves_temporal_out_is_not_refused_for_it(program):
    ended = program("setup", "--no-temporal", "--data", "here")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_wait_that_is_in_vain_ends_as_no_wait_does(program):
    ended = program("setup", "--data", "here", "--wait", "1")
    assert ended.returncode == 1
    waited, refused = ended.stderr.splitlines()
    assert waited.startswith("Waiting for a Temporal server at 127.0.0.1:1")
    assert "[temporal_unavailable]" in refused


def test_what_waiting_does_not_mend_is_not_waited_for(program, tmp_path):
    (tmp_path / "file").write_text("")
    ended = program("setup", "--data", "file/below", "--wait", str(LATER))
    assert ended.returncode == 1
    assert "Cannot write to the folder" in ended.stderr


def test_a_catalog_that_is_not_there_is_a_failure_too(program):
    url = f"postgresql+psycopg://nobody@127.0.0.1:{free_port()}/nothing"
    ended = program("setup", "--no-temporal", "--data", "here", HORARIUM_CATALOG=url)
    assert ended.returncode == 1
    assert "[catalog_unavailable]" in ended.stderr


@pytest.mark.server
def test_a_catalog_and_a_temporal_that_come_later_are_waited_for(temporal_server, postgres, tmp_path):
    temporal_port, catalog_port = free_port(), free_port()
    with ExitStack() as stack:
        catalog = make_url(stack.enter_context(Database(postgres).empty(tmp_path)))
        late_url = catalog.set(host="127.0.0.1", port=catalog_port).render_as_string(hide_password=False)
        command = [sys.executable, "-m", "starter", "setup", "--data", "here", "--wait", str(LATER)]
        setup = stack.enter_context(
            subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=tmp_path,
                env={
                    **without_ours(),
                    "TEMPORAL_CONFIG_FILE": os.devnull,
                    "TEMPORAL_ADDRESS": f"127.0.0.1:{temporal_port}",
                    "HORARIUM_CATALOG": late_url,
                },
            )
        )
        stack.callback(setup.kill)
        assert setup.stderr is not None
        assert setup.stderr.readline() == f"Waiting for the catalog (up to {LATER} s) …\n"
        assert catalog.host is not None
        stack.enter_context(_way(catalog_port, catalog.host, catalog.port or 5432))
        assert setup.stderr.readline().startswith(f"Waiting for a Temporal server at 127.0.0.1:{temporal_port} (up to ")
        host, _, port = temporal_server.address.partition(":")
        stack.enter_context(_way(temporal_port, host, int(port)))
        told, errors = setup.communicate(timeout=LATER)
    assert (setup.returncode, errors) == (0, "")
    done = json.loads(told)["done"]
    assert "are ready" in done[0]
    assert len(done) > 1
    assert not (Path(tmp_path) / "here" / "catalog.db").exists()


@contextmanager
def _way(at: int, host: str, port: int) -> Iterator[None]:
    """A way from a port of this machine to a server, from now on."""
    sockets = [listen("127.0.0.1", at)]
    sockets[0].listen()

    def carry(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while some := source.recv(65_536):
                target.sendall(some)
            target.shutdown(socket.SHUT_WR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = sockets[0].accept()
                server = socket.create_connection((host, port))
                sockets.extend([client, server])
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=carry, args=pair, daemon=True).start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield
    finally:
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        accepting.join()
