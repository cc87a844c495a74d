"""Signed messages between an installation and a platform's services, with a secret that both hold.

Headers and signed bytes are those of the Standard Webhooks specification
(https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md): `webhook-id`,
`webhook-timestamp`, and `webhook-signature`, which holds `v1,` and the base64 of HMAC-SHA256 over `{id}.{timestamp}.{body}`.
Its libraries verify what is signed here, and the reverse.

Neither the method nor the path is signed. Whatever a receiver acts on has to stand in the body, or in the id of the message.
"""

import base64
import binascii
import hashlib
import hmac
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from horarium.errors import Forbidden, Misconfigured

ID: Final = "webhook-id"
TIMESTAMP: Final = "webhook-timestamp"
SIGNATURE: Final = "webhook-signature"

TOLERANCE: Final = timedelta(minutes=5)
"""How far the sender's clock may be from ours, and how old a message may be: the specification's libraries use the same."""
MIN_SECRET_BYTES: Final = 24
"""The least that the specification allows."""
MOST_SIGNATURES: Final = 20
"""Of one message: two suffice for a rotation. More are not looked at, so that nobody makes us compare thousands."""

AUTHORITY_SECRET: Final = "HORARIUM_AUTHORITY_SECRET"  # noqa: S105 - the name of a variable that names another
"""The setting that names the variable of the secret that a platform's own authority shares with us."""
_NAMING: Final = (AUTHORITY_SECRET, "HORARIUM_OIDC_CLIENT_SECRET", "HORARIUM_PAYLOAD_KEYS")
"""The settings that name variables which hold a secret, alone or behind an id and `=`."""

_BASE64_PREFIX: Final = "whsec_"
_VARIABLE: Final = re.compile(r"HORARIUM_SECRET_[A-Z0-9_]{1,80}")
# A dot would let the end of an id be taken for a timestamp.
_MESSAGE_ID: Final = re.compile(r"[!-\-/-~]{1,200}")
_SECONDS: Final = re.compile(r"[0-9]{1,12}")


@dataclass(frozen=True, slots=True)
class Keys:
    """The secrets of one pair of services. The first signs and all verify, so that one can be replaced without a gap."""

    all: tuple[bytes, ...] = field(repr=False)

    def __post_init__(self) -> None:
        assert self.all, "there is at least one key"

    @property
    def first(self) -> bytes:
        """The one that signs."""
        return self.all[0]


def purpose_of(variable: str, environ: Mapping[str, str] = os.environ, *, named_by: str | None = None) -> str | None:
    """The setting other than `named_by` that names a variable, so that what it holds is for something else; None without one.

    Whoever declares a receiver of messages chooses the variable. Were it that of a payload key, the receiver would be sent what
    was signed with the key, and could try guesses at it. A process knows its own settings only.
    """
    for setting in _NAMING:
        named = {each.rpartition("=")[2] for each in environ.get(setting, "").split()}
        if setting != named_by and variable in named:
            return setting
    return None


def keys_named(variable: str, environ: Mapping[str, str] = os.environ, *, named_by: str | None = None) -> Keys:
    """The secrets in an environment variable, one or several with spaces between; the first signs.

    A secret that begins with `whsec_` goes on in base64, as the specification writes them; any other is taken as the bytes of
    its text. Raises `Misconfigured` where the variable is not there, is for something else (`purpose_of`), or a secret in it
    has fewer than 24 bytes. No error shows any part of a secret. `named_by` is the setting that names it, where one does.
    """
    if _VARIABLE.fullmatch(variable) is None:
        # It may be the secret itself, set in the wrong place, and is not repeated.
        raise Misconfigured(
            "The name of a secret is that of an environment variable that begins with HORARIUM_SECRET_, in capitals."
        )
    other = purpose_of(variable, environ, named_by=named_by)
    if other is not None:
        raise Misconfigured(
            f"The environment variable {variable} is the one that {other} names, and is not used for anything else. Declare "
            "another one."
        )
    secrets = environ.get(variable, "").split()
    if not secrets:
        raise Misconfigured(
            f"The environment variable {variable} holds no secret. Set it for every process of this installation."
        )
    return Keys(tuple(_key(each, variable) for each in secrets))


def sign(body: bytes, keys: Keys, *, message_id: str, now: datetime) -> dict[str, str]:
    """The headers that make a body a signed message.

    `message_id` is the same whenever the same message is sent again: up to 200 printable ASCII characters, without dots and
    spaces. Signed with the first key.
    """
    assert _MESSAGE_ID.fullmatch(message_id), "ids of messages are ours"
    seconds = str(int(now.timestamp()))
    return {
        ID: message_id,
        TIMESTAMP: seconds,
        SIGNATURE: f"v1,{_signature(keys.first, message_id, seconds, body)}",
    }


def verify(headers: Mapping[str, str], body: bytes, keys: Keys, *, now: datetime) -> str:
    """Return the id of a signed message, once one of its signatures is one of our keys'.

    `headers` is asked with names in lower case. Raises `Forbidden` with `bad_signature` for everything else: a header that is
    missing or malformed, a time more than five minutes away, no signature that fits. Which key was tried, and what the
    signature would have been, is not told.
    """
    message_id, seconds = headers.get(ID, ""), headers.get(TIMESTAMP, "")
    if _MESSAGE_ID.fullmatch(message_id) is None or _SECONDS.fullmatch(seconds) is None:
        raise _bad(f"The message has to carry the headers {ID}, {TIMESTAMP} and {SIGNATURE}.")
    away = abs(int(seconds) - now.timestamp())
    if away > TOLERANCE.total_seconds():
        raise _bad(
            f"The message was signed {away:.0f} s away from the time here. Look at both clocks, and sign it anew."
        )
    expected = [_signature(key, message_id, seconds, body).encode() for key in keys.all]
    fits = False
    for given in headers.get(SIGNATURE, "").split(maxsplit=MOST_SIGNATURES)[:MOST_SIGNATURES]:
        version, _, signature = given.partition(",")
        if version == "v1":
            # All are compared, whichever fits.
            for each in expected:
                fits |= hmac.compare_digest(each, signature.encode())
    if not fits:
        raise _bad("No signature of the message fits it. Look whether both sides hold the same secret.")
    return message_id


def _signature(key: bytes, message_id: str, seconds: str, body: bytes) -> str:
    signed = b".".join((message_id.encode(), seconds.encode(), body))
    return base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def _key(secret: str, variable: str) -> bytes:
    if secret.startswith(_BASE64_PREFIX):
        try:
            key = base64.b64decode(secret.removeprefix(_BASE64_PREFIX), validate=True)
        except (binascii.Error, ValueError):
            raise Misconfigured(
                f"A secret in the environment variable {variable} begins with {_BASE64_PREFIX} and is no base64 after it."
            ) from None
    else:
        key = secret.encode(errors="surrogateescape")
    if len(key) < MIN_SECRET_BYTES:
        raise Misconfigured(
            f"A secret in the environment variable {variable} has {len(key)} bytes; it needs at least {MIN_SECRET_BYTES}."
        )
    return key


def _bad(sentence: str) -> Forbidden:
    return Forbidden("bad_signature", sentence)
