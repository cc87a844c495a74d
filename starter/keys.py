"""The key of a development installation: made once, kept in its data folder, and what its tokens are signed with."""

import base64
import hashlib
import os
import stat
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from horarium.api.tokens import VerificationKey
from horarium.errors import Misconfigured

ALGORITHM = "EdDSA"
LONGEST = timedelta(days=30)
"""How long a development token may live at the most."""


def make_key(path: Path) -> None:
    """Make a key where there is none; one that is there stays. The file is its owner's alone from its first byte on."""
    if path.exists():
        return
    path.parent.mkdir(mode=0o700, exist_ok=True)
    text = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
        # Of two who make one at a time, the first wins: tokens may have been signed with it.
        os.link(unfinished, path)
    except FileExistsError:
        pass
    finally:
        unfinished.unlink()


def load_key(path: Path) -> Ed25519PrivateKey:
    """The key of an installation; `Misconfigured` where there is none, others may read it, or it is another kind of key."""
    try:
        mode = path.stat().st_mode
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise Misconfigured(
            f"There is no key at {str(path)!r}. `horarium setup` makes one for development; in production set "
            "HORARIUM_JWKS_URL to where the keys of your tokens are."
        ) from error
    except OSError as error:
        raise Misconfigured(f"The key at {str(path)!r} cannot be read: {error.strerror}.") from error
    if stat.S_IMODE(mode) & 0o077:
        raise Misconfigured(
            f"Others than its owner may read the key at {str(path)!r}. Run `chmod 600 {path}`, or remove it and run "
            "`horarium setup` for a new one."
        )
    try:
        key = load_pem_private_key(data, password=None)
    except (ValueError, TypeError) as error:
        raise Misconfigured(
            f"The file {str(path)!r} holds no private key. Remove it and run `horarium setup`."
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise Misconfigured(f"The key at {str(path)!r} is no Ed25519 key. Remove it and run `horarium setup`.")
    return key


def verification_key(key: Ed25519PrivateKey) -> VerificationKey:
    """The public part, as the API takes it."""
    return VerificationKey(kid=_name(key), algorithm=ALGORITHM, key=key.public_key())


def mint(key: Ed25519PrivateKey, claims: Mapping[str, Any], *, now: datetime, lifetime: timedelta) -> str:
    """A token with those claims that lives from now on for a while."""
    stamps = {"iat": int(now.timestamp()), "exp": int((now + lifetime).timestamp())}
    return jwt.encode({**claims, **stamps}, key, algorithm=ALGORITHM, headers={"kid": _name(key)})


def _name(key: Ed25519PrivateKey) -> str:
    """The thumbprint of the public key, as RFC 7638 and RFC 8037 have it."""
    raw = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    x = base64.urlsafe_b64encode(raw).decode().rstrip("=")
    text = f'{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}'
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
