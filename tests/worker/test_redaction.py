"""No secret that we know of comes into a log, wherever it stands; and what is none stays readable."""

import base64
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from worker.payload_keys import PAYLOAD_KEYS
from worker.redaction import HIDDEN, Redaction, secrets_in

REPOSITORY = Path(__file__).parents[2]
JWT = ".".join(
    base64.urlsafe_b64encode(part).decode().rstrip("=")
    for part in (b'{"alg":"EdDSA"}', b'{"sub":"ada"}', b"signed" * 8)
)
ENVIRON = {
    "HORARIUM_CATALOG": "postgresql+psycopg://horarium:p%40ss-word-1@db.example/horarium",
    "HORARIUM_SECRET_LINES": "whsec_Zmlyc3Qgc2VjcmV0IG9mIGxpbmVz second-secret-of-lines",
    "HORARIUM_SECRET_OIDC": "the-clients-own-secret",
    "TEMPORAL_API_KEY": "temporal-key-of-the-namespace",
    "OTEL_EXPORTER_OTLP_HEADERS": "x-api-key=collector-key-7",
    "CATALOG_PASSWORD": "another-password",
    "PGPASSWORD": "password-of-libpq",
    "TEMPORAL_TLS_CLIENT_KEY_DATA": "key-of-a-client-certificate",
    "TEMPORAL_GRPC_META_X_TENANT_TOKEN": "token-of-a-proxy",
    "HORARIUM_AUTHORITY_SECRET": "HORARIUM_SECRET_LINES",
    "HORARIUM_PUBLIC_URL": "https://horarium.example",
}
SECRETS = (
    "p@ss-word-1",
    "p%40ss-word-1",
    "whsec_Zmlyc3Qgc2VjcmV0IG9mIGxpbmVz",
    "Zmlyc3Qgc2VjcmV0IG9mIGxpbmVz",
    "second-secret-of-lines",
    "the-clients-own-secret",
    "temporal-key-of-the-namespace",
    "x-api-key=collector-key-7",
    "another-password",
    "password-of-libpq",
    "key-of-a-client-certificate",
    "token-of-a-proxy",
)
PEM = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIH\n-----END PRIVATE KEY-----"


def redacted(**line: Any) -> Any:
    return Redaction(secrets_in(ENVIRON))(None, "info", line)


@pytest.mark.parametrize("secret", [*SECRETS, JWT])
@pytest.mark.parametrize(
    "shape",
    [
        lambda secret: secret,
        lambda secret: f"it says {secret}, twice {secret}",
        lambda secret: {"headers": [("x-thing", f"{secret}")]},
        lambda secret: [{"deep": {"deeper": (secret,)}}],
        lambda secret: ValueError(f"cannot use {secret}"),
        lambda secret: f"https://host/{quote(secret, safe='')}/hook",
    ],
    ids=["alone", "in a sentence", "in headers", "deep", "in an error", "in an address"],
)
def test_a_secret_is_hidden_wherever_it_stands(secret: str, shape: Any) -> None:
    line = redacted(event="something", because=shape(secret))
    told = json.dumps(line, default=repr)
    assert secret not in told
    assert quote(secret, safe="") not in told
    assert HIDDEN in told


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("Authorization: Bearer abcdefghijkl", "abcdefghijkl"),
        ("authorization: basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA=="),
        ("redis://user:hunter2@host/0", "hunter2"),
        (f"the key {PEM} of it", "MC4CAQAwBQYDK2VwBCIEIH"),
        ("-----BEGIN EC PRIVATE KEY-----\nMC4CAQAwBQYDK2Vw", "MC4CAQAwBQYDK2Vw"),
        ("GET /ui/sign-in?code=a-code-of-it&next=/ui", "a-code-of-it"),
    ],
)
def test_what_looks_as_secrets_do_is_hidden(text: str, hidden: str) -> None:
    line = redacted(event=text)
    assert hidden not in line["event"]
    assert HIDDEN in line["event"]


@pytest.mark.parametrize(
    "name", ["token", "run_token", "Authorization", "client_secret", "password", "set-cookie", "api_key"]
)
def test_a_field_whose_name_says_so_is_hidden(name: str) -> None:
    assert redacted(event="something", **{name: "x"})[name] == HIDDEN
    assert redacted(event="something", request={name: "x"})["request"] == {name: HIDDEN}


def test_what_is_no_secret_stays_as_it_is() -> None:
    line = {
        "event": "request",
        "path": "/v1/organizations/acme/environments/test/schedules",
        "workflow_id": "run/acme/test/7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11/4/2026-11-29T07:30:00Z",
        "url": "https://horarium.example",
        "variable": "HORARIUM_SECRET_LINES",
        "ms": 1.5,
        "tokens_seen": 3,
        "ok": True,
        "none": None,
    }
    assert redacted(**line) == line


