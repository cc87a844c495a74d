"""Reaching Temporal: what is said while nothing answers, and what is wrong with the settings where waiting is in vain."""

import asyncio
import os
import socket
import ssl
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from temporalio.service import RPCError, RPCStatusCode

from horarium.errors import Misconfigured, Unavailable
from worker import connection
from worker.connection import connect, why_in_vain

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("HORARIUM_", "TEMPORAL_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", os.devnull)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def refusal(kind=Misconfigured, **options) -> str:
    with pytest.raises(kind) as caught:
        asyncio.run(connect(**options))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_process_that_waits_says_within_two_seconds_for_what_and_once():
    address = f"127.0.0.1:{free_port()}"
    waits = "import asyncio; from worker.connection import connect; asyncio.run(connect(wait_seconds=60))"
    process = subprocess.Popen(
        [sys.executable, "-c", waits],
        cwd=REPOSITORY,
        env={**os.environ, "TEMPORAL_ADDRESS": address},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        began = time.monotonic()
        assert process.stderr.readline() == f"Waiting for a Temporal server at {address} (up to 60 s) …\n"
        # Two seconds on an idle machine; importing the SDK alone takes longer on a busy one.
        assert time.monotonic() - began < 30
        time.sleep(1.5)
    finally:
        process.kill()
        rest = process.communicate()[1]
    assert rest == ""


def test_a_server_that_is_not_there_is_given_up_after_the_time_and_nothing_is_said_before_without_a_wait(capsys):
    address = f"127.0.0.1:{free_port()}"
    assert f"No Temporal server answers at {address}." in refusal(Unavailable, address=address)
    assert capsys.readouterr().err == ""


def test_a_server_that_nobody_named_is_soon_given_up_and_the_variable_is_named(monkeypatch):
    monkeypatch.setattr(connection, "DEFAULT_ADDRESS", f"127.0.0.1:{free_port()}")
    monkeypatch.setattr(connection, "UNNAMED_WITHIN", connection.UNNAMED_WITHIN / 10)
    began = time.monotonic()
    told = refusal(Unavailable, wait_seconds=600)
    assert time.monotonic() - began < 300, "far less than it was to wait"
    assert f"{connection.DEFAULT_ADDRESS}, which is meant while TEMPORAL_ADDRESS names no other" in told


def test_what_listens_and_never_answers_does_not_hold_the_process_for_ever(monkeypatch):
    monkeypatch.setattr(connection, "ATTEMPT_WITHIN", connection.ATTEMPT_WITHIN / 20)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        told = refusal(Unavailable, address=f"127.0.0.1:{mute.getsockname()[1]}")
    assert "Something listens at" in told
    assert "TEMPORAL_ADDRESS" in told


@pytest.mark.server
def test_a_namespace_that_is_not_there_is_one_sentence_that_says_what_to_set(temporal_server, monkeypatch):
    monkeypatch.setattr(connection, "NAMESPACE_WITHIN", connection.NAMESPACE_WITHIN / 10)
    monkeypatch.setenv("TEMPORAL_ADDRESS", temporal_server.address)
    monkeypatch.setenv("TEMPORAL_NAMESPACE", "production")
    told = refusal()
    assert f"Temporal at {temporal_server.address} has no namespace 'production'. Set TEMPORAL_NAMESPACE" in told


@pytest.mark.server
@pytest.mark.parametrize("name", ["TEMPORAL_TLS", "TEMPORAL_API_KEY"])
def test_tls_where_the_server_has_none_is_said_at_once_and_not_waited_for(temporal_server, monkeypatch, name):
    monkeypatch.setenv("TEMPORAL_ADDRESS", temporal_server.address)
    monkeypatch.setenv(name, "true")
    began = time.monotonic()
    told = refusal(wait_seconds=60)
    assert "does not speak TLS" in told
    assert "TEMPORAL_TLS=false" in told
    assert time.monotonic() - began < 50


@pytest.mark.server
def test_an_address_that_is_given_is_meant_whatever_the_environment_says(temporal_server, monkeypatch, tmp_path):
    broken = tmp_path / "temporal.toml"
    broken.write_text("this is no [TOML")
    for name, value in {
        "TEMPORAL_ADDRESS": "hosted.invalid:7233",
        "TEMPORAL_NAMESPACE": "production",
        "TEMPORAL_TLS": "true",
        "TEMPORAL_API_KEY": "secret",
        "TEMPORAL_PROFILE": "nobody",
        "TEMPORAL_CONFIG_FILE": str(broken),
    }.items():
        monkeypatch.setenv(name, value)
    client = asyncio.run(connect(address=temporal_server.address))
    assert client.namespace == "default"
    told = refusal()
    assert "configuration cannot be read" in told
    assert "TEMPORAL_CONFIG_FILE" in told


def certified(folder: Path) -> ssl.SSLContext:
    """A server's side of TLS with a certificate that nobody trusts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "pem").write_bytes(key.private_bytes(pem, *plain) + certificate.public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "pem")
    context.set_alpn_protocols(["h2"])
    return context


def test_a_certificate_that_is_not_trusted_and_tls_that_is_missing_are_told_apart(tmp_path, monkeypatch):
    async def story() -> list[str]:
        told = []
        context = certified(tmp_path)
        async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context) as server:
            monkeypatch.setenv("TEMPORAL_ADDRESS", f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
            for tls in ("true", "false"):
                monkeypatch.setenv("TEMPORAL_TLS", tls)
                try:
                    await connect()
                except (Misconfigured, Unavailable) as error:
                    told.append(str(error))
        return told

    untrusted, plain = asyncio.run(story())
    assert "its certificate is not trusted" in untrusted
    assert "TEMPORAL_TLS_SERVER_CA_CERT_PATH" in untrusted
    assert "set TEMPORAL_TLS=true" in plain


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RPCError("no", RPCStatusCode.UNAUTHENTICATED, b""), "TEMPORAL_API_KEY"),
        (RPCError("no", RPCStatusCode.PERMISSION_DENIED, b""), "TEMPORAL_API_KEY"),
        (
            RuntimeError("`get_system_info` call error: Status { code: Unauthenticated, message: ..."),
            "TEMPORAL_API_KEY",
        ),
        (RuntimeError("tonic::transport::Error(Transport, PrivateKeyParseError)"), "TEMPORAL_TLS_CLIENT_KEY_PATH"),
        (ValueError("invalid target URL: empty host"), "HOST:PORT"),
    ],
)
def test_what_waiting_does_not_help_names_what_to_set(error, words):
    told = str(why_in_vain("temporal.example:7233", error))
    assert words in told
    assert isinstance(why_in_vain("temporal.example:7233", error), Misconfigured)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError('Failed client connect: ConnectError("tcp connect error", ConnectionRefused)'),
        RPCError("gone", RPCStatusCode.UNAVAILABLE, b""),
        TimeoutError(),
    ],
)
def test_a_server_that_may_still_come_is_waited_for(error):
    assert why_in_vain("temporal.example:7233", error) is None
