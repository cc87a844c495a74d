"""What a server says reaches a person's terminal as text, and steers nothing there."""

import json
import shlex
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from starter.cli.printing import json_text

STEERING = "\x1b[31m\x07\x9b31m\u202e\u2066\x7f"
PROBLEM = {
    "code": f"odd{STEERING}",
    "detail": f"Evil {STEERING}",
    "next_step": f"Do{STEERING} this.",
    "errors": [{"pointer": f"/a{STEERING}", "code": f"c{STEERING}", "detail": f"second{STEERING}"}],
}
STEERED = {
    "name": f"evil{STEERING}",
    "schedule_id": "7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11",
    "resource_id": "0d1f6f5e-4d68-4c6e-8df0-7f6c2c9d3b11",
    "reference": {"schedule_id": "7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11", "revision": 1, "digest": "sha256:0"},
    "head": {"schedule_id": "7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11", "revision": 1, "digest": "sha256:0"},
    "retired": False,
    "published_at": "2026-11-30T12:00:00Z",
    "published_by": f"ada{STEERING}",
    "activation": None,
    "runtime": {"state": "paused", "generation": 0},
    "execution_ready": False,
    "next_due": None,
}


@contextmanager
def answering(status: int, document: object):
    """A server that answers everything so; its address."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments):
            pass

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
@pytest.mark.parametrize(
    ("status", "document"),
    [(409, PROBLEM), (200, {"schedules": [STEERED], "next_cursor": None})],
    ids=["error", "list"],
)
def test_no_text_of_a_server_steers_the_terminal(horarium, monkeypatch, status, document, form):
    monkeypatch.setenv("HORARIUM_TOKEN", "t")
    with answering(status, document) as address:
        result = horarium("list", "--server", address, "-o", form)
    told = (result.stdout + result.stderr).replace("\n", "")
    assert "vil" in told
    assert told.isprintable(), repr(told)


def test_what_json_escapes_is_read_as_it_was():
    document = {"a": f"é😀{STEERING}\u2028"}
    assert json.loads(json_text(document)) == document
    assert "é😀" in json_text(document)


def test_a_command_that_is_proposed_holds_what_a_server_said_as_one_word(horarium, monkeypatch):
    monkeypatch.setenv("HORARIUM_TOKEN", "t")
    with answering(200, {"schedules": [STEERED], "next_cursor": f"x; touch /tmp/y{STEERING}"}) as address:
        told = horarium("list", "--server", address, "-o", "table").stdout
    proposed = told.splitlines()[-1]
    assert proposed.isprintable()
    words = shlex.split(proposed)
    assert words[words.index("--after") + 1].startswith("x; touch /tmp/y")
