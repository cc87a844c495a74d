"""`horarium api` and `horarium token` as a person runs them: real processes, while no Temporal server answers."""

import contextlib
import json
import re
import signal
import socket
import stat
import subprocess
import sys
import time

import httpx
import jwt
import pytest

from horarium.errors import Misconfigured
from starter import keys
from tests.api.commands import READY_WITHIN, ROOT, environment, horarium
from tests.api.house import new, publication
from worker.settings import load

BASE = "/v1/organizations/local/environments/dev"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installation")
    done = horarium("setup", "--no-temporal", "--data", str(folder))
    assert done.returncode == 0, done.stderr
    return folder


class Serving:
    """A process that serves, on a free port."""

    def __init__(self, data, *arguments, **more):
        self.log = data.parent / f"{data.name}-api.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "starter", "api", "--port", "0", "--data", str(data), *arguments],
                cwd=ROOT,
                env=environment(**more),
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + READY_WITHIN
        while "READY" not in self.log.read_text():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)
        self.address = re.search(r"http://[\d.]+:\d+", self.log.read_text())[0]

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(30)


@pytest.fixture(scope="module")
def serving(data):
    started = Serving(data)
    yield started
    if started.process.poll() is None:
        started.process.kill()
        started.process.wait()


@pytest.fixture(scope="module")
def client(serving, data):
    token = horarium("token", "--data", str(data))
    assert token.returncode == 0, token.stderr
    with httpx.Client(base_url=serving.address, headers={"Authorization": f"Bearer {token.stdout.strip()}"}) as opened:
        yield opened


def test_it_publishes_and_reads_while_temporal_and_the_workers_are_down(client):
    body, key = publication(), new()
    answer = client.post(f"{BASE}/schedules", json=body, headers={"Idempotency-Key": key})
    assert answer.status_code == 201, answer.text
    receipt = answer.json()
    assert client.get(f"{BASE}/receipts/{key}").json() == {**receipt, "replayed": True}
    record = client.get(f"{BASE}/schedules/{body['schedule_id']}").json()
    assert record["execution_ready"] is False
    assert client.get("/readyz").json() == {"ready": True, "execution_ready": False}
    review = {"version": receipt["reference"], "expected_environment_epoch": 1, "expected_reset_generation": 1}
    enabling = client.post(
        f"{BASE}/schedules/{body['schedule_id']}/activation",
        json={**review, "expected_generation": 0, "enabled": True},
        headers={"Idempotency-Key": new()},
    )
    assert (enabling.status_code, enabling.json()["code"]) == (503, "execution_unavailable")
    assert "retry-after" in enabling.headers


def test_a_key_may_not_enable_and_another_organization_sees_nothing(client, data):
    for options, status in (
        (("--kind", "key"), 403),
        (("--organization", "globex"), 404),
        (("--scope", "openid"), 403),
    ):
        token = horarium("token", "--data", str(data), *options).stdout.strip()
        answer = client.post(
            f"{BASE}/schedules/{new()}/activation",
            json={},
            headers={"Idempotency-Key": new(), "Authorization": f"Bearer {token}"},
        )
        assert answer.status_code == status, answer.text


def test_bounds_hold_over_a_real_connection(client):
    def endless():
        while True:
            yield b" " * 65_536

    headers = {"Idempotency-Key": "k", "Content-Type": "application/json"}
    # The server may close the connection under a body that does not end, before its answer is read.
    with contextlib.suppress(httpx.WriteError):
        assert client.post(f"{BASE}/schedules", content=endless(), headers=headers).status_code == 413
    assert client.get("/healthz", headers={"X-Padding": "x" * 20_000}).status_code == 431
    assert client.get("/healthz", headers={"X-Padding": "x" * 100_000}).status_code in {400, 431}
    assert client.get("/healthz").status_code == 200


def test_what_is_no_http_does_no_harm(serving, client):
    host, port = serving.address.removeprefix("http://").split(":")
    for said in (
        b"\x00" * 100,
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    ):
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            connection.sendall(said)
            connection.recv(1_000)
    assert client.get("/healthz").status_code == 200


