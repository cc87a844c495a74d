"""TLS to Temporal as the SDK's configuration says it, against a server that asks for a client's certificate."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from horarium.errors import Misconfigured, Unavailable
from starter.temporal_server import TemporalServer
from worker.connection import connect


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("HORARIUM_", "TEMPORAL_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", os.devnull)


@dataclass(kw_only=True)
class Authority:
    """Somebody who signs certificates, with its own in a file."""

    folder: Path
    name: str
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def __post_init__(self) -> None:
        self.certificate = self._signed(self.name, self.key, x509.BasicConstraints(ca=True, path_length=0))
        self.file = self._written(self.name, self.certificate.public_bytes(serialization.Encoding.PEM))

    def issued(self, name: str) -> tuple[Path, Path]:
        """A certificate for a name of this machine, or of a client, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
        certificate = self._signed(name, key, names)
        plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return (
            self._written(name, certificate.public_bytes(serialization.Encoding.PEM)),
            self._written(f"{name}-key", key.private_bytes(serialization.Encoding.PEM, *plain)),
        )

    def _signed(self, name: str, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType) -> x509.Certificate:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder(_called(self.name), _called(name), key.public_key(), x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
            .sign(self.key, hashes.SHA256())
        )

    def _written(self, name: str, pem: bytes) -> Path:
        path = self.folder / f"{name}.pem"
        path.write_bytes(pem)
        return path


def _called(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


@dataclass(kw_only=True)
class Gate:
    """What stands before a Temporal server: who came through, by the name in the certificate."""

    port: int
    came: list[str] = field(default_factory=list)


@asynccontextmanager
async def gate(server: TemporalServer, authority: Authority) -> AsyncIterator[Gate]:
    """Let whoever shows a certificate of the authority through to the server, and nobody else."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issued("temporal"))
    context.load_verify_locations(authority.file)
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["h2"])
    inside: dict[asyncio.Task[Any], asyncio.StreamWriter] = {}

    async def enter(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        inside[task] = writer
        try:
            with suppress(
                OSError
            ):  # whoever is not let in is told so by the handshake, and may be gone in the middle of it
                # Not by the server: that keeps no account of those that it still shakes hands with when it closes.
                await writer.start_tls(context)
                shown = writer.get_extra_info("peercert")
                made.came.append(dict(pair for (pair,) in shown["subject"])["commonName"])
                inner = await asyncio.open_connection("127.0.0.1", server.port)
                await asyncio.gather(_passed_on(reader, inner[1]), _passed_on(inner[0], writer))
        finally:
            del inside[task]
            writer.transport.abort()

    listening = await asyncio.start_server(enter, "127.0.0.1", 0)
    made = Gate(port=listening.sockets[0].getsockname()[1])
    try:
        yield made
    finally:
        listening.close()
        for task in list(inside):
            task.cancel()
        await asyncio.gather(*inside, return_exceptions=True)


async def _passed_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        with suppress(OSError):
            while data := await source.read(65_536):
                target.write(data)
                await target.drain()
    finally:
        target.close()


@pytest.mark.server
@pytest.mark.parametrize("by", ["variables", "profile"])
async def test_a_client_certificate_lets_us_through_however_it_is_named(
    by: str, temporal_server: TemporalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(folder=tmp_path, name="authority")
    certificate, key = authority.issued("horarium")
    async with gate(temporal_server, authority) as it:
        if by == "variables":
            for name, value in {
                "ADDRESS": f"127.0.0.1:{it.port}",
                "TLS_CLIENT_CERT_PATH": certificate,
                "TLS_CLIENT_KEY_PATH": key,
                "TLS_SERVER_CA_CERT_PATH": authority.file,
                "TLS_SERVER_NAME": "localhost",
            }.items():
                monkeypatch.setenv(f"TEMPORAL_{name}", str(value))
        else:
            profile = tmp_path / "temporal.toml"
            profile.write_text(
                f"""
                [profile.production]
                address = "127.0.0.1:{it.port}"
                namespace = "default"
                [profile.production.tls]
                client_cert_path = "{certificate}"
                client_key_path = "{key}"
                server_ca_cert_path = "{authority.file}"
                """
            )
            monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(profile))
            monkeypatch.setenv("TEMPORAL_PROFILE", "production")
        client = await connect(wait_seconds=30)
        assert client.namespace == "default"
        assert set(it.came) == {"horarium"}


@pytest.mark.server
@pytest.mark.parametrize("shown", ["none", "another authority's"])
async def test_without_a_certificate_that_the_server_accepts_it_is_said_what_to_set(
    shown: str, temporal_server: TemporalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(folder=tmp_path, name="authority")
    async with gate(temporal_server, authority) as it:
        monkeypatch.setenv("TEMPORAL_ADDRESS", f"localhost:{it.port}")
        monkeypatch.setenv("TEMPORAL_TLS_SERVER_CA_CERT_PATH", str(authority.file))
        if shown != "none":
            (tmp_path / "other").mkdir()
            certificate, key = Authority(folder=tmp_path / "other", name="other").issued("horarium")
            monkeypatch.setenv("TEMPORAL_TLS_CLIENT_CERT_PATH", str(certificate))
            monkeypatch.setenv("TEMPORAL_TLS_CLIENT_KEY_PATH", str(key))
        with pytest.raises((Misconfigured, Unavailable)) as refused:
            await connect()
        assert "TEMPORAL_TLS_CLIENT_CERT_PATH" in str(refused.value)
        assert it.came == []