def test_short_values_and_what_is_no_secret_variable_hide_nothing() -> None:
    assert secrets_in({"HORARIUM_SECRET_X": "", "HORARIUM_PUBLIC_URL": "https://horarium.example"}) <= {""}
    assert Redaction(["a", "test"]).text("a test") == "a test"


@pytest.mark.parametrize(
    "kept", ["in a variable", "in a file", "in the setting itself", "in the setting, alone", "in the setting, unpadded"]
)
@pytest.mark.parametrize(
    "shape",
    [
        lambda key: base64.b64encode(key).decode(),
        lambda key: base64.b64encode(key).decode().rstrip("="),
        lambda key: base64.urlsafe_b64encode(key).decode(),
        lambda key: key.hex(),
        repr,
        lambda key: ValueError(f"cannot use {key!r}"),
        lambda key: {"keys": [key]},
    ],
    ids=["as it is kept", "unpadded", "in an address", "in digits", "its bytes", "in an error", "in containers"],
)
def test_a_key_of_payloads_is_hidden_wherever_it_is_kept_and_however_it_is_told(
    kept: str, shape: Any, tmp_path: Path
) -> None:
    key = b"\xfb\xff" + bytes(range(30))
    text = base64.b64encode(key).decode()
    file = tmp_path / "payload-k1"
    file.write_text(f"{text}\n")
    environ = {
        "in a variable": {PAYLOAD_KEYS: "k1=HORARIUM_SECRET_PAYLOAD_K1", "HORARIUM_SECRET_PAYLOAD_K1": f"{text}\n"},
        "in a file": {PAYLOAD_KEYS: f"k1=file:{file}"},
        "in the setting itself": {PAYLOAD_KEYS: f"k1={text}"},
        "in the setting, alone": {PAYLOAD_KEYS: text},
        "in the setting, unpadded": {PAYLOAD_KEYS: text.rstrip("=")},
    }[kept]
    line = Redaction(secrets_in(environ))(None, "info", {"event": "began", "because": shape(key)})
    told = json.dumps(line, default=repr, ensure_ascii=False).replace("\\", "")
    assert HIDDEN in told
    forms = (text.rstrip("="), base64.urlsafe_b64encode(key).decode().rstrip("="), key.hex(), repr(key)[2:-1])
    assert not [each for each in forms if each.replace("\\", "") in told]


def test_of_a_private_key_each_line_is_hidden_and_no_word_of_its_frame() -> None:
    environ = {"TEMPORAL_TLS_CLIENT_KEY_DATA": PEM.replace("MC4C", "first-line\nMC4C")}
    text = Redaction(secrets_in(environ)).text("PRIVATE: first-line, MC4CAQAwBQYDK2VwBCIEIH")
    assert text == f"PRIVATE: {HIDDEN}, {HIDDEN}"


def test_what_says_where_a_key_is_kept_can_be_read(tmp_path: Path) -> None:
    missing, named = tmp_path / "payload-k2", "HORARIUM_SECRET_PAYLOAD_K1"
    environ = {PAYLOAD_KEYS: f"k2=file:{missing} k1={named} k0=file:{tmp_path}", named: "x"}
    text = f"k1 is in {named}, k2 in {missing}"
    assert Redaction(secrets_in(environ)).text(text) == text


PROGRAM = """
import logging, os, structlog
from worker.logs import configure
configure()
log = structlog.get_logger("ours")
secret = os.environ["HORARIUM_SECRET_OIDC"]
log.info("began", detail=secret)
try:
    raise ValueError(f"the library repeats {secret}")
except ValueError:
    log.exception("failed")
    logging.getLogger("library").exception("a library failed with %s", secret)
"""


def test_a_process_hides_them_in_its_own_lines_in_libraries_and_in_tracebacks() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **ENVIRON, "PYTHONPATH": str(REPOSITORY)},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["event"] for line in lines] == ["began", "failed", f"a library failed with {HIDDEN}"]
    assert all(HIDDEN in line["exception"] and "Traceback" in line["exception"] for line in lines[1:])
    assert ENVIRON["HORARIUM_SECRET_OIDC"] not in done.stderr


def test_every_variable_that_is_read_as_a_secret_is_known_as_one() -> None:
    """The settings name variables that hold secrets; each has to be one whose value is hidden."""
    named = re.compile(r"HORARIUM_SECRET_[A-Z0-9_]+")
    for path in (REPOSITORY / "worker").glob("*.py"):
        for name in named.findall(path.read_text()):
            assert secrets_in({name: "value-of-a-secret"}) >= {"value-of-a-secret"}, name