def test_the_log_is_of_json_lines_and_holds_no_token(serving, client, data):
    token = horarium("token", "--data", str(data)).stdout.strip()
    client.get(f"{BASE}/schedules", headers={"Authorization": f"Bearer {token}"}, params={"limit": 3})
    deadline = time.monotonic() + 10
    while '"request"' not in (said := serving.log.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    requests = [line for line in lines if line.get("event") == "request"]
    assert {"method", "path", "status", "ms", "principal", "peer", "request_id"} <= set(requests[-1])
    assert token.split(".")[2] not in said
    assert "limit=3" not in said
    assert any(line["event"] == "temporal_not_reached" for line in lines)


def test_a_taken_port_is_refused_in_a_sentence(serving, data):
    port = serving.address.rsplit(":", 1)[1]
    done = horarium("api", "--port", port, "--data", str(data))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert f"port {port}" in done.stderr


def test_the_last_request_is_answered_before_the_process_leaves(data):
    started = Serving(data)
    host, port = started.address.removeprefix("http://").split(":")
    token = horarium("token", "--data", str(data)).stdout.strip()
    body = json.dumps(publication()).encode()
    head = (
        f"POST {BASE}/schedules HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nIdempotency-Key: {new()}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(head.encode() + body[:100])
        time.sleep(0.3)
        started.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        connection.sendall(body[100:])
        assert connection.recv(100).startswith(b"HTTP/1.1 201")
    assert started.process.wait(30) == 0


def test_it_says_what_is_missing(tmp_path):
    absent = horarium("api", "--data", str(tmp_path / "none"))
    assert (absent.returncode, "horarium setup" in absent.stderr) == (1, True)
    assert horarium("setup", "--no-temporal", "--data", str(tmp_path)).returncode == 0
    (tmp_path / "keys" / "dev.pem").unlink()
    for command in ("api", "token"):
        done = horarium(command, "--data", str(tmp_path))
        assert done.returncode == 1
        assert "There is no key" in done.stderr
        assert "Traceback" not in done.stderr


# Tokens


def test_a_token_says_what_was_asked_for(data):
    done = horarium(
        "token", "--data", str(data), "--kind", "key", "--scope", "a", "--scope", "b", "--subject", "ci",
        "--organization", "acme", "--expires", "15m", "-o", "json",
    )  # fmt: skip
    answer = json.loads(done.stdout)
    claims = jwt.decode(answer["token"], options={"verify_signature": False})
    assert {name: claims[name] for name in ("sub", "kind", "org", "scope")} == {
        "sub": "ci",
        "kind": "key",
        "org": "acme",
        "scope": "a b",
    }
    assert claims["exp"] - claims["iat"] == 900
    assert jwt.get_unverified_header(answer["token"])["alg"] == "EdDSA"


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (("--expires", "soon"), 2),
        (("--kind", "admin"), 2),
        (("--expires", "31d"), 1),
        (("--expires", "0s"), 1),
        (("--subject", "local:root"), 1),
        (("--organization", "a/b"), 1),
    ],
)
def test_a_token_that_cannot_be_is_refused(data, options, status):
    done = horarium("token", "--data", str(data), *options)
    assert (done.returncode, done.stdout) == (status, "")
    assert "Traceback" not in done.stderr


def test_no_development_token_is_made_where_others_issue_them(data):
    done = horarium("token", "--data", str(data), HORARIUM_JWKS_URL="https://id.test/jwks.json")
    assert done.returncode == 1
    assert "HORARIUM_JWKS_URL" in done.stderr


# The key


def test_the_key_is_its_owners_alone_and_is_made_once(tmp_path):
    path = tmp_path / "keys" / "dev.pem"
    keys.make_key(path)
    first = path.read_bytes()
    keys.make_key(path)
    assert path.read_bytes() == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [each.name for each in path.parent.iterdir()] == ["dev.pem"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_that_others_may_read_is_not_used(tmp_path, mode):
    path = tmp_path / "keys" / "dev.pem"
    keys.make_key(path)
    path.chmod(mode)
    with pytest.raises(Misconfigured, match="chmod 600"):
        keys.load_key(path)


@pytest.mark.parametrize("text", ["", "no key", "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n"])
def test_a_file_without_a_key_is_told_apart(tmp_path, text):
    path = tmp_path / "dev.pem"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(Misconfigured, match="no private key"):
        keys.load_key(path)


# Settings


def test_the_apis_settings_come_from_the_environment(tmp_path):
    found = load(
        {
            "HORARIUM_JWKS_URL": "https://id.test/jwks.json",
            "HORARIUM_TOKEN_ISSUER": "https://id.test",
            "HORARIUM_TOKEN_AUDIENCE": "horarium",
            "HORARIUM_REQUIRED_SCOPE": "schedules",
            "HORARIUM_REQUESTS_PER_SECOND": "7",
        },
        data=tmp_path,
    ).api
    assert (found.keys_url, found.issuer, found.audience) == (
        "https://id.test/jwks.json",
        "https://id.test",
        "horarium",
    )
    assert (found.required_scope, found.requests_per_second) == ("schedules", 7)
    assert load({}, data=tmp_path).api.keys_url is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HORARIUM_JWKS_URL", "http://id.test/jwks.json"),
        ("HORARIUM_JWKS_URL", "file:///etc/passwd"),
        ("HORARIUM_JWKS_URL", "https://"),
        ("HORARIUM_REQUIRED_SCOPE", "two scopes"),
        ("HORARIUM_REQUESTS_PER_SECOND", "0"),
        ("HORARIUM_REQUESTS_PER_SECOND", "fast"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_its_name(tmp_path, name, value):
    with pytest.raises(Misconfigured, match=name):
        load({name: value}, data=tmp_path)
