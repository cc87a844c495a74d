"""The example agent over HTTP: its messages are those of the product, and it does what its page says."""

import json
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

import examples
from examples.http_agent import messages
from examples.http_agent.agent import LineCounter
from horarium.authority.file import read_declarations
from horarium.authority.signing import Keys, sign, verify
from horarium.schedule.configuration import parse_configuration
from starter.documents import read_document

HERE = Path(examples.__file__).parent / "http_agent"
SECRET = b"a-secret-of-thirty-two-bytes-no-less"
RUN = "3f1f0c5e-1d2b-5c8a-9b77-5a2f8f1f0b9d"


@contextmanager
def serving():
    with LineCounter(("127.0.0.1", 0), SECRET) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            with httpx.Client(
                base_url=f"http://127.0.0.1:{server.server_port}", trust_env=False, verify=False
            ) as client:
                yield server, client
        finally:
            server.shutdown()
            thread.join()


def signed(body: bytes, message_id: str, *, secret: bytes = SECRET) -> dict[str, str]:
    return {
        "Idempotency-Key": RUN,
        **sign(body, Keys((secret,)), message_id=message_id, now=datetime.now(UTC)),
    }


def order() -> bytes:
    """A run whose input nobody serves."""
    nowhere = "http://127.0.0.1:9/"
    said = {
        "run_id": RUN,
        "input": {"url": nowhere, "token": "t"},
        "outcome": {"url": nowhere, "by": "poll"},
    }
    return json.dumps(said).encode()


def test_its_files_can_be_applied_and_published():
    declared = read_declarations(read_document(HERE / "environment.yaml"))
    assert declared is not None
    configuration = parse_configuration(read_document(HERE / "schedule.yaml"))
    assert configuration.run.agent_version == "line-counter@1"


def test_it_signs_as_the_product_verifies_and_verifies_what_the_product_signs():
    made = messages.headers(b"body", SECRET, message_id=RUN)
    assert verify(made, b"body", Keys((SECRET,)), now=datetime.now(UTC)) == RUN
    ours = sign(b"body", Keys((SECRET,)), message_id=RUN, now=datetime.now(UTC))
    assert messages.is_signed(ours, b"body", SECRET, message_id=RUN)
    two = ours | {"webhook-signature": f"v1,AAAA {ours['webhook-signature']}"}
    assert messages.is_signed(two, b"body", SECRET, message_id=RUN)


@pytest.mark.parametrize(
    ("change", "body", "about"),
    [
        ({}, b"other", RUN),
        ({}, b"body", "cancel:" + RUN),
        ({"webhook-signature": ""}, b"body", RUN),
        ({"webhook-timestamp": "soon"}, b"body", RUN),
        ({"webhook-timestamp": str(int((datetime.now(UTC) - timedelta(hours=1)).timestamp()))}, b"body", RUN),
    ],
)
def test_it_believes_no_message_that_was_changed(change, body, about):
    made = sign(b"body", Keys((SECRET,)), message_id=RUN, now=datetime.now(UTC)) | change
    assert not messages.is_signed(made, body, SECRET, message_id=about)


def test_it_takes_a_run_once_and_answers_for_it():
    with serving() as (agent, client):
        body = order()
        assert client.post("/", content=body, headers=signed(body, RUN, secret=b"x" * 32)).status_code == 401
        assert agent.runs == {}
        for _ in range(2):
            assert client.post("/", content=body, headers=signed(body, RUN)).status_code == 202
        assert len(agent.runs) == 1
        while agent.runs[RUN]["outcome"] == "running":
            time.sleep(0.02)
        polled = client.get(f"/runs/{RUN}", headers=signed(b"", f"poll:{RUN}")).json()
        assert (polled["outcome"], polled["cost"]) == ("failed", 0)
        assert "could not be read" in polled["summary"]
        assert client.get("/runs/another", headers=signed(b"", "poll:another")).status_code == 404
        assert client.post(f"/runs/{RUN}/cancel", content=b"{}", headers=signed(b"{}", f"cancel:{RUN}")).is_success
        assert client.get(f"/runs/{RUN}", headers=signed(b"", f"poll:{RUN}")).json()["outcome"] == "failed"
